"""Who bears the names that links give: cross-references between chunks, across files (ING-14).

A link's keys are tried in order (`keys`): the same file, what the file imports, its folder, anywhere in what it
imports, the whole corpus. The first place with a bearer decides, and the edge has the confidence

    (1 − (1 − link's own) × (1 − that of the place)) / number of bearers there

since that the name is borne just there is evidence too; of a member of something whose type is unknown it is less.

Edges below the least confidence are left out. All of it is joins in DuckDB (`links.sql`), within a bound of
memory; nothing depends on the order of rows. Where imports lead comes before names are met: a file means what it
imported, also where that was passed on to it by another.
"""

from __future__ import annotations

import builtins
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from weft.domain.documents import ContentType
from weft.domain.links import CAUSAL, WHOLE_FROM, LinkKind
from weft.indexes.graph.keys import (
    OWN,
    SHORTEST_TITLE,
    anchor_keys,
    document_keys,
    family_of,
    folder_keys,
    key,
    module_keys,
    number_keys,
    parts_of,
    slug_of,
    symbol_keys,
    title_key,
    work_keys,
)
from weft.indexes.graph.rounds import Partition
from weft.indexes.settings import GraphIndexSettings
from weft.runtime.storage.tables import create, insert, rows_of

# Keys that a link is looked for under, the surest first (ING-14); `keys` has those of definitions.

_SHARED_FOLDER = frozenset({"go", "java", "kotlin", "csharp", "c", "swift", "scala", "hcl", "proto", "graphql"})
_IMPLICIT_OWNER = frozenset({"java", "kotlin", "csharp", "c", "swift", "scala", "ruby", "proto", "sql"})
_EXPLICIT = frozenset({"python", "javascript", "rust", "go"})  # a bare name comes from the file or from an import
# What values of the language itself have: `x.append` says nothing about who else defines an `append`.
_BUILT_IN = frozenset(name for kind in (str, bytes, list, dict, set, float, Exception) for name in dir(kind)) | {
    *dir(builtins), "push", "map", "filter", "forEach", "reduce", "slice", "then", "catch", "length", "toString",
    "equals", "hashCode", "size", "add", "put", "contains", "iter", "unwrap", "clone", "into", "len", "collect",
}  # fmt: skip
# What many a library's types have: said of something unknown, it hardly means ours.
_EVERYDAY = frozenset({
    "close", "read", "write", "open", "next", "send", "group", "match", "search", "sub", "parse", "name", "value",
    "run", "start", "stop", "call", "load", "save", "flush", "exists", "execute", "render", "apply", "process",
    "handle",
})  # fmt: skip


class NameScope(StrEnum):
    """Where a bearer of a name was found; each has its confidence in the settings."""

    FILE = "file"  # the same file
    IMPORT = "import"  # what the file imports under this very name
    FOLDER = "folder"  # the same folder, where that shares names
    IMPORTED = "imported"  # anywhere in a file that is imported
    CORPUS = "corpus"  # anywhere else
    PATH = "path"  # a path or URI that leads to one document
    WORK = "work"  # a work that is cited by key, title, DOI or number


@dataclass(frozen=True, slots=True)
class LookupKey:
    """One key under which the target of a link may be found."""

    scope: NameScope
    key: str  # what a bearer must be listed under; of `IMPORT` and `IMPORTED` what imports are listed under
    rest: str = ""  # the name inside what is imported, for `IMPORT` and `IMPORTED`
    member: bool = False  # whether the name is a member of something unknown, so that another type's is as likely


def symbol_wanted(target: str, uri: str, owner: str, family: str, *, member: bool = False) -> list[LookupKey]:
    """Where to look for a symbol that code names, best first: its file, its imports, its folder, everywhere.

    Examples:
        >>> [w.scope.value for w in symbol_wanted("stages_of", "a.py", "ingest", "python") if not w.member]
        ['file', 'import']
    """
    parts = parts_of(target)
    if not parts:
        return []
    if member and len(parts) == 1:
        return _member_wanted(parts[0], uri, family)
    if parts[0] in OWN:
        return _own_wanted(parts[1:], uri, owner, family)
    full = ".".join(parts)
    wanted = [LookupKey(NameScope.FILE, key("file", uri, f"{outer}.{full}")) for outer in _owners(owner, family)]
    wanted.append(LookupKey(NameScope.FILE, key("file", uri, full)))
    wanted += _import_wanted(parts, uri)
    if family in _SHARED_FOLDER:
        wanted.append(LookupKey(NameScope.FOLDER, key("folder", f"{family}:{posixpath.dirname(uri)}", full)))
    # Where imports name what they take, only one of everything could have brought a name that they do not.
    wanted.append(LookupKey(NameScope.IMPORTED, key("imports", uri, ""), full, member=family in _EXPLICIT))
    if len(parts) > 1:
        wanted.append(LookupKey(NameScope.CORPUS, key("corpus", family, full)))
        wanted.append(LookupKey(NameScope.CORPUS, key("corpus", family, ".".join(parts[-2:]))))
    elif family not in _EXPLICIT:
        wanted.append(LookupKey(NameScope.CORPUS, key("corpus", family, full)))
    # What a type does not define itself it may inherit; of other dotted names whatever is not here is elsewhere.
    inherited = parts[:-1] == owner.split(".")[:-1] if len(parts) > 1 else bool(owner) and family in _IMPLICIT_OWNER
    return [*wanted, *_member_wanted(parts[-1], uri, family)] if inherited else wanted


def _own_wanted(parts: Sequence[str], uri: str, owner: str, family: str) -> list[LookupKey]:
    if not parts:
        return []
    name = ".".join(parts)
    outer = owner.split(".")[:-1] or owner.split(".")
    owners = [".".join(outer[:depth]) for depth in range(len(outer), 0, -1)]
    wanted = [LookupKey(NameScope.FILE, key("file", uri, f"{one}.{name}")) for one in owners if one]
    return wanted if len(parts) > 1 else [*wanted, *_member_wanted(parts[-1], uri, family)]


def _owners(owner: str, family: str) -> list[str]:
    if family not in _IMPLICIT_OWNER:
        return []
    outer = owner.split(".")
    return [".".join(outer[:depth]) for depth in range(len(outer) - 1, 0, -1)]


def _import_wanted(parts: Sequence[str], uri: str) -> list[LookupKey]:
    """The longest prefix that is imported wins, and what follows it is looked for inside."""
    return [
        LookupKey(NameScope.IMPORT, key("import", uri, ".".join(parts[:cut])), ".".join(parts[cut:]))
        for cut in range(len(parts), 0, -1)
    ]


def _member_wanted(tail: str, uri: str, family: str) -> list[LookupKey]:
    if tail in _BUILT_IN:
        return []
    wanted = [
        LookupKey(NameScope.FILE, key("member", uri, tail), member=True),
        LookupKey(NameScope.IMPORTED, key("members", uri, ""), tail, member=True),
    ]
    return (
        wanted
        if tail in _EVERYDAY
        else [*wanted, LookupKey(NameScope.CORPUS, key("members", family, tail), member=True)]
    )


def import_wanted(target: str, uri: str, family: str) -> list[tuple[str, str]]:
    """Keys of modules that an import may mean, best first, each with the name that is left inside the module.

    Examples:
        >>> [(k.split(chr(31))[2], rest) for k, rest in import_wanted("p.log.Line", "p/a.py", "python")]
        [('p.log.Line', ''), ('p.log', 'Line'), ('p', 'log.Line')]
        >>> [(k.split(chr(31))[2], rest) for k, rest in import_wanted("..log.Line", "p/q/a.py", "python")]
        [('p/log/Line', ''), ('p/log', 'Line'), ('p', 'log.Line')]
    """
    if family == "python" and target.startswith("."):
        return _relative_import(target, uri)
    if target.startswith(("./", "../")):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(uri), target))
        return _path_import(path)
    if family == "c" and re.search(r"\.\w+$", target):
        near = posixpath.normpath(posixpath.join(posixpath.dirname(uri), target))
        return [(key("document", "", near), ""), (key("path", "", target), "")]
    if "/" in target:
        return _folder_import(target, family)
    parts = [part for part in parts_of(target.removesuffix(".*")) if part not in {"crate", "super", "self"}]
    return [
        (key("module", family, ".".join(parts[:cut])), ".".join(parts[cut:]))
        for cut in range(len(parts), max(0, len(parts) - 3), -1)
    ]


def _relative_import(target: str, uri: str) -> list[tuple[str, str]]:
    names = target.lstrip(".")
    folders = posixpath.dirname(uri).split("/")
    above = len(target) - len(names) - 1
    folders = folders[: len(folders) - above] if above else folders
    parts = [part for part in names.split(".") if part]
    return [
        (key("stem", "", "/".join([*folders, *parts[:cut]])), ".".join(parts[cut:]))
        for cut in range(len(parts), max(-1, len(parts) - 3), -1)
    ]


def _path_import(path: str) -> list[tuple[str, str]]:
    """A relative path, as it is or without its ending, perhaps with a name after it."""
    folder, _, name = path.rpartition("/")
    stem, _, rest = name.partition(".")
    whole = f"{folder}/{stem}" if folder else stem
    inner = rest if rest and rest.split(".")[0] not in {"js", "ts", "jsx", "tsx", "mjs", "cjs", "json"} else ""
    return [(key("document", "", path), ""), (key("stem", "", path), ""), (key("stem", "", whole), inner)]


def _folder_import(target: str, family: str) -> list[tuple[str, str]]:
    """A path from outside the tree, such as a Go package: its ends, longest first, as folder and as file."""
    folders = target.strip("/").split("/")
    least = len(folders) - 1 if "." in folders[0] else 0  # one folder's name alone is no proof, save under a host
    ends = ["/".join(folders[first:]) for first in range(max(1, least) if len(folders) > 1 else 1)]
    modules = []
    for end in ends:
        path, _, rest = end.rpartition("/")
        last, _, name = rest.partition(".")
        modules.append((key("folders", family, f"{path}/{last}" if path else last), name))
        modules.append((key("module", family, f"{path}/{last}".strip("/").replace("/", ".")), name))
    return modules


def reference_wanted(target: str, uri: str) -> list[LookupKey]:
    """Where a link in prose may lead, best first: an anchor, a path, a label, a symbol.

    Examples:
        >>> reference_wanted("../b.md#Top", "x/a/c.md")[0].key.split(chr(31))
        ['anchor', 'x/b.md', 'top']
    """
    scheme, _, _ = target.partition(":")
    if re.fullmatch(r"[a-z][a-z0-9+.-]+", scheme) and scheme != target and not target.startswith(f"{scheme}::"):
        wanted = [LookupKey(NameScope.PATH, key("document", "", target)), *work_wanted(target)]
        return wanted if scheme != "file" else [*wanted, *_path_wanted(target.removeprefix("file://"), uri)]
    path, _, fragment = target.partition("#")
    if not path:
        return [*_anchor_wanted(uri, fragment), LookupKey(NameScope.CORPUS, key("label", "", slug_of(fragment)))]
    wanted = [anchored for one in _paths(path, uri) for anchored in (_anchor_wanted(one, fragment) if fragment else [])]
    wanted += _path_wanted(path, uri)
    if not fragment and "/" not in target:
        wanted.append(LookupKey(NameScope.PATH, key("anchor", uri, slug_of(target))))
        wanted.append(LookupKey(NameScope.CORPUS, key("label", "", slug_of(target))))
    if parts := parts_of(target):
        wanted.append(LookupKey(NameScope.CORPUS, key("symbol", "", ".".join(parts))))
    return wanted


def relation_wanted(target: str, uri: str) -> list[LookupKey]:
    """Where a declared relation may lead, best first: a path, a URI, a record of the same corpus, the end of a path.

    No name that only sounds so: a wrong document would be called superseded.

    Examples:
        >>> [want.key.split(chr(31))[2] for want in relation_wanted("7", "notes:8")]
        ['7', 'notes:8/7', '7', 'notes:8/7', '7', '7', 'notes:7']
    """
    wanted = reference_wanted(target, uri)
    exact = [target, f"{uri.partition(':')[0]}:{target}"] if ":" in uri else [target]
    ends = key("path", "", "")
    return [
        *(want for want in wanted if want.scope is not NameScope.CORPUS),
        *(LookupKey(NameScope.PATH, key("document", "", one)) for one in exact),
        *(want for want in wanted if want.scope is NameScope.CORPUS and want.key.startswith(ends)),
    ]


def _anchor_wanted(uri: str, fragment: str) -> list[LookupKey]:
    slug = slug_of(unquote(fragment))
    return [LookupKey(NameScope.PATH, key("anchor", uri, slug))] if slug else []


def _path_wanted(path: str, uri: str) -> list[LookupKey]:
    wanted = [LookupKey(NameScope.PATH, key("document", "", one)) for one in _paths(path, uri)]
    wanted += [LookupKey(NameScope.PATH, key("stem", "", one)) for one in _paths(path, uri)]
    ending = unquote(path).strip("/")
    if "." in posixpath.basename(ending):
        wanted.append(
            LookupKey(NameScope.CORPUS, key("path", "", re.sub(r"^(\.\./)+", "", posixpath.normpath(ending))))
        )
    return wanted


def _paths(path: str, uri: str) -> list[str]:
    """A path as seen from a document, and from the root of its source."""
    plain = unquote(path).split("?")[0].rstrip("/") or "."
    root = uri.split("/", maxsplit=1)[0]
    near = posixpath.normpath(posixpath.join(posixpath.dirname(uri), plain.lstrip("/")))
    far = posixpath.normpath(posixpath.join(root, plain.lstrip("/")))
    return [far] if path.startswith("/") else list(dict.fromkeys([near, far]))


def work_wanted(target: str) -> list[LookupKey]:
    """Where a cited work may be found: by DOI or number, by its key, by its title.

    Examples:
        >>> work_wanted("https://doi.org/10.1000/XYZ")[0].key.split(chr(31))
        ['work', 'doi', '10.1000/xyz']
    """
    if target.isdecimal():  # the number of a reference means something in its own document alone
        return []
    keys = [*number_keys(target), key("work", "key", target.casefold())]
    if len(title := title_key(target)) > SHORTEST_TITLE:
        keys.append(key("work", "title", title))
    return [LookupKey(NameScope.WORK, one) for one in keys]


_NAME_CONFIDENCE = 0.8  # of a name that code uses without a link that says how
_PACKAGE = "/__init__.py"

TEST_FILES = r"/(tests?|__tests__|spec)/|(^|/)(test_|conftest\.)[^/]*$|(_test|_spec|\.test|\.spec|Tests?)\.[^/.]+$"
"""Paths of tests and of what only tests use, in any language; a source's own name, the first part, says nothing."""

_WORK_FACTS = ("doi", "arxiv", "arxiv_id", "key", "citation_key", "bibkey", "id")


_POINTERS = """SELECT number, kind, target, p.uri, coalesce(symbol, ''), language, content_type, confidence
    FROM links JOIN places p USING (place) JOIN files f ON f.uri = p.uri"""
_BEARERS = {"key": "VARCHAR", "unit": "BIGINT", "uri": "VARCHAR"}
_WANTED = {
    "number": "BIGINT", "rank": "BIGINT", "scope": "VARCHAR", "key": "VARCHAR", "rest": "VARCHAR", "member": "BOOLEAN",
}  # fmt: skip
_MODULES = {"number": "BIGINT", "rank": "BIGINT", "key": "VARCHAR", "rest": "VARCHAR"}


def link_values(settings: GraphIndexSettings) -> dict[str, object]:
    """What stands for the `$name`s of the queries."""
    return {
        "test_files": TEST_FILES,
        "package": _PACKAGE,
        "most": int(1 / settings.least_confidence) + 1,
        "causal": [kind.value for kind in CAUSAL],
        "least_confidence": settings.least_confidence,
        "name_confidence": _NAME_CONFIDENCE,
        "whole_from": WHOLE_FROM,
    }


def read_scopes(partition: Partition) -> None:
    """Name the confidence of each place that a bearer may have."""
    settings = partition.settings
    shares = pa.Table.from_pylist(
        [
            {"scope": scope, "member": member, "share": share}
            for member, of_scopes in ((False, settings.scopes), (True, settings.member_scopes))
            for scope, share in of_scopes.items()
        ]
    )
    partition.connection.register("scopes", shares)


def list_bearers(partition: Partition) -> None:
    """Make the table of the keys that units are listed under."""
    connection = partition.connection
    packages = frozenset(posixpath.dirname(uri) for (uri,) in rows_of(connection, "SELECT uri FROM packages"))

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
        ("SELECT unit, uri, anchor FROM anchored", anchor_keys),
        ("SELECT min(place), uri, heading FROM places WHERE heading <> '' GROUP BY uri, heading", anchor_keys),
    ):
        keys_of: Callable[..., Iterable[str]] = keys
        rows = rows_of(connection, query)
        insert(
            connection, "bearers", _BEARERS, ((one, unit, uri) for unit, uri, *of in rows for one in keys_of(uri, *of))
        )


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


def list_wanted(partition: Partition) -> None:
    """Make the table of the keys that links are looked for under, save those of imports."""
    connection = partition.connection
    create(connection, "wanted", _WANTED)
    others = rows_of(connection, f"{_POINTERS} WHERE kind <> 'imports'")
    insert(connection, "wanted", _WANTED, (want for row in others for want in _numbered(row)))


def list_modules(partition: Partition) -> None:
    """Make the table of the keys of what is imported, since the others need it."""
    connection = partition.connection
    create(connection, "module_keys", _MODULES)
    # A dotted name may be a module within an imported package.
    dotted = "content_type = 'code' AND kind = 'references' AND contains(target, '.')"
    imports = rows_of(connection, f"{_POINTERS} WHERE kind = 'imports' OR {dotted}")
    insert(connection, "module_keys", _MODULES, (want for row in imports for want in _modules(row)))


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
        member = confidence < WHOLE_FROM
        wanted = symbol_wanted(target, uri, symbol, family_of(language), member=member)
    else:
        wanted = reference_wanted(target, uri)
    for rank, want in enumerate(wanted):
        yield number, rank, want.scope.value, want.key, want.rest, want.member
