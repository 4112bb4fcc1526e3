"""Who bears the names that links give: cross-references between chunks, across files (ING-14).

A link's keys are tried in order (`keys`): the same file, what the file imports, its folder, anywhere in what it
imports, the whole corpus. The first place with a bearer decides, and the edge has the confidence

    (1 − (1 − link's own) × (1 − that of the place)) / number of bearers there

since that the name is borne just there is evidence too; of a member of something whose type is unknown it is less.

Edges below the least confidence are left out. All of it is joins in DuckDB (`links.sql`), within a bound of
memory; nothing depends on the order of rows.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from weft.domain.documents import ContentType
from weft.domain.links import CAUSAL, LinkKind
from weft.indexes.graph.keys import (
    anchor_keys,
    document_keys,
    family_of,
    folder_keys,
    key,
    module_keys,
    number_keys,
    symbol_keys,
    work_keys,
)
from weft.indexes.graph.wanted import import_wanted, reference_wanted, relation_wanted, symbol_wanted, work_wanted
from weft.indexes.settings import GraphIndexSettings
from weft.runtime.storage.tables import Database, create, glob_escaped, insert, rows_of

_HOPS = 2  # packages that pass a name on to their importers, one within the other
_NAME_CONFIDENCE = 0.8  # of a name that code uses without a link that says how
_WHOLE_FROM = 0.5  # least confidence of a link whose name is whole; below it is the last name of a member of something
_PACKAGE = "/__init__.py"
# Paths of tests and of what only tests use, whatever the language; a source's own name, the first part, says nothing.
_TEST_FILES = r"/(tests?|__tests__|spec)/|(^|/)(test_|conftest\.)[^/]*$|(_test|_spec|\.test|\.spec|Tests?)\.[^/.]+$"
_SQL = Path(__file__).with_suffix(".sql")
_WORK_FACTS = ("doi", "arxiv", "arxiv_id", "key", "citation_key", "bibkey", "id")


_POINTERS = """SELECT number, kind, target, p.uri, coalesce(symbol, ''), language, content_type, confidence
    FROM links JOIN places p USING (place) JOIN files f ON f.uri = p.uri"""
_BEARERS = {"key": "VARCHAR", "unit": "BIGINT", "uri": "VARCHAR"}
_WANTED = {
    "number": "BIGINT", "rank": "BIGINT", "scope": "VARCHAR", "key": "VARCHAR", "rest": "VARCHAR", "member": "BOOLEAN",
}  # fmt: skip
_MODULES = {"number": "BIGINT", "rank": "BIGINT", "key": "VARCHAR", "rest": "VARCHAR"}


def resolve_links(connection: Database, tables: Path, settings: GraphIndexSettings) -> None:
    """Make the table `crossed` of (kind, source, target, confidence, declared, time), the ends being chunks' places.

    And the table `unmet` of (uri, kind, target, documents): declared relations that lead to no document, or to several.
    """
    steps = dict(re.findall(r"-- (\w+): [^\n]*\n(.*?;)\n", _SQL.read_text(encoding="utf-8"), re.DOTALL))
    values = {
        "documents": glob_escaped(tables / "documents.parquet"),
        "chunks": glob_escaped(tables / "chunks.parquet"),
        "test_files": _TEST_FILES,
        "most": int(1 / settings.least_confidence) + 1,
        "causal": [kind.value for kind in CAUSAL],
        "least_confidence": settings.least_confidence,
        "name_confidence": _NAME_CONFIDENCE,
    }

    def run(name: str) -> None:
        connection.execute(steps[name], {key: value for key, value in values.items() if f"${key}" in steps[name]})

    for name in ("files", "places", "defined", "links"):
        run(name)
    _bearers(connection, tables)
    _wants(connection)
    # Where imports lead comes before names are met: a file means what it imported, also where that was passed on to it
    # by another. Names that thousands bear are left out before the join, which would be as large as their product.
    for name in ("reached", "imported", "types", "taken", *["passed_on"] * _HOPS, "few", "met", "found"):
        run(name)
    shares = pa.Table.from_pylist(
        [
            {"scope": scope, "member": member, "share": share}
            for member, of_scopes in ((False, settings.scopes), (True, settings.member_scopes))
            for scope, share in of_scopes.items()
        ]
    )
    connection.register("scopes", shares)
    run("crossed")
    run("unmet")
    connection.unregister("scopes")


def _bearers(connection: Database, tables: Path) -> None:
    packages = _packages(connection, tables)

    def document_keys_of(uri: str, language: str, title: str | None, metadata: str) -> Iterator[str]:
        yield from _document_keys(uri, language, title, metadata, packages)

    create(connection, "bearers", _BEARERS)
    for query, keys in (
        (
            "SELECT DISTINCT unit, uri, symbol, language FROM places JOIN files USING (uri) WHERE symbol <> ''",
            _symbol_keys,
        ),
        ("SELECT unit, uri, name, language FROM defined", _symbol_keys),
        (
            "SELECT head, uri, language, title, metadata FROM places JOIN files USING (uri) WHERE place = head",
            document_keys_of,
        ),
        ("SELECT unit, uri, anchor FROM places WHERE anchor <> ''", anchor_keys),
        ("SELECT min(place), uri, heading FROM places WHERE heading <> '' GROUP BY uri, heading", anchor_keys),
    ):
        keys_of: Callable[..., Iterable[str]] = keys
        rows = rows_of(connection, query)
        insert(
            connection, "bearers", _BEARERS, ((one, unit, uri) for unit, uri, *of in rows for one in keys_of(uri, *of))
        )


def _packages(connection: Database, tables: Path) -> frozenset[str]:
    """Folders with an `__init__.py`; an empty one is no document, but was noted as blank."""
    rows = connection.execute(
        """SELECT uri FROM files WHERE ends_with(uri, ?)
           UNION SELECT uri FROM read_parquet(?) WHERE ends_with(uri, ?) AND reason = 'blank'""",
        [_PACKAGE, glob_escaped(tables / "rejected.parquet"), _PACKAGE],
    ).fetchall()
    return frozenset(posixpath.dirname(uri) for (uri,) in rows)


def _symbol_keys(uri: str, symbol: str, language: str) -> Iterator[str]:
    yield from symbol_keys(uri, symbol, family_of(language))
    yield key("symbol", "", symbol)


def _document_keys(
    uri: str, language: str, title: str | None, metadata: str, packages: frozenset[str]
) -> Iterator[str]:
    family = family_of(language)
    yield from document_keys(uri)
    yield from module_keys(uri, family, packages)
    yield from folder_keys(uri, family)
    facts = json.loads(metadata)
    identifiers = [(name, facts[name]) for name in _WORK_FACTS if facts.get(name)]
    yield from work_keys(title, [fact for _, fact in identifiers])
    yield from number_keys(" ".join(f"{name.split('_')[0]}:{fact}" for name, fact in identifiers))


def _wants(connection: Database) -> None:
    """The keys that every link is looked for under; imports in a table of their own, since the others need them."""
    create(connection, "wanted", _WANTED)
    create(connection, "modules", _MODULES)
    others = rows_of(connection, f"{_POINTERS} WHERE kind <> 'imports'")
    insert(connection, "wanted", _WANTED, (want for row in others for want in _numbered(row)))
    # A dotted name may be a module within an imported package.
    dotted = "content_type = 'code' AND kind = 'references' AND contains(target, '.')"
    imports = rows_of(connection, f"{_POINTERS} WHERE kind = 'imports' OR {dotted}")
    insert(connection, "modules", _MODULES, (want for row in imports for want in _modules(row)))


def _modules(row: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    number, _, target, uri, _, language, *_ = row
    for rank, (module, rest) in enumerate(import_wanted(target, uri, family_of(language))):
        yield number, rank, module, rest


def _numbered(row: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    number, kind, target, uri, symbol, language, content_type, confidence = row
    if kind == LinkKind.CITES:
        works = work_wanted(target)
        wanted = [*works, *reference_wanted(target, uri)] if works else []
    elif kind in CAUSAL:
        wanted = relation_wanted(target, uri)
    elif content_type == ContentType.CODE and language:
        member = confidence < _WHOLE_FROM
        wanted = symbol_wanted(target, uri, symbol, family_of(language), member=member)
    else:
        wanted = reference_wanted(target, uri)
    for rank, want in enumerate(wanted):
        yield number, rank, want.scope.value, want.key, want.rest, want.member
