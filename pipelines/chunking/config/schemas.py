"""Known schemas of configuration files and the units of their own (ING-9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from pipelines.chunking.config.entries import Entry, Scanner
from pipelines.chunking.config.json_entries import json_entries
from pipelines.chunking.config.line_entries import (
    dockerfile_entries,
    gomod_entries,
    hcl_entries,
    ini_entries,
    make_entries,
    requirement_entries,
    toml_entries,
)
from pipelines.chunking.config.yaml_entries import yaml_documents, yaml_entries
from pipelines.chunking.units.splitting import decoded

SCANNERS: Mapping[str, Scanner] = {
    "dockerfile": dockerfile_entries,
    "gomod": gomod_entries,
    "hcl": hcl_entries,
    "ini": ini_entries,
    "json": json_entries,
    "make": make_entries,
    "requirements": requirement_entries,
    "toml": toml_entries,
    "yaml": yaml_entries,
}
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
    if language == "yaml":
        return _yaml_schema(name, source)
    return None


def _yaml_schema(name: str, source: bytes) -> str | None:
    if _COMPOSE.match(name):
        return "compose"
    if _API.search(source, 0, _LOOKED_AT) and _KIND.search(source, 0, _LOOKED_AT):
        return "kubernetes"
    return None


def entries_of(source: bytes, language: str, schema: str | None) -> list[Entry]:
    """Entries at the top of a file, of which those that are units of its schema say so."""
    if schema == "kubernetes":
        return [_resource(source, document) for document in yaml_documents(source)]
    found = SCANNERS[language](source)
    return list(_UNITS[schema](found)) if schema in _UNITS else found


def _resource(source: bytes, document: Entry) -> Entry:
    end = min(document.end, document.start + _LOOKED_AT)
    kind = _KIND.search(source, document.start, end)
    name = _METADATA_NAME.search(source, document.start, end)
    names = [decoded(found[group]) for found, group in ((kind, "kind"), (name, "name")) if found is not None]
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
