"""RET-15: probabilities and evidence gaps in answers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from tests.support.printed import print_answer
from tests.support.retrieval_fakes import MemoryGeneration, MemorySource, a_query, a_searcher, having_said, settings
from tests.support.words_spoken import by_many
from weft.domain.ids import QueryId
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import Answer, Channel
from weft.domain.reasons import PastVerdicts
from weft.embedding.late_interaction import max_similarities, quantised
from weft.feedback.events.producer import impression_of
from weft.learning.calibration.matching import Answering, MatchCalibration, MatchCurve
from weft.learning.calibration.scores import Isotonic, ScoreCalibration
from weft.retrieval.answers import is_praised, with_verdict_request
from weft.retrieval.searcher import Searcher
from weft.retrieval.settings import FusionMode

FRUIT = MemoryGeneration({"a": ["red apple"], "b": ["red pear"], "c": ["green apple pie"], "d": ["plum"]})
CURVE = MatchCurve(6.0, 3.0, -4.0)
ALONE = MatchCalibration(CURVE, MatchCurve(7.0, 0.0, -4.0), None, Answering(0.45, None, 0.05, 100))
KNOWN = ScoreCalibration(Isotonic((0.0, 1.0), (0.0, 1.0)), ALONE)


def asked(text: str, calibration: ScoreCalibration | None = KNOWN, **changes: object) -> Answer:
    tuned = settings(**changes)
    with Searcher(MemorySource(FRUIT, calibration=calibration), FRUIT.encoder, tuned, clock=lambda: 0.0) as searcher:
        return searcher.search(a_query(text))


@pytest.mark.parametrize("mode", list(FusionMode))
def test_a_result_is_as_likely_in_every_mode_of_fusion(mode: FusionMode) -> None:
    """RET-15: what ranks the results does not change what their probability means."""
    expected = {one.content_hash: one.probability for one in asked("red apple").results}
    found = {one.content_hash: one.probability for one in asked("red apple", fusion=mode.value).results}
    assert found == expected
    assert all(0.0 < (chance or 0.0) < 1.0 for chance in found.values())


def test_with_one_channel_the_curve_of_that_channel_tells() -> None:
    """RET-15: and where it cannot, the answer says why instead of a number."""
    dense = asked("red apple", channels=["dense"])
    best = dense.results[0]
    assert best.match is not None
    assert (best.match.lexical, best.probability) == (None, ALONE.probability(best.match))
    lexical = asked("red apple", channels=["lexical"])
    assert [one.probability for one in lexical.results] == [None] * len(lexical.results)
    assert "do not separate" in lexical.uncalibrated
    assert lexical.gap is None
    assert "no calibration" in asked("red apple", None).uncalibrated


def test_a_curve_of_scores_gives_no_probability() -> None:
    """RET-15: it depends on the weights; where matches were not learned from, there is none and the answer says so."""
    answer = asked("red apple", ScoreCalibration(KNOWN.curve))
    assert [one.probability for one in answer.results] == [None] * len(answer.results)
    assert "no calibration" in answer.uncalibrated
    assert answer.gap is None


@pytest.mark.parametrize(
    ("past", "doubtful"),
    [
        (None, True),
        (PastVerdicts(right=3), False),
        (PastVerdicts(near_right=1), False),
        (PastVerdicts(right=1, wrong=1), True),
        (PastVerdicts(right=2, wrong=1, own=False), True),
    ],
)
def test_what_people_called_right_is_not_doubtful(past: PastVerdicts | None, *, doubtful: bool) -> None:
    """RET-15, LRN-18: it stood first as right for three people, and was marked doubtful."""
    assert doubtful is not is_praised(past)


def test_a_result_of_no_match_loses_its_mark_by_what_people_said() -> None:
    """RET-15, LRN-18: through a whole search."""
    content = asked("violin concerto").results[-1].content_hash
    source = MemorySource(FRUIT, calibration=KNOWN)
    with Searcher(source, FRUIT.encoder, settings(), clock=lambda: 0.0) as searcher:
        told = having_said(searcher, by_many(("ada", "bob", "cleo"), content, "violin concerto"))
        results = told.search(a_query("violin concerto")).results
    assert {one.content_hash for one in results if not one.doubtful} == {content}


def test_an_answer_says_when_nothing_found_answers(capsys: pytest.CaptureFixture[str]) -> None:
    """RET-15: results that match no better than the threshold are marked; when all are, there is a gap."""
    answered, lost = asked("red apple"), asked("violin concerto")
    assert answered.gap is None
    assert not answered.results[0].doubtful
    assert any(one.doubtful for one in answered.results)
    assert lost.gap is not None
    assert lost.gap.match <= lost.gap.threshold == 0.45
    assert all(one.doubtful for one in lost.results)
    assert lost.to_dict()["gap"] == {
        "match": lost.gap.match,
        "threshold": 0.45,
        "bound": 0.05,
        "missing": [],
    }
    print_answer(lost)
    assert "evidence gap" in capsys.readouterr().out


def test_an_answer_is_the_same_to_the_last_bit_within_the_hour() -> None:
    """ARC-9: ages count in whole steps of time."""
    dated = MemoryGeneration({"a": ["red apple"], "b": ["red pear"]}, {"a": {"modified_at": 1.0}})
    soon, later, next_hour = (
        a_searcher(dated, clock=3600.0 * 1000 + seconds).search(a_query("red apple")).results
        for seconds in (1, 3599, 3601)
    )
    assert soon == later
    assert soon != next_hour


def test_a_doubtful_result_takes_no_place_for_the_sake_of_its_channel() -> None:
    """RET-12, RET-15: it must pass the quality threshold, as far as that is known."""
    texts = {"a": ["red apple"], "b": ["red apple pie"], "c": ["red stone wall house roof door"]}
    generation = MemoryGeneration(texts, {"c": {"triggers": ("red",)}})

    def found(calibration: ScoreCalibration | None) -> list[list[str]]:
        """Of three queries that are asked together, the results of each."""
        answers = a_searcher(generation, calibration=calibration).search_many([a_query("red apple", k=2)] * 3)
        return [[result.uris[0] for result in answer.results] for answer in answers]

    assert all("c" in results for results in found(None))
    assert found(KNOWN) == [["a", "b"]] * 3


@pytest.mark.parametrize("fusion", FusionMode)
def test_each_channel_with_weight_has_a_word_in_every_fusion(fusion: FusionMode) -> None:
    """RET-9, RET-12: learned or not; a channel without weight has none, and nobody has where that is switched off."""
    texts = {f"a{number}": [f"red apple pie {number}"] for number in range(6)} | {"c": ["red stone"]}
    generation = MemoryGeneration(texts, {"c": {"triggers": ("red",)}})
    usual = settings()

    def found(*, weight: float, calibration: ScoreCalibration | None = None, represent: bool = True) -> list[str]:
        searcher = a_searcher(
            generation,
            calibration=calibration,
            fusion=fusion,
            depth=5,
            channel_weights={**usual.channel_weights, Channel.TRIGGERS: weight},
            diversity={**usual.diversity.model_dump(), "represent": represent},
        )
        (answer,) = searcher.search_many([a_query("red apple pie", k=3)])
        assert answer.results == tuple(sorted(answer.results, key=lambda one: (-one.score, one.content_hash)))
        assert all(one.score == math.fsum(part.amount for part in one.contributions) for one in answer.results)
        return [one.uris[0] for one in answer.results]

    plain = found(weight=0.1, represent=False)
    assert "c" not in plain
    assert found(weight=0.1) == [*plain[:2], "c"]
    assert found(weight=0.1, calibration=KNOWN) == plain
    assert found(weight=0.0) == (plain if fusion is not FusionMode.LEARNED else [*plain[:2], "c"])


def test_without_probes_no_gap_is_claimed() -> None:
    """RET-15: a threshold that nothing bounds is none."""
    unbounded = ScoreCalibration(KNOWN.curve, replace(ALONE, answering=None))
    lost = asked("violin concerto", unbounded)
    assert lost.gap is None
    assert not any(one.doubtful for one in lost.results)
    assert a_searcher(FRUIT).search(a_query("violin concerto")).gap is None


def test_a_verdict_is_asked_for_on_any_result_alike() -> None:
    """RET-15, ARC-9: on one of a page at most, with the stated probability; the same query asks the same again."""
    results = asked("red apple", ask=0.0).results
    pages = [with_verdict_request(results, QueryId(f"q{number}"), 0.1) for number in range(3000)]
    asked_at = [[at for at, one in enumerate(page) if one.asked] for page in pages]
    assert max(map(len, asked_at)) == 1
    for at in range(len(results)):
        assert sum(at in some for some in asked_at) / 3000 == pytest.approx(0.1, abs=0.03)
    assert {one.asked for page in pages for one in page} == {0.0, 0.1}
    assert with_verdict_request(results, QueryId("q1\udc80"), 0.1) == with_verdict_request(
        results, QueryId("q1\udc80"), 0.1
    )
    assert with_verdict_request(results, QueryId("q"), 0.0) == results
    crowded = [one.asked for one in with_verdict_request(results, QueryId("q"), 1.0)]
    assert sorted(crowded)[-2:] == [0.0, 1.0 / len(results)]
    assert with_verdict_request((), QueryId("q"), 0.1) == ()


def test_an_answer_says_what_is_asked() -> None:
    """RET-15, ARC-8: to clients, and to the updaters with the impression; switched off, nothing is."""
    answer = asked("red apple", ask=1.0)
    told = [one["asked"] for one in answer.to_dict()["results"]]
    assert sorted(told)[-2:] == [0.0, 1.0 / len(told)]
    stamp = {"event_id": "e", "ts": 0, "session_id": "s", "principal": "p"}
    assert [one.asked for one in impression_of(answer, **stamp).results] == told
    assert {one.asked for one in asked("red apple", ask=0.0).results} == {0.0}


def test_a_match_is_nearer_where_the_tokens_of_the_query_are_met() -> None:
    """RET-15, ARC-8: mean of the cosine and of what the tokens come to, where these are kept and compared."""
    query, *texts = FRUIT.encoder.encode_tokens(["red apple", *(item.text for item in FRUIT.held)], np.asarray)[1]
    counts = np.array([len(tokens) for tokens in texts])
    scores = max_similarities(query, np.concatenate([*map(quantised, texts)]), counts)
    met = dict(zip([item.text for item in FRUIT.held], scores, strict=True))
    for one in asked("red apple").results:
        assert one.match is not None
        assert one.match.late_interaction == pytest.approx(
            ((one.match.dense or 0.0) + max(0.0, met[one.text])) / 2.0, abs=1e-6
        )
    without = settings().rerank.model_dump() | {"late_interaction": False}
    assert {one.match and one.match.late_interaction for one in asked("red apple", rerank=without).results} == {None}


def test_nearness_decides_where_tokens_are_compared() -> None:
    """RET-15: and the cosine where they are not, each against its own threshold."""
    answering = Answering(0.45, None, 0.05, 100, near=0.6)
    assert answering.compared(MatchFeatures(dense=0.5, late_interaction=0.55)) == (0.55, 0.6)
    assert answering.compared(MatchFeatures(dense=0.5)) == (0.5, 0.45)
    assert replace(answering, near=None).compared(MatchFeatures(dense=0.5, late_interaction=0.55)) == (0.5, 0.45)


def test_nobody_is_asked_where_the_same_was_asked_before() -> None:
    """RET-15: precedents brought the right results there, so that how well they match says less."""
    results = asked("red apple", ask=0.0).results
    known = [structs.replace(one, precedent=0.5) for one in results]
    assert any(one.asked for one in with_verdict_request(results, QueryId("q"), 1.0))
    assert not any(one.asked for one in with_verdict_request(known, QueryId("q"), 1.0))
