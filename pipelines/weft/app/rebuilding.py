"""Making the live generation anew from its stored texts: cut by the sizes believed in, or trained anew (CON-7).

Other sizes mean that most chunks are embedded anew, which takes longer than all else that a night does. So that is
proposed, with what it costs and what speaks for it, and done where somebody asks for it or settings say so.

Generations are built one upon the other. Each takes the quantisers of its vectors from the one before, as long as they
reach the recall that is asked for; the more contents are others, the more lists a search has to visit for it.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow.compute as pc

from weft.app.indexing import LOCK, plan_of, run
from weft.app.searching.engines import load_engines
from weft.catalog.catalog import Catalog
from weft.consolidation.night import NightContext, StepResult, When
from weft.consolidation.steps.gate import GateOutcome
from weft.domain.chunks import Overflow, pairs_of
from weft.domain.documents import ContentType, Domain
from weft.domain.errors import WeftError
from weft.embedding.tokens import load_token_counter
from weft.indexes.manifest import Manifest
from weft.ingestion.pipeline import Watch
from weft.ingestion.sizing import SIZING, live_sizes, snapshots
from weft.learning.observe.sizes import (
    AFTER,
    BEFORE,
    MINIMUM,
    OVERFLOW,
    TARGET,
    DomainSizing,
    SizingBeliefs,
    last_day,
    read_sizing,
)
from weft.runtime.ray.cluster import connect
from weft.runtime.ray.stages import ON_CLUSTER
from weft.runtime.stages import Executor
from weft.runtime.storage.locks import exclusive_lock
from weft.settings import Settings

log = logging.getLogger(__name__)

_PAIRS = {TARGET: "target", MINIMUM: "min", BEFORE: "before", AFTER: "after"}
"""By size, its name in a snapshot."""
_PACED = 32  # chunks that the cost of embedding is measured on: half a second
_BOUNDED = frozenset({"max", "target"})
"""Names of sizes that no chunk reaches beyond the encoder's window."""

Snapshots = Mapping[str, Sequence[str]]
"""Sizes in force by domain, as a manifest keeps them."""


@dataclass(frozen=True, slots=True)
class MovedSize:
    """A size that chunks were cut with and that is not believed any more."""

    domain: str
    size: str
    before: str  # in force
    after: str  # what the next generation is cut with
    low: float  # The interval of the belief; of a strategy that of its share. `before` lies outside
    high: float
    observations: float  # outcomes of chunks that speak for it, as they count today


@dataclass(frozen=True, slots=True)
class ResizeCost:
    """What cutting by other sizes takes."""

    documents: int = 0  # that are cut anew, with all of their chunks
    chunks: int = 0
    seconds: float = 0.0  # one process would embed their tokens in, at the pace of a few of them


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """What became of the live generation."""

    moved: Sequence[MovedSize] = ()  # why it is to be cut anew; nothing where it is not
    # whether a generation with these very sizes, or trained anew on the same contents, was taken back; it is not
    # made again
    declined: bool = False
    cost: ResizeCost = ResizeCost()  # of sizes that moved, where that is only proposed
    generation: str = ""  # what was made of it; "" where nothing was
    reason: str = ""  # why not, where it was due
    counts: Mapping[str, float] = field(default_factory=dict)
    changed: float = 0.0  # share of the contents that were not there when the quantisers of vectors were trained
    outdated: bool = False  # whether that is more than a setting allows

    @property
    def due(self) -> bool:
        """Whether there is something to do."""
        return (bool(self.moved) or self.outdated) and not self.declined

    def as_step(self) -> dict[str, float]:
        """What a report counts."""
        return {
            "proposed": int(self.due),
            "applied": int(bool(self.generation)),
            "moved": len(self.moved),
            "changed": self.changed,
            "declined": int(self.declined),
            **{f"{name}_due": value for name, value in asdict(self.cost).items() if self.moved},
            **self.counts,
        }


class Rebuild:
    """Makes the live generation anew where its vectors were trained on too many other contents; or where beliefs about
    sizes moved beyond their interval and settings let a night act on that, which else is only proposed.

    Texts and vectors come from the store, so that only chunks that come out otherwise are embedded. What is made is a
    generation like any other: `weft generations rollback` takes it back, and no night makes it again.

    Args:
        acts: Whether something is made; else it is only found out. Nor does a night that waits for review make any.
        watch: Told how far it is.
        executor: What indexes; the configured cluster where None.
    """

    name: ClassVar[str] = "rebuild"
    says: ClassVar[str] = "looking whether vectors are trained on other contents, or other sizes are believed in"

    def __init__(
        self,
        settings: Settings,
        *,
        acts: bool = True,
        watch: Watch = lambda _: None,
        executor: Executor | None = None,
    ) -> None:
        self.when = When.ALWAYS if acts else When.FRESH
        self._settings, self._acts, self._watch, self._executor = settings, acts, watch, executor

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`."""
        judgement = context.outcome(GateOutcome)
        waits = judgement is not None and not judgement.verdict.decision.goes_live
        rebuilt = self.rebuilt(may=self._acts and not context.dry_run and not waits)
        return result_of(rebuilt, store=self._settings.storage.root, resizes=self._resizes)

    def rebuilt(self, *, may: bool) -> RebuildResult:
        """What is due, and where it may be done, what came of it."""
        settings, catalog = self._settings, Catalog(Path(self._settings.storage.root))
        if catalog.pointer().generation is None:
            return RebuildResult()
        rebuilt = due(settings, catalog)
        resized = bool(rebuilt.moved) and self._resizes
        if not rebuilt.due or not may or not (resized or rebuilt.outdated):
            proposed = rebuilt.due and bool(rebuilt.moved)
            return replace(rebuilt, cost=cost_of(settings, catalog, rebuilt.moved)) if proposed else rebuilt
        plan = replace(plan_of(settings, [], resized=resized), declared=(), retrained=rebuilt.outdated)
        try:
            with exclusive_lock(plan.store / LOCK, f"indexing {plan.store}"):
                if self._executor is None:
                    connect(settings.cluster)
                outcome = run(plan, watch=self._watch, executor=self._executor or ON_CLUSTER)
        except WeftError as error:
            log.warning("not made anew, the next night tries again: %s", error)
            return replace(rebuilt, reason=str(error))
        made = outcome.generation if outcome.published else ""
        return replace(rebuilt, generation=made, counts={"documents": outcome.documents, "chunks": outcome.chunks})

    @property
    def _resizes(self) -> bool:
        return self._settings.consolidation.rebuild.resize


def result_of(rebuilt: RebuildResult, *, store: str, resizes: bool) -> StepResult:
    """What a night says of it."""
    notes = []
    made = "was made so once and taken back" if rebuilt.declined else "is made anew, if this night goes live"
    if rebuilt.outdated:
        notes.append(
            f"the live generation {made}: its vectors were trained without {rebuilt.changed:.0%} of its contents"
        )
    if rebuilt.moved and (resizes or rebuilt.declined):
        notes.append(f"the live generation {made}: {len(rebuilt.moved)} sizes moved")
    elif rebuilt.moved:
        cost, minutes = rebuilt.cost, max(1, round(rebuilt.cost.seconds / 60))
        notes.append(
            f"proposed, not done: {'; '.join(map(_reason_of, rebuilt.moved))}. `weft index --resize --store "
            f"{shlex.quote(store)}` cuts by that: up to {cost.chunks:,} chunks of {cost.documents:,} documents are "
            f"embedded anew, some {minutes:,} min in one process. What answers gain by it shows afterwards, in what "
            "the next night measures; `weft generations rollback` takes it back"
        )
    return StepResult(
        counts=rebuilt.as_step(), examples=[asdict(each) for each in rebuilt.moved], note="; ".join(notes)
    )


def _reason_of(moved: MovedSize) -> str:
    """What speaks for another size."""
    size = f"{moved.size} of {moved.domain} {moved.before} → {moved.after}"
    return f"{size}, for which {moved.observations:,.0f} outcomes speak"


def cost_of(settings: Settings, catalog: Catalog, moved: Collection[MovedSize]) -> ResizeCost:
    """What cutting the documents of some domains anew takes, at most; records are never cut."""
    domains = {each.domain for each in moved}
    with closing(catalog.open_live()) as generation:
        documents = generation.chunks.table("documents").select(["uri", "domain", "content_type"])
        is_cut = (pc.field("domain").isin(sorted(domains))) & (pc.field("content_type") != ContentType.RECORD.value)
        uris = documents.filter(is_cut)["uri"]
        chunks = generation.chunks.table("chunks").select(["uri", "text", "tokens"])
        chunks = chunks.filter(pc.is_in(chunks["uri"], uris.combine_chunks()))
    if not len(chunks):
        return ResizeCost(len(uris))
    few = chunks.take(np.linspace(0, len(chunks) - 1, min(_PACED, len(chunks)), dtype=np.int64))
    encoders, texts = load_engines(settings).encoders, list(map(str, few["text"].to_pylist()))
    started = time.perf_counter()
    for encoder in encoders:
        encoder.encode(texts)
    pace = (time.perf_counter() - started) / max(pc.sum(few["tokens"]).as_py(), 1)
    return ResizeCost(len(uris), len(chunks), round(pace * pc.sum(chunks["tokens"]).as_py(), 1))


def due(settings: Settings, catalog: Catalog) -> RebuildResult:
    """Which sizes of the live generation are not believed any more, and what its vectors were trained without."""
    pointer, manifests = catalog.pointer(), catalog.generations()
    manifest = next((one for one in manifests if one.id == pointer.generation), None)
    if manifest is None:
        return RebuildResult()
    # What was live before the one that is was taken back; what was finished, and killed before it was live, was not.
    later = [one for one in manifests if one.id > manifest.id and one.id == pointer.previous]
    changed = _changed(manifest)
    outdated = changed > settings.consolidation.rebuild.most_changed
    again = outdated and any(one.content_hash == manifest.content_hash and _changed(one) < changed for one in later)
    window = load_token_counter(settings.embedding).limit
    # Manifests of earlier versions state sizes beyond what the encoder reads, which cut as those within it do.
    cut_by = {one.id: within_window(one.facts[SIZING], window) for one in (manifest, *later) if SIZING in one.facts}
    wanted = snapshots(live_sizes(settings.chunking, settings.priors, catalog, limit=window))
    if manifest.id not in cut_by or same_sizes(cut_by[manifest.id], wanted):
        return RebuildResult(declined=again, changed=changed, outdated=outdated)
    moved = _moved(settings, catalog, cut_by[manifest.id], wanted)
    taken_back = bool(moved) and any(same_sizes(sizes, wanted) for id_, sizes in cut_by.items() if id_ != manifest.id)
    return RebuildResult(moved, taken_back or (again and not moved), changed=changed, outdated=outdated)


def _changed(manifest: Manifest) -> float:
    """The greatest share of contents that the quantisers of an encoder's vectors were trained without."""
    return max((1.0 - facts.trained_on for facts in manifest.dense.values()), default=0.0)


def _moved(settings: Settings, catalog: Catalog, cut_by: Snapshots, wanted: Snapshots) -> list[MovedSize]:
    evidence = catalog.live.evidence()
    believed = read_sizing(settings.priors, evidence, last_day(evidence) or 0)
    generation = catalog.open_live()
    domains = {Domain(str(each)) for each in generation.chunks.table("documents")["domain"].unique().to_pylist()}
    generation.close()
    return moved_sizes(cut_by, wanted, believed, domains, level=settings.priors.interval.level)


def moved_sizes(
    in_force: Snapshots, wanted: Snapshots, believed: SizingBeliefs, domains: Collection[Domain], *, level: float
) -> list[MovedSize]:
    """The sizes in force that lie outside the interval of what is believed, and that would come out otherwise."""
    moved: list[MovedSize] = []
    for domain in sorted(domains):
        before, after = (pairs_of(sizes.get(domain.value, ())) for sizes in (in_force, wanted))
        for size in (*_PAIRS, OVERFLOW):
            name = _PAIRS.get(size, size)
            if name not in before or before[name] == after.get(name):
                continue
            low, high = _interval(believed[domain], size, before[name], level)
            # Of strategies: the share that speaks for the next one lies above all that may speak for the one in force.
            value = believed[domain].overflow.mean[_place(after[name])] if size == OVERFLOW else float(before[name])
            if not low <= value <= high:
                seen = believed[domain].n_effective[size]
                moved.append(MovedSize(domain.value, size, before[name], after[name], low, high, seen))
    return moved


def same_sizes(one: Snapshots, other: Snapshots) -> bool:
    """Whether two generations were cut alike, whichever learned versions put that in force."""
    return _numbers(one) == _numbers(other)


def within_window(sizes: Snapshots, window: int) -> dict[str, list[str]]:
    """Sizes as they cut for an encoder that reads `window` tokens: no larger one makes a difference."""
    return {
        domain: [
            f"{name}={min(int(value), window)}" if name in _BOUNDED else f"{name}={value}"
            for name, value in pairs_of(each).items()
        ]
        for domain, each in sizes.items()
    }


def _numbers(sizes: Snapshots) -> dict[str, dict[str, str]]:
    pairs = {domain: pairs_of(each) for domain, each in sizes.items()}
    return {
        domain: {name: value for name, value in each.items() if name != "learned"} for domain, each in pairs.items()
    }


def _interval(believed: DomainSizing, size: str, before: str, level: float) -> tuple[float, float]:
    """The interval of a size; of a strategy that of the share that speaks for the one in force."""
    if size == OVERFLOW:
        return believed.overflow.interval(level)[_place(before)]
    low, high = believed.sizes[size].interval(level)
    longer = believed.shortfall if size == TARGET else 1.0
    return low * longer, high * longer


def _place(strategy: str) -> int:
    return list(Overflow).index(Overflow(strategy))
