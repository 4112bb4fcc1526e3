"""ING-5, ING-12, ING-13, ING-14: source code of every language that has a profile."""

from __future__ import annotations

from dataclasses import fields

import pytest
from tree_sitter_language_pack import get_language

from tests.support.code_samples import SAMPLES
from tests.support.cut_code import SIZES, chunks_of, links_of, named, words
from weft.chunking.code.grammar import LAST, ONLY
from weft.chunking.code.grammars import GRAMMARS
from weft.chunking.code.tree import query_of
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.links import LinkKind

TIGHT = ChunkSizes(max_tokens=40, target_tokens=40, min_tokens=0, overlap_tokens=6)

UNITS = {
    "go": [
        *[(0, "preamble", None), (1, "constants", None), (1, "struct", "Shelf"), (2, "interface", "Keeper")],
        *[(2, "method", "Shelf.Add"), (2, "method", "Shelf.log"), (2, "function", "New")],
        (2, "function", "TestShelf_Add"),
    ],
    "javascript": [
        *[(0, "preamble", None), (1, "constants", None), (1, "class", "Shelf"), (2, "method", "Shelf.add")],
        *[(2, "method", "Shelf.open"), (2, "function", "Row"), (2, "method", "Row.width")],
        *[(2, "function", "Drawing"), (1, "code", None)],
    ],
    "typescript": [
        *[(0, "preamble", None), (1, "constants", None), (2, "interface", "Keeper"), (1, "enum", "Size")],
        *[(1, "class", "Shelf"), (2, "method", "Shelf.constructor"), (2, "method", "Shelf.add")],
        *[(2, "fields", None), (2, "function", "Rows.width"), (2, "function", "open")],
    ],
    "tsx": [(0, "preamble", None), (1, "constants", None), (2, "function", "Frame"), (2, "function", "Row")],
    "java": [
        *[(0, "preamble", None), (1, "class", "Shelf"), (2, "method", "Shelf.Shelf"), (2, "method", "Shelf.add")],
        *[(2, "enum", "Shelf.Size"), (3, "method", "Shelf.Size.width"), (2, "interface", "Keeper")],
        *[(1, "class", "ShelfTest"), (2, "method", "ShelfTest.takesABook")],
    ],
    "rust": [
        *[(0, "preamble", None), (1, "constants", None), (1, "struct", "Shelf"), (2, "trait", "Keeper")],
        *[(3, "method", "Keeper.both"), (2, "method", "Shelf.fmt"), (1, "fields", None), (2, "method", "Shelf.new")],
        *[(2, "method", "Shelf.width"), (2, "function", "shelf"), (1, "code", None), (2, "function", "tests.opens")],
    ],
    "c": [
        *[
            (0, "preamble", None),
            (1, "constants", None),
            (1, "macro", "WIDTH"),
            (1, "struct", "shelf"),
            (1, "enum", "size"),
        ],
        *[(2, "declaration", "shelf_width"), (2, "function", "shelf_add")],
    ],
    "cpp": [
        *[(0, "preamble", None), (1, "code", None), (1, "class", "library.rows.Shelf")],
        *[(2, "method", "library.rows.Shelf.Shelf"), (2, "fields", None), (2, "method", "library.rows.Shelf.width")],
        *[(2, "fields", None), (2, "fields", None), (2, "method", "library.rows.Shelf.add")],
        *[(2, "function", "library.rows.operator=="), (1, "enum", "library.rows.Size")],
        *[(2, "method", "library.rows.Row.count"), (2, "method", "ShelfTest.TakesABook")],
    ],
    "csharp": [
        (0, "preamble", None),
        (1, "class", "Shelves.Shelf"),
        (2, "method", "Shelves.Shelf.Add"),
        (2, "method", "Shelves.Shelf.Log"),
        (2, "method", "Shelves.Shelf.Shelf"),
        (2, "interface", "Shelves.IKeeper"),
        (1, "enum", "Shelves.Colour"),
        (1, "record", "Shelves.Leaf"),
        (1, "class", "Shelves.ShelfTests"),
        (2, "method", "Shelves.ShelfTests.AddsBook"),
    ],
    "kotlin": [
        (0, "preamble", None),
        (1, "constants", None),
        (1, "class", "Shelf"),
        (2, "method", "Shelf.add"),
        (2, "method", "Shelf.log"),
        (2, "method", "Shelf.open"),
        (2, "interface", "Keeper"),
        (1, "object", "Shop"),
        (1, "enum", "Colour"),
        (2, "method", "Shelf.first"),
        (1, "class", "ShelfTest"),
        (2, "method", "ShelfTest.addsBook"),
    ],
    "php": [
        (0, "preamble", None),
        (1, "constants", None),
        (1, "class", "Shelf"),
        (2, "method", "Shelf.add"),
        (2, "method", "Shelf.log"),
        (2, "interface", "Keeper"),
        (2, "trait", "Counts"),
        (2, "function", "open_shelf"),
    ],
    "ruby": [
        (0, "preamble", None),
        (1, "constants", None),
        (1, "class", "Shelves.Shelf"),
        (2, "method", "Shelves.Shelf.add"),
        (2, "method", "Shelves.Shelf.open"),
        (2, "fields", None),
        (2, "method", "Shelves.Shelf.log"),
        (2, "function", "helper"),
        (1, "code", None),
    ],
    "swift": [
        (0, "preamble", None),
        (1, "constants", None),
        (1, "class", "Shelf"),
        (2, "method", "Shelf.init"),
        (2, "method", "Shelf.add"),
        (2, "method", "Shelf.log"),
        (1, "protocol", "Keeper"),
        (1, "struct", "Leaf"),
        (1, "enum", "Full"),
        (1, "extension", "Shelf"),
        (2, "method", "Shelf.first"),
        (2, "function", "open"),
    ],
    "scala": [
        (0, "preamble", None),
        (1, "class", "Shelf"),
        (2, "method", "Shelf.add"),
        (2, "method", "Shelf.log"),
        (1, "object", "Shelf"),
        (2, "method", "Shelf.open"),
        (2, "trait", "Keeper"),
        (1, "class", "Leaf"),
    ],
    "bash": [
        (1, "code", None),
        (2, "function", "add_book"),
        (2, "function", "log_book"),
        (1, "code", None),
    ],
    "lua": [
        (0, "preamble", None),
        (1, "constants", None),
        (2, "method", "Shelf.add"),
        (2, "method", "Shelf.log"),
        (2, "function", "open_shelf"),
        (2, "function", "first"),
        (1, "code", None),
    ],
    "sql": [
        (0, "preamble", None),
        (1, "table", "shelf"),
        (1, "index", "shelf_name"),
        (1, "view", "open_shelf"),
        (2, "function", "add_book"),
        (1, "trigger", "shelf_added"),
        (1, "code", None),
        (1, "code", None),
    ],
    "proto": [
        (0, "preamble", None),
        (1, "message", "Shelf"),
        (1, "enum", "Colour"),
        (1, "service", "Keeper"),
        (2, "method", "Keeper.AddBook"),
        (2, "method", "Keeper.DropBook"),
    ],
    "hcl": [
        (0, "preamble", None),
        (1, "block", "terraform"),
        (1, "block", "variable.region"),
        (1, "block", "resource.aws_s3_bucket.shelf"),
        (1, "block", "resource.aws_s3_bucket_policy.shelf"),
        (1, "block", "module.net"),
        (1, "block", "output.arn"),
    ],
    "graphql": [
        (0, "preamble", None),
        (1, "type", "Shelf"),
        (2, "interface", "Keeper"),
        (1, "enum", "Colour"),
        (1, "union", "Thing"),
        (1, "input", "NewBook"),
        (1, "scalar", "Date"),
        (1, "extend", "Query"),
        (1, "operation", "FindShelf"),
        (1, "fragment", "Parts"),
    ],
}


@pytest.mark.parametrize("language", UNITS)
def test_the_units_of_a_file_have_their_levels_and_names(language: str) -> None:
    """ING-5: 0 preamble, 1 types and constants, 2 functions, methods and interfaces, 3 what is deeper."""
    found = [(chunk.level, chunk.kind, chunk.symbol) for chunk in chunks_of(language)]
    assert found == UNITS[language]


@pytest.mark.parametrize("language", SAMPLES)
def test_a_clean_file_is_understood_whole(language: str) -> None:
    """ING-5: `parse_quality` is 1 where nothing is wrong."""
    assert {chunk.parse_quality for chunk in chunks_of(language)} == {1.0}


@pytest.mark.parametrize("language", SAMPLES)
def test_a_broken_end_leaves_the_units_before_it(language: str) -> None:
    """ING-5: a file with syntax errors is still cut, and says where it could not be understood."""
    chunks = chunks_of(language, SAMPLES[language] + "\n\n)) ((( ]] ((\n")
    symbols = {symbol for _, _, symbol in UNITS.get(language, [])[:-1]}
    assert symbols <= {chunk.symbol for chunk in chunks}
    assert min(chunk.parse_quality for chunk in chunks) < 1.0


@pytest.mark.parametrize(
    ("language", "symbol", "start", "end"),
    [
        ("go", "Shelf.Add", "// Add puts a book in.\nfunc (s *Shelf) Add(", "return io.Write(book)\n}"),
        ("javascript", "Drawing", "// Draws a shelf.\nexport const Drawing", "</Frame>;\n};"),
        ("typescript", "Shelf", "@final\nexport abstract class Shelf", "books: Book[] = [];"),
        ("java", "Shelf", '/**\n * Holds books.\n */\n@Entity(name = "shelf")\npublic class', "MORE = 4;"),
        ("rust", "Shelf", "/// Holds books.\n#[derive(Debug)]\npub struct Shelf", "books: Vec<&'a T>,\n}"),
        ("c", "shelf_add", "// Puts one in.\nstatic inline int *\nshelf_add(", "    return 0;\n}"),
        ("cpp", "library.rows.Shelf.add", "// Puts one in.\ntemplate <typename T>\nvoid", "new Page(book));\n}"),
        ("python", "open_shelf", "def open_shelf() -> Shelf:", "return Shelf()"),
    ],
)
def test_a_chunk_holds_its_comments_its_signature_and_its_body(
    language: str, symbol: str, start: str, end: str
) -> None:
    """ING-5: with annotations, attributes and decorators."""
    text = named(chunks_of(language))[symbol].text
    assert text.startswith(start)
    assert end in text


@pytest.mark.parametrize(
    ("language", "method", "shown"),
    [
        ("java", "Shelf.add", "public class Shelf<T> extends Base<T> implements Keeper, Closeable {\n  /** Puts"),
        ("rust", "Shelf.width", "impl<'a, T: Clone> Shelf<'a, T> {\n    fn width"),
        ("rust", "Shelf.new", "impl<'a, T: Clone> Shelf<'a, T> {\n    /// Opens one.\n    #[inline]"),
        ("rust", "Shelf.fmt", "impl<'a, T: Clone> fmt::Display for Shelf<'a, T> {\n    /// Shows one."),
        (
            "cpp",
            "library.rows.Shelf.width",
            "template <typename T> class Shelf : public Base<T>, private library::Hold",
        ),
        ("python", "Shelf.add", "class Shelf(Base, Generic[T]):\n    @logged\n    def add"),
    ],
)
def test_members_are_shown_under_their_types_signature(language: str, method: str, shown: str) -> None:
    """ING-5: once, also where the header of an extension opens its first member."""
    text = named(chunks_of(language))[method].text
    assert text.startswith(shown)
    assert text.count(shown.partition("\n")[0]) == 1


@pytest.mark.parametrize(
    ("language", "kind", "members"),
    [
        ("go", "Shelf", {"Shelf.Add", "Shelf.log"}),
        ("rust", "Shelf", {"Shelf.fmt", "Shelf.new", "Shelf.width"}),
        ("cpp", "library.rows.Shelf", {f"library.rows.Shelf.{name}" for name in ("Shelf", "width", "add")}),
        ("java", "Shelf", {"Shelf.Shelf", "Shelf.add", "Shelf.Size"}),
        ("typescript", "Shelf", {"Shelf.constructor", "Shelf.add"}),
        ("javascript", "Row", {"Row.width"}),
        ("python", "Shelf", {"Shelf.add"}),
    ],
)
def test_members_inside_and_outside_a_type_are_its_bundle(language: str, kind: str, members: set[str]) -> None:
    """ING-5: receivers, `impl` blocks, qualified names and prototypes belong to the type."""
    chunks = chunks_of(language)
    head = named(chunks)[kind]
    assert {chunk.symbol for chunk in chunks if chunk.bundle == head.chunk_id and chunk.symbol} == members
    assert head.bundle is None


def test_a_receiver_above_its_type_belongs_to_it() -> None:
    """ING-5: whatever the order of a file; of a type in another file nothing is known."""
    method, kind, foreign = chunks_of("go", "func (a A) F() {\n}\n\ntype A struct{}\n\nfunc (b B) G() {\n}\n")
    assert method.bundle == kind.chunk_id
    assert foreign.bundle is None


def test_fields_between_methods_are_in_the_bundle_too() -> None:
    """ING-5: fields and methods of one type are linked."""
    chunks = chunks_of("cpp")
    head = named(chunks)["library.rows.Shelf"]
    assert [chunk.bundle for chunk in chunks if chunk.kind == "fields"] == [head.chunk_id] * 3


@pytest.mark.parametrize(
    ("language", "symbol", "kind", "targets"),
    [
        ("go", "Shelf.Add", LinkKind.CALLS, {"len", "fmt.Errorf", "Shelf.log", "example.org.books.io.Write"}),
        ("go", "Shelf", LinkKind.EXTENDS, {"Base"}),
        ("go", "TestShelf_Add", LinkKind.TESTS, {"Shelf.Add", "shelf.Add", "New", "Add"}),
        ("javascript", "Shelf.add", LinkKind.CALLS, {"Shelf.log", "io.write", "books.page"}),
        ("javascript", "Shelf", LinkKind.EXTENDS, {"Base"}),
        ("typescript", "Shelf", LinkKind.IMPLEMENTS, {"Keeper", "Other"}),
        ("typescript", "Keeper", LinkKind.EXTENDS, {"Holder"}),
        ("tsx", "Frame", LinkKind.CALLS, {"react.useState", "Panel", "setOpen"}),
        ("java", "Shelf.add", LinkKind.CALLS, {"Shelf.log", "org.example.Books.write"}),
        ("java", "Shelf", LinkKind.IMPLEMENTS, {"Keeper", "Closeable"}),
        ("java", "ShelfTest.takesABook", LinkKind.TESTS, {"Shelf", "add"}),
        ("rust", "Shelf", LinkKind.IMPLEMENTS, {"std.fmt.Display"}),
        ("rust", "Keeper", LinkKind.EXTENDS, {"Holder"}),
        ("rust", "Shelf.new", LinkKind.CALLS, {"Shelf.check", "std.io.stdout", "Vec.new"}),
        ("rust", "tests.opens", LinkKind.TESTS, {"new", "width"}),
        ("c", "shelf_add", LinkKind.CALLS, {"check", "page_open"}),
        ("cpp", "library.rows.Shelf", LinkKind.EXTENDS, {"Base", "library.Holder"}),
        ("cpp", "library.rows.Shelf.add", LinkKind.CALLS, {"page.open", "push_back", "Page"}),
        ("cpp", "ShelfTest.TakesABook", LinkKind.TESTS, {"open_shelf", "Shelf"}),
        ("python", "Shelf.add", LinkKind.CALLS, {"Shelf.check", "books.page.write", "io.open"}),
        ("python", "Shelf", LinkKind.EXTENDS, {"Base", "Generic"}),
        ("python", "ShelfTest.test_open_shelf", LinkKind.TESTS, {"open_shelf", "Shelf", "add"}),
    ],
)
def test_links_say_what_a_unit_has_to_do_with_others(
    language: str, symbol: str, kind: LinkKind, targets: set[str]
) -> None:
    """ING-14: names are resolved through imports and through the object that a method belongs to."""
    assert links_of(named(chunks_of(language))[symbol], kind) == targets


def test_a_call_and_a_guess_by_name_are_two_links() -> None:
    """ING-14: the test of a method, where its name alone could mean a function."""
    (test,) = chunks_of("go", "func TestValidate(t *testing.T) {\n\tu := User{}\n\tu.Validate()\n}\n")
    tested = [(link.target, link.whole) for link in test.links if link.kind is LinkKind.TESTS]
    assert tested == [("Validate", True), ("validate", True), ("Validate", False)]


def test_an_interface_of_go_says_which_methods_it_asks_for() -> None:
    """ING-14: by name, without those of what it embeds."""
    text = "type Keeper interface {\n\tHolder\n\tTake(a int) error\n\tAdd(b Book)\n}\n"
    (chunk,) = chunks_of("go", text)
    assert chunk.attributes == {"method_set": "Add Take"}


@pytest.mark.parametrize(
    ("language", "modules"),
    [
        ("go", {"fmt", "example.org/books/io"}),
        ("javascript", {"./books.js", "io"}),
        ("java", {"java.util.List", "org.example.Books"}),
        ("rust", {"std::fmt", "std::fmt::Display", "std::io", "crate::books::*"}),
        ("c", {"stdio.h", "books/page.h"}),
        ("python", {"io", "books"}),
    ],
)
def test_imports_are_links_of_the_preamble(language: str, modules: set[str]) -> None:
    """ING-14: modules as the text names them."""
    assert links_of(chunks_of(language)[0], LinkKind.IMPORTS) == modules


def test_a_name_is_the_surer_the_more_is_known_of_it() -> None:
    """ING-14: resolved, qualified, bare, a member of something unknown."""
    text = "import a\n\n\ndef f(x):\n    a.b()\n    C.d()\n    e()\n    x.g()\n"
    links = {link.target: link.confidence for link in chunks_of("python", text)[1].links}
    assert links["a.b"] > links["C.d"] > links["e"] > links["g"] > 0.0


def test_a_header_comment_is_a_preamble_where_nothing_is_imported() -> None:
    """ING-5: set apart by a blank line; otherwise it documents what it stands above."""
    assert [chunk.kind for chunk in chunks_of("c", "/* Licence. */\n\nint f(void)\n{\n}\n")] == ["preamble", "function"]
    assert [chunk.kind for chunk in chunks_of("c", "/* Does. */\nint f(void)\n{\n}\n")] == ["function"]


@pytest.mark.parametrize(
    ("language", "text", "units"),
    [
        (
            "cpp",
            "class A_API Heron : public Bird {\n  int a() { return 1; }\n};\n",
            [("class", "Heron"), ("method", "Heron.a")],
        ),
        ("cpp", "struct alignas(8) B_EXPORT C_ALIGNED(4) Nest final { int a; };\n", [("struct", "Nest")]),
        ("cpp", "enum class A_API Size : int { SMALL };\n", [("enum", "Size")]),
        ("c", "A_API const char *name(int a)\n{\n  return 0;\n}\n", [("function", "name")]),
        ("c", "A_API(1) struct bird *name(int a);\n", [("declaration", "name")]),
        ("c", "void name(const char *, ...) A_PRINTF(1, 2);\n", [("declaration", "name")]),
        ("c", "DEFINED(a)\nDEFINED(b)\n\nint name(void)\n{\n}\n", [("code", None), ("function", "name")]),
        (
            "cpp",
            "A_BEGIN_SPACE\n\nint name() {\n}\n\nA_END_SPACE\n",
            [("code", None), ("function", "name"), ("code", None)],
        ),
        ("cpp", "/* Flies. */\nMARKED(one,\n       two)\nclass Heron { };\n", [("class", "Heron")]),
        ("cpp", "DATA_TEST_CASE(herons, n) {\n}\n", [("method", "herons.n")]),
        ("c", "A_TEST(herons, fly)\n{\n}\n\nA_CALL(wade) {\n}\n", [("function", "fly"), ("function", "wade")]),
        ("c", "CALL_DEFINE3(open, const char *, name)\n{\n}\n", [("function", "open")]),
        ("cpp", "template <>\nint convert<Heron>(const Heron& one) {\n}\n", [("function", "convert")]),
        ("c", "struct BIRD_S heron = { 1 };\nint (*handler)(int);\n", [("constants", None)]),
        ("c", "int f(int a)\n{\n  if (a) RETURN_IF(a);\n  for (;;) ADD_ONE(a);\n}\n", [("function", "f")]),
    ],
)
def test_what_macros_stand_before_is_read_as_what_it_is(
    language: str, text: str, units: list[tuple[str, str | None]]
) -> None:
    """ING-5, ING-14: by their shape, whatever they are called; bytes and lines stay where they are."""
    chunks = chunks_of(language, text)
    assert [(chunk.kind, chunk.symbol) for chunk in chunks] == units
    assert "".join(text[chunk.start_byte : chunk.end_byte] for chunk in chunks) == text
    assert {chunk.parse_quality for chunk in chunks} == {1.0}


def test_each_type_of_a_group_is_a_definition_with_its_comment() -> None:
    """ING-32: so are the names beside them, and groups of constants and variables define theirs."""
    text = (
        "package tide\n\ntype (\n\t// Gauge measures.\n\tGauge struct {\n\t\tStation string\n\t}\n\n"
        "\t// Reader reads.\n\tReader interface {\n\t\tClose() error\n\t}\n\tdial func() error\n)\n\n"
        "const (\n\tidle = iota\n\tbusy\n)\n\nvar (\n\ta = 1\n)\n\ntype (\n\tOnly struct {\n\t\tx int\n\t}\n)\n"
    )
    _, gauge, reader, names, only = chunks_of("go", text)
    assert [each.symbol for each in (gauge, reader, only)] == ["Gauge", "Reader", "Only"]
    assert gauge.text.startswith("type (\n\t// Gauge measures.")
    assert reader.text.startswith("\t// Reader reads.")
    assert set(names.defines) == {"dial", "idle", "busy", "a"}


@pytest.mark.parametrize("language", ["typescript", "tsx"])
def test_overloads_go_with_their_function(language: str) -> None:
    """ING-32: with the comment above them, in a file and in a class; what is only declared stays as it is."""
    lines = "(a: number): void;\n", "(a: string): void;\n", "(a: any): void {\n  go(a);\n}\n"
    text = "const x = 1;\n\n/** Finds. */\n" + "".join(f"export function find{line}" for line in lines)
    text += "\nclass A {\n  y = 1;\n\n  /** Reads. */\n" + "".join(f"  read{line}" for line in lines) + "}\n"
    text += "\ndeclare function f(): void;\ndeclare function g(): void;\n"
    _, find, _, read, declared = chunks_of(language, text)
    assert find.text.startswith("/** Finds. */\nexport function find(a: number)")
    assert (find.symbol, find.signature) == ("find", "export function find(a: any): void")
    assert (read.symbol, read.text.count("read(")) == ("A.read", 3)
    assert declared.symbol is None
    assert set(declared.defines) == {"f", "g"}


def test_a_prototype_bears_its_name_and_is_no_definition() -> None:
    """ING-14: a function that is declared is told apart from one that is defined; members and variables are fields."""
    text = "/* Adds. */\nextern int add(int a, int b);\nint add(int a, int b)\n{\n    return sub(a, b);\n}\n"
    declared, defined = chunks_of("c", text)
    assert (declared.kind, declared.symbol, declared.signature) == (
        "declaration",
        "add",
        "extern int add(int a, int b)",
    )
    assert (defined.kind, defined.symbol, defined.signature) == ("function", "add", "int add(int a, int b)")
    assert declared.text.startswith("/* Adds. */")
    (heron,) = chunks_of("cpp", "class Heron {\n  explicit Heron(int a);\n  int depth() const;\n};\n")
    assert (heron.kind, heron.defines) == ("class", ("Heron",))


def test_a_file_wrapped_in_one_call_is_opened() -> None:
    """ING-5: the functions of a module pattern are units where the whole is long."""
    inner = "".join(f"  function f{n}(a) {{\n    return a + {n} * a - a;\n  }}\n\n" for n in range(20))
    chunks = chunks_of("javascript", f"(function (root) {{\n{inner}}})(this);\n")
    assert [chunk.symbol for chunk in chunks] == [f"f{n}" for n in range(20)]


@pytest.mark.parametrize("language", ["javascript", "typescript"])
@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("export default class", "class"),
        ("module.exports = class", "class"),
        ("module.exports = exports = class extends Base", "class"),
        ("export default", "object"),
        ("module.exports =", "object"),
        ("exports = module.exports =", "object"),
    ],
)
def test_what_a_file_exports_without_a_name_is_opened(language: str, head: str, kind: str) -> None:
    """ING-40, ING-5: its members are units under its head, as those of a type with a name are."""
    comma = "," if kind == "object" else ""
    methods = "".join(f"  method{n}(a) {{\n    return this.load(a, {n});\n  }}{comma}\n" for n in range(12))
    whole, *members = chunks_of(language, f"{head} {{\n{methods}}}\n")
    assert (whole.kind, whole.level, whole.symbol, whole.signature) == (kind, 1, "default", head)
    assert [(each.kind, each.level, each.symbol) for each in members] == [
        ("method", 2, f"default.method{n}") for n in range(12)
    ]
    assert all(each.text.startswith(f"{head} {{\n  method") and each.completeness == 1.0 for each in members)
    assert {each.bundle for each in members} == {whole.chunk_id}


@pytest.mark.parametrize(
    ("text", "symbol"),
    [
        ("export default function (a) { return a; }\n", "default"),
        ("export default async (a) => { return a; };\n", "default"),
        ("export default memo(function (a) { return a; });\n", "default"),
        ("module.exports = function (a) { return a; };\n", "default"),
        ("export default function own(a) { return a; }\n", "own"),
        ("module.exports = function own(a) { return a; };\n", "own"),
        ("exports.own = function (a) { return a; };\n", "own"),
        ("export default { a: 1 };\n", None),
        ("run(function (a) { return a; });\n", None),
    ],
)
def test_a_function_without_a_name_is_the_default_where_it_is_exported(text: str, symbol: str | None) -> None:
    """ING-40: under one name, whichever way; a name of its own comes first."""
    assert [chunk.symbol for chunk in chunks_of("javascript", text)] == [symbol]


def test_functions_of_an_exported_object_are_its_members_in_every_form() -> None:
    """ING-40."""
    text = (
        "module.exports = {\n  a() { return 1; },\n  b: function (x) { return x; },\n  c: async (x) => x,\n  d: 1 };\n"
    )
    assert [chunk.symbol for chunk in chunks_of("javascript", text)] == [
        "default",
        "default.a",
        "default.b",
        "default.c",
        None,
    ]


@pytest.mark.parametrize("language", ["go", "javascript", "typescript", "java", "rust", "c", "cpp"])
def test_a_long_function_is_cut_between_statements_under_its_signature(language: str) -> None:
    """ING-12: parts keep the parent's id, carry its signature, and hold whole statements."""
    opening = {
        "go": "func long(a int) int {",
        "javascript": "function long(a) {",
        "typescript": "function long(a: number) {",
        "java": "class A {\n  int long_(int a) {",
        "rust": "fn long(a: i32) -> i32 {",
        "c": "int long_(int a) {",
        "cpp": "int N::long_(int a) {",
    }[language]
    statement = "    call(\n        a, a,\n        a);\n"
    inner = {"rust": "    if a {\n", "go": "    if a {\n"}.get(language, "    if (a) {\n")
    text = f"{opening}\n{statement * 60}{inner}{statement * 200}    }}\n}}\n" + ("}\n" if language == "java" else "")
    head, *parts = [chunk for chunk in chunks_of(language, text) if chunk.kind in {"function", "method", "block"}]
    assert len(parts) > 5
    assert {(part.level, part.kind, part.parent_id) for part in parts} == {(3, "block", head.chunk_id)}
    signature = opening.rpartition("\n")[2].strip()
    for part in parts:
        assert signature in part.text
        assert part.text.count("call(") == part.text.count("        a);")
        assert part.tokens <= SIZES.target_tokens


def test_a_function_inside_one_that_is_too_long_stays_whole() -> None:
    """ING-12: the hard limit is what splits a function, wherever it stands."""
    inner = "    def inner(a):\n" + "        call(a, a)\n" * 80 + "\n"
    text = "def outer(a):\n" + "    call(a, a)\n" * 150 + inner + "    call(a, a)\n" * 150
    assert any(chunk.text.count("        call(a, a)") == 80 for chunk in chunks_of("python", text))


def test_a_body_that_fits_is_cut_between_statements_where_its_function_does_not_fit() -> None:
    """ING-5, ING-12: a statement is whole, though the block it stands in needs no cut and the signature does."""
    table = "    table = {\n" + "".join(f'        "{number}": (a, b),\n' for number in range(10)) + "    }\n"
    text = f"def function(a, b):\n    first = a\n{table}    return table\n"
    assert words(text) > TIGHT.max_tokens > words(text.partition("\n")[2])
    chunks = chunks_of("python", text, TIGHT)
    assert [table in chunk.text for chunk in chunks].count(True) == 1
    assert [chunk for chunk in chunks if "first = a" in chunk.text and table not in chunk.text]

    taken = "".join(f"    T value{number},\n" for number in range(40))
    given = "    values = join(\n" + "".join(f"        value{number},\n" for number in range(30)) + "        0);\n"
    made = chunks_of("cpp", f"void shelve(\n{taken}    T last) {{\n{given}}}\n", TIGHT)
    assert any(given in chunk.text for chunk in made)


def test_a_body_within_the_limit_is_not_split_for_its_context() -> None:
    """ING-5: a function that fits is whole; what it is shown under gives way."""
    method = "    def method(self):\n" + "        call(self)\n" * 195
    chunks = chunks_of("python", f"class {'A' * 9}(B, C, D, E, F, G, H, I):\n{method}")
    assert [chunk.completeness for chunk in chunks] == [1.0, 1.0]


@pytest.mark.parametrize("language", GRAMMARS)
def test_every_profile_names_nodes_that_its_grammar_has(language: str) -> None:
    """ING-5: a name that the grammar does not know would silently match nothing."""
    grammar = GRAMMARS[language]
    known = {
        get_language(language).node_kind_for_id(number) for number in range(get_language(language).node_kind_count)
    }
    sets = [
        getattr(grammar, field.name)
        for field in fields(grammar)
        if field.name not in {"selves", "anonymous_owners", "beginnings"}
    ]
    used = set().union(*(value for value in sets if isinstance(value, frozenset | dict)))
    assert used - {ONLY, LAST} <= known
    assert query_of(language, "facts").capture_count
    assert query_of(language, "modules").capture_count
