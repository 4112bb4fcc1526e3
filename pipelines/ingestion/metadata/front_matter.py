"""Front matter at the head of a Markdown file: YAML between dashes, TOML between plus signs (ING-4, ING-40)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import yaml

from pipelines.ingestion.metadata.declared import (
    MOST_BYTES,
    MOST_DEPTH,
    NUMBERS,
    DeclarationError,
    Declared,
    declared,
    require_shallow,
)

_FENCE = re.compile(r"(---|\+\+\+)[ \t]*\r?\n")
_ENDS = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]*\r?$", re.MULTILINE),
}
# How it begins: two rules may stand in any Markdown.
_BEGINNINGS = {
    "---": re.compile(r"(?:\s*#[^\n]*\n|\s)*(?:[\w.\"'-][\w .\"'-]*:(?:\s|$)|[{&*!])"),
    "+++": re.compile(r"(?:\s*#[^\n]*\n|\s)*(?:[\w.\"'-][\w .\"'-]*=|\[)"),
}
_LOOK = 4096
_TOML_NAMES = re.compile(r"^[ \t]*(?:\[[^\n,\]]*|[^\n=]*(?==))", re.MULTILINE)  # of tables, and before a value
_NUMBER = re.compile(r"[0-9]{1,18}")
_NULL = "tag:yaml.org,2002:null"
# In C where there is one: the other is many times slower, and both walk the same events.
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _AsWritten(_SAFE):  # type: ignore[misc]
    """Reads plain scalars as texts: `1.10`, `NO` and `12:30` are no number, no truth and no seconds to people."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag == _NULL]
        for first, resolvers in _SAFE.yaml_implicit_resolvers.items()
    }


def front_matter(text: str) -> Declared | None:
    r"""Facts that a Markdown text declares at its head; None where it declares none.

    Values are texts as they are written. Facts of another kind than their names ask for are kept as metadata, since
    many tools give the names other meanings.

    Raises:
        DeclarationError: It is too long, no mapping, nested too deep, or holds an alias, behind which a few bytes can
            stand for gigabytes.

    Examples:
        >>> front_matter("---\ntitle: 1.10\n---\nText.\n").title
        '1.10'
        >>> front_matter('+++\ntitle = "Locks"\n+++\nText.\n').title
        'Locks'
        >>> front_matter("---\n\nA rule, and no fence follows.\n")
    """
    opening = _FENCE.match(text)
    if opening is None:
        return None
    fence, start = opening[1], opening.end()
    closing = _ENDS[fence].search(text, start, start + MOST_BYTES + 4)
    if closing is None and _ENDS[fence].search(text, start) is None:
        return None
    source = text[start : closing.start() if closing else start + _LOOK]
    if not source.strip() or not _BEGINNINGS[fence].match(source[:_LOOK]):
        return None
    if closing is None:
        raise DeclarationError(f"expected front matter of at most {MOST_BYTES} characters, found more")
    return _declared(source, *_LANGUAGES[fence])


def _declared(source: str, language: str, read: Callable[[str], Any]) -> Declared:
    try:
        facts = read(source)
        if not isinstance(facts, dict):
            raise DeclarationError(f"expected front matter to be a mapping, found {type(facts).__name__}")
        require_shallow(facts)
        return declared(_with_numbers(facts))[0]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())[:200]
        raise DeclarationError(f"expected front matter in {language}, found: {problem}") from error


def _with_numbers(facts: Mapping[Any, Any]) -> dict[Any, Any]:
    """Facts with numbers for those that are counts, which a text of digits stands for."""
    return {
        name: int(value) if name in NUMBERS and isinstance(value, str) and _NUMBER.fullmatch(value) else value
        for name, value in facts.items()
    }


def _from_toml(source: str) -> dict[str, Any]:
    # Its parser takes the square of a name's parts.
    if any(name[0].count(".") > MOST_DEPTH for name in _TOML_NAMES.finditer(source)):
        raise DeclarationError(f"expected front matter nested at most {MOST_DEPTH} deep, found a name of more parts")
    return tomllib.loads(source.replace("\r\n", "\n"), parse_float=str)


def _from_yaml(source: str) -> Any:
    _require_harmless(source)
    return yaml.load(source, _AsWritten)  # noqa: S506  a safe loader, in C


def _require_harmless(source: str) -> None:
    """Walk the events, of which nothing is built yet."""
    level = 0
    for event in yaml.parse(source, _AsWritten):
        if isinstance(event, yaml.AliasEvent):
            raise DeclarationError("expected front matter without aliases, found one")
        if isinstance(event, yaml.CollectionStartEvent):
            level += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            level -= 1
        if level > MOST_DEPTH:
            raise DeclarationError(f"expected front matter nested at most {MOST_DEPTH} deep, found more")


_LANGUAGES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "---": ("YAML", _from_yaml),
    "+++": ("TOML", _from_toml),
}
