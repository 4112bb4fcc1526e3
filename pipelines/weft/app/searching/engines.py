"""How a searcher is opened: over the models and the store that settings name."""

from __future__ import annotations

import gc
import json
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.catalog.catalog import Catalog
from weft.consolidation.probes import BUNDLED, probes
from weft.domain.errors import NothingPublishedError
from weft.embedding.encoders.precision import INT8_REVISION, instructions_of, pinned, precisions_of
from weft.embedding.models import SPARSE_MODULE, input_of, locate
from weft.embedding.ports import PairScorer, TermEncoder, TextEncoder
from weft.embedding.question_vectors import QuestionVectors
from weft.evaluation.replay.caching import CachingEncoder
from weft.evaluation.replay.masking import MaskedGeneration, Masks, masked
from weft.lessons.prompt import MOST_LESSONS
from weft.retrieval.answer.lessons import LessonRetriever
from weft.retrieval.channels.open import OpenedCache
from weft.retrieval.searcher import Searcher, require_unforked
from weft.retrieval.snapshot.live import CatalogSource
from weft.retrieval.snapshot.ports import Fleet, SessionMemories
from weft.retrieval.snapshot.snapshot import Snapshot, SnapshotSource
from weft.runtime.clock import Clock, system_clock
from weft.runtime.extras import extras_named
from weft.runtime.process import FREED_BYTES, keep_freed_memory, linear_algebra_threads, uncollected
from weft.runtime.storage.files import files_below
from weft.runtime.storage.sqlite import blob_key
from weft.settings import Settings

if TYPE_CHECKING:
    from weft.ingestion.questions import StoredQuestion  # whose room takes the extra `index`

PRODUCT_THREADS = 1
"""Of one product of vectors, while a job searches: more halve the searches a second on two cores."""


@dataclass(frozen=True, slots=True)
class Engines:
    """What a searcher encodes with."""

    encoders: Sequence[TextEncoder]  # of queries, the default one first, each of which is a dense channel
    terms: TermEncoder | None = None  # the sparse encoder; None where none is configured
    pairs: PairScorer | None = None  # A cross-encoder for the best candidates; None where none is configured
    # what is searched instead of a snapshot; of one that it made itself, that one
    over: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot
    precisions: Mapping[str, str] = field(default_factory=dict)  # of each encoder by its name; empty where not known
    contents: Sequence[TextEncoder] = ()  # the encoders as they read contents; empty where they read queries so, too

    @property
    def of_contents(self) -> Sequence[TextEncoder]:
        """The encoders of contents, in the same order."""
        return self.contents or self.encoders


LoadEngines = Callable[[Settings], Engines]
"""Loads what the settings name; called once per process."""


def load_engines(settings: Settings) -> Engines:
    """The configured encoders, in the precision of the vectors that are live, and the cross-encoder."""
    # PyTorch takes 1.5 s to import: only who encodes waits for it.
    from weft.embedding.encoders.encoder import load_encoder, load_pair_encoder  # noqa: PLC0415

    threads = {"threads": settings.retrieval.encode_threads}
    cross_encoder = settings.retrieval.rerank.cross_encoder
    embedding = pinned(settings.embedding, Catalog(Path(settings.storage.root)).precisions())
    encoders = [load_encoder(one.model_copy(update=threads)) for one in embedding.encoders]
    pairs, precisions = load_pair_encoder(cross_encoder, embedding.device, **threads), precisions_of(embedding)
    queries, terms = [each.queries for each in encoders], None
    if embedding.sparse.model:
        with extras_named():
            load_terms = pkgutil.resolve_name(f"{SPARSE_MODULE}:load_for_queries")
        queries[0], terms = load_terms(embedding.model_copy(update=threads), encoders[0])
    return Engines(queries, terms, pairs, precisions=precisions, contents=encoders)


def source_of(
    settings: Settings,
    clock: Clock = system_clock,
    *,
    precisions: Mapping[str, str] | None = None,
    fleet: Fleet | None = None,
) -> CatalogSource:
    """What says what is live in the store of the settings."""
    catalog = Catalog(Path(settings.storage.root))
    return CatalogSource(catalog, settings.priors, clock=clock, precisions=precisions, fleet=fleet)


@contextmanager
def searching(
    settings: Settings,
    engines: Engines,
    source: SnapshotSource,
    *,
    clock: Clock = system_clock,
    openings: OpenedCache | None = None,  # what others opened of the same generation
    memories: SessionMemories | None = None,  # what sessions remember; None where that is the caller's to carry
) -> Iterator[Searcher]:
    """A searcher, in a process that does little else: it keeps the memory that searches free, and what was opened."""
    encoder, *further = engines.encoders
    rules = settings.retrieval
    vectors = QuestionVectors(encoder.encode, _vectors_file(settings, engines.precisions, queries=True))
    file = _vectors_file(settings, engines.precisions, queries=False)
    lessons = vectors if file == vectors.path else QuestionVectors(engines.of_contents[0].encode, file)
    keep_freed_memory(FREED_BYTES)
    with (
        linear_algebra_threads(PRODUCT_THREADS),
        Searcher(
            source,
            encoder,
            rules,
            clock=clock,
            further=further,
            terms=engines.terms,
            pairs=engines.pairs,
            openings=openings,
            memories=memories,
            key=settings.feedback.key,
            lessons=LessonRetriever(
                settings.priors.lessons.relevance,
                most=MOST_LESSONS,
                duplicates=settings.lessons.duplicates,
                embed=lessons,
                stored=lessons.stored,
                everyday=probes(BUNDLED),
                ask=vectors,
            ),
            encode_past=vectors,
        ) as searcher,
    ):
        # What was opened stays: no collection of garbage needs to look through it again.
        gc.freeze()
        try:
            yield searcher
        finally:
            gc.unfreeze()


def _vectors_file(settings: Settings, precisions: Mapping[str, str], *, queries: bool) -> Path:
    """Where the store has vectors of past questions, or of lessons; the name says what made them, model's files too."""
    folder = locate(settings.embedding)
    given = input_of(folder, settings.embedding)
    prompt = given.query_prompt if queries else given.document_prompt
    files = [
        (path.name, status.st_size, status.st_mtime_ns) for path in files_below(folder) for status in [path.stat()]
    ]
    made_with = settings.embedding.model_dump(mode="json", include={"dimension"})
    made_with |= {"max_tokens": given.window} | ({"prompt": prompt} if prompt else {})
    processor = instructions_of(settings.embedding.device)
    facts = [str(folder), files, made_with, dict(precisions), processor, INT8_REVISION]
    return Path(settings.storage.root) / "cache" / f"questions-{blob_key(json.dumps(facts, sort_keys=True))[:16]}.npz"


@contextmanager
def opened(settings: Settings) -> Iterator[Searcher]:
    """A searcher over what is live in the store, which keeps there what sessions remember."""
    require_unforked()
    require_published(settings)
    with ExitStack() as undo:
        # What is imported and opened here stays.
        with uncollected():
            engines, memories = load_engines(settings), Catalog(Path(settings.storage.root)).memories
            source = source_of(settings, precisions=engines.precisions)
            searcher = undo.enter_context(searching(settings, engines, source, memories=memories))
        yield searcher


def require_published(settings: Settings) -> None:
    """Before an encoder is loaded in vain."""
    if Catalog(Path(settings.storage.root)).pointer().generation is None:
        raise NothingPublishedError(
            f"expected a live generation in {settings.storage.place}, found none: run `weft index --source "
            f"PATH --store {settings.storage.place}` first"
        )


def masking_engines(questions: Sequence[StoredQuestion]) -> LoadEngines:
    """What loads the configured models over a generation of which some contents lack what they are asked with."""
    rests = {question.content_hash: question.rest for question in questions}
    phrases = [question.text for question in questions]

    def load(settings: Settings) -> Engines:
        engines, pooling = load_engines(settings), settings.embedding.tokens.pooling

        def over(snapshot: Snapshot) -> Snapshot:
            generation: Any = snapshot.generation
            if isinstance(generation, MaskedGeneration):
                return snapshot
            masks = Masks.of(generation.chunks, rests, phrases)
            return masked(snapshot, masks, engines.of_contents, pooling=pooling, terms=engines.terms)

        return replace(engines, encoders=[CachingEncoder(each) for each in engines.encoders], over=over)

    return load


def alone(settings: Settings) -> Settings:
    """The settings for one of many processes: side by side are the processes, not threads of them."""
    one = {"threads": 1}
    embedding, threads = settings.embedding, dict.fromkeys(("encode_threads", "channel_threads"), 1)
    return settings.model_copy(
        update={
            "embedding": embedding.model_copy(
                update={**one, "further": tuple({**each, **one} for each in embedding.further)}
            ),
            "retrieval": settings.retrieval.model_copy(update=threads),
        }
    )
