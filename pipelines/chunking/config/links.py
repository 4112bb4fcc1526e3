"""What configuration points to: images, packages, and files beside it (ING-9, ING-14)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pipelines.chunking.config.entries import Entry
from pipelines.chunking.units.splitting import decoded
from pipelines.domain.links import Link, LinkKind

_IMAGE = re.compile(rb"^[ \t-]*[\"']?image[\"']?[ \t]*:[ \t]*[\"']?(?P<name>[\w./:@${}-]{2,200})", re.MULTILINE)
_FROM = re.compile(rb"[ \t]*FROM\s+(?:--\S+\s+)*(?P<name>\S{1,200})", re.IGNORECASE)
_COPY = re.compile(rb"^[ \t]*(?:COPY|ADD)[ \t]+(?P<rest>[^\n]{1,500})", re.MULTILINE | re.IGNORECASE)
_PATH = re.compile(
    rb"(?<![\w./:@$~-])(?P<path>\.{0,2}/?(?:[\w-][\w.-]{0,80}/){1,12}[\w-][\w.-]{0,80}\.[A-Za-z]\w{0,7}|\./[\w./-]{1,200}+"
    rb"|[\w-]{1,60}\.(?:py|json|ya?ml|toml|md|sh|cfg|ini|env|tsx?|jsx?|txt))(?![\w/@-])"
)
_QUOTED = re.compile(rb"[\"'](?P<name>[A-Za-z0-9][\w.-]*)[^\"'\n]*[\"']")
_PACKAGE_KEYS = {
    *("dependencies", "devDependencies", "peerDependencies", "optionalDependencies", "require", "require-dev"),
    *("dev-dependencies", "build-dependencies", "packages", "dev-packages"),
}
_LISTS = {("project", "dependencies"), ("build-system", "requires")}
_SURE, _LIKELY = 0.9, 0.5


def links_of(source: bytes, language: str, entries: Sequence[Entry]) -> list[tuple[int, Link]]:
    """Links by where they stand, in any order."""
    links = list(_dependencies(source, language, entries))
    if language == "dockerfile":
        links += _dockerfile(source, entries)
    else:
        links += [(match.start("name"), _reference(match["name"])) for match in _IMAGE.finditer(source)]
    taken = {at for at, _ in links}
    for match in _PATH.finditer(source):
        if match.start() not in taken:
            path = decoded(match["path"]).removeprefix("./")
            links.append((match.start(), Link(LinkKind.REFERENCES, path, _LIKELY)))
    return links


def _dockerfile(source: bytes, entries: Sequence[Entry]) -> Iterator[tuple[int, Link]]:
    stages: set[bytes] = set()
    for entry in entries:
        stage = _FROM.match(source, entry.at, entry.end)
        if stage is not None and stage["name"].lower() not in stages:
            yield stage.start("name"), _reference(stage["name"])
        stages.add(entry.key.lower().encode())
    for match in _COPY.finditer(source):
        words = match["rest"].split()
        if not any(word.startswith((b"--from=", b"[")) for word in words):
            for word in words[:-1]:
                if not word.startswith(b"--") and word != b".":
                    yield match.start("rest"), _reference(word)


def _reference(name: bytes) -> Link:
    return Link(LinkKind.REFERENCES, decoded(name), _SURE)


def _dependencies(source: bytes, language: str, entries: Sequence[Entry]) -> Iterator[tuple[int, Link]]:
    if language == "requirements":
        for entry in entries:
            if not entry.key.startswith("-"):
                yield _import(entry.at, entry.key)
    elif language == "gomod":
        yield from _go(source, entries)
    else:
        for entry in entries:
            yield from _declared(source, entry)


def _go(source: bytes, entries: Sequence[Entry]) -> Iterator[tuple[int, Link]]:
    for entry in entries:
        if entry.key == "require":
            for child in entry.children:
                yield _import(child.at, child.key)
            words = source[entry.at : entry.end].split(None, 2)
            if not entry.container and len(words) > 1:
                yield _import(entry.at, decoded(words[1]))


def _declared(source: bytes, entry: Entry) -> Iterator[tuple[int, Link]]:
    """Names of packages, as keys of an object or as the strings of a list."""
    table = entry.key.rpartition(".")[2]
    if table in _PACKAGE_KEYS:
        for child in entry.children:
            if child.key != "python":
                yield _import(child.at, child.key.strip("\"'"))
    for child in entry.children:
        if (entry.key, child.key) in _LISTS or entry.key in {"project.optional-dependencies", "dependency-groups"}:
            value = source.find(b"=", child.at, child.end) + 1
            for match in _QUOTED.finditer(source, value, child.end):
                yield _import(match.start(), decoded(match["name"]))


def _import(at: int, name: str) -> tuple[int, Link]:
    return at, Link(LinkKind.IMPORTS, name, _SURE)
