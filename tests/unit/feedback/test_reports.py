"""FBK-1: what is reported outright is evidence at once, without any impression."""

from __future__ import annotations

from tests.support.feedback_events import accuracy, model_quality, review, trust
from weft.domain.events import Report
from weft.feedback.fold.updates import report_evidence

ONE = 1_000_000


def reported(event: Report) -> dict[tuple[str, str], int]:
    found = report_evidence(event, day=3)
    assert not found.usage
    assert {key.day for key in found.counts} == {3}
    return {(key.parameter, key.bin): mass for key, mass in found.counts.items()}


def scope_of(event: Report) -> tuple[str, str, str]:
    (scope,) = {(key.domain, key.model, key.agent) for key in report_evidence(event, day=3).counts}
    return scope


def test_a_review_is_a_decision_of_its_confidence() -> None:
    """FBK-1, LRN-7: confidence .72 is in the bin from .70 to .75 of twenty."""
    assert reported(review(0.72, good=True)) == {("threshold", "14/20.good"): ONE}
    assert reported(review(1.0, good=False)) == {("threshold", "19/20.bad"): ONE}


def test_accuracy_is_a_document_of_its_age() -> None:
    """FBK-1, LRN-6: 48 hours are 5.58 doublings of an hour, the 22nd quarter of one."""
    assert reported(accuracy(48.0, accurate=False)) == {("decay", "22/4.inaccurate"): ONE}
    assert reported(accuracy(0.0, accurate=True)) == {("decay", "0/4.accurate"): ONE}


def test_quality_is_its_count_sum_and_square_at_its_turn() -> None:
    """FBK-1, LRN-8."""
    assert reported(model_quality(7, 0.5)) == {
        ("quality", "7/64.n"): ONE,
        ("quality", "7/64.sum"): ONE // 2,
        ("quality", "7/64.squares"): ONE // 4,
    }


def test_a_verification_is_for_or_against_its_type_of_source() -> None:
    """FBK-1, LRN-10."""
    assert reported(trust("blog", verified=True)) == {("trust.blog", "verified"): ONE}
    assert reported(trust("blog", verified=False)) == {("trust.blog", "refuted"): ONE}


def test_evidence_goes_to_the_scope_that_the_event_names() -> None:
    """LRN-1: domain, model and agent of the event."""
    assert scope_of(review(0.5, good=True, model="small", agent="coder")) == ("code", "small", "coder")
    assert scope_of(model_quality(1, 1.0)) == ("general", "small", "*")
