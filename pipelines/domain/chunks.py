"""Chunks: the semantic units of a document, and where each stands in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pipelines.domain.ids import ChunkId, ContentHash
from pipelines.domain.links import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One unit of one document (ING-13).

    Attributes:
        content_hash: Identity of `text`.
        text: What is searched, embedded and shown; carries its own leading context (heading path, signature).
        kind: The unit's form: "function", "method", "class", "section", "window" …
        level: 0 whole document or preamble … 3 block.
        sequence: Position among the document's chunks, from 0, in source order.
        start_byte, end_byte: Half-open span in the document's UTF-8 text.
        start_line, end_line: First line that is read and last line, from 1, inclusive: markup above it, such as the
            anchor of a heading, is not where one starts to read.
        bundle: The unit this one belongs with, so that they are shown together: the type of a method or of fields.
        links: What the text points to, by name.
        attributes: Facts about this unit by name, such as its speakers, its time, or the references that it cites.
        completeness: Share of the unit that this chunk holds, in (0, 1]; below 1 for parts of an oversized unit.
        parse_quality: Share of the unit's bytes outside syntax errors, in [0, 1].
        tokens: Length of `text` in the encoder's own tokens.
        sizing: The sizes in force when it was cut, as "name=value" pairs (ING-11).
    """

    chunk_id: ChunkId
    content_hash: ContentHash
    uri: str
    text: str
    kind: str
    level: int
    sequence: int
    parent_id: ChunkId | None
    previous_id: ChunkId | None
    next_id: ChunkId | None
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int
    heading_path: tuple[str, ...] = ()
    anchor: str | None = None
    symbol: str | None = None
    signature: str | None = None
    defines: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    bundle: ChunkId | None = None
    links: tuple[Link, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    completeness: float = 1.0
    parse_quality: float = 1.0
    tokens: int
    characters: int
    sizing: tuple[str, ...] = ()


class ChunkLabel(NamedTuple):
    """What is said of a chunk that is a result; the fields are those of `Chunk`."""

    chunk_id: ChunkId
    kind: str
    symbol: str | None
    heading_path: tuple[str, ...]
    start_line: int
    end_line: int
    tokens: int
    sizing: tuple[str, ...]
