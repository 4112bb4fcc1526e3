"""Plain text: sentence-aligned windows (ING-10). Source and configuration files of other languages: lines."""

from __future__ import annotations

from pipelines.chunking.units.hierarchy import ParsedUnit, SourceFacts, assemble
from pipelines.chunking.units.sizes import ChunkSizes, TokenCounter
from pipelines.chunking.units.splitting import Cuts, Cutter, Meter, encoded, lines, sentences, strides, windows
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document

_WINDOW_LEVEL = 3


def chunk_text(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Windows of whole sentences; of whole lines where the document is in a formal language.

    A document within the target stays whole, on level 0.
    """
    source = encoded(document.text)
    meter = Meter(source, count_tokens)
    spans = [(0, len(source))]
    if not meter.fits(0, len(source), sizes.target_tokens):
        cutters = (lines,) if document.language else (sentences, lines)
        spans = window_spans(source, sizes, meter, cutters=cutters)
    units = window_units(spans, len(source))
    return assemble(document, source, units, facts=SourceFacts(), sizes=sizes, count_tokens=count_tokens)


def window_spans(
    source: bytes, sizes: ChunkSizes, meter: Meter, *, cutters: tuple[Cutter, ...], reserved: int = 0
) -> list[tuple[int, int]]:
    """Overlapping windows over a whole source, cut by the first cutter that makes pieces small enough.

    A piece is small enough when it fits beside what is still below the minimum: then no window has to stay below it.
    """
    room = max(1, sizes.target_tokens - reserved - min(sizes.min_tokens, sizes.target_tokens // 2))
    first, *finer = cutters
    cuts = Cuts.between(0, len(source), first(source, 0, len(source)), soft=True)
    for cutter in (*finer, strides(max(4, room))):
        cuts = cuts.refined(source, cutter, room, meter)
    return windows(cuts, sizes, meter, reserved=reserved)


def window_units(
    spans: list[tuple[int, int]], size: int, *, kind: str = "window", context: str = ""
) -> list[ParsedUnit]:
    """Units for windows: the only one is the whole document, on level 0."""
    level = 0 if len(spans) == 1 else _WINDOW_LEVEL
    return [
        ParsedUnit(
            start=start,
            end=end,
            path=f"window:{number}",
            kind=kind,
            level=level,
            context=context,
            share=(end - start) / max(1, size),
        )
        for number, (start, end) in enumerate(spans, start=1)
    ]
