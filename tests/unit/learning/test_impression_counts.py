"""FBK-10: what is counted of results that were shown and clicked."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from weft.domain.documents import Domain
from weft.domain.events import ShownResult
from weft.learning.evidence import MICRO
from weft.learning.observe.impressions import ImpressionBuckets, ImpressionCounts
from weft.learning.priors import RANKS
from weft.settings import load_settings

PRIOR = load_settings(environment={}).priors.examination
SCORES = st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0.0, 1.0)


def answer(*scores: float | None) -> list[ShownResult]:
    return [
        ShownResult(content_hash=f"{rank:064x}", rank=rank, domain=Domain.CODE, score=score, signals={})
        for rank, score in enumerate(scores, start=1)
    ]


def masses(impression_counts: ImpressionCounts) -> dict[str, int]:
    """By bin; every key is named once."""
    found = [(key.bin, mass) for _, key, mass in impression_counts.counts()]
    assert len(found) == len(dict(found))
    return dict(found)


@given(st.lists(st.lists(SCORES, max_size=13).map(lambda scores: answer(*scores)), max_size=5))
def test_a_click_is_counted_where_its_result_was_shown(answers: list[list[ShownResult]]) -> None:
    """FBK-10: results are counted in columns and clicks one by one; if all are clicked, both come to the same."""
    impression_counts, page = ImpressionCounts(), ImpressionBuckets(3, "*", "*")
    for results in answers:
        impression_counts.show(0, page, results)
        for result in results:
            impression_counts.click(0, page, result, results)
    kinds: dict[str, Counter[str]] = {"shown": Counter(), "clicked": Counter(), "score": Counter(), "lead": Counter()}
    for name, mass in masses(impression_counts).items():
        where, _, kind = name.partition(".")
        kinds[kind][where] = mass
    counted = [
        result
        for results in answers
        for result in results[:RANKS]
        if result.score is not None and sum(each.score is not None for each in results) > 1
    ]
    assert kinds["shown"] == kinds["clicked"]
    assert kinds["shown"].total() == len(counted) * MICRO
    assert kinds["score"].total() == sum(round((each.score or 0.0) * MICRO) for each in counted)
    assert all(mass <= kinds["shown"][where] for where, mass in kinds["lead"].items())


def test_a_lead_is_over_the_best_of_the_others() -> None:
    """FBK-10: equals lead by nothing, whichever stands first; who has no score is nobody's rival."""
    impression_counts, page = ImpressionCounts(), ImpressionBuckets(0, "*", "*")
    impression_counts.show(0, page, answer(0.75, 0.75, None, 0.5))
    impression_counts.show(0, page, answer(1.0, 0.5))
    impression_counts.show(0, page, answer(0.5, None))
    leads = {name: mass for name, mass in masses(impression_counts).items() if name.endswith("lead")}
    assert leads == {
        "01/06/8/04/8.lead": 500_000,
        "02/06/8/04/8.lead": 500_000,
        "04/04/8/02/8.lead": 375_000,
        "01/07/8/06/8.lead": 750_000,
        "02/04/8/01/8.lead": 250_000,
    }
