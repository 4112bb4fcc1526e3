"""Known schemas of configuration files and the units of their own (ING-9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from pipelines.chunking.config.entries import Entry, Scanner, json_entries
from pipelines.chunking.config.lines import LINE_SCANNERS
from pipelines.chunking.config.yaml import yaml_documents, yaml_entries
from pipelines.chunking.units.splitting import decoded

SCANNERS: Mapping[str, Scanner] = {**LINE_SCANNERS, "json": json_entries, "yaml": yaml_entries}
"""How each notation is read; others are cut into windows of lines."""

_PACKAGE_UNITS = {
    *("scripts", "dependencies", "devDependencies", "peerDependencies", "optionalDependencies"),
    *("require", "require-dev"),  # PHP's composer.json has the same form
}
_KIND = re.compile(rb"^kind:[ \t]*[\"']?(?P<kind>[A-Za-z]+)", re.MULTILINE)
_API = re.compile(rb"^apiVersion:", re.MULTILINE)
_METADATA_NAME = re.compile(
    rb"^metadata:[^\n]*\n(?:[ \t]+[^\n]*\n){0,20}?[ \t]+name:[ \t]*[\"']?(?P<name>[\w.-]+)", re.MULTILINE
)
_COMPOSE = re.compile(r"(?:docker-)?compose(?:[.-].*)?\.ya?ml\Z")
_LOOKED_AT = 4_000  # bytes of a document that tell what it is


def schema_of(uri: str, language: str | None, source: bytes) -> str | None:
    r"""The known schema of a file: by its name, or by what it holds.

    Examples:
        >>> schema_of("app/package.json", "json", b"{}"), schema_of("a.yml", "yaml", b"apiVersion: v1\nkind: Pod\n")
        ('package', 'kubernetes')
    """
    name = PurePosixPath(uri.rpartition("#")[0] or uri).name.lower()
    if name in {"package.json", "composer.json"}:
        return "package"
    if name == "pyproject.toml":
        return "pyproject"
    if language in {"dockerfile", "gomod"}:
        return language
    if language != "yaml":
        return None
    if _COMPOSE.match(name):
        return "compose"
    return "kubernetes" if all(mark.search(source, 0, _LOOKED_AT) for mark in (_API, _KIND)) else None


def entries_of(source: bytes, language: str, schema: str | None) -> list[Entry]:
    """Entries at the top of a file, of which those that are units of its schema say so."""
    if schema == "kubernetes":
        return [_resource(source, document) for document in yaml_documents(source)]
    entries = SCANNERS[language](source)
    return _UNITS[schema](entries) if schema in _UNITS else entries


def _resource(source: bytes, document: Entry) -> Entry:
    end = min(document.end, document.start + _LOOKED_AT)
    matches = (pattern.search(source, document.start, end) for pattern in (_KIND, _METADATA_NAME))
    names = [decoded(match[match.lastgroup or 0]) for match in matches if match is not None]
    return replace(document, key="/".join(names) or "document", own=True)


def _own_tables(entries: Sequence[Entry]) -> list[Entry]:
    return [replace(entry, own=entry.container) for entry in entries]


def _package(entries: Sequence[Entry]) -> list[Entry]:
    return [replace(entry, own=entry.key in _PACKAGE_UNITS) for entry in entries]


def _compose(entries: Sequence[Entry]) -> list[Entry]:
    return [
        replace(entry, children=tuple(replace(child, own=True) for child in entry.children))
        if entry.key == "services"
        else entry
        for entry in entries
    ]


_UNITS: Mapping[str | None, Callable[[Sequence[Entry]], list[Entry]]] = {
    "compose": _compose,
    "dockerfile": _own_tables,
    "gomod": _own_tables,
    "package": _package,
    "pyproject": _own_tables,
}
