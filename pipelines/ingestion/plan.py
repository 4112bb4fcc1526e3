"""What one run of ingestion is to do: sources and settings, resolved into units, stages and the manifest's facts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.chunking.settings import ChunkingSettings
from pipelines.chunking.units.splitting import SizesInForce
from pipelines.domain.documents import Domain
from pipelines.domain.errors import ConfigurationError, SourceError
from pipelines.domain.ids import GenerationId
from pipelines.embedding.cache import VectorCache
from pipelines.embedding.encoders.precision import INT8_REVISION, pinned, precisions_of
from pipelines.embedding.models import Model, find_model
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.extraction.checkpoints import identify
from pipelines.extraction.settings import ExtractionSettings
from pipelines.indexes import schemas
from pipelines.indexes.manifest import INSTRUCTIONS, PRECISIONS
from pipelines.indexes.settings import IndexSettings
from pipelines.ingestion.report import LEFT_OUT
from pipelines.ingestion.settings import IngestSettings
from pipelines.ingestion.sizing import SIZING, snapshots
from pipelines.ingestion.sources.items import escaped
from pipelines.ingestion.sources.parquet import told_apart
from pipelines.ingestion.sources.sources import FileItem, SourceItem, SourceListing, list_source
from pipelines.ingestion.sources.tree import LeftOut
from pipelines.ingestion.stages.embed import ENCODER, Embed
from pipelines.ingestion.stages.find_entities import EXTRACTOR, FindEntities
from pipelines.ingestion.stages.mention_cache import MentionCache
from pipelines.ingestion.stages.parts import Written
from pipelines.ingestion.stages.pools import sized
from pipelines.ingestion.stages.read_and_chunk import ReadAndChunk, ReadRules
from pipelines.ingestion.stages.unchanged import FoundAgain, KnownDocuments, cutting_code
from pipelines.ingestion.stages.worker import Chained, Step
from pipelines.ingestion.units import Unit, grouped
from pipelines.learning.priors import Priors
from pipelines.runtime.ray.stages import Stage
from pipelines.runtime.storage.sqlite import blob_key


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPlan:
    """One run.

    Attributes:
        sources: None for the documents of the live generation, from their stored texts (ING-15).
        domain: Overrides the domain of every document.
        full: Make everything anew: forget what is cached, and publish even content that is live already.
        fingerprint: Of all settings, for the manifest.
        encoder, extractor: What makes the models, as "module:name".
    """

    sources: Sequence[Path]
    store: Path
    domain: Domain | None
    full: bool
    fingerprint: str
    ingest: IngestSettings
    chunking: ChunkingSettings
    priors: Priors
    extraction: ExtractionSettings
    embedding: EmbeddingSettings
    index: IndexSettings
    encoder: str = ENCODER
    extractor: str = EXTRACTOR

    @property
    def vectors(self) -> Path:
        """Where vectors are cached."""
        return self.store / "cache" / "embeddings.sqlite"

    @property
    def mentions(self) -> Path:
        """Where mentions are cached."""
        return self.store / "cache" / "entities.sqlite"

    @property
    def found_again(self) -> FoundAgain:
        """Under which keys the live content was found once more."""
        return FoundAgain(self.store / "cache" / "found-again")


def items_of(plan: IndexPlan) -> SourceListing:
    """All items of the sources, in a fixed order, and what was left out while they were listed.

    Raises:
        SourceError: A source cannot be read at all, two files of different sources would have one URI, or all that
            the sources hold is left out.
    """
    listings = [list_source(source, plan.ingest, store=plan.store) for source in plan.sources]
    items = _distinct([item for listing in listings for item in listing.items])
    left_out = sum((Counter(listing.left_out) for listing in listings), Counter[LeftOut]())
    if left_out and not items:
        raise SourceError(
            f"expected files to index in {[str(source) for source in plan.sources]}, found all left out: "
            f"{_by_reason(left_out)}; a folder that is named as a source is read even if rules exclude it"
        )
    return SourceListing(items, left_out)


def units_of(plan: IndexPlan, listing: SourceListing) -> list[Unit]:
    """Items in units; the first one also counts what was left out."""
    units = list(grouped(listing.items, plan.ingest.unit_documents, plan.ingest.unit_bytes))
    if not listing.left_out:
        return units
    return [replace(units[0], counts=_by_reason(listing.left_out, LEFT_OUT)), *units[1:]]


def _by_reason(left_out: Mapping[LeftOut, int], prefix: str = "") -> dict[str, int]:
    return {f"{prefix}{reason}": count for reason, count in left_out.items()}


def pinned_to(plan: IndexPlan, made_in: Mapping[str, str]) -> IndexPlan:
    """The plan with the arithmetic of each encoder named, so that no worker chooses one by its own processor (ARC-9).

    Args:
        made_in: The precision of the live vectors, by encoder; `full` alone moves them to another.

    Raises:
        ConfigurationError: Another precision is asked for, and not everything is made anew.
    """
    return replace(plan, embedding=pinned(plan.embedding, made_in, moving=plan.full))


def models_of(plan: IndexPlan) -> list[Model]:
    """The files of each encoder, in the order of the settings.

    Raises:
        ModelUnavailableError: A model cannot be found.
        ConfigurationError: Two encoders have one name.
    """
    models = [find_model(settings) for settings in plan.embedding.encoders]
    names = [model.name for model in models]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"embedding.further: expected encoders of different names, found {names}")
    return models


def reading_of(plan: IndexPlan, models: Sequence[Model], sizes: SizesInForce, known: KnownDocuments) -> ReadRules:
    """How items are read; whatever decides the rows of a document besides itself and its sizes goes into its key."""
    made_with = blob_key(
        cutting_code(),
        *(str(schema) for schema in schemas.TABLES.values()),
        *made_with_of(plan, models),
        json.dumps(_found_with(plan), sort_keys=True),
        plan.ingest.summary.model_dump_json(include={"max_tokens", "endpoint", "model", "instruction", "characters"}),
    )
    return ReadRules(plan.ingest, sizes, plan.embedding, plan.domain, made_with, known)


def stages_of(plan: IndexPlan, models: Sequence[Model], reading: ReadRules, parts: Path, *, cpus: int) -> list[Stage]:
    """The stages that units pass through, sized for a cluster of `cpus` CPUs; the last one writes parts."""
    pools = sized(plan.ingest.pools, cpus=cpus, extraction=plan.extraction.enabled, models=len(models))
    threads = {"threads": plan.ingest.pools.threads}
    extraction = plan.extraction.model_copy(update=threads)
    checkpoint = identify(extraction) if extraction.enabled else ""
    finding = (extraction, plan.mentions, plan.extractor, checkpoint)
    each = zip(plan.embedding.encoders, models, made_with_of(plan, models), strict=True)
    embed = [
        (settings.model_copy(update=threads), model.name, made_with, plan.vectors, plan.encoder)
        for settings, model, made_with in each
    ]
    entities: list[tuple[Step, int]] = [((FindEntities, finding), pools.extractors)] if extraction.enabled else []
    return _joined(
        [
            ((ReadAndChunk, (reading,)), pools.readers),
            *entities,
            *(((Embed, one), pools.encoders) for one in embed[:-1]),
            ((Written, (Embed, embed[-1], parts)), pools.encoders),
        ],
        pools.cpus_each,
    )


def _joined(steps: Sequence[tuple[Step, int]], cpus: float) -> list[Stage]:
    """A stage for each step with actors of its own, which take the steps without any before it along."""
    stages: list[Stage] = []
    waiting: list[Step] = []
    for step, actors in steps:
        waiting.append(step)
        if actors:
            worker, arguments = waiting[0] if len(waiting) == 1 else (Chained, tuple(waiting))
            stages.append(Stage(worker, arguments, actors, cpus))
            waiting = []
    return stages


def facts_of(
    plan: IndexPlan,
    models: Sequence[Model],
    sizes: SizesInForce,
    *,
    parent: GenerationId | None,
    instructions: Collection[str],
) -> dict[str, object]:
    """What the manifest says about how the generation was made; models and parameters go into its content hash."""
    roles = ["encoder", *(f"encoder-{order}" for order in range(1, len(models)))]
    return {
        "parent": parent,
        "settings": plan.fingerprint,
        "models": {role: f"{model.name}@{model.identity}" for role, model in zip(roles, models, strict=True)},
        PRECISIONS: precisions_of(plan.embedding),
        INSTRUCTIONS: sorted(instructions),
        "parameters": {"embedding": made_with_of(plan, models), "extraction": _found_with(plan)},
        "sources": [escaped(str(source)) for source in plan.sources],
        SIZING: snapshots(sizes),
    }


def _found_with(plan: IndexPlan) -> dict[str, object]:
    """What decides the mentions of a text besides itself; nothing where none are looked for.

    Raises:
        ModelUnavailableError: The checkpoint is not there.
    """
    if not plan.extraction.enabled:
        return {}
    return {**plan.extraction.fingerprint, "enabled": True, "checkpoint": identify(plan.extraction)}


def forget(plan: IndexPlan) -> None:
    """Empty the caches of a store, so that everything is computed again."""
    for cache in (VectorCache(plan.vectors), MentionCache(plan.mentions)):
        cache.clear()
        cache.close()
    plan.found_again.forget()


def made_with_of(plan: IndexPlan, models: Sequence[Model]) -> list[str]:
    """For each encoder, what decides the bits it makes of a text."""
    return [_made_with(settings, model) for settings, model in zip(plan.embedding.encoders, models, strict=True)]


def _made_with(settings: EmbeddingSettings, model: Model) -> str:
    told = settings.model_dump(mode="json", include={"strategy", "max_tokens", "dimension"})
    told["precision"] = settings.precision
    if settings.precision == "int8":
        told["revision"] = INT8_REVISION
    else:
        told["length_step"] = settings.length_step
    if settings.strategy == "levels":
        told["level_tokens"] = settings.level_tokens
    if settings.tokens.enabled:
        told["tokens"] = settings.tokens.model_dump(mode="json")
    return blob_key(model.identity, json.dumps(told, sort_keys=True))


def _distinct(items: Sequence[SourceItem]) -> list[SourceItem]:
    """Each item once, under names of its own; a file named by two sources in the same way counts once too."""
    roots: dict[str, str] = {}
    for item in dict.fromkeys(items):
        if isinstance(item, FileItem) and roots.setdefault(item.uri, item.root) != item.root:
            raise SourceError(
                f"expected every file under a URI of its own, found {item.uri!r} in {roots[item.uri]} and in "
                f"{item.root}: rename one of the folders, or index their common parent"
            )
    return told_apart(list(dict.fromkeys(items)))
