"""LRN-19: pairs of questions written by hand, with the real encoder and the priors."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from weft.embedding.encoders.encoder import load_encoder
from weft.retrieval.query.near import Factors, QuestionSimilarity
from weft.settings import load_settings
from weft.wording.questions import Question

pytestmark = pytest.mark.integration

PAIRS = Path(__file__).resolve().parent.parent / "evaluation" / "questions"


@pytest.fixture(scope="module")
def factors() -> dict[str, Sequence[float]]:
    """How far each pair counts; words are as rare as they are among all questions here."""
    settings = load_settings(environment={})
    prior, encoder = settings.priors.near, load_encoder(settings.embedding)
    counting = Factors.of(prior)
    asked = {
        name: [tuple(row) for row in csv.reader((PAIRS / f"{name}.tsv").open(encoding="utf-8"), delimiter="\t")][1:]
        for name in ("paraphrases", "look_alikes")
    }
    likeness = QuestionSimilarity([Question(one) for one, _ in asked["paraphrases"]], prior.overlap)

    def factor(one: str, other: str) -> float:
        ours, theirs = Question(one), Question(other)
        first, second = encoder.encode([one, other])
        return counting.factor(ours, theirs, likeness.of(ours, theirs, float(first @ second)))

    return {name: [factor(one, other) for one, other in pairs] for name, pairs in asked.items()}


def test_what_looks_alike_hardly_counts(factors: dict[str, Sequence[float]]) -> None:
    """LRN-19: of sixty others; of sixty freely reworded those count that exchange no content word."""
    paraphrases, look_alikes = factors["paraphrases"], factors["look_alikes"]
    assert len(paraphrases) == len(look_alikes) == 60
    assert sum(factor >= 0.5 for factor in paraphrases) >= 0.15 * len(paraphrases)
    assert sum(factor >= 0.1 for factor in look_alikes) <= 0.05 * len(look_alikes)
