package shelves

import example.books.Io
import example.books.Book as Volume

const val LIMIT = 3

/** Holds books. */
class Shelf(private val name: String) : Base(), Keeper {
    private val books = mutableListOf<Volume>()

    /** Puts a book in. */
    override fun add(book: Volume): Boolean {
        if (books.size >= LIMIT) {
            throw IllegalStateException("full")
        }
        this.log(book)
        return Io.write(book)
    }

    private fun log(book: Volume) {}

    companion object {
        fun open(): Shelf = Shelf("a")
    }
}

interface Keeper {
    fun add(book: Volume): Boolean
}

object Shop { fun sell() {} }
enum class Colour { RED, GREEN }

fun Shelf.first(): Volume = books[0]

class ShelfTest {
    @Test
    fun addsBook() { assertTrue(Shelf("a").add(Volume())) }
}
