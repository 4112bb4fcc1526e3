"""One small file per language that says the same: shelves hold books, and a test takes one out."""

from __future__ import annotations

from pathlib import Path

_CORPUS = Path(__file__).with_name("corpus") / "code"

GO = """// Copyright of the shelf makers.

// Package shelf keeps books.
package shelf

import (
	"fmt"
	io "example.org/books/io"
)

// Limit is how many books fit.
const Limit = 3

var opened = false

// Shelf holds books.
type Shelf struct {
	Base
	books []Book
}

// Keeper keeps books.
type Keeper interface {
	Add(book Book) error
}

// Add puts a book in.
func (s *Shelf) Add(book Book) error {
	if len(s.books) >= Limit {
		return fmt.Errorf("full")
	}
	s.log(book)
	return io.Write(book)
}

func (s *Shelf) log(book Book) {}

// New opens a shelf.
func New() *Shelf {
	return &Shelf{}
}

func TestShelf_Add(t *testing.T) {
	shelf := New()
	assert.NoError(shelf.Add(Book{}))
}
"""

JAVASCRIPT = """/**
 * Shelves of books.
 */

"use strict";
import { Book, page as leaf } from "./books.js";
const io = require("io");

export const LIMIT = 3;

/** Holds books. */
export default class Shelf extends Base {
  #books = [];

  // Puts one in.
  add(book) {
    this.log(book);
    return io.write(leaf(book));
  }

  static open = () => {
    return new Shelf();
  };
}

function Row() {}

Row.prototype.width = function () {
  return 1;
};

// Draws a shelf.
export const Drawing = async ({ shelf }) => {
  return <Frame title="shelf">{shelf}</Frame>;
};

describe("Shelf", () => {
  it("takes a book", () => {
    expect(new Shelf().add(Book.any())).toBe(true);
  });
});
"""

TYPESCRIPT = """import type { Book } from "./books";

export type Title = string | null;

export interface Keeper<T> extends Holder {
  size: number;
  add(book: T): void;
}

export enum Size {
  Small = 1,
  Large,
}

@final
export abstract class Shelf<T> extends Base<T> implements Keeper<T>, Other {
  private readonly books: Book[] = [];

  constructor(private readonly limit: number) {
    super();
  }

  @logged()
  add(book: T): void {
    this.check(book);
  }

  abstract check(book: T): boolean;
}

export namespace Rows {
  export function width(row: Row): number {
    return row.width;
  }
}

function open(name: string): Shelf<Book>;
function open(name: any): any {
  return make(name);
}
"""

TSX = """import { useState } from "react";

type Props = { title: string };

export function Frame({ title }: Props) {
  const [open, setOpen] = useState(false);
  return <Panel onClick={() => setOpen(!open)}>{title}</Panel>;
}

export const Row = memo((props: Props) => {
  return <Frame {...props} />;
});
"""

JAVA = """/* Copyright of the shelf makers. */
package org.example.shelf;

import java.util.List;
import static org.example.Books.*;

/**
 * Holds books.
 */
@Entity(name = "shelf")
public class Shelf<T> extends Base<T> implements Keeper, Closeable {
  private static final int LIMIT = 3, MORE = 4;

  /** Opens one. */
  public Shelf(List<T> books) {
    super(books);
  }

  /** Puts a book in. */
  @Override
  public void add(T book) throws FullException {
    this.log(book);
    Books.write(book);
  }

  enum Size {
    SMALL,
    LARGE;

    int width() {
      return 1;
    }
  }
}

interface Keeper extends Holder {
  void add(Book book);
}

class ShelfTest {
  @Test
  void takesABook() {
    Shelf shelf = new Shelf(null);
    assertTrue(shelf.add(null));
  }
}
"""

RUST = """//! Shelves of books.
#![deny(missing_docs)]

use std::{fmt::{self, Display as Shown}, io};
use crate::books::*;

/// How many fit.
pub const LIMIT: usize = 3;

/// Holds books.
#[derive(Debug)]
pub struct Shelf<'a, T: Clone> {
    books: Vec<&'a T>,
}

/// Keeps books.
pub trait Keeper: Holder {
    fn add(&mut self, book: Book);

    fn both(&mut self, book: Book) {
        self.add(book);
    }
}

impl<'a, T: Clone> fmt::Display for Shelf<'a, T> {
    /// Shows one.
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}", self.width())
    }
}

impl<'a, T: Clone> Shelf<'a, T> {
    const ROWS: usize = 2;

    /// Opens one.
    #[inline]
    pub fn new() -> Self {
        Self::check();
        io::stdout();
        Shelf { books: Vec::new() }
    }

    fn width(&self) -> usize {
        self.books.len()
    }
}

macro_rules! shelf {
    () => {};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens() {
        assert_eq!(Shelf::new().width(), 0);
    }
}
"""

C = """/* Shelves of books. */
#ifndef SHELF_H
#define SHELF_H

#include <stdio.h>
#include "books/page.h"

#define LIMIT 3
#define WIDTH(shelf) ((shelf)->width + \\
                      LIMIT)

#ifdef __cplusplus
extern "C" {
#endif

/* Holds books. */
typedef struct shelf {
    int width;
    struct book *books;
} shelf_t;

enum size { SMALL, LARGE };

int shelf_width(const shelf_t *shelf);

// Puts one in.
static inline int *
shelf_add(shelf_t *shelf, int (*check)(struct book *))
{
    if (check(shelf->books)) {
        page_open(shelf);
    }
    return 0;
}

#ifdef __cplusplus
}
#endif
#endif
"""

CPP = """#include <vector>
#include "books/page.hpp"

using namespace std;

namespace library {
namespace rows {

class Keeper;

/// Holds books.
template <typename T>
class Shelf : public Base<T>, private library::Holder {
 public:
  explicit Shelf(int width) : width_(width) {}
  ~Shelf() = default;

  // How wide it is.
  int width() const { return this->check(width_); }

  void add(const T& book);

 private:
  int width_;
};

// Puts one in.
template <typename T>
void Shelf<T>::add(const T& book) {
  page::open(book);
  books_.push_back(new Page(book));
}

bool operator==(const Row& a, const Row& b) {
  return true;
}

enum class Size { Small, Large };

}  // namespace rows

int rows::Row::count() { return 1; }

}  // namespace library

TEST(ShelfTest, TakesABook) {
  EXPECT_EQ(open_shelf(), nullptr);
}
"""

PYTHON = '''"""Shelves of books."""

import io
from books import Book, page as leaf

LIMIT = 3


class Shelf(Base, Generic[T]):
    """Holds books."""

    width: int = LIMIT

    @logged
    def add(self, book: Book) -> None:
        """Puts one in."""
        self.check(book)
        leaf.write(io.open(book))


def open_shelf() -> Shelf:
    return Shelf()


class ShelfTest(TestCase):
    def test_open_shelf(self):
        self.assertTrue(open_shelf().add(None))
'''

SAMPLES = {
    "python": PYTHON,
    "go": GO,
    "javascript": JAVASCRIPT,
    "typescript": TYPESCRIPT,
    "tsx": TSX,
    "java": JAVA,
    "rust": RUST,
    "c": C,
    "cpp": CPP,
    "cuda": CPP,
    **{
        language: (_CORPUS / f"shelf.{suffix}").read_text("utf-8")
        for language, suffix in {
            "csharp": "cs",
            "kotlin": "kt",
            "php": "php",
            "ruby": "rb",
            "swift": "swift",
            "scala": "scala",
            "bash": "sh",
            "lua": "lua",
            "sql": "sql",
            "proto": "proto",
            "hcl": "tf",
            "graphql": "graphql",
        }.items()
    },
}
