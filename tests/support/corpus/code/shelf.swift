import Foundation

let limit = 3

/// Holds books.
class Shelf: Base, Keeper {
    private var books: [Book] = []

    init(name: String) { super.init() }

    /// Puts a book in.
    func add(_ book: Book) throws -> Bool {
        guard books.count < limit else { throw Full.full }
        self.log(book)
        return Io.write(book)
    }

    private func log(_ book: Book) {}
}

protocol Keeper {
    func add(_ book: Book) throws -> Bool
}

struct Leaf { var number: Int }
enum Full: Error { case full }

extension Shelf {
    func first() -> Book { return books[0] }
}

func open() -> Shelf { return Shelf(name: "a") }
