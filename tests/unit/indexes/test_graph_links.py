"""ING-14: links between chunks find the chunk that was meant, across files, with a confidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.graphs import Part, a_file, a_graph, calls, edges, graph_settings, imports
from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Domain, Rejection
from weft.domain.links import Link, LinkKind

SETTINGS = graph_settings()


def crossed(folder: Path, *files: Part, rejected: Sequence[Rejection] = ()) -> set[tuple[str, str, str, float]]:
    return edges(a_graph(folder, files, rejected=rejected), files)


def cut(uri: str, text: str, language: str | None, kind: ContentType = ContentType.CODE) -> Part:
    document = Document(
        uri=uri, content_type=kind, domain=Domain.CODE, text=text, language=language, trust_level=100, modified_at=1.0
    )
    sizes = ChunkSizes(max_tokens=400, target_tokens=100, min_tokens=0, overlap_tokens=10)
    return document, chunk_document(document, sizes, lambda part: len(part.split()))


def test_a_name_of_the_same_file_is_meant_before_any_other(tmp_path: Path) -> None:
    """ING-14: a call finds the function beside it, though another file has one of that name."""
    here = a_file("t/a.py", {"symbol": "main", "links": calls("load")}, "load")
    assert crossed(tmp_path, here, a_file("t/b.py", "load")) == {("calls", "t/a.py main", "t/a.py load", 1.0)}


def test_an_imported_name_is_meant_before_a_method_of_the_same_file(tmp_path: Path) -> None:
    """ING-14: `load()` is the imported function, not the method `load` of a class in the file."""
    here = a_file(
        "t/a.py", {"links": imports("t.b.load")}, {"symbol": "main", "links": calls("load")}, "Store", "Store.load"
    )
    assert crossed(tmp_path, here, a_file("t/b.py", "load")) == {
        ("imports", "t/a.py", "t/b.py load", 1.0),
        ("calls", "t/a.py main", "t/b.py load", 1.0),
    }


def test_what_an_imported_module_holds_is_found_through_it(tmp_path: Path) -> None:
    """ING-14: `from t import b` and `b.load()`."""
    here = a_file("t/a.py", {"links": imports("t.b")}, {"symbol": "main", "links": calls("b.load")})
    there = a_file("t/b.py", {"kind": "preamble"}, "load")
    assert crossed(tmp_path, here, there) == {
        ("imports", "t/a.py", "t/b.py", 1.0),
        ("calls", "t/a.py main", "t/b.py load", 1.0),
    }


def test_a_name_that_a_package_passes_on_is_found_behind_it(tmp_path: Path) -> None:
    """ING-14: an import from a package leads to the module that the package has the name from."""
    files = [
        a_file("t/a.py", {"links": imports("t.p.load")}, {"symbol": "main", "links": calls("load")}),
        a_file("t/p/__init__.py", {"links": imports(".inner.load")}),
        a_file("t/p/inner.py", "load"),
    ]
    assert ("calls", "t/a.py main", "t/p/inner.py load", 1.0) in crossed(tmp_path, *files)
    assert ("imports", "t/a.py", "t/p/inner.py load", 1.0) in edges(a_graph(tmp_path / "again", files), files)


def test_a_member_of_its_own_class_is_found_by_self(tmp_path: Path) -> None:
    """ING-14: `self.get` is the method of the same class, not of the other one in the file."""
    here = a_file("t/a.py", "A", {"symbol": "A.run", "links": calls("self.get")}, "A.get", "B", "B.get")
    assert crossed(tmp_path, here) == {("calls", "t/a.py A.run", "t/a.py A.get", 1.0)}


@pytest.mark.parametrize("bearers", [1, 2, 3])
def test_confidence_falls_with_the_number_that_bear_a_name(tmp_path: Path, bearers: int) -> None:
    """ING-14: (1 − (1 − link's own) × (1 − the place's)) ÷ bearers, and nothing below the least confidence."""
    files = [
        a_file("t/a.py", {"symbol": "main", "links": (Link(LinkKind.CALLS, "unfold", 0.3),)}),
        *(a_file(f"t/b{number}.py", f"T{number}.unfold") for number in range(bearers)),
    ]
    confidence = (1 - (1 - 0.3) * (1 - SETTINGS.member_scopes["corpus"])) / bearers
    least = confidence * bearers / 2.5
    found = sorted(edges(a_graph(tmp_path, files, settings=graph_settings(least_confidence=least)), files))
    kept = range(bearers) if confidence >= least else ()
    assert [edge[:3] for edge in found] == [("calls", "t/a.py main", f"t/b{n}.py T{n}.unfold") for n in kept]
    assert [edge[3] for edge in found] == [pytest.approx(confidence)] * len(kept)


def test_a_name_that_very_many_bear_leads_nowhere(tmp_path: Path) -> None:
    """ING-14: its confidence is below the least, however many ask for it."""
    callers = [{"symbol": f"f{number}", "links": (Link(LinkKind.CALLS, "forward", 0.3),)} for number in range(1_000)]
    files = [a_file("t/a.py", *callers), a_file("t/b.py", *(f"T{number}.forward" for number in range(1_000)))]
    assert crossed(tmp_path, *files) == set()


def test_built_in_names_and_other_languages_are_not_meant(tmp_path: Path) -> None:
    """ING-14: `open()` and `x.append()` of Python are the language's own, and Go's functions are not called by it."""
    here = a_file("t/a.py", {"symbol": "main", "links": calls("open", "x.append", "y.unfold")})
    there = a_file("t/b.py", "open", "List.append")
    assert crossed(tmp_path, here, there, a_file("t/c.go", "unfold", language="go")) == set()


def test_a_module_inside_a_package_is_not_the_standard_one_of_that_name(tmp_path: Path) -> None:
    """ING-14: `import logging` does not mean p/logging.py, even where the package's own file was blank."""
    here = a_file("t/a.py", {"links": imports("logging")})
    blank = [Rejection("t/p/__init__.py", "blank", "")]
    assert crossed(tmp_path, here, a_file("t/p/logging.py", "getLogger"), rejected=blank) == set()


def test_files_of_one_folder_share_names_where_their_language_does(tmp_path: Path) -> None:
    """ING-14: Go's functions are called across the files of a package, and through its import path."""
    files = [
        a_file("t/store/a.go", {"symbol": "Main", "links": calls("load")}, language="go"),
        a_file("t/store/b.go", "load", "Open", language="go"),
        a_file(
            "t/main.go",
            {"links": imports("example.org/t/store")},
            {"symbol": "main", "links": calls("store.Open")},
            language="go",
        ),
    ]
    found = crossed(tmp_path, *files)
    assert ("calls", "t/store/a.go Main", "t/store/b.go load", 1.0) in found
    assert ("calls", "t/main.go main", "t/store/b.go Open", 1.0) in found


@pytest.mark.parametrize(
    ("language", "files", "expected"),
    [
        (
            "hcl",
            {
                "t/net/variables.tf": 'variable "region" {\n  default = "north"\n}\n\nlocals {\n  name = "a"\n}\n',
                "t/other/variables.tf": 'variable "region" {\n  default = "south"\n}\n',
                "t/net/main.tf": (
                    'resource "aws_bucket" "shelf" {\n  place = "${var.region}"\n  tags = merge(local.name)\n}\n\n'
                    'module "doors" {\n  arn = aws_bucket.shelf.arn\n  count = count.index\n}\n\n'
                    'output "all" {\n  value = [module.doors.width, data.aws_zone.here.id]\n}\n\n'
                    'data "aws_zone" "here" {}\n'
                ),
            },
            {
                ("net/main.tf resource.aws_bucket.shelf", "net/variables.tf variable.region"),
                ("net/main.tf resource.aws_bucket.shelf", "net/variables.tf locals"),
                ("net/main.tf module.doors", "net/main.tf resource.aws_bucket.shelf"),
                ("net/main.tf output.all", "net/main.tf module.doors"),
                ("net/main.tf output.all", "net/main.tf data.aws_zone.here"),
            },
        ),
        (
            "proto",
            {
                "t/money.proto": 'syntax = "proto3";\npackage shop.common;\nmessage Money {\n  int64 cents = 1;\n}\n',
                "t/desk.proto": (
                    'syntax = "proto3";\nimport "t/money.proto";\n'
                    "message Order {\n  shop.common.Money price = 1;\n  map<string, Line> lines = 2;\n}\n"
                    "message Line {\n  common.Money price = 1;\n}\n"
                    "service Desk {\n  rpc Place(Order) returns (stream Line);\n}\n"
                ),
            },
            {
                ("desk.proto", "money.proto"),
                ("desk.proto Order", "money.proto Money"),
                ("desk.proto Order", "desk.proto Line"),
                ("desk.proto Line", "money.proto Money"),
                ("desk.proto Desk.Place", "desk.proto Order"),
                ("desk.proto Desk.Place", "desk.proto Line"),
            },
        ),
        (
            "graphql",
            {
                "t/shelf.graphql": (
                    "type Book implements Node {\n  id: ID!\n  by: [Author!]!\n}\n\ninterface Node {\n  id: ID!\n}\n\n"
                    "extend type Query {\n  books(near: Place): Book\n}\n"
                ),
                "t/people.graphql": "type Author {\n  name: String\n}\n\ninput Place {\n  x: Int\n}\n",
                "t/find.graphql": "query Find {\n  books {\n    ...Parts\n  }\n}\nfragment Parts on Book {\n  id\n}\n",
            },
            {
                ("shelf.graphql Book", "shelf.graphql Node"),
                ("shelf.graphql Book", "people.graphql Author"),
                ("shelf.graphql Query", "people.graphql Place"),
                ("shelf.graphql Query", "shelf.graphql Book"),
                ("find.graphql Find", "find.graphql Parts"),
                ("find.graphql Parts", "shelf.graphql Book"),
            },
        ),
    ],
)
def test_what_configuration_and_schemas_refer_to_is_found(
    tmp_path: Path, language: str, files: dict[str, str], expected: set[tuple[str, str]]
) -> None:
    """ING-32, ING-14: a block by `var.x` and the like, a message and a type where it is used, across files."""
    parts = [cut(uri, text, language) for uri, text in files.items()]
    found = {
        (source.removeprefix("t/"), target.removeprefix("t/")) for _, source, target, _ in crossed(tmp_path, *parts)
    }
    assert found == expected


def test_a_type_that_is_imported_by_its_file_is_meant_itself_and_what_it_inherits_is_found(tmp_path: Path) -> None:
    """ING-14: Java imports a file as the type in it, and calls what a base type has without saying whose it is."""
    files = [
        a_file("t/a/Base.java", {"kind": "preamble"}, "Base", "Base.assist", language="java"),
        a_file(
            "t/b/Main.java",
            {"links": imports("a.Base")},
            {"symbol": "Main.run", "links": calls("a.Base", "assist")},
            language="java",
        ),
    ]
    assert {(kind, target) for kind, _, target, _ in crossed(tmp_path, *files)} == {
        ("imports", "t/a/Base.java Base"), ("calls", "t/a/Base.java Base"), ("calls", "t/a/Base.java Base.assist"),
    }  # fmt: skip


def test_what_a_test_calls_beside_the_thing_it_tests_is_not_tested(tmp_path: Path) -> None:
    """ING-14: a test tests `load`, not the helpers of tests that it calls on the way."""
    tested = tuple(Link(LinkKind.TESTS, name, 0.5) for name in ("b.load", "support.a_store", "helper"))
    files = [
        a_file(
            "t/tests/test_b.py",
            {"links": imports("b", "tests.support")},
            {"symbol": "test_load", "links": tested},
            "helper",
        ),
        a_file("t/tests/support.py", "a_store"),
        a_file("t/b.py", "load"),
    ]
    found = [target for kind, _, target, _ in crossed(tmp_path, *files) if kind == "tests"]
    assert found == ["t/b.py load"]


def test_links_in_prose_lead_to_documents_and_their_sections(tmp_path: Path) -> None:
    """ING-14: relative paths, anchors, heading names and paths from the root of the tree."""
    prose: list[Link] = [
        Link(LinkKind.REFERENCES, target) for target in ("b.md", "b.md#who-owns-it", "/x/c.md", "#top")
    ]
    files = [
        a_file("t/d/a.md", {"links": tuple(prose)}, {"symbol": "top", "anchor": "top"}, language=None),
        a_file("t/d/b.md", {}, {"symbol": "owner", "heading_path": ("B", "Who owns it?")}, language=None),
        a_file("t/x/c.md", {}, language=None),
    ]
    assert {target for _, _, target, _ in crossed(tmp_path, *files)} == {
        "t/d/b.md", "t/d/b.md owner", "t/x/c.md", "t/d/a.md top",
    }  # fmt: skip


def test_a_path_leads_to_another_source_where_only_one_document_ends_so(tmp_path: Path) -> None:
    """ING-14: a page and the folder that it links to may have been indexed as two sources."""
    links = (Link(LinkKind.REFERENCES, "docs/b.md"), Link(LinkKind.REFERENCES, "https://example.org/docs/b.md"))
    files = [a_file("tree/README.md", {"links": links}, language=None), a_file("docs/b.md", {}, language=None)]
    assert {target for _, _, target, _ in crossed(tmp_path, *files)} == {"docs/b.md"}


def test_a_citation_finds_the_work_by_title_number_or_key(tmp_path: Path) -> None:
    """ING-7, ING-14: papers of the corpus that a paper cites; a number in a list of references names none."""
    cited = ("https://doi.org/10.1000/Abc", "Attention is all you need.", "smith2020", "arxiv:1706.03762", "12")
    links = tuple(Link(LinkKind.CITES, target) for target in cited)
    files = [
        a_file("t/a.md", {"links": links}, language=None),
        a_file("t/b.md", {"symbol": "b"}, language=None, metadata={"doi": "10.1000/abc"}),
        a_file("t/c.md", {"symbol": "c"}, language=None, title="Attention Is All You Need"),
        a_file("t/d.md", {"symbol": "d"}, language=None, metadata={"key": "Smith2020"}),
        a_file("t/e.md", {"symbol": "e"}, language=None, metadata={"arxiv_id": "1706.03762"}),
        a_file("t/f.md", {"symbol": "f", "heading_path": ("12",)}, language=None, metadata={"id": "12"}),
    ]
    assert crossed(tmp_path, *files) == {("cites", "t/a.md", f"t/{name}.md {name}", 1.0) for name in "bcde"}


def test_a_declared_link_of_a_document_is_kept_whatever_its_confidence(tmp_path: Path) -> None:
    """ING-4, ING-17: cross-references of a sidecar start at the document's first chunk, at full strength."""
    declared = (Link(LinkKind.REFERENCES, "b.py", declared=True),)
    files = [a_file("t/a.md", {"symbol": "a"}, {}, language=None, links=declared), a_file("t/b.py", "main")]
    graph = a_graph(tmp_path, files)
    assert [(row["strength"], row["source"]) for row in graph.table("edges").to_pylist() if row["target_chunk"]] == [
        (1.0, "declared")
    ]
    assert edges(graph, files) == {("references", "t/a.md a", "t/b.py main", 1.0)}


def test_names_used_without_a_link_are_references_unless_a_link_says_more(tmp_path: Path) -> None:
    """ING-14: a call is not told again as a reference."""
    both = (*calls("load"), Link(LinkKind.REFERENCES, "load"), Link(LinkKind.REFERENCES, "SIZE"))
    here = a_file(
        "t/a.py", {"symbol": "main", "links": both}, {"symbol": "twin", "references": ("SIZE",)}, "load", "SIZE"
    )
    assert {(kind, source, target) for kind, source, target, _ in crossed(tmp_path, here)} == {
        ("calls", "t/a.py main", "t/a.py load"),
        ("references", "t/a.py main", "t/a.py SIZE"),
        ("references", "t/a.py twin", "t/a.py SIZE"),
    }


def test_a_test_that_is_called_after_a_method_tests_the_method_that_it_calls(tmp_path: Path) -> None:
    """ING-14: what its name says, by which a function may be meant, stands beside what it calls."""
    tested = (Link(LinkKind.TESTS, "Validate", 0.5), Link(LinkKind.TESTS, "Validate", 0.3))
    test = a_file("t/auth_test.go", {"symbol": "TestValidate", "links": tested}, language="go")
    method = a_file("t/auth.go", "User", "User.Validate", language="go")
    function = a_file("t/check.go", "Validate", language="go")
    assert {edge[:3] for edge in crossed(tmp_path / "a", test, method)} == {
        ("tests", "t/auth_test.go TestValidate", "t/auth.go User.Validate")
    }
    assert {edge[:3] for edge in crossed(tmp_path / "b", test, method, function)} == {
        ("tests", "t/auth_test.go TestValidate", "t/auth.go User.Validate"),
        ("tests", "t/auth_test.go TestValidate", "t/check.go Validate"),
    }


def test_a_type_that_has_all_methods_of_an_interface_implements_it(tmp_path: Path) -> None:
    """ING-14: across the packages of a tree, the surer the more names agree; one method too few is none."""
    files = [
        a_file(
            "t/auth/auth.go",
            {"symbol": "Validator", "attributes": {"method_set": "Name Validate"}},
            *("User", "User.Validate", "User.Name", "Guest", "Guest.Validate"),
            language="go",
        ),
        a_file("t/admin/admin.go", {"symbol": None, "defines": ("Admin",)}, "Admin.Validate", language="go"),
        a_file("t/admin/names.go", "Admin.Name", language="go"),
        a_file("u/other.go", "User", "User.Validate", "User.Name", language="go"),
        a_file("t/user.py", "User", "User.Validate", "User.Name"),
    ]
    assert crossed(tmp_path, *files) == {
        ("implements", "t/auth/auth.go User", "t/auth/auth.go Validator", 2 / 3),
        ("implements", "t/admin/admin.go", "t/auth/auth.go Validator", 2 / 3),
    }


def test_what_was_joined_to_a_piece_is_found_under_its_own_name(tmp_path: Path) -> None:
    """ING-38, ING-14: a call leads to the piece that holds the definition, and to no name made of two."""
    bundle = {
        "symbol": "Store.size",
        "defines": ("size", "load", "free", "inner"),
        "attributes": {"joined": "Store.load\nfree"},
    }
    caller = {"symbol": "main", "links": calls("Store.load", "free", "Store.size.inner")}
    here = a_file("t/a.py", caller, bundle)
    assert {edge[:3] for edge in crossed(tmp_path, here)} == {("calls", "t/a.py main", "t/a.py Store.size")}
    symbols = {node["name"] for node in a_graph(tmp_path / "again", [here]).table("nodes").to_pylist()}
    assert symbols == {"main", "Store.size", "Store.load", "free", "Store.size.inner"}
