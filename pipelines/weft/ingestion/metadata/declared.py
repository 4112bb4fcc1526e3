"""Facts that people declare about a document, beside it in `NAME.meta.json` or at its head (ING-4)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, time
from typing import Any

from weft.domain.documents import Document
from weft.domain.links import CAUSAL, Link, LinkKind

SIDECAR_SUFFIX = ".meta.json"

MOST_BYTES = 65_536
"""Longer sidecars and front matter are not parsed: YAML of ten times that takes seconds."""

MOST_DEPTH = 16
"""How deep what they declare may be nested."""


class DeclarationError(Exception):
    """What was declared cannot be read; the message says what was expected and found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Declared facts; what was not declared is None or empty. See `Document` for their meaning."""

    title: str | None = None
    summary: str | None = None
    triggers: tuple[str, ...] = ()
    tier: str | None = None
    intent: str | None = None
    validation: str | None = None
    citations: int | None = None
    authors: tuple[str, ...] = ()
    trust: int | None = None
    links: tuple[Link, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)  # facts that weft knows no field for, as strings


_NAMES = {
    "title": ("title",),
    "summary": ("summary", "description", "abstract"),
    "triggers": ("triggers", "trigger_phrases"),
    "tier": ("tier", "importance_tier", "importance"),
    "intent": ("intent", "encoding_intent"),
    "validation": ("validation", "validation_status"),
    "citations": ("citations", "citation_count"),
    "authors": ("authors", "author", "agent"),
    "trust": ("trust", "trust_level"),
    "links": ("cross_references", "references", "related"),
    "relations": ("relations",),
}
NUMBERS = frozenset((*_NAMES["citations"], *_NAMES["trust"]))
"""Names of facts that are whole numbers."""

_MOST_TRUST = 100


def declared(facts: Mapping[Any, Any]) -> tuple[Declared, list[str]]:
    """The facts of a mapping, and a line on each that is not of the kind that its name asks for.

    Of several names for one fact the first that fits counts; what has another kind, or no field, is kept as metadata.
    """
    values: dict[str, Any] = {}
    problems = []
    used = set()
    for field_name, names in _NAMES.items():
        for name in names:
            if facts.get(name) is None or field_name in values:
                continue
            try:
                values[field_name] = _READERS[field_name](facts[name])
                used.add(name)
            except ValueError as error:
                problems.append(f"{name}: expected {error}, found {str(facts[name])[:_SHOWN]!r}")
    rest = {name: value for name, value in facts.items() if name not in used}
    links = _joined(values.pop("links", ()), _joined(values.pop("relations", ()), _short_relations(rest)))
    return Declared(**values, links=links, metadata=as_strings(rest)), problems


def sidecars(names: Collection[str]) -> dict[str, str]:
    """Sidecar by the name of the file that it is about, after its whole name, else after its stem."""
    if not any(name.endswith(SIDECAR_SUFFIX) for name in names):
        return {}
    beside: dict[str, str] = {}
    for name in names:
        sidecar = next((one for one in sidecar_names(name) if one in names), None)
        if sidecar is not None and not name.endswith(SIDECAR_SUFFIX):
            beside[name] = sidecar
    return beside


def sidecar_names(name: str) -> tuple[str, str]:
    """What the sidecar of a file may be called; the first one counts."""
    return f"{name}{SIDECAR_SUFFIX}", f"{name.rpartition('.')[0] or name}{SIDECAR_SUFFIX}"


def read_sidecar(data: bytes) -> tuple[Declared, list[str]]:
    """Facts of a sidecar, and what is wrong with some of them."""
    try:
        facts = json.loads(data)
        if not isinstance(facts, dict):
            raise DeclarationError(f"expected a JSON object, found {type(facts).__name__}")
        require_shallow(facts)
        return declared(facts)
    except (ValueError, RecursionError) as error:
        raise DeclarationError(f"expected a JSON object, found: {error}") from error


def with_declared(document: Document, facts: Declared) -> Document:
    """The document with declared facts over its own; lists and metadata are joined."""
    return replace(
        document,
        title=facts.title or document.title,
        summary=facts.summary or document.summary,
        triggers=_joined(facts.triggers, document.triggers),
        tier=facts.tier or document.tier,
        intent=facts.intent or document.intent,
        validation=facts.validation or document.validation,
        citations=document.citations if facts.citations is None else facts.citations,
        authors=facts.authors or document.authors,
        trust_level=document.trust_level if facts.trust is None else facts.trust,
        links=_joined(facts.links, document.links),
        metadata={**document.metadata, **{k: v for k, v in facts.metadata.items() if k not in document.metadata}},
    )


def as_strings(facts: Mapping[Any, Any]) -> dict[str, str]:
    """Facts as strings; what is not a string keeps its JSON form, and null says nothing."""
    return {as_text(str(name)): as_text(_string(value)) for name, value in facts.items() if value is not None}


def _string(value: Any) -> str:
    if isinstance(value, date | time):  # TOML has days and times
        return value.isoformat()
    return value if isinstance(value, str) else json.dumps(_named(value), sort_keys=True, default=_other)


def _named(value: Any) -> Any:
    """The value with texts for the names of its mappings, which YAML may write as numbers, days or nothing."""
    if isinstance(value, Mapping):
        return {_string(name): _named(inner) for name, inner in value.items()}
    return [_named(inner) for inner in value] if isinstance(value, list | tuple) else value


def _other(value: Any) -> Any:
    """What JSON has no form for; a set has no order of its own."""
    return sorted(map(str, value)) if isinstance(value, set) else str(value)


def as_text(text: str) -> str:
    """The text without lone surrogates, which JSON may escape and no file or index can hold."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def require_shallow(value: Any) -> None:
    """Check that lists and mappings are nested at most `MOST_DEPTH` deep."""
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        level = [inner for outer in level for inner in _within(outer)]
        if not level:
            return
    raise DeclarationError(f"expected facts nested at most {MOST_DEPTH} deep, found more")


def _within(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _line(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise ValueError("a text")
    return " ".join(as_text(str(value)).split())


def _lines(value: Any) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(_line(item) for item in (value if isinstance(value, list) else [value])))
    except ValueError as error:
        raise ValueError("a list of texts") from error


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise ValueError("a whole number >= 0")
    return value


def _trust(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_TRUST:
        raise ValueError(f"a whole number from 0 to {_MOST_TRUST}")
    return value


def _links(value: Any) -> tuple[Link, ...]:
    return tuple(dict.fromkeys(_link(item) for item in (value if isinstance(value, list) else [value])))


def _link(item: Any) -> Link:
    if isinstance(item, Mapping):
        kind, target = item.get("kind", LinkKind.REFERENCES.value), item.get("target")
    else:
        kind, target = LinkKind.REFERENCES.value, item
    if not isinstance(target, str) or not target.strip() or kind not in set(LinkKind):
        raise ValueError(f"names, or objects of a target and a kind of {', '.join(LinkKind)}")
    return Link(LinkKind(kind), as_text(target.strip()), declared=True)


def _relations(value: Any) -> tuple[Link, ...]:
    try:
        stated = json.loads(value) if isinstance(value, str) else value  # a column of a table may hold texts alone
        links = _links(stated)
    except ValueError:
        links = ()
    if not links or any(link.kind not in CAUSAL for link in links):
        raise ValueError(f"objects of a target and a kind of {', '.join(CAUSAL)}")
    return links


def _short_relations(facts: Mapping[Any, Any]) -> tuple[Link, ...]:
    """Relations such as `supersedes: old.md`. The names have other meanings, too: only paths and URIs are targets.

    Examples:
        >>> [link.target for link in _short_relations({"supersedes": ["a.md", "b/c"], "enabled": "true"})]
        ['a.md', 'b/c']
    """
    stated = ((kind, facts.get(kind.value)) for kind in CAUSAL)
    targets = ((kind, one) for kind, some in stated for one in (some if isinstance(some, list) else [some]))
    return tuple(
        Link(kind, as_text(one.strip()), declared=True)
        for kind, one in targets
        if isinstance(one, str) and _PATH.search(one.strip())
    )


def _joined(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys((*first, *second)))


_PATH = re.compile(r"^[^\s/]*[:/]\S|^\S+\.[A-Za-z]\w*(#\S*)?$")
_SHOWN = 60  # characters of a value in a message
_READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("title", "summary", "tier", "intent", "validation"), _line),
    **dict.fromkeys(("triggers", "authors"), _lines),
    "citations": _count,
    "trust": _trust,
    "links": _links,
    "relations": _relations,
}
