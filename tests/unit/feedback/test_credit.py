"""FBK-1: which results a piece of feedback speaks about, and how loudly."""

import pytest

from tests.support.feedback_events import (
    HASHES,
    explicit,
    impression,
    inclusion,
    reference,
    retrieval,
    rules,
    selection,
    shown,
    success,
)
from weft.domain.errors import InvalidEventError
from weft.domain.events import Attribution, Feedback, Selection
from weft.feedback.fold.credit import credits_of, note_credits, under
from weft.learning.observe.outcomes import ASKED_FOR, VOLUNTEERED
from weft.learning.observe.tallies import Tally

RULES = rules(
    credit__explicit=2.0,
    credit__selected=0.5,
    credit__skipped=0.25,
    credit__retrieved=0.125,
    credit__included=0.25,
    credit__referenced=0.75,
    credit__success=1.5,
)


def credited(feedback: Feedback, *, chosen: tuple[int, ...] = (), **changes: object) -> list[tuple]:
    answer = impression(**changes)  # type: ignore[arg-type]
    found = credits_of(feedback, answer, chosen=chosen, rules=RULES)
    return [(credit.result.rank, credit.good, credit.weight) for credit in found]


def test_a_verdict_on_one_result_is_about_that_result() -> None:
    """FBK-1: weight = |signal| · explicit."""
    assert credited(explicit(-0.5, 3)) == [(3, False, 0.5 * 2.0)]


def test_a_verdict_on_the_answer_is_shared_by_what_was_included() -> None:
    """FBK-1: weight = |signal| · explicit / included."""
    results = [shown(1), shown(2, included=False), shown(3)]
    assert credited(explicit(1.0, None), results=results) == [(1, True, 2.0 / 2), (3, True, 2.0 / 2)]


@pytest.mark.parametrize(("method", "confidence"), [("counterfactual", 0.9), ("attention", 0.7), ("semantic", 0.5)])
def test_an_attributed_verdict_is_shared_as_its_attribution_says(method: str, confidence: float) -> None:
    """FBK-9, LRN-4: weight = |signal| · explicit · confidence of the method · share; none for what has no share."""
    shares = {HASHES[1]: 0.25, HASHES[3]: 1.0, HASHES[4]: 1.0, HASHES[9]: 1.0}  # 4 was left out, 9 not even shown
    results = [shown(1), shown(2), shown(3), shown(4, included=False)]
    verdict = explicit(-0.5, None, attribution=Attribution(method=method, shares=shares))
    expected = [(rank, False, 0.5 * 2.0 * confidence * share) for rank, share in ((1, 0.25), (3, 1.0))]
    assert credited(verdict, results=results) == expected


def test_indifference_says_nothing() -> None:
    """FBK-1."""
    assert credited(explicit(0.0)) == []


def test_a_selection_speaks_against_what_was_passed_over() -> None:
    """FBK-1: skip-above (Joachims et al., 2005); what stands below was perhaps not looked at."""
    assert credited(selection(3)) == [(3, True, 0.5), (1, False, 0.25), (2, False, 0.25)]


def test_implicit_feedback_is_weighed_by_how_often_its_rank_is_looked_at() -> None:
    """FBK-10: 1 / P(looked at), at most 2.5; a verdict is not: who votes has looked."""
    results = [shown(rank, examination=looked) for rank, looked in ((1, 1.0), (2, 0.8), (3, 0.5), (4, 0.1), (5, 0.0))]
    assert RULES.credit.inverse_clip == 2.5
    assert credited(selection(3), results=results) == [(3, True, 0.5 * 2), (1, False, 0.25), (2, False, 0.25 / 0.8)]
    assert credited(selection(5), chosen=(3,), results=results) == [(5, True, 0.5 * 2.5), (4, False, 0.25 * 2.5)]
    assert credited(explicit(1.0, 4), results=results) == [(4, True, 2.0)]


def test_what_was_chosen_before_was_not_passed_over() -> None:
    """FBK-1: after 2, choosing 4 passes over 3 alone: 1 has been counted, 2 was chosen."""
    assert credited(selection(4), chosen=(2,)) == [(4, True, 0.5), (3, False, 0.25)]
    assert credited(selection(1), chosen=(2,)) == [(1, True, 0.5)]


def test_choosing_twice_says_no_more_than_choosing_once() -> None:
    """FBK-1."""
    assert credited(selection(2), chosen=(2,)) == []


def test_the_impression_knows_the_rank_not_the_event() -> None:
    """FBK-1: a producer cannot make others look passed over by claiming a low rank."""
    claimed = Selection(**{**{f: getattr(selection(1), f) for f in Selection.__struct_fields__}, "rank": 4})
    assert credited(claimed) == [(1, True, 0.5)]


def test_what_was_found_and_left_out_is_weakly_bad() -> None:
    """FBK-1, FBK-12: being retrieved is never evidence that an item is good."""
    assert credited(retrieval(2, 4)) == [(2, False, 0.125), (4, False, 0.125)]


def test_what_was_put_into_the_context_is_weakly_good() -> None:
    """FBK-1: each result that is named, once."""
    assert credited(inclusion(1, 3, 1)) == [(1, True, 0.25), (3, True, 0.25)]


def test_what_the_answer_used_is_good_as_far_as_the_match_is_sure() -> None:
    """FBK-1: weight = match · referenced."""
    assert credited(reference(1, 2, match=0.5)) == [(1, True, 0.5 * 0.75), (2, True, 0.5 * 0.75)]


def test_a_reference_that_names_nothing_is_shared_by_what_was_included() -> None:
    """FBK-1, FBK-9: equally without an attribution, else weight = match · referenced · confidence · share."""
    results = [shown(1), shown(2, included=False), shown(3)]
    assert credited(reference(response="so"), results=results) == [(1, True, 0.75 / 2), (3, True, 0.75 / 2)]
    rests_on = Attribution(method="semantic", shares={HASHES[3]: 0.5})
    confidence = RULES.attribution.confidence["semantic"]
    assert credited(reference(attribution=rests_on, match=0.5), results=results) == [
        (3, True, 0.5 * confidence * 0.5 * 0.75)
    ]


def test_success_is_shared_by_what_was_included() -> None:
    """FBK-1: weight = success / included, or as its attribution says."""
    results = [shown(1), shown(2, included=False), shown(3)]
    assert credited(success(), results=results) == [(1, True, 1.5 / 2), (3, True, 1.5 / 2)]
    rests_on = Attribution(method="attention", shares={HASHES[1]: 0.25, HASHES[2]: 1.0})
    weight = 1.5 * RULES.attribution.confidence["attention"] * 0.25
    assert credited(success(attribution=rests_on), results=results) == [(1, True, weight)]


def test_uses_are_counted_beside_outcomes() -> None:
    """FBK-6: one retrieval, one inclusion, and as much of a reference as its match is sure."""
    answer, tally = impression(), Tally()
    for feedback in (retrieval(1), inclusion(1), reference(1, match=0.5), selection(1)):
        credited = credits_of(feedback, answer, chosen=(), rules=RULES)
        note_credits(tally, credited, under(answer, slope=18.0), answer.results, day=3, surplus=False)
    assert {key.bin: mass for key, mass in tally.freeze().usage.items()} == {
        "negative": 125_000,  # retrieved
        "positive": 250_000 + 375_000 + 500_000,  # included, half a reference, selected
        "retrieval": 1_000_000,
        "inclusion": 1_000_000,
        "reference": 500_000,
    }


@pytest.mark.parametrize(
    "feedback",
    [explicit(1.0, 9), selection(9), inclusion(9), reference(9)],
    ids=lambda f: type(f).__name__,
)
def test_feedback_about_what_was_not_shown_is_refused(feedback: Feedback) -> None:
    """FBK-3."""
    with pytest.raises(InvalidEventError, match="unknown_result"):
        credited(feedback)


def test_an_answer_to_a_request_says_so() -> None:
    """RET-15, FBK-1: a verdict like any other, of which it is known that somebody asked for it."""
    answer = impression(results=[shown(1, asked=0.02), shown(2)])
    for asked in (False, True):
        (credit,) = credits_of(explicit(1.0, 1, asked=asked), answer, chosen=(), rules=RULES)
        assert (credit.weight, credit.judged) == (2.0, ASKED_FOR if asked else VOLUNTEERED)
    assert all(not each.judged for each in credits_of(explicit(1.0, None, asked=True), answer, chosen=(), rules=RULES))
