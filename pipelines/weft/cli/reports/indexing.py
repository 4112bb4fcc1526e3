"""How a run of indexing is shown: what it does, in a line, and what became of it."""

from __future__ import annotations

from collections.abc import Collection

from rich.table import Table

from weft.cli.console.terminal import note
from weft.indexes.manifest import Manifest
from weft.ingestion.pipeline import Watch
from weft.ingestion.report import NOTES, IndexOutcome, IndexProgress, refused
from weft.ingestion.sizing import SIZING

_RATES = {"documents": "documents", "chunks": "chunks", "mentions": "entities", "embedded": "embeddings"}
_LINE_EVERY_S = 10.0


def headline(outcome: IndexOutcome) -> str:
    """What became of the run, in a line."""
    state = "is live" if outcome.published else "was live already and stays: the content is the same"
    return f"generation {outcome.generation} {state}"


def sizes_table(manifest: Manifest, domains: Collection[str]) -> Table:
    """The models that a generation was made with, and the chunk sizes of some domains (OPS-3a)."""
    table = Table("what", "value", box=None, show_header=False)
    for role, model in manifest.models.items():
        name = model.partition("@")[0]
        dense = manifest.dense.get(name)
        faiss = f"FAISS on {dense.device}" if dense is not None and dense.kind == "ivfpq" else ""
        how = [manifest.precisions.get(name, ""), manifest.devices.get(name, ""), faiss]
        table.add_row(role, " ".join([name, *filter(None, how)]))
    for domain, sizes in sorted(manifest.facts.get(SIZING, {}).items()):
        if domain in domains:
            table.add_row(f"chunks of {domain}", " ".join(sizes))
    return table


def report(outcome: IndexOutcome) -> Table:
    """The final summary, for people."""
    table = Table("what", "count", box=None, show_header=False)
    for name in ("documents", "unchanged", "chunks", "entities", "embedded", "embedding_cache_hits", "skipped"):
        table.add_row(name.replace("_", " "), f"{getattr(outcome, name):,}")
    for title, counts in (
        ("type", outcome.by_type),
        ("domain", outcome.by_domain),
        ("language", outcome.by_language),
        ("rejected", refused(outcome.rejected)),
        ("noted", {name: count for name, count in outcome.rejected.items() if name in NOTES}),
        ("left out", outcome.left_out),
    ):
        for name, count in counts.items():
            table.add_row(f"{title} {name}", f"{count:,}")
    table.add_row("seconds", f"{outcome.seconds:.1f}")
    return table


def watched_line(outcome: IndexOutcome) -> str:
    """What a run over something that was saved came to, in a line."""
    new = outcome.documents - outcome.unchanged
    parts = [f"{new:,} of {outcome.documents:,} documents new or changed", f"{outcome.seconds:.1f} s"]
    return " · ".join([*parts, *([f"{outcome.skipped:,} rejected"] if outcome.skipped else [])])


def progress_line(progress: IndexProgress) -> str:
    """One line about a run under way."""
    parts = [f"{progress.phase} {progress.done}/{progress.total}"]
    for name, shown in _RATES.items():
        rate = f" {progress.rate(name):.1f}/s" if progress.counts.get(name) else ""
        parts.append(f"{progress.counts.get(name, 0):,} {shown}{rate}")
    parts.append(f"{sum(refused(progress.rejected).values())} rejected")
    if progress.seconds_left:
        minutes, seconds = divmod(round(progress.seconds_left), 60)
        parts.append(f"{minutes}:{seconds:02d} left")
    return " · ".join(parts)


def watch_lines() -> Watch:
    """Where there is no terminal, a line at every new phase and every few seconds."""
    last: dict[str, float] = {}

    def watch(progress: IndexProgress) -> None:
        if progress.now - last.get(progress.phase, float("-inf")) >= _LINE_EVERY_S:
            last[progress.phase] = progress.now
            note(progress_line(progress))

    return watch
