"""Front matter at the head of a Markdown file: YAML between dashes, TOML between plus signs, JSON (ING-4, ING-40)."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import yaml

from weft.chunking.prose.front import front_of
from weft.ingestion.metadata.declared import (
    MOST_BYTES,
    MOST_DEPTH,
    NUMBERS,
    DeclarationError,
    Declared,
    declared,
    require_shallow,
)

_TOML_NAMES = re.compile(r"^[ \t]*(?:\[[^\n,\]]*|[^\n=]*(?==))", re.MULTILINE)  # of tables, and before a value
_NUMBER = re.compile(r"[0-9]{1,18}")
_MOST_NODES = 20_000  # of what aliases stand for, too: a few bytes can stand for gigabytes
_NODE_CHARACTERS = 64  # a text behind an anchor counts once more for each of these
_MERGE = "tag:yaml.org,2002:merge"
_RESOLVED_TAGS = frozenset({"tag:yaml.org,2002:null", _MERGE})
# In C where there is one: the other is many times slower, and both walk the same events.
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _AsWritten(_SAFE):  # type: ignore[misc]
    """Reads plain scalars as texts: `1.10`, `NO` and `12:30` are no number, no truth and no seconds to people."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag in _RESOLVED_TAGS]
        for first, resolvers in _SAFE.yaml_implicit_resolvers.items()
    }


def _untagged(loader: Any, _tag: str, node: Any) -> Any:
    """What stands behind a tag that only its own tool knows."""
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    build = loader.construct_sequence if isinstance(node, yaml.SequenceNode) else loader.construct_mapping
    return build(node, deep=True)


_AsWritten.add_multi_constructor("!", _untagged)
_AsWritten.add_constructor(_MERGE, lambda loader, node: loader.construct_scalar(node))  # where it is a value


def front_matter(text: str) -> Declared | None:
    """Facts that a Markdown text declares at its head; None where it declares none."""
    front = front_of(text)
    if front is None:
        return None
    if front.end - front.start > MOST_BYTES:
        raise DeclarationError(f"expected front matter of at most {MOST_BYTES} characters, found more")
    return _declared(text[front.start : front.end], front.language, _LANGUAGES[front.language])


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
    """Walk the events, of which nothing is built yet; what an alias stands for counts as often as it is said."""
    open_nodes: list[tuple[str | None, int]] = []  # anchors of collections, and what was counted before them
    sizes: dict[str, int] = {}
    count = 0
    for event in yaml.parse(source, _AsWritten):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise DeclarationError(f"expected an anchor before its alias, found *{event.anchor}")
            count += sizes[event.anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, count))
            count += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            sizes.update({anchor: count - before} if anchor else {})
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            sizes.update({event.anchor: 1 + len(event.value) // _NODE_CHARACTERS} if event.anchor else {})
        if len(open_nodes) > MOST_DEPTH:
            raise DeclarationError(f"expected front matter nested at most {MOST_DEPTH} deep, found more")
        if count > _MOST_NODES:
            raise DeclarationError(f"expected front matter of at most {_MOST_NODES} values, aliases spelt out")


def _from_json(source: str) -> Any:
    return json.loads(source, parse_float=str, parse_int=str)


_LANGUAGES: Mapping[str, Callable[[str], Any]] = {"YAML": _from_yaml, "TOML": _from_toml, "JSON": _from_json}
