package shelves

import example.books.Io
import example.books.{Book => Volume}

/** Holds books. */
class Shelf(name: String) extends Base with Keeper {
  private val books = List[Volume]()

  /** Puts a book in. */
  def add(book: Volume): Boolean = {
    if (books.size >= Shelf.Limit) {
      throw new IllegalStateException("full")
    }
    this.log(book)
    Io.write(book)
  }

  private def log(book: Volume): Unit = {}
}

object Shelf {
  val Limit = 3
  def open(): Shelf = new Shelf("a")
}

trait Keeper {
  def add(book: Volume): Boolean
}

case class Leaf(number: Int)
