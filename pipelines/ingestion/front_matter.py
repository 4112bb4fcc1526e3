"""Front matter: YAML between two lines of dashes at the head of a Markdown file (ING-4)."""

from __future__ import annotations

import re
from typing import Any

import yaml

from pipelines.ingestion.declared import DeclarationError, Declared, declared, require_shallow

_FENCE = re.compile(r"---[ \t]*\r?\n")
_END = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
# In C where there is one: the other is many times slower, and both walk the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def front_matter(text: str, *, limit: int, depth: int) -> Declared | None:
    r"""Facts that a Markdown text declares at its head; None where it declares none.

    Facts of another kind than their names ask for are kept as metadata, since many tools give the names other meanings.

    Args:
        limit: Characters; longer front matter is not parsed.

    Raises:
        DeclarationError: It is too long, no YAML mapping, nested too deep, or holds an alias, behind which a few bytes
            can stand for gigabytes.

    Examples:
        >>> front_matter("---\ntitle: Locks\n---\nText.\n", limit=1000, depth=8).title
        'Locks'
        >>> front_matter("---\n\nA rule, and no fence follows.\n", limit=1000, depth=8)
    """
    opening = _FENCE.match(text)
    if opening is None:
        return None
    closing = _END.search(text, opening.end(), opening.end() + limit + 4)
    if closing is None:
        if _END.search(text, opening.end()) is None or not _looks_declared(text[opening.end() :][:_LOOK]):
            return None
        raise DeclarationError(f"expected front matter of at most {limit} characters, found more")
    source = text[opening.end() : closing.start()]
    if not source.strip() or not _looks_declared(source[:_LOOK]):
        return None
    return _declared(source, depth)


_LOOK = 4096


def _looks_declared(source: str) -> bool:
    """Whether a text begins with a key: two rules may stand in any Markdown."""
    return re.match(r"(?:\s*#[^\n]*\n|\s)*(?:[\w.\"'-][\w .\"'-]*:(?:\s|$)|[{&*!])", source) is not None


def _declared(source: str, depth: int) -> Declared:
    try:
        _require_harmless(source, depth)
        facts = yaml.load(source, _LOADER)  # noqa: S506  a safe loader, in C
        if not isinstance(facts, dict):
            raise DeclarationError(f"expected front matter to be a mapping, found {type(facts).__name__}")
        require_shallow(facts, depth)
        return declared(facts)[0]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        found = " ".join(str(error).split())[:200]
        raise DeclarationError(f"expected front matter in YAML, found: {found}") from error


def _require_harmless(source: str, depth: int) -> None:
    """Walk the events, of which nothing is built yet."""
    level = 0
    for event in yaml.parse(source, _LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise DeclarationError("expected front matter without aliases, found one")
        if isinstance(event, yaml.CollectionStartEvent):
            level += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            level -= 1
        if level > depth:
            raise DeclarationError(f"expected front matter nested at most {depth} deep, found more")
