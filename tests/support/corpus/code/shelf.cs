// Copyright of the shelf makers.
using System;
using Io = Example.Books.Io;

namespace Shelves
{
    /// <summary>Holds books.</summary>
    public class Shelf : Base, IKeeper
    {
        private readonly List<Book> books = new List<Book>();

        public int Limit { get; set; } = 3;

        /// <summary>Puts a book in.</summary>
        [Obsolete]
        public bool Add(Book book)
        {
            if (books.Count >= Limit) { throw new FullException("full"); }
            this.Log(book);
            return Io.Write(book);
        }

        private void Log(Book book) { }
        public Shelf() { }
    }

    public interface IKeeper { bool Add(Book book); }
    public enum Colour { Red, Green }
    public record Leaf(int Number);
    public class ShelfTests
    {
        [Fact]
        public void AddsBook() { Assert.True(new Shelf().Add(new Book())); }
    }
}
