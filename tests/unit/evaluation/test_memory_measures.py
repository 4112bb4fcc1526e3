"""EVA-2: measures of a memory, each as its formula."""

from __future__ import annotations

import math

import pytest

from tests.support.logged_queries import a_logged, a_result
from weft.evaluation.log.questions import answered_queries
from weft.evaluation.measures.memory import AnsweredQuery, ItemFacts, channel_contributions, memory_measures
from weft.settings import load_settings

BASE = load_settings(environment={})
DECLARED = BASE.priors.declared
SETTINGS = BASE.evaluation.model_copy(
    update={"memory": BASE.evaluation.memory.model_copy(update={"intent_weights": {"debug": 3.0}})}
)
NOW, HOUR = 1_000_000.0, 3600.0
ITEMS = {
    "law": ItemFacts(tier="constitutional", modified_at=NOW - 1000 * HOUR),
    "fresh": ItemFacts(tier="high", modified_at=NOW - 47 * HOUR),
    "stale": ItemFacts(modified_at=NOW - 49 * HOUR),
}


def asked(number: int, ranked: list[str], grades: dict[str, int], **facts: object) -> AnsweredQuery:
    known = {"at": NOW, "intent": "*", "channels_by_name": {}, **facts}
    return AnsweredQuery(query_id=f"q{number}", ranked=ranked, grades=grades, **known)


def test_what_is_constitutional_has_to_stand_among_the_first_three() -> None:
    """EVA-2: of three queries for which something constitutional is right, one shows it at 3, one at 4, one never."""
    others = ["a", "b", "c"]
    found = memory_measures(
        [
            asked(1, ["a", "b", "law"], {"law": 1}),
            asked(2, [*others, "law"], {"law": 1}),
            asked(3, others, {"law": 2}),
            asked(4, ["law"], {"a": 1}),  # it is not what was asked for
        ],
        ITEMS,
        SETTINGS,
        DECLARED,
    )
    assert found.constitutional_surfacing is not None
    assert found.constitutional_surfacing.mean == pytest.approx(1 / 3)
    assert found.queries["constitutional_surfacing"] == 3


def test_recall_counts_everything_by_its_importance() -> None:
    """EVA-2, RET-13: found .8 of .8 + .5; a tier is worth what it is worth in searches."""
    assert (DECLARED.tiers["high"], DECLARED.undeclared) == (0.8, 0.5)
    found = memory_measures([asked(1, ["fresh"], {"fresh": 1, "stale": 3, "a": 0})], ITEMS, SETTINGS, DECLARED)
    assert found.importance_weighted_recall is not None
    assert found.importance_weighted_recall.mean == pytest.approx(0.8 / (0.8 + 0.5))


def test_what_is_under_48_hours_old_is_new() -> None:
    """EVA-2: at 47 hours it is, at 49 it is not, and neither is what did not exist when it was asked for."""
    queries = [asked(1, ["fresh", "stale"], {"fresh": 1, "stale": 1}), asked(2, ["stale"], {"fresh": 1})]
    found = memory_measures(queries, ITEMS, SETTINGS, DECLARED)
    assert found.cold_start_recall is not None
    assert found.cold_start_share is not None
    assert found.cold_start_recall.mean == pytest.approx(1 / 2)
    assert found.cold_start_share.mean == pytest.approx((1 / 2 + 0) / 2)
    before = memory_measures([asked(1, ["fresh"], {"fresh": 1}, at=NOW - 100 * HOUR)], ITEMS, SETTINGS, DECLARED)
    assert before.cold_start_recall is None


def test_queries_count_by_the_weight_of_their_intent() -> None:
    """EVA-2: nDCG 1 counted three times, nDCG of a second rank once."""
    queries = [asked(1, ["right"], {"right": 1}, intent="debug"), asked(2, ["x", "right"], {"right": 1})]
    found = memory_measures(queries, {}, SETTINGS, DECLARED)
    assert found.intent_weighted_ndcg is not None
    assert found.intent_weighted_ndcg.mean == pytest.approx((3 * 1 + 1 / math.log2(3)) / 4)


def test_queries_count_by_the_confidence_in_their_intent_too() -> None:
    """EVA-2: nDCG 1 counted by 3 · .5, nDCG of a second rank by .25; of whose intent nothing is known says nothing."""
    queries = [
        asked(1, ["right"], {"right": 1}, intent="debug", confidence=0.5),
        asked(2, ["x", "right"], {"right": 1}, confidence=0.25),
        asked(3, ["x"], {"right": 1}, confidence=0.0),
    ]
    found = memory_measures(queries, {}, SETTINGS, DECLARED)
    assert found.intent_weighted_ndcg is not None
    assert found.intent_weighted_ndcg.mean == pytest.approx((1.5 + 0.25 / math.log2(3)) / 1.75)
    assert found.queries["intent_weighted_ndcg"] == 2
    assert memory_measures(queries[2:], {}, SETTINGS, DECLARED).intent_weighted_ndcg is None


def test_the_confidence_is_the_logged_one_unless_the_intent_was_stated() -> None:
    """EVA-2: what was read from the text is as sure as its cues; what the caller said is sure."""
    logged = [
        a_logged(1, [a_result("a")], intent="debug", kind="debug", confidence=0.75),
        a_logged(2, [a_result("a")], kind="specific", confidence=0.0),
        a_logged(3, [a_result("a")], intent="mine", kind="specific", confidence=0.0),
    ]
    assert [one.confidence for one in answered_queries(logged, {})] == [0.75, 0.0, 1.0]


def test_who_only_ranks_what_others_found_finds_nothing() -> None:
    """EVA-2: a result of words and of degree was found by words alone."""
    channels_by_name = {"a": ["degree", "lexical"], "b": ["degree", "dense", "lexical"]}
    worth = channel_contributions([asked(1, ["a", "b"], {"a": 1}, channels_by_name=channels_by_name)])
    assert set(worth) == {"dense", "lexical"}
    assert (worth["lexical"].exclusive, worth["lexical"].exclusive_relevant) == (0.5, 1.0)


def test_channels_are_worth_what_they_find_and_what_only_they_find() -> None:
    """EVA-2: of four results two are lexical, one of them by words alone; one result is relevant."""
    channels_by_name = {"a": ["dense"], "b": ["dense", "lexical"], "c": ["lexical"], "d": ["dense"]}
    queries = [asked(1, ["a", "b", "c", "d"], {"c": 1}, channels_by_name=channels_by_name)]
    worth = channel_contributions(queries, depth=10)
    assert (worth["lexical"].shown, worth["lexical"].exclusive) == (0.5, 0.25)
    assert (worth["lexical"].relevant, worth["lexical"].exclusive_relevant) == (1.0, 1.0)
    assert (worth["dense"].shown, worth["dense"].exclusive, worth["dense"].relevant) == (0.75, 0.5, 0.0)
    assert channel_contributions(queries, depth=1)["dense"].exclusive == 1.0


def test_where_nothing_is_known_nothing_is_claimed() -> None:
    """EVA-2: no judgement, no importance, no query at all."""
    found = memory_measures([asked(1, ["a"], {})], {}, SETTINGS, DECLARED)
    assert (found.constitutional_surfacing, found.importance_weighted_recall, found.cold_start_recall) == (None,) * 3
    assert found.as_json()["measures"]["intent_weighted_ndcg"] is None
    assert memory_measures([], {}, SETTINGS, DECLARED).channels == {}
