"""What one run of ingestion is to do: sources and settings, resolved into units, stages and the manifest's facts."""

from __future__ import annotations

import json
import pkgutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft.catalog.catalog import Catalog
from weft.chunking.settings import ChunkingSettings
from weft.chunking.units.splitting import ActiveSizes
from weft.domain.documents import Domain
from weft.domain.errors import ConfigurationError, ModelUnavailableError, NothingPublishedError, SourceError
from weft.domain.ids import GenerationId
from weft.embedding.encoders.precision import AUTO, INT8_REVISION, device_of, devices_of, pinned, precisions_of
from weft.embedding.models import SPARSE_MODULE, Model, Weighing, find_model, input_of, prompts_of
from weft.embedding.settings import LENGTH_STEP, EmbeddingSettings
from weft.extraction.checkpoints import identify, onnx_file_of
from weft.extraction.scores import extraction_facts
from weft.extraction.settings import ExtractionSettings
from weft.indexes import schemas
from weft.indexes.manifest import BY_WORDS, DEVICES, PRECISIONS, SOURCES, SPARSE
from weft.indexes.settings import IndexSettings
from weft.ingestion.report import LEFT_OUT, IndexProgress
from weft.ingestion.settings import IngestSettings, SourceSettings
from weft.ingestion.sizing import SIZING, STATED, prior_sizes, snapshots
from weft.ingestion.sources.items import FileItem, SourceItem, escaped, with_distinct_names
from weft.ingestion.sources.sources import SourceListing, list_declared, list_source, uri_prefixes
from weft.ingestion.sources.stored import list_stored
from weft.ingestion.sources.tree import SkipReason
from weft.ingestion.stages.models import ENCODER, EXTRACTOR, Embed, FindEntities, WeighTerms
from weft.ingestion.stages.read_and_chunk import ReadAndChunk, ReadRules
from weft.ingestion.stages.reuse import Base, DocumentKeys, cutting_code
from weft.ingestion.units import Chained, Step, Unit, WritePart, grouped
from weft.learning.priors import Priors
from weft.runtime.reuse import reused
from weft.runtime.stages import Executor, Stage
from weft.runtime.storage.packs import PACKS
from weft.runtime.storage.sqlite import BlobCache, blob_key
from weft.runtime.storage.working_copy import working_copy_of

_THREADS = 1  # of each encoder: more actors scale better than more threads
CPU, CUDA = "cpu", "cuda"
"""What models compute on."""


WORDS_FIRST = 500
"""Documents that take minutes to be made vectors of, on a few processors."""


Describe = Callable[..., Mapping[str, object]]
"""What is said of a staged generation beside what it was made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPlan:
    """One run."""

    sources: Sequence[Path]  # named for this run
    store: Path
    domain: Domain | None  # overrides the domain of every document
    full: bool  # make everything anew: forget what is cached, and publish even content that is live already
    fingerprint: str  # of all settings, for the manifest
    ingest: IngestSettings
    chunking: ChunkingSettings
    priors: Priors
    extraction: ExtractionSettings
    embedding: EmbeddingSettings
    index: IndexSettings
    here: bool = False  # read sources on the host of the job alone, so that other hosts need not see them
    encoder: str = ENCODER  # What makes the models, as "module:name"
    extractor: str = EXTRACTOR
    # declared in the configuration; without any of either, documents of the live generation are indexed anew,
    # from their stored texts (ING-15)
    declared: Sequence[SourceSettings] = ()
    # gives further facts of a staged generation for its manifest; called where it was built, unless most of its
    # documents are those that its base was described with
    describe: Describe | None = None
    described_least: float = 1.0  # share of the documents that counts as most
    resized: bool = True  # cut by the sizes that are believed in; else by those of the live generation
    words_first: int = WORDS_FIRST  # so many documents of a new store answer by words before they have vectors; 0: none
    by_words: bool = False  # make no vectors: what they take does not keep first answers waiting
    retrained: bool = False  # publish even content that is live already, for quantisers of vectors are trained anew

    @property
    def encoders(self) -> tuple[EmbeddingSettings, ...]:
        """The settings of each encoder that makes vectors in this run."""
        return () if self.by_words else self.embedding.encoders

    @property
    def places(self) -> list[Path]:
        """Where all its sources lie."""
        return [*self.sources, *(source.place for source in self.declared)]

    @property
    def vectors(self) -> Path:
        """Where vectors are cached."""
        return self.store / "cache" / "embeddings.sqlite"

    @property
    def mentions(self) -> Path:
        """Where mentions are cached."""
        return self.store / "cache" / "entities.sqlite"

    @property
    def conversions(self) -> Path:
        """Where files in formats are cached as they were read."""
        return self.store / "cache" / "conversions.sqlite"


def by_words(plan: IndexPlan) -> IndexPlan:
    """The plan of a first generation: of the same chunks, without vectors, entities and links."""
    extraction = plan.extraction.model_copy(update={"enabled": False})
    graph = plan.index.graph.model_copy(update={"enabled": False})
    index = plan.index.model_copy(update={"graph": graph})
    return replace(plan, by_words=True, extraction=extraction, index=index, describe=None)


def items_of(plan: IndexPlan) -> SourceListing:
    """All items of the sources, in a fixed order, and what was left out while they were listed.

    A declared source that cannot be read costs itself alone; one that was named for this run raises SourceError.
    """
    listings = [list_source(source, plan.ingest, store=plan.store) for source in plan.sources]
    broken: dict[Path, str] = {}
    for source in plan.declared:
        try:
            listings.append(list_declared(source, plan.ingest, store=plan.store))
        except SourceError as error:
            broken[source.place] = str(error)
    if broken and not listings:
        raise SourceError("; ".join(broken.values()))
    items = _distinct([item for listing in listings for item in listing.items])
    left_out = sum((Counter(listing.left_out) for listing in listings), Counter[SkipReason]())
    if left_out and not items:
        raise SourceError(
            f"expected files to index in {[str(place) for place in plan.places]}, found all left out: "
            f"{_by_reason(left_out)}; a folder that is named as a source is read even if rules exclude it"
        )
    return SourceListing(items, left_out, broken)


def with_stored(
    plan: IndexPlan, listing: SourceListing, catalog: Catalog, generation: GenerationId | None
) -> SourceListing:
    """The listing, with the live documents of sources that cannot be read; without any source, all live documents."""
    if not plan.places:
        return stored_items(plan, catalog, generation)
    if not listing.broken or generation is None:
        return listing
    prefixes = tuple(prefix for place in listing.broken for prefix in uri_prefixes(place))
    return replace(listing, items=[*listing.items, *stored_items(plan, catalog, generation, prefixes=prefixes).items])


def units_of(plan: IndexPlan, listing: SourceListing) -> list[Unit]:
    """Items in units; the first one also counts what was left out."""
    units = list(grouped(listing.items, plan.ingest.unit_documents))
    if not listing.left_out:
        return units
    return [replace(units[0], counts=_by_reason(listing.left_out, LEFT_OUT)), *units[1:]]


def stored_items(
    plan: IndexPlan, catalog: Catalog, generation: GenerationId | None, *, prefixes: tuple[str, ...] = ()
) -> SourceListing:
    """The documents of the live generation."""
    if generation is None:
        raise NothingPublishedError("expected a live generation to index anew, found none: name a source")
    catalog.verify(generation)
    folder = catalog.folder_of(generation)
    return SourceListing(list_stored(folder, together=plan.ingest.unit_documents, prefixes=prefixes))


def require_documents(plan: IndexPlan, progress: IndexProgress) -> None:
    """Check that there is something to publish."""
    if not progress.counts.get("documents", 0) + progress.counts.get("unchanged", 0):
        sources = [str(place) for place in plan.places]
        raise SourceError(f"nothing to index in {sources}: {progress.rejected or 'no files'}")


def _by_reason(left_out: Mapping[SkipReason, int], prefix: str = "") -> dict[str, int]:
    return {f"{prefix}{reason}": count for reason, count in left_out.items()}


def pinned_to(plan: IndexPlan, made_in: Mapping[str, str], executor: Executor) -> IndexPlan:
    """The plan with each encoder's arithmetic named, so that no worker chooses one by its processor (ARC-9).

    Where GPUs are dealt out, devices are named, too: no worker takes a GPU that it was not given (SCL-15).

    Raises:
        ModelUnavailableError: A model is to run on a GPU, and the cluster has none.
        ConfigurationError: The store's vectors are of another precision than is asked for.
    """
    auto = _auto(plan, executor)
    extraction = plan.extraction
    if auto != AUTO and extraction.device == AUTO:
        on = auto if onnx_file_of(extraction) is None else CPU
        extraction = extraction.model_copy(update={"device": on})
    embedding = pinned(plan.embedding, made_in, moving=plan.full, auto=auto)
    return replace(plan, embedding=embedding, extraction=extraction)


def _auto(plan: IndexPlan, executor: Executor) -> str:
    """The device that "auto" means on a cluster; "auto" where nobody deals GPUs out, and each process looks."""
    wanted = {f"embedding.{one.device}" for one in plan.encoders}
    wanted |= {f"extraction.{plan.extraction.device}"} if plan.extraction.enabled else set()
    gpus = executor.gpus()
    if gpus is None:
        return AUTO
    device = CPU
    if gpus and any(not one.endswith(CPU) for one in wanted):
        (device,) = executor.tasks(device_of, [AUTO], gpus=1.0)
    for section in ("embedding", "extraction"):
        if device == CPU and f"{section}.{CUDA}" in wanted:
            raise ModelUnavailableError(
                f"{section}.device: expected a GPU on the cluster that PyTorch can use, for it says cuda, found "
                f"{gpus} GPUs, and none of use: set it to auto or cpu"
            )
    return device


def models_of(plan: IndexPlan) -> list[Model]:
    """The files of each encoder, in the order of the settings."""
    models = [reused(find_model, settings) for settings in plan.encoders]
    names = [model.name for model in models]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"embedding.further: expected encoders of different names, found {names}")
    return models


def weighing_of(plan: IndexPlan, models: Sequence[Model]) -> Weighing | None:
    """How terms are weighed; None where they are not."""
    if plan.by_words or not plan.embedding.sparse.model:
        return None
    weighing: Weighing = pkgutil.resolve_name(f"{SPARSE_MODULE}:weighing_of")(
        plan.embedding, models[0], made_with_of(plan, models)[0]
    )
    return weighing


def reading_of(
    plan: IndexPlan, models: Sequence[Model], weighing: Weighing | None, sizes: ActiveSizes, live: DocumentKeys
) -> ReadRules:
    """How items are read; whatever decides the rows of a document besides itself and its sizes goes into its key."""
    made_with = blob_key(
        cutting_code(),
        *(str(schema) for schema in schemas.TABLES.values()),
        *made_with_of(plan, models),
        *([] if weighing is None else [weighing.made_with]),
        json.dumps(_extracted_with(plan), sort_keys=True),
        plan.ingest.summary.model_dump_json(include={"max_tokens", "endpoint", "model"}),
    )
    return ReadRules(plan.ingest, sizes, plan.embedding, plan.domain, made_with, live, plan.conversions)


def stages_of(
    plan: IndexPlan,
    models: Sequence[Model],
    weighing: Weighing | None,
    reading: ReadRules,
    parts: Path,
    *,
    executor: Executor,
) -> list[Stage]:
    """The stages that units pass through, sized for where the plan is `pinned_to`; the last one writes parts."""
    cpus, gpus = executor.cpus(), executor.gpus() or 1
    finding, encoding = _finding(plan), _encoding(plan, models, weighing)
    finders, encoders = (sum(device != CUDA for _, device in steps) for steps in (finding, encoding))
    on_gpus = len(finding) + len(encoding) - finders - encoders
    pools = plan.ingest.pools.sized(cpus=cpus, extraction=finders > 0, models=encoders, gpus=gpus, on_gpus=on_gpus)
    staffed = [_Staffed((ReadAndChunk, (reading,)), cpus if plan.by_words else pools.readers)]
    for steps, actors in ((finding, pools.extractors), (encoding, pools.encoders)):
        for step, device in steps:
            staffed.append(_Staffed(step, gpus, pools.gpus_each) if device == CUDA else _Staffed(step, actors))
    last = staffed.pop()
    writing = replace(last, step=(WritePart, (parts,)))
    first, *others = _joined([*staffed, replace(last, actors=0), writing], pools.cpus_each)
    return [replace(first, here=plan.here), *others]


@dataclass(frozen=True, slots=True)
class _Staffed:
    """A step and its actors; the actors of the next step do one without any, too."""

    step: Step
    actors: int
    gpus: float = 0.0


def _finding(plan: IndexPlan) -> list[tuple[Step, str]]:
    """The step that finds entities, where they are wanted, and its device."""
    if not plan.extraction.enabled:
        return []
    finding = (plan.extraction, plan.mentions, plan.extractor, reused(identify, plan.extraction))
    return [((FindEntities, finding), plan.extraction.device)]


def _encoding(plan: IndexPlan, models: Sequence[Model], weighing: Weighing | None) -> list[tuple[Step, str]]:
    """The steps that make vectors and weights of terms, each with its device."""
    threads = {"threads": _THREADS}
    steps: list[tuple[Step, str]] = []
    for settings, model, made_with in zip(plan.encoders, models, made_with_of(plan, models), strict=True):
        also = weighing.made_with if weighing is not None and weighing.shared and model is models[0] else ""
        embedding = (settings.model_copy(update=threads), model.name, made_with, plan.vectors, plan.encoder, also)
        steps.append(((Embed, embedding), settings.device))
    if weighing is not None and not weighing.shared:
        weighed = (plan.embedding.model_copy(update=threads), weighing.made_with, plan.vectors)
        steps.append(((WeighTerms, weighed), plan.embedding.device))
    return steps


def _joined(steps: Sequence[_Staffed], cpus: float) -> list[Stage]:
    """A stage for each step with actors of its own, which take the steps without any before it along."""
    stages: list[Stage] = []
    pending: list[Step] = []
    for staffed in steps:
        pending.append(staffed.step)
        if staffed.actors:
            worker, arguments = pending[0] if len(pending) == 1 else (Chained, tuple(pending))
            stages.append(Stage(worker, arguments, staffed.actors, cpus, staffed.gpus))
            pending = []
    return stages


def facts_of(
    plan: IndexPlan,
    models: Sequence[Model],
    weighing: Weighing | None,
    sizes: ActiveSizes,
    *,
    limit: int,
    base: Base,
) -> dict[str, object]:
    """What the manifest says about how the generation was made; models and parameters go into its content hash."""
    sources = [escaped(str(place)) for place in plan.places] or base.sources
    roles = [f"encoder-{order}" if order else "encoder" for order in range(len(models))]
    used = dict(zip(roles, models, strict=True)) | ({} if weighing is None else {SPARSE: weighing.model})
    weighed = {} if weighing is None else {SPARSE: weighing.made_with}
    return {
        "parent": base.generation,
        "settings": plan.fingerprint,
        "models": {role: f"{model.name}@{model.identity}" for role, model in used.items()},
        PRECISIONS: {} if plan.by_words else precisions_of(plan.embedding),
        DEVICES: {} if plan.by_words else devices_of(plan.embedding),
        "parameters": {"embedding": made_with_of(plan, models), "extraction": _extracted_with(plan), **weighed},
        **weighed,
        SOURCES: sources,
        **({BY_WORDS: True} if plan.by_words else {}),
        SIZING: snapshots(sizes),
        STATED: snapshots(prior_sizes(plan.chunking, plan.priors, limit=limit)),
    }


def _extracted_with(plan: IndexPlan) -> dict[str, object]:
    """What decides the mentions of a text besides itself; nothing where none are looked for."""
    if not plan.extraction.enabled:
        return {}
    return {**extraction_facts(plan.extraction), "enabled": True, "checkpoint": reused(identify, plan.extraction)}


def forget(plan: IndexPlan) -> None:
    """Empty the caches of a store, so that everything is computed again."""
    for path in (plan.vectors, plan.mentions, plan.conversions):
        cache = BlobCache(path)
        cache.clear()
        cache.close()
    if (copy := working_copy_of(plan.store)) is not None:
        copy.forget([plan.store / PACKS])


def made_with_of(plan: IndexPlan, models: Sequence[Model]) -> list[str]:
    """For each encoder, what decides the bits it makes of a text."""
    return [_made_with(settings, model) for settings, model in zip(plan.encoders, models, strict=True)]


def _made_with(settings: EmbeddingSettings, model: Model) -> str:
    given = input_of(model.folder, settings)
    facts = settings.model_dump(mode="json", include={"strategy", "dimension"}) | {"max_tokens": given.window}
    if prompts := prompts_of(given):
        facts["prompts"] = prompts
    facts["precision"] = settings.precision
    if settings.precision == "int8":
        facts["revision"] = INT8_REVISION
    else:
        facts["length_step"] = LENGTH_STEP
    if settings.strategy == "levels":
        facts["level_tokens"] = settings.level_tokens
    if settings.tokens.enabled:
        facts["tokens"] = settings.tokens.model_dump(mode="json")
    return blob_key(model.identity, json.dumps(facts, sort_keys=True))


def _distinct(items: Sequence[SourceItem]) -> list[SourceItem]:
    """Each item once, under names of its own; a file named by two sources in the same way counts once too."""
    roots: dict[str, str] = {}
    for item in dict.fromkeys(items):
        if isinstance(item, FileItem) and roots.setdefault(item.uri, item.root) != item.root:
            raise SourceError(
                f"expected every file under a URI of its own, found {item.uri!r} in {roots[item.uri]} and in "
                f"{item.root}: rename one of the folders, or index their common parent"
            )
    return with_distinct_names(list(dict.fromkeys(items)))
