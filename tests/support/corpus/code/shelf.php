<?php
// Copyright.
namespace Shelves;

use Example\Books\Io;
use Example\Books\Book as Volume;

const LIMIT = 3;

/**
 * Holds books.
 */
class Shelf extends Base implements Keeper
{
    use Counts;
    private array $books = [];

    /** Puts a book in. */
    public function add(Volume $book): bool
    {
        if (count($this->books) >= LIMIT) {
            throw new \Exception('full');
        }
        $this->log($book);
        return Io::write($book);
    }

    private function log($book) {}
}

interface Keeper { public function add(Volume $book): bool; }
trait Counts { public function count() { return 1; } }

/** Opens a shelf. */
function open_shelf(): Shelf
{
    return new Shelf();
}
