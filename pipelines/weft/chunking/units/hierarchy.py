"""From units of a document to chunks: split what is too long, then identity, place and neighbours (ING-12, ING-13)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from weft.chunking.units.parsed import NO_FACTS, Head, ParsedUnit, SourceFacts
from weft.chunking.units.splitting import Cuts, SizedText, TokenMeter, decoded, digest, lines, strides, windows
from weft.domain.chunks import JOINED, Chunk, Overflow
from weft.domain.documents import Document
from weft.domain.ids import ChunkId, chunk_id, content_hash
from weft.domain.links import Link, LinkKind

REMAINDER = "remainder"
"""The kind of a part whose text is a digest of what it covers, not the text itself."""

PATH_SEPARATOR = " > "
"""Between the headings of a path in one line of context."""


def leading(context: str, budget: int, meter: TokenMeter) -> str:
    """As much of a leading context as fits into `budget` tokens: what is nearest to the unit goes last."""
    if _fits(context, budget, meter):
        return context
    rows = context.split("\n")
    for outer in range(1, len(rows)):
        if _fits(inner := "\n".join(rows[outer:]), budget, meter):
            return inner
    names = rows[-1].split(PATH_SEPARATOR)
    for outer in range(1, len(names)):
        if _fits(inner := PATH_SEPARATOR.join(names[outer:]), budget, meter):
            return inner
    words = names[-1].split(" ")
    # Indentation is a run of empty words: without a word after it nothing is said.
    best = bisect_right(range(len(words)), budget, key=lambda count: meter.of_context(" ".join(words[:count]))) - 1
    return " ".join(words[: max(best, 0)]).rstrip()


def trailing(following: str, budget: int, meter: TokenMeter) -> str:
    """The first line of what follows, where it fits into `budget` tokens whole; part of a line would mislead."""
    line = following.lstrip().partition("\n")[0].rstrip()
    return line if _fits(line, budget, meter) else ""


def _fits(context: str, budget: int, meter: TokenMeter) -> bool:
    # A token stands for at least one byte; one more for the line end.
    return len(context.encode("utf-8", "replace")) < budget or meter.of_context(context) <= budget


def fitted(
    text: SizedText,
    unit: ParsedUnit,
    cuts: Callable[[], Cuts],
    *,
    limit: int,
    sentence_cuts: Callable[[], Cuts] | None = None,
    heads: Sequence[Head] = (),
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
    sizes, body = text.sizes, text.length(unit.start, unit.end)
    if sizes.context_before is not None:
        unit = replace(unit, context=leading(unit.context, sizes.leading_budget, text))
    if body + len(unit.context.encode("utf-8", "replace")) < limit:  # below, not at: the line end after the context
        return [unit]
    own = text.tokens(unit.start, unit.end)
    length = own + text.of_context(unit.context)
    if length <= limit:
        return [unit]
    first_context = leading(unit.context, sizes.leading_budget, text)
    if own + text.of_context(first_context) <= limit:
        return [replace(unit, context=first_context)]
    split = sizes.overflow if length > sizes.max_tokens else None
    chosen = sentence_cuts if split is Overflow.SENTENCE and sentence_cuts is not None else cuts
    within = heads[
        bisect_right(heads, unit.start, key=lambda head: head.end) : bisect_left(heads, unit.end, key=itemgetter(0))
    ]
    return _parts(text, replace(unit, context=first_context, split=split), chosen(), within)


def _parts(text: SizedText, unit: ParsedUnit, cuts: Cuts, heads: Sequence[Head]) -> list[ParsedUnit]:
    sizes, longest = text.sizes, text.sizes.max_tokens
    context = leading(unit.part_context, sizes.leading_budget, text)
    # A header row is no context that may be spared: it has half of the target. What stays whole needs none.
    above = {
        head: "\n".join(filter(None, (context, leading(head.text, sizes.target_tokens // 2, text))))
        for head in heads
        if cuts.around(head.start)[1] < head.end or not text.fits(*cuts.around(head.start), longest)
    }
    reserved = max(map(text.of_context, (unit.context, context, *above.values())))
    # A piece between the room and the maximum stays whole: what it is shown under gives way.
    fine = cuts.refined(text, lines, longest).refined(text, strides(max(4, longest - reserved)), longest)
    spans = windows(text, fine, reserved=reserved)

    def context_at(start: int) -> str:
        return next((inner for head, inner in above.items() if head.start <= start < head.end), context)

    def shown_under(context: str, span: tuple[int, int]) -> str:
        return leading(context, longest - text.tokens(*span), text)

    share = (spans[0][1] - spans[0][0]) / (unit.end - unit.start)
    head = replace(unit, end=spans[0][1], context=shown_under(unit.context, spans[0]), share=share)
    if unit.split is Overflow.TRUNCATE and len(spans) > 1:
        rest = _part(unit, (head.end, unit.end), 2, context_at(head.end))
        extract = digest(text, rest.start, rest.end, sizes.target_tokens - reserved)
        return [head, replace(rest, path=f"{unit.path}/remainder", kind=REMAINDER, text=extract)]
    parts = (
        _part(unit, span, number, shown_under(context_at(span[0]), span))
        for number, span in enumerate(spans[1:], start=2)
    )
    return [head, *parts]


def _part(unit: ParsedUnit, span: tuple[int, int], number: int, context: str) -> ParsedUnit:
    return replace(
        unit,
        start=span[0],
        end=span[1],
        path=f"{unit.path}/part:{number}",
        kind=unit.part_kind,
        level=3,
        parents=(unit.path,),
        context=context,
        share=(span[1] - span[0]) / (unit.end - unit.start),
        anchor=None,
    )


def assemble(
    document: Document, text: SizedText, units: Sequence[ParsedUnit], facts: SourceFacts = NO_FACTS
) -> list[Chunk]:
    """Chunks of a document from its units, in source order; a document of blanks has none."""
    source, sizes = text.source, text.sizes
    units = _without_blanks(source, units, facts)
    places = _places(document.uri, units)
    bundles = _bundles(units, [own for own, _ in places])
    neighbours = _neighbours([parent for _, parent in places])
    line_starts = [0, *lines(source, 0, len(source))]
    chunks = []
    for sequence, (unit, (own, parent), (before, after)) in enumerate(zip(units, places, neighbours, strict=True)):
        _, last = _ink(source, unit)
        body = _body(source, unit, facts) if unit.text is None else unit.text
        # What comes before was fitted when the unit was cut; what comes after takes the room that is left.
        content = f"{unit.context}\n{body}" if unit.context else body
        tokens, follows = text.count(content), ""
        if sizes.trailing_budget and after is not None:
            room = min(sizes.trailing_budget, sizes.max_tokens - tokens)
            follows = trailing(_body(source, units[after], facts), room, text)
            if follows:
                content, tokens = f"{content}\n{follows}", tokens + text.of_context(follows)
        chunks.append(
            Chunk(
                chunk_id=own,
                content_hash=content_hash(content),
                uri=document.uri,
                text=content,
                kind=unit.kind,
                level=unit.level,
                sequence=sequence,
                parent_id=parent,
                previous_id=None if before is None else places[before][0],
                next_id=None if after is None else places[after][0],
                start_byte=unit.start,
                end_byte=unit.end,
                start_line=bisect_right(line_starts, _reads_from(source, unit, facts)),
                end_line=bisect_right(line_starts, last),
                heading_path=unit.heading_path,
                anchor=unit.anchor,
                symbol=unit.symbol,
                signature=unit.signature,
                defines=facts.defines.within(unit.start, unit.end),
                references=facts.references.within(unit.start, unit.end),
                bundle=bundles[sequence],
                links=_surest((*unit.links, *facts.links.within(unit.start, unit.end))),
                attributes=_attributes(unit),
                completeness=unit.share,
                parse_quality=facts.quality(unit.start, unit.end),
                tokens=tokens,
                characters=len(content),
                sizing=_sizing(text, unit, text.of_context(follows)),
            )
        )
    return chunks


def _attributes(unit: ParsedUnit) -> Mapping[str, str]:
    return {**unit.attributes, JOINED: "\n".join(unit.further_symbols)} if unit.further_symbols else unit.attributes


def _body(source: bytes, unit: ParsedUnit, facts: SourceFacts) -> str:
    """A unit's own text, from the beginning of its first line that is not blank to its last ink, without its marks."""
    first, last = _ink(source, unit)
    start, end = max(unit.start, source.rfind(b"\n", 0, first) + 1), last + 1
    shown = facts.shown(source, start, end).rstrip()
    ink = len(shown) - len(shown.lstrip())
    return decoded(shown[shown.rfind(b"\n", 0, ink) + 1 :] or source[start:end])


def _reads_from(source: bytes, unit: ParsedUnit, facts: SourceFacts) -> int:
    """Offset of a unit's first byte that is neither blank nor in a mark; of its first ink where it has no such."""
    first, last = _ink(source, unit)
    at = first
    for start, end, instead in facts.marks[bisect_right(facts.marks, first, key=itemgetter(1)) :]:
        if start > at or instead.strip():
            break
        inner = source[end : last + 1]
        at = end + len(inner) - len(inner.lstrip())
    return at if at <= last else first


def _sizing(text: SizedText, unit: ParsedUnit, trailing_tokens: int) -> tuple[str, ...]:
    """The sizes in force, and what they made of this unit; see `domain.chunks.made_by`."""
    own = (f"leading={text.of_context(unit.context)}", f"trailing={trailing_tokens}")
    split = () if unit.split is None else (f"split={unit.split.value}",)
    return (*text.sizes.snapshot, *own, *split)


def _ink(source: bytes, unit: ParsedUnit) -> tuple[int, int]:
    """Offsets of the first and the last byte of a unit that is not blank; (end, end − 1) where all are."""
    data = source[unit.start : unit.end]
    stripped = data.rstrip()
    return unit.end - len(data.lstrip()), unit.start + len(stripped) - 1


def _without_blanks(source: bytes, units: Sequence[ParsedUnit], facts: SourceFacts) -> list[ParsedUnit]:
    """The units that show something, grown over the others: those of blanks, and those of marks alone."""
    silent = [_is_silent(source, unit, facts) for unit in units]
    if all(silent):
        silent = [_is_silent(source, unit, NO_FACTS) for unit in units]
    inked: list[ParsedUnit] = []
    uncovered: int | None = None
    for unit, is_silent in zip(units, silent, strict=True):
        if is_silent:
            if inked:
                inked[-1] = replace(inked[-1], end=max(inked[-1].end, unit.end))
            elif uncovered is None:
                uncovered = unit.start
        else:
            inked.append(unit if uncovered is None else replace(unit, start=uncovered))
            uncovered = None
    return inked


def _is_silent(source: bytes, unit: ParsedUnit, facts: SourceFacts) -> bool:
    return unit.text is None and not facts.shown(source, unit.start, unit.end).strip()


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
        times.update(unit.further_paths)
        latest.update(dict.fromkeys(unit.paths, own))
    return places


def _bundles(units: Sequence[ParsedUnit], own: Sequence[ChunkId]) -> list[ChunkId | None]:
    """Identity of the unit that each belongs with: the nearest of that path before it, else the first after it."""
    first = {
        path: identity for unit, identity in zip(reversed(units), reversed(own), strict=True) for path in unit.paths
    }
    latest: dict[str, ChunkId] = {}
    bundles: list[ChunkId | None] = []
    for unit, identity in zip(units, own, strict=True):
        latest.update(dict.fromkeys(unit.paths, identity))
        path = unit.bundle_path
        bundles.append(None if path is None or path in unit.paths else latest.get(path, first.get(path)))
    return bundles


def _surest(links: Sequence[Link]) -> tuple[Link, ...]:
    """Every kind and target once, by first appearance, as the surest of its links has it; members stand apart."""
    surest: dict[tuple[LinkKind, str, bool], Link] = {}
    for link in links:
        key = (link.kind, link.target, link.whole)
        if key not in surest or surest[key].confidence < link.confidence:
            surest[key] = link
    return tuple(surest.values())


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
