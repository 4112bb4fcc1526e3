"""Searches of a store with its own questions: what each is asked with is no part of its answer (EVA-4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipelines.evaluation.replay.caching import CachingEncoder, CachingGeneration, remembered
from pipelines.evaluation.replay.masking import Masks, masked
from pipelines.ingestion.questions import StoredQuestion
from pipelines.retrieval.snapshot.snapshot import Snapshot
from pipelines.serving.searching.engines import Engines, LoadEngines, load_engines
from pipelines.settings import Settings


def masking_engines(questions: Sequence[StoredQuestion]) -> LoadEngines:
    """What loads the configured models over a generation of which some contents lack what they are asked with."""
    rests = {question.content_hash: question.rest for question in questions}
    phrases = [question.text for question in questions]

    def load(settings: Settings) -> Engines:
        engines, pooling = load_engines(settings), settings.embedding.tokens.pooling

        def over(snapshot: Snapshot) -> Snapshot:
            if isinstance(snapshot.generation, CachingGeneration):
                return snapshot
            masks = Masks.of(snapshot.generation.chunks, rests, phrases)
            return remembered(masked(snapshot, masks, engines.encoders, pooling=pooling, terms=engines.terms))

        return replace(engines, encoders=[CachingEncoder(each) for each in engines.encoders], over=over)

    return load
