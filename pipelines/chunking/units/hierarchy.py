"""From units of a document to chunks: split what is too long, then identity, place and neighbours (ING-12, ING-13)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from pipelines.chunking.units.context import leading, trailing
from pipelines.chunking.units.digest import digest
from pipelines.chunking.units.sizes import ChunkSizes, TokenCounter
from pipelines.chunking.units.splitting import Cuts, Meter, decoded, lines, strides, windows
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document
from pipelines.domain.ids import ChunkId, chunk_id, content_hash
from pipelines.domain.links import Link, LinkKind
from pipelines.domain.sizing import Overflow

REMAINDER = "remainder"
"""The kind of a part whose text is a digest of what it covers, not the text itself."""

Found = TypeVar("Found", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedUnit:
    """One unit of a document before it has an identity.

    Attributes:
        start, end: Span in the source; the spans of all units together cover the document.
        path: Names that lead to the unit, such as "class:A/method:f"; need not be unique.
        parents: Paths of the units that hold this one, innermost first: its parent is the nearest unit before it of
            the first of these paths that there is.
        context: What stands before the unit's own text in its chunk.
        part_context: The same for its second and later parts, should it be split.
        part_kind: The kind of those parts.
        share: Share of the whole unit that this part of it holds.
        split: The strategy that made it a part of a unit above the hard limit; None where it is whole.
        text: What its chunk says instead of the text it stands for.
        bundle_path: Path of the unit this one belongs with, wherever in the document that stands; its own path where
            only its parts belong with it.
        links: What it points to as a whole, whatever its parts hold; the links in a text are found by place.
    """

    start: int
    end: int
    path: str
    kind: str
    level: int
    parents: tuple[str, ...] = ()
    context: str = ""
    part_context: str = ""
    part_kind: str = "part"
    share: float = 1.0
    heading_path: tuple[str, ...] = ()
    anchor: str | None = None
    symbol: str | None = None
    signature: str | None = None
    split: Overflow | None = None
    text: str | None = None
    bundle_path: str | None = None
    links: tuple[Link, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamePositions(Generic[Found]):
    """Names or links in a source by where they stand, in source order."""

    offsets: Sequence[int] = ()
    values: Sequence[Found] = ()

    @classmethod
    def of(cls, found: Iterable[tuple[int, Found]]) -> NamePositions[Found]:
        """Positions from (byte offset, value) pairs in any order; those at one offset keep their order."""
        ordered = sorted(found, key=lambda pair: pair[0])
        return cls([offset for offset, _ in ordered], [value for _, value in ordered])

    def within(self, start: int, end: int) -> tuple[Found, ...]:
        """Values in a span, each once, by first appearance."""
        first, last = bisect_left(self.offsets, start), bisect_left(self.offsets, end)
        return tuple(dict.fromkeys(self.values[first:last]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What a parser knows about spans of a source besides its units.

    Attributes:
        errors: Spans of syntax errors, disjoint and in order.
    """

    defines: NamePositions[str] = field(default_factory=NamePositions)
    references: NamePositions[str] = field(default_factory=NamePositions)
    links: NamePositions[Link] = field(default_factory=NamePositions)
    errors: Sequence[tuple[int, int]] = ()

    def quality(self, start: int, end: int) -> float:
        """Share of a span's bytes outside syntax errors."""
        before = bisect_right(self.errors, start, key=lambda error: error[1])
        after = bisect_left(self.errors, end, key=lambda error: error[0])
        wrong = sum(max(0, min(end, last) - max(start, first)) for first, last in self.errors[before:after])
        return 1.0 - wrong / (end - start) if wrong else 1.0


def fitted(
    unit: ParsedUnit,
    cuts: Callable[[], Cuts],
    *,
    limit: int,
    source: bytes,
    sizes: ChunkSizes,
    meter: Meter,
    sentence_cuts: Callable[[], Cuts] | None = None,
) -> list[ParsedUnit]:
    """A unit whole where it has at most `limit` tokens with its context, otherwise its parts in order.

    Nothing is cut for the sake of a context above `sizes.leading_budget`: that is shortened first. Of a unit that is
    cut, the first part stands for the unit, with its identity; the others are its children on level 3. No part is
    above `sizes.max_tokens`: where the cuts leave longer pieces these are cut at lines, and long lines anywhere. Units
    above that maximum are split as `sizes.overflow` says:

    - recursive: at `cuts`, the boundaries of the next level;
    - sentence: at `sentence_cuts`, which also lie between the sentences of its prose; a unit without prose has none,
      and is split as above;
    - truncate: its first part stays, and one more part of kind "remainder" covers the rest, with a digest of it.
    """
    body = unit.end - unit.start
    if sizes.context_before is not None:
        unit = replace(unit, context=leading(unit.context, sizes.leading_budget, meter))
    if body + len(unit.context.encode("utf-8", "replace")) < limit:  # below, not at: the line end after the context
        return [unit]
    own = meter.tokens(unit.start, unit.end)
    length = own + meter.of_context(unit.context)
    if length <= limit:
        return [unit]
    first_context = leading(unit.context, sizes.leading_budget, meter)
    if own + meter.of_context(first_context) <= limit:
        return [replace(unit, context=first_context)]
    split = sizes.overflow if length > sizes.max_tokens else None
    part_context = leading(unit.part_context, sizes.leading_budget, meter)
    reserved = max(meter.of_context(first_context), meter.of_context(part_context))
    room = sizes.max_tokens - reserved
    chosen = sentence_cuts if split is Overflow.SENTENCE and sentence_cuts is not None else cuts
    # A piece between the room and the maximum stays whole: what it is shown under gives way.
    longest = sizes.max_tokens
    fine = chosen().refined(source, lines, longest, meter).refined(source, strides(max(4, room)), longest, meter)
    spans = windows(fine, sizes, meter, reserved=reserved)
    first_context = leading(first_context, longest - meter.tokens(*spans[0]), meter)
    head = replace(unit, end=spans[0][1], context=first_context, share=_share(spans[0], body), split=split)
    if split is Overflow.TRUNCATE and len(spans) > 1:
        rest = _part(head, (head.end, unit.end), 2, part_context, body)
        said = digest(source, rest.start, rest.end, sizes.target_tokens - reserved, meter)
        return [head, replace(rest, path=f"{head.path}/remainder", kind=REMAINDER, text=said)]
    return [
        head,
        *(
            _part(head, span, number, leading(part_context, longest - meter.tokens(*span), meter), body)
            for number, span in enumerate(spans[1:], start=2)
        ),
    ]


def _part(head: ParsedUnit, span: tuple[int, int], number: int, context: str, body: int) -> ParsedUnit:
    return replace(
        head,
        start=span[0],
        end=span[1],
        path=f"{head.path}/part:{number}",
        kind=head.part_kind,
        level=3,
        parents=(head.path,),
        context=context,
        share=_share(span, body),
        anchor=None,
    )


def _share(span: tuple[int, int], body: int) -> float:
    return (span[1] - span[0]) / body


def assemble(
    document: Document,
    source: bytes,
    units: Sequence[ParsedUnit],
    *,
    facts: SourceFacts,
    sizes: ChunkSizes,
    count_tokens: TokenCounter,
) -> list[Chunk]:
    """Chunks of a document from its units, in source order; a document of blanks has none."""
    units = _inked(source, units)
    places = _places(document.uri, units)
    bundles = _bundles(units, [own for own, _ in places])
    neighbours = _neighbours([parent for _, parent in places])
    line_starts = [0, *lines(source, 0, len(source))]
    meter = Meter(source, count_tokens)
    chunks = []
    for sequence, (unit, (own, parent), (before, after)) in enumerate(zip(units, places, neighbours, strict=True)):
        first, last = _ink(source, unit)
        body = _body(source, unit) if unit.text is None else unit.text
        text = f"{unit.context}\n{body}" if unit.context else body
        tokens = count_tokens(text)
        follows = ""
        if sizes.trailing_budget and after is not None:
            room = min(sizes.trailing_budget, sizes.max_tokens - tokens)
            follows = trailing(_body(source, units[after]), room, meter)
            text, tokens = (f"{text}\n{follows}", tokens + meter.of_context(follows)) if follows else (text, tokens)
        chunks.append(
            Chunk(
                chunk_id=own,
                content_hash=content_hash(text),
                uri=document.uri,
                text=text,
                kind=unit.kind,
                level=unit.level,
                sequence=sequence,
                parent_id=parent,
                previous_id=None if before is None else places[before][0],
                next_id=None if after is None else places[after][0],
                start_byte=unit.start,
                end_byte=unit.end,
                start_line=bisect_right(line_starts, first),
                end_line=bisect_right(line_starts, last),
                heading_path=unit.heading_path,
                anchor=unit.anchor,
                symbol=unit.symbol,
                signature=unit.signature,
                defines=facts.defines.within(unit.start, unit.end),
                references=facts.references.within(unit.start, unit.end),
                bundle=bundles[sequence],
                links=_surest((*unit.links, *facts.links.within(unit.start, unit.end))),
                attributes=unit.attributes,
                completeness=unit.share,
                parse_quality=facts.quality(unit.start, unit.end),
                tokens=tokens,
                characters=len(text),
                sizing=_sizing(unit, sizes, meter, meter.of_context(follows)),
            )
        )
    return chunks


def _body(source: bytes, unit: ParsedUnit) -> str:
    """A unit's own text, from the beginning of its first line that is not blank to its last ink."""
    first, last = _ink(source, unit)
    return decoded(source[max(unit.start, source.rfind(b"\n", 0, first) + 1) : last + 1])


def _sizing(unit: ParsedUnit, sizes: ChunkSizes, meter: Meter, trailing_tokens: int) -> tuple[str, ...]:
    """The sizes in force, and what they made of this unit; see `domain.sizing.made_by`."""
    own = (f"leading={meter.of_context(unit.context)}", f"trailing={trailing_tokens}")
    split = () if unit.split is None else (f"split={unit.split.value}",)
    return (*sizes.snapshot, *own, *split)


def _ink(source: bytes, unit: ParsedUnit) -> tuple[int, int]:
    """Offsets of the first and the last byte of a unit that is not blank; (end, end − 1) where all are."""
    data = source[unit.start : unit.end]
    stripped = data.rstrip()
    return unit.end - len(data.lstrip()), unit.start + len(stripped) - 1


def _inked(source: bytes, units: Sequence[ParsedUnit]) -> list[ParsedUnit]:
    """The units that hold more than blanks, grown over the blanks of the others."""
    kept: list[ParsedUnit] = []
    uncovered: int | None = None
    for unit in units:
        if source[unit.start : unit.end].isspace() or unit.start == unit.end:
            if kept:
                kept[-1] = replace(kept[-1], end=max(kept[-1].end, unit.end))
            elif uncovered is None:
                uncovered = unit.start
        else:
            kept.append(unit if uncovered is None else replace(unit, start=uncovered))
            uncovered = None
    return kept


def _places(uri: str, units: Sequence[ParsedUnit]) -> list[tuple[ChunkId, ChunkId | None]]:
    """Own and parent's identity of every unit; a path that comes again is told apart by its ordinal."""
    times: Counter[str] = Counter()
    latest: dict[str, ChunkId] = {}
    places = []
    for unit in units:
        times[unit.path] += 1
        ordinal = times[unit.path]
        # No name holds a line end, so an ordinal cannot be mistaken for a part of one.
        own = chunk_id(uri, unit.path if ordinal == 1 else f"{unit.path}\n{ordinal}")
        places.append((own, next((latest[path] for path in unit.parents if path in latest), None)))
        latest[unit.path] = own
    return places


def _bundles(units: Sequence[ParsedUnit], own: Sequence[ChunkId]) -> list[ChunkId | None]:
    """Identity of the unit that each belongs with: the nearest of that path before it, else the first after it."""
    first = {unit.path: identity for unit, identity in zip(reversed(units), reversed(own), strict=True)}
    latest: dict[str, ChunkId] = {}
    bundles: list[ChunkId | None] = []
    for unit, identity in zip(units, own, strict=True):
        latest[unit.path] = identity
        path = unit.bundle_path
        bundles.append(None if path is None or path == unit.path else latest.get(path, first.get(path)))
    return bundles


def _surest(links: Sequence[Link]) -> tuple[Link, ...]:
    """Every kind and target once, by first appearance, as the surest of its links has it."""
    kept: dict[tuple[LinkKind, str], Link] = {}
    for link in links:
        key = (link.kind, link.target)
        if key not in kept or kept[key].confidence < link.confidence:
            kept[key] = link
    return tuple(kept.values())


def _neighbours(parents: Sequence[ChunkId | None]) -> list[tuple[int | None, int | None]]:
    """Index of the previous and the next unit under the same parent."""
    before: list[int | None] = []
    after: list[int | None] = [None] * len(parents)
    latest: dict[ChunkId | None, int] = {}
    for index, parent in enumerate(parents):
        previous = latest.get(parent)
        before.append(previous)
        if previous is not None:
            after[previous] = index
        latest[parent] = index
    return list(zip(before, after, strict=True))
