"""Sections that are too long: cut into what stands apart and the runs of blocks between that (ING-6, ING-7, ING-12)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, takewhile

from pipelines.chunking.prose.outline import DEEPEST, LIST, PARAGRAPH, WHOLE, Block
from pipelines.chunking.units.hierarchy import ParsedUnit, fitted
from pipelines.chunking.units.sizes import ChunkSizes
from pipelines.chunking.units.splitting import Cuts, Meter, sentences


def runs_of(
    blocks: Sequence[Block], unit: ParsedUnit, sizes: ChunkSizes, meter: Meter
) -> Iterator[tuple[ParsedUnit, Sequence[Block]]]:
    """A section's unit; where it is too long, one for each special block and for each run of blocks between them.

    The first stands for the section; the others are its children on level 3.
    """
    runs = _apart(blocks, unit, sizes, meter)
    starts = [unit.start, *(run[0].start for run in runs[1:]), unit.end]
    times: Counter[str] = Counter()
    for number, (run, (start, end)) in enumerate(zip(runs, pairwise(starts), strict=True)):
        share = (end - start) / max(1, unit.end - unit.start)
        if number == 0:
            yield replace(unit, start=start, end=end, share=share), run
            continue
        apart = next((block for block in run if _is_apart(block, sizes, meter)), None)
        kind = unit.part_kind if apart is None else apart.kind
        times[kind] += 1
        name = apart.name if apart is not None and apart.name else times[kind]
        yield (
            replace(
                unit,
                start=start,
                end=end,
                share=share if apart is None else 1.0,
                path=f"{unit.path}/{kind}:{name}",
                kind=kind,
                level=DEEPEST,
                parents=(unit.path, *unit.parents),
                context=unit.part_context,
            ),
            run,
        )


def _apart(blocks: Sequence[Block], unit: ParsedUnit, sizes: ChunkSizes, meter: Meter) -> list[list[Block]]:
    """Runs of blocks; what is below the minimum stays with the special block beside it."""
    room = sizes.target_tokens - meter.of_context(unit.context)
    whole = meter.fits(unit.start, unit.end, room) and not any(_is_long(block, sizes, meter) for block in blocks)
    runs: list[list[Block]] = []
    between: list[Block] = []
    for block in blocks:
        if whole or not _is_apart(block, sizes, meter):
            between.append(block)
            continue
        leading = _taken_from_end(between)
        if between and not _is_short(between, sizes, meter):
            runs.append(between)
            between = []
        runs.append([*between, *leading, block])
        between = []
    if between and runs and _is_short(between, sizes, meter):
        runs[-1] += between
    elif between or not runs:
        runs.append(between)
    return runs


def _taken_from_end(blocks: list[Block]) -> list[Block]:
    """The blocks at the end that stay with what follows, taken off."""
    count = sum(1 for _ in takewhile(lambda block: block.leads, reversed(blocks)))
    taken = blocks[len(blocks) - count :]
    del blocks[len(blocks) - count :]
    return taken


def _is_short(blocks: Sequence[Block], sizes: ChunkSizes, meter: Meter) -> bool:
    return meter.fits(blocks[0].start, blocks[-1].end, sizes.min_tokens - 1)


def _is_apart(block: Block, sizes: ChunkSizes, meter: Meter) -> bool:
    return (block.special and not _is_short([block], sizes, meter)) or _is_long(block, sizes, meter)


def _is_long(block: Block, sizes: ChunkSizes, meter: Meter) -> bool:
    limit = sizes.paragraph_tokens
    return block.kind == PARAGRAPH and limit is not None and not meter.fits(block.start, block.end, limit)


def parts_of(
    run: ParsedUnit, blocks: Sequence[Block], source: bytes, sizes: ChunkSizes, meter: Meter
) -> Iterator[ParsedUnit]:
    """A run's unit whole where it fits the target, otherwise its parts."""
    parts = fitted(
        run,
        partial(_cuts, blocks, run, source, sizes, meter),
        limit=sizes.target_tokens,
        source=source,
        sizes=sizes,
        meter=meter,
        sentence_cuts=partial(_sentence_cuts, blocks, run, source, sizes, meter),
    )
    return _parts_named(parts, run, blocks)


def _parts_named(parts: Sequence[ParsedUnit], run: ParsedUnit, blocks: Sequence[Block]) -> Iterator[ParsedUnit]:
    """The parts with their share of the section, and the kind of the one special block that they hold."""
    for part in parts:
        first = bisect_right(blocks, part.start, key=lambda block: block.end)
        last = bisect_left(blocks, part.end, key=lambda block: block.start)
        held = [block for block in blocks[first:last] if not block.leads]
        kind = held[0].kind if part.kind == run.part_kind and len(held) == 1 and held[0].special else part.kind
        yield replace(part, kind=kind, share=part.share if part is run else part.share * run.share)


def _cuts(blocks: Sequence[Block], unit: ParsedUnit, source: bytes, sizes: ChunkSizes, meter: Meter) -> Cuts:
    """Cuts before blocks, and inside those that are too long alone."""
    return Cuts.between(unit.start, unit.end, _between(blocks, source, sizes, meter))


def _sentence_cuts(blocks: Sequence[Block], unit: ParsedUnit, source: bytes, sizes: ChunkSizes, meter: Meter) -> Cuts:
    """The same, and cuts between the sentences of every paragraph, however short."""
    prose = (
        position
        for block in blocks
        if block.kind == PARAGRAPH and not block.inner
        for position in _outside(block.uncut, sentences(source, block.start, block.end))
    )
    return Cuts.between(unit.start, unit.end, [*_between(blocks, source, sizes, meter), *prose])


def _between(blocks: Sequence[Block], source: bytes, sizes: ChunkSizes, meter: Meter) -> Iterator[int]:
    leads = True
    for block in blocks:
        if not leads:
            yield block.start
        leads = block.leads
        limit = sizes.max_tokens
        if block.kind == LIST:
            limit = sizes.target_tokens if sizes.list_tokens is None else sizes.list_tokens
        if meter.fits(block.start, block.end, limit):
            continue
        if block.inner:
            yield from _between(block.inner, source, sizes, meter)
        elif block.kind != WHOLE:
            yield from _outside(block.uncut, sentences(source, block.start, block.end))


def _outside(spans: Sequence[tuple[int, int]], positions: Iterable[int]) -> Iterator[int]:
    for position in positions:
        before = bisect_left(spans, position, key=lambda span: span[0])
        if before == 0 or spans[before - 1][1] <= position:
            yield position
