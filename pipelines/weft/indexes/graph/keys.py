"""Keys that a definition is listed under, so that links meet it in a join (ING-14); `wanted` has those of links.

A key is scope, place and name with a unit separator between.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterator, Sequence

_SEPARATOR = "\x1f"
_PARTS = re.compile(r"\.|::|->|\?\.|#|\\|/")
_IDENTIFIER = re.compile(r"[^\W\d][\w$]*")
_TRAILING = re.compile(r"(\(.*\)|<.*>|\[.*\]|[?!*&]+)\s*$", re.DOTALL)
OWN = frozenset({"self", "this", "cls", "super", "super()", "Self", "@"})
_RELATIVES = {"tsx": "javascript", "typescript": "javascript", "jsx": "javascript", "cpp": "c", "cuda": "c"}
_INDEX = frozenset({"__init__", "index", "mod", "lib"})  # files that stand for their folder
_MOST_SUFFIXES = 8  # folders of a path that a name may give: bounds the keys of one document
_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"<>]+", re.IGNORECASE)
_ARXIV = re.compile(r"(?:arxiv[:/.]|arxiv\.org/(?:abs|pdf)/)\s*(\d{4}\.\d{4,5}|[a-z-]+/\d{7})", re.IGNORECASE)
SHORTEST_TITLE = 8  # characters; "Notes" and "README" cite nothing


def key(scope: str, place: str, name: str) -> str:
    """One key of a bearer or of what is wanted."""
    return _SEPARATOR.join((scope, place, name))


def family_of(language: str | None) -> str:
    """Languages that call each other's code count as one.

    Examples:
        >>> family_of("tsx"), family_of("python"), family_of(None)
        ('javascript', 'python', '')
    """
    return _RELATIVES.get(language or "", language or "")


def parts_of(target: str) -> list[str]:
    """The identifiers of a dotted name; empty where it is none."""
    text = target.strip()
    while (shorter := _TRAILING.sub("", text)) != text:
        text = shorter
    parts = [part.strip() for part in _PARTS.split(text)]
    return parts if parts and all(_IDENTIFIER.fullmatch(part) or part in OWN for part in parts) else []


def symbol_keys(uri: str, symbol: str, family: str) -> Iterator[str]:
    """Keys that a definition is listed under in its file, its folder and its language; a member by its last name too.

    Examples:
        >>> [k.replace(chr(31), "|") for k in symbol_keys("a/b.py", "Store.get", "python")][:2]
        ['file|a/b.py|Store.get', 'folder|python:a|Store.get']
    """
    parts = parts_of(symbol)
    if not parts:
        return
    full = ".".join(parts)
    yield key("file", uri, full)
    yield key("folder", f"{family}:{posixpath.dirname(uri)}", full)
    yield key("corpus", family, full)
    if len(parts) > 1:
        yield key("member", uri, parts[-1])
        yield key("members", family, parts[-1])


def module_keys(uri: str, family: str, packages: frozenset[str]) -> Iterator[str]:
    """Keys that a file is listed under as a module: the ends of its path without its own ending.

    Of Python only the ends that begin outside of a package, as its imports do.

    Examples:
        >>> [k.split(chr(31))[2] for k in module_keys("w/p/run/log.py", "python", frozenset({"w/p", "w/p/run"}))]
        ['w.p.run.log', 'p.run.log', 'w/p/run/log']
    """
    folders = _stem(uri)
    for first in range(max(0, len(folders) - _MOST_SUFFIXES), len(folders)):
        if family != "python" or "/".join(folders[:first]) not in packages:
            yield key("module", family, ".".join(folders[first:]))
    yield key("stem", "", "/".join(folders))


def folder_keys(uri: str, family: str) -> Iterator[str]:
    """Keys of the folder that a file stands in, for languages that import folders."""
    folders = posixpath.dirname(uri).split("/")
    for first in range(max(0, len(folders) - _MOST_SUFFIXES), len(folders)):
        yield key("folders", family, "/".join(folders[first:]))


def _stem(uri: str) -> list[str]:
    """Folders and name of a file without its ending; a file that stands for its folder is that folder."""
    folders = uri.split("/")
    folders[-1] = folders[-1].split(".")[0]
    return folders[:-1] if folders[-1] in _INDEX and len(folders) > 1 else folders


def document_keys(uri: str) -> Iterator[str]:
    """Keys that a document is listed under by its path: whole, and by its ends."""
    yield key("document", "", uri)
    folders = uri.split("/")
    for first in range(max(0, len(folders) - _MOST_SUFFIXES), len(folders)):
        yield key("path", "", "/".join(folders[first:]))


def anchor_keys(uri: str, anchor: str) -> Iterator[str]:
    """Keys that an anchor or a heading is listed under: in its document, and everywhere."""
    if slug := slug_of(anchor):
        yield key("anchor", uri, slug)
        yield key("label", "", slug)


def slug_of(title: str) -> str:
    """A heading as links name it: lower case, hyphens for blanks, no punctuation.

    Examples:
        >>> slug_of("Who owns *what*?"), slug_of("ING-14: links")
        ('who-owns-what', 'ing-14-links')
    """
    return "-".join(re.sub(r"[^\w\s-]", "", title.casefold()).split())


def title_key(title: str) -> str:
    """A title as citations are compared: letters and digits alone, case folded.

    Examples:
        >>> title_key("Attention Is All You Need.")
        'attention is all you need'
    """
    folded = unicodedata.normalize("NFKC", title).casefold()
    return " ".join(re.findall(r"\w+", folded))


def work_keys(title: str | None, facts: Sequence[str]) -> Iterator[str]:
    """Keys that a document is listed under as a work: its title, and the numbers and keys among its facts."""
    if title and len(title_key(title)) > SHORTEST_TITLE:
        yield key("work", "title", title_key(title))
    for fact in facts:
        yield from number_keys(fact)
        yield key("work", "key", fact.casefold())


def number_keys(text: str) -> Iterator[str]:
    """Keys of the DOI and the arXiv number in a text."""
    if number := _DOI.search(text):
        yield key("work", "doi", number.group().rstrip(".,;)").casefold())
    if number := _ARXIV.search(text):
        yield key("work", "arxiv", number.group(1).casefold())
