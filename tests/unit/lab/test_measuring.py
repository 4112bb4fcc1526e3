"""ING-16: thresholds are chosen per label, and figures mean what they say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.entities.evaluation import (
    Judged,
    LabelCounts,
    best_thresholds,
    measure,
    micro,
    precision_points,
    tally,
)
from lab.entities.recipe import CardFacts, card
from lab.entities.schedule import FLOOR, WARM_UP, Schedule, TrainingProgress, rate
from lab.entities.sentences import Sentence
from weft.domain.chunks import Mention
from weft.domain.errors import ModelUnavailableError
from weft.extraction.scores import SCORES_FILE, LabelScores, scores_of
from weft.settings import load_settings

PERSON = frozenset({"person"})
TEXT = Judged(
    ((0, 0, "person", 0.9), (1, 1, "person", 0.4), (2, 2, "place", 0.9)), frozenset({(0, 0, "person")}), PERSON
)
SCHEDULE = Schedule(
    words=100, minutes=1, batch_words=10, encoder_rate=1, head_rate=1, bf16=False, save_minutes=1, log_every=1
)


def test_spans_above_the_threshold_count_and_labels_that_are_not_judged_do_not() -> None:
    """ING-16: "place" is not annotated in this text, so that find is neither right nor wrong."""
    assert tally([TEXT], {"person": 0.3}, 0.5) == {"person": LabelCounts(hits=1, predicted=2, gold=1)}
    assert micro(tally([TEXT], {}, 0.5)).f1 == 2 * 1 / (1 + 1)


def test_the_chosen_threshold_has_the_best_f1() -> None:
    """ING-16: at 0.5 F1 is 1, at 0.3 it is 2 * 1 / (2 + 1)."""
    assert best_thresholds([TEXT], (0.3, 0.5), tolerance=0.0, least_gold=1) == {"person": 0.5}


def test_of_thresholds_about_as_good_the_highest_is_chosen() -> None:
    """ING-16: 0.5 and 0.8 find the same."""
    assert best_thresholds([TEXT], (0.5, 0.8), tolerance=0.01, least_gold=1) == {"person": 0.8}


def test_a_label_with_too_few_mentions_gets_no_threshold() -> None:
    """ING-16: one mention is no evidence."""
    assert best_thresholds([TEXT], (0.3, 0.5), tolerance=0.0, least_gold=2) == {}


def test_a_confidence_is_the_share_of_finds_at_least_so_sure_that_are_right() -> None:
    """ING-17: "kept from 0.7" keeps the finds of which seven in ten are right, whatever a label's scores are like."""
    found = ((0, 0, "person", 0.9), (1, 1, "person", 0.5), (2, 2, "person", 0.3))
    text = Judged(found, frozenset({(0, 0, "person"), (2, 2, "person")}), frozenset({"person"}))
    points = precision_points([text], (0.2, 0.4, 0.8, 0.95), least_predicted=1)
    assert points == {"person": ((0.2, round(2 / 3, 2)), (0.4, round(2 / 3, 2)), (0.8, 1.0))}
    scores = LabelScores(confidences=points)
    assert scores.confidence_of("person", 0.6) == pytest.approx((points["person"][1][1] + 1.0) / 2)
    assert (scores.confidence_of("person", 0.1), scores.confidence_of("person", 0.9)) == (0.67, 1.0)
    assert scores.confidence_of("date", 0.4) == 0.4


def test_scores_lie_beside_the_checkpoint_that_they_were_measured_with(tmp_path: Path) -> None:
    """ING-16: another model has its own, or none; what is damaged is named."""
    bundled = load_settings(environment={}).extraction
    assert set(scores_of(bundled).thresholds) == set(scores_of(bundled).confidences) < set(bundled.labels)
    other = bundled.model_copy(update={"model": str(tmp_path)})
    assert scores_of(other) == scores_of(bundled.model_copy(update={"model": "some/hub-name"})) == LabelScores()
    for damaged in ('{"confidences": {"person": [[0.5, 0.9], [0.4, 1.0]]}}', '{"threshold": {}}', "{"):
        (tmp_path / SCORES_FILE).write_text(damaged)
        with pytest.raises(ModelUnavailableError, match=r"scores\.json: expected thresholds and rising points"):
            scores_of(other)


def test_software_found_as_technology_counts_when_either_is_asked() -> None:
    """ING-16: the report says both how they are told apart and how they are found."""
    sentences = {"stackoverflow": [Sentence(("Use", "Redis"), ((1, 1, "software library"),), "stackoverflow")] * 3}

    def recognise(texts: Sequence[str], labels: Sequence[str]) -> list[list[Mention]]:
        return [[Mention(4, 9, "Redis", "technology", 0.8)] for _ in texts]

    report = measure(recognise, sentences, ["software", "technology"], default=0.5, unseen={"few_tk": []})
    assert report.labels["software"] == LabelCounts(hits=0, predicted=0, gold=3)
    assert report.either == LabelCounts(hits=3, predicted=3, gold=3)
    text = card(
        report, CardFacts(size=25_000_000, speed=20, threads=2, offered=9, training="Trained.", mentions="Some.")
    )
    assert "| software or technology | as above | 100.0 | 100.0 | 100.0 | 3 |" in text
    assert "25.0 MB" in text


def test_the_rate_rises_then_falls_to_the_floor() -> None:
    """ING-16."""
    assert rate(0.0) == FLOOR
    assert rate(WARM_UP) == 1.0
    assert rate(1.0) == pytest.approx(FLOOR)
    assert rate((1 + WARM_UP) / 2) == pytest.approx((1 + FLOOR) / 2)


def test_the_budget_that_ends_first_sets_the_pace() -> None:
    """ING-16: 40 of 100 words, but 45 of 60 seconds."""
    progress = TrainingProgress().after(40, loss=2.0, seconds=45)
    assert progress.done(SCHEDULE) == 0.75
    assert progress.loss == 2.0
    assert not math.isnan(progress.after(10, loss=1.0, seconds=46).loss)
