"""ING-5, ING-12, ING-14, ING-32: languages beside those that most code is written in, and those without a profile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.cut_code import SIZES, chunks_of, links_of
from weft.chunking.code.sql import statements_of
from weft.domain.links import LinkKind


def test_a_language_without_a_grammar_is_cut_by_its_layout() -> None:
    """ING-5, ING-12: nothing is lost for want of one."""
    assert {chunk.kind for chunk in chunks_of("unheardof", "print 1;\n" * 300)} == {"window"}


@pytest.mark.parametrize(
    ("language", "text", "symbols"),
    [
        (
            "perl",
            "".join(f"# Does {n}.\nsub f{n} {{\n    my $x = {n};\n    return $x;\n}}\n\n" for n in range(3)),
            "f0 f1 f2",
        ),
        ("perl", "# A.\nsub a { 1; }\n\n=head2 b\n\nDoes.\n\n=cut\n\nsub b { 2; }\n", "a b"),
        ("dart", "".join(f"/// Holds {n}.\nclass C{n} {{\n  int a = {n};\n}}\n\n" for n in range(3)), "C0 C1 C2"),
        ("solidity", "contract A {\n  function f() public {\n    x = 1;\n  }\n}\n\ncontract B {\n}\n", "A A.f B"),
    ],
)
def test_a_language_without_a_profile_is_cut_at_the_nodes_of_its_tree(language: str, text: str, symbols: str) -> None:
    """ING-32: by what their names are like, with the comments above them."""
    chunks = chunks_of(language, text)
    assert [chunk.symbol for chunk in chunks] == symbols.split()
    assert all(chunk.text.startswith(("#", "=head2", "///", "contract", "  function")) for chunk in chunks)


@pytest.mark.parametrize(
    ("language", "head", "function"),
    [
        ("elixir", "defmodule Plan do\n", '  @doc "Does."\n  @spec f(a) :: b\n  def f(a) do\n    a + 1\n  end\n\n'),
        ("haskell", "module Plan where\n\nimport A (b)\n\n", "-- | Does.\nf :: A -> B -> C\nf a b = a + b + 1\n\n"),
    ],
)
def test_what_stands_directly_above_a_function_goes_with_it(language: str, head: str, function: str) -> None:
    """ING-32: comments, attributes and signatures, also where a language has no profile."""
    sizes = replace(SIZES, max_tokens=26, target_tokens=26, overlap_tokens=0)
    chunks = chunks_of(language, head + 6 * function + ("end\n" if language == "elixir" else ""), sizes)
    assert len(chunks) > 2
    for chunk in chunks[1:]:
        assert chunk.text.lstrip().startswith(function.lstrip()[:6])
        assert chunk.text.rstrip().endswith(("1", "end"))


@pytest.mark.parametrize(
    ("language", "text", "symbols"),
    [
        (
            "ruby",
            "class Book\n  def save\n    1\n  end\n\n  def save!\n    entries.each!\n  end\n\n"
            "  def empty?\n    1\n  end\n\n  def <<(a)\n    1\n  end\n\n"
            "  def ==(a)\n    1\n  end\n\n  def [](a)\n    1\n  end\nend\n",
            "save save! empty? << == []",
        ),
        ("swift", "struct Book {\n  static func == (a: Book, b: Book) -> Bool {\n    return 1\n  }\n}\n", "=="),
        ("csharp", "class Book {\n  public static Book operator +(Book a, Book b) {\n    return 1;\n  }\n}\n", "+"),
    ],
)
def test_names_keep_their_signs_and_operators_have_names(language: str, text: str, symbols: str) -> None:
    """ING-32: no name is empty."""
    chunks = chunks_of(language, text)
    assert [chunk.symbol for chunk in chunks[1:]] == [f"Book.{symbol}" for symbol in symbols.split()]
    assert all(symbol in chunk.defines for symbol, chunk in zip(symbols.split(), chunks[1:], strict=True))


@pytest.mark.parametrize("after", [True, False])
def test_markup_is_not_named_after_a_tiny_function_beside_it(after: bool) -> None:
    """ING-38: the function in its piece is known by its own name all the same."""
    function, page = "function note() {\n  return 1;\n}\n", "?>\n" + "<p>Call the harbour master first.</p>\n" * 4
    text = f"<?php\nuse A;\n\n{function}{page}" if after else f"<?php\nuse A;\n\n{page}<?php\n{function}"
    *_, whole = chunks_of("php", text, replace(SIZES, min_tokens=12))
    assert (whole.kind, whole.symbol, whole.attributes["joined"]) == ("markup", None, "note")


@pytest.mark.parametrize(
    ("language", "text", "units"),
    [
        (
            "sql",
            'CREATE TABLE shop."order" (id int);\n\nCREATE FUNCTION shop.open() RETURNS int AS $$ SELECT 1 $$;\n',
            [
                ("table", "shop.order", 'CREATE TABLE shop."order"'),
                ("function", "shop.open", "CREATE FUNCTION shop.open() RETURNS int"),
            ],
        ),
        ("hcl", 'data "a_zone" "here" {}\n', [("block", "data.a_zone.here", 'data "a_zone" "here"')]),
        (
            "proto",
            "// Takes orders.\nservice Desk {\n  rpc Place(Order) returns (Order) { option a = 1; }\n}\n",
            [
                ("service", "Desk", "service Desk"),
                ("method", "Desk.Place", "rpc Place(Order) returns (Order)"),
            ],
        ),
        ("graphql", '"""Holds books."""\ntype Shelf {\n  id: ID!\n}\n', [("type", "Shelf", "type Shelf")]),
        (
            "kotlin",
            '@file:JvmName("A")\npackage a\n\nconst val LIMIT = 3\n',
            [("preamble", None, None), ("constants", None, None)],
        ),
        (
            "ruby",
            "class Shelf\n  LIMIT = 3\n\n  class << self\n    def open\n      1\n    end\n  end\nend\n",
            [("class", "Shelf", "class Shelf"), ("method", "Shelf.open", "def open")],
        ),
        (
            "scala",
            "object A {\n}\n\nextension (s: Shelf) def twice(n: Int): Int = { s.take(n) }\n",
            [("object", "A", "object A"), ("function", "twice", "extension (s: Shelf) def twice(n: Int): Int =")],
        ),
    ],
)
def test_further_languages_have_the_units_that_people_name(
    language: str, text: str, units: list[tuple[str, str | None, str | None]]
) -> None:
    """ING-32: with their signatures; a schema is no type, and quotation marks are no part of a name."""
    assert [(chunk.kind, chunk.symbol, chunk.signature) for chunk in chunks_of(language, text)] == units


def test_what_is_spread_is_no_member() -> None:
    """ING-14: three dots before a name are not the one that parts a member from what has it."""
    (chunk,) = chunks_of("javascript", "function all() {\n  return [...items(), ...others];\n}\n")
    assert [(link.target, link.confidence > 0.5) for link in chunk.links] == [("items", True)]


CALLED = {
    "csharp": {"Shelves.Shelf.Log", "Example.Books.Io.Write"},
    "kotlin": {"Shelf.log", "example.books.Io.write"},
    "php": {"Shelf.log", "count"},
    "ruby": {"log", "raise"},
    "swift": {"Shelf.log"},
    "scala": {"Shelf.log", "example.books.Io.write"},
    "lua": {"Shelf.log", "error"},
    "bash": {"log_book", "write_book"},
}
IMPORTED = {
    "csharp": "Example.Books.Io",
    "kotlin": "example.books.Io",
    "php": "Example\\Books\\Io",
    "ruby": "./io",
    "swift": "Foundation",
    "scala": "example.books.Io",
    "lua": "example.books",
    "bash": "./lib.sh",
    "proto": "example/books.proto",
}


@pytest.mark.parametrize("language", CALLED)
def test_further_languages_have_calls(language: str) -> None:
    """ING-32, ING-14: through imports and the object that a method belongs to."""
    found = {target for chunk in chunks_of(language) for target in links_of(chunk, LinkKind.CALLS)}
    assert CALLED[language] <= found


@pytest.mark.parametrize("language", IMPORTED)
def test_further_languages_have_imports(language: str) -> None:
    """ING-32, ING-14: modules and files."""
    assert IMPORTED[language] in {t for chunk in chunks_of(language) for t in links_of(chunk, LinkKind.IMPORTS)}


BODY = "  UPDATE shelf SET name = 'it''s; full' WHERE id = 1;\n"
POSTGRESQL = f"""-- Adds loans.

BEGIN;
CREATE TABLE IF NOT EXISTS shop."loan" (id int, begin date, path text DEFAULT 'C:\\');
-- Refuses; always.
CREATE FUNCTION shop.refuse() RETURNS trigger AS $body$
BEGIN
  RAISE EXCEPTION 'loans are; append-only';
END;
$body$ LANGUAGE plpgsql;
/* Closes /* nested; */ a month. */
CREATE PROCEDURE shop.close(m date) LANGUAGE SQL BEGIN ATOMIC
{BODY}END;
DO $$ BEGIN CREATE ROLE auditor; END $$;
ALTER TABLE ONLY shop.loan ADD PRIMARY KEY (id);
COPY shop.loan (id) FROM stdin;
1	O'Brien; Pat
\\.
CREATE INDEX loan_begin ON shop.loan (begin) WHERE begin IS NOT NULL;
COMMIT;
"""
MYSQL = f"""CREATE TABLE `loan` (`id` int, `note` text DEFAULT 'it\\'s; \\'so\\', yes');
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*!50003 TRIGGER `loan_made` BEFORE INSERT ON `loan` FOR EACH ROW BEGIN
{BODY}END */;;
CREATE PROCEDURE done(IN m int) IF m THEN
{BODY}END IF;;
DELIMITER ;
CREATE VIEW open_loan AS SELECT * FROM loan;
"""
SQL_SERVER = f"""CREATE OR ALTER PROCEDURE [dbo].[Close Month] @m DATE AS
{BODY}{BODY}GO
ALTER FUNCTION dbo.Twice(@a INT) RETURNS INT AS BEGIN RETURN @a * 2; END
GO
CREATE TABLE dbo.Loan (id INT)
GO
"""
QUERIES = (
    "-- name: GetLoan :one\nSELECT * FROM loan WHERE id = $1;\n\n-- The name: of none\nSELECT 1;\nSELECT 2; SELECT 3;\n"
)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        (
            POSTGRESQL,
            "preamble:1 code:3 table:4=shop.loan function:5=shop.refuse procedure:11=shop.close code:15 code:16 "
            "code:17 index:20=loan_begin code:21",
        ),
        (MYSQL, "table:1=loan trigger:2=loan_made procedure:6=done view:10=open_loan"),
        (SQL_SERVER, "procedure:1=dbo.Close Month function:5=dbo.Twice table:7=dbo.Loan"),
        (
            "CREATE PACKAGE BODY pay IS n INT;\nBEGIN n := 1; END;\n/\nCREATE VIEW v AS SELECT 1;",
            "package_body:1=pay view:4=v",
        ),
        (QUERIES, "query:1=GetLoan code:4 code:6"),
    ],
)
def test_every_statement_of_sql_is_a_unit(text: str, units: str) -> None:
    """ING-32: in a transaction, in all dialects, with bodies that hold statements and with the comments above it."""
    chunks = chunks_of("sql", text)
    found = [f"{chunk.kind}:{chunk.start_line}{'=' * bool(chunk.symbol)}{chunk.symbol or ''}" for chunk in chunks]
    assert " ".join(found) == units
    assert "".join(text.encode()[chunk.start_byte : chunk.end_byte].decode() for chunk in chunks) == text


def test_what_changes_a_table_belongs_to_it() -> None:
    """ING-32, ING-14: ALTER TABLE and COMMENT ON TABLE define nothing."""
    chunks = chunks_of("sql", POSTGRESQL)
    table = next(chunk for chunk in chunks if chunk.symbol == "shop.loan")
    assert [chunk.text[:11] for chunk in chunks if chunk.bundle == table.chunk_id] == ["ALTER TABLE"]


def test_a_long_body_of_sql_is_cut_between_its_statements() -> None:
    """ING-32, ING-11: and a long table between its columns."""
    body = "".join(f"  INSERT INTO shelf (id, name)\n    VALUES ({n}, 'a');\n" for n in range(60))
    table = "".join(f"  column_{n} text,\n" for n in range(240))
    text = f"CREATE FUNCTION f() RETURNS int AS $$\nBEGIN\n{body}END $$;\nCREATE TABLE t (\n{table}  id int);\n"
    chunks = chunks_of("sql", text)
    cut = [chunk for chunk in chunks if chunk.completeness < 1]
    assert {chunk.symbol for chunk in cut} == {"f", "t"}
    assert all(text.encode()[: chunk.end_byte].endswith((b";\n", b",\n", b");\n")) for chunk in cut)


def test_a_quote_that_nothing_closes_takes_no_quadratic_time() -> None:
    """ING-32: nor do comments, bodies and delimiters."""
    for piece in ("`\\", "'\\", "/*", "/* /* */ ", "BEGIN ", "CREATE */*/ ", "\nDELIMITER x\n", "$a$b"):
        assert len(list(statements_of((piece * 20_000).encode()))) < 3
