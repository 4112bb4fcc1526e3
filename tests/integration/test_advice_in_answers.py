"""RET-15, LRN-7, LRN-8: what reviews and judged turns taught marks results and advises in answers of a real store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.parts import a_document
from tests.support.printed import print_answer
from tests.support.small_store import DirectionEncoder, published_store
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.domain.documents import Domain
from weft.domain.events import ModelQuality, Report, Review
from weft.domain.ranking import Answer, Query
from weft.feedback.fold.updates import report_evidence
from weft.learning.evidence import Evidence, day_of
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
NOW = 1.7e9
TEXTS = {
    "first": "the valve opens slowly when the pump starts",
    "second": "a valve of brass",
    "third": "pumps and pipes are painted",
}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    plain = [a_document(name, text) for name, text in TEXTS.items()]
    return published_store(
        tmp_path / "store", [(replace(document, domain=Domain.CODE), chunks) for document, chunks in plain]
    )


def taught(catalog: Catalog, *reports: Report) -> None:
    """What was reported is believed from now on."""
    evidence = sum((report_evidence(each, day=day_of(NOW)) for each in reports), Evidence())
    catalog.make_live(
        catalog.learned.publish(LearnedState(parent=None, evidence=evidence, cut=Evidence()), expected_newest=None)
    )


def asked(catalog: Catalog, **query: object) -> Answer:
    source = CatalogSource(catalog, SETTINGS.priors, clock=lambda: NOW)
    with Searcher(source, DirectionEncoder(), SETTINGS.retrieval, clock=lambda: NOW) as searcher:
        return searcher.search(Query(text="when the valve opens slowly", query_id="q", **query))  # type: ignore[arg-type]


def a_review(confidence: float, *, good: bool, domain: Domain = Domain.CODE) -> Review:
    stated = {"event_id": "e", "ts": 0, "session_id": "s", "principal": "ada"}
    return Review(**stated, domain=domain, confidence=confidence, good=good)


def reviews(bad_below: float, domain: Domain = Domain.CODE) -> list[Report]:
    """Decisions that turned out well from a confidence on, and badly below."""
    confidences = [(place + 0.5) / 20 for place in range(20)]
    return [a_review(each, good=each >= bad_below, domain=domain) for each in confidences for _ in range(20)]


def test_a_result_below_what_reviews_ask_for_is_doubtful(catalog: Catalog) -> None:
    """RET-15, LRN-7: by its own confidence and its domain's threshold; the others stand as they stood."""
    before = asked(catalog)
    assert [result.doubtful for result in before.results] == [False] * 3
    confidences = sorted(result.confidence for result in before.results)
    between = (confidences[1] + confidences[2]) / 2
    taught(catalog, *reviews(bad_below=between))
    after = asked(catalog)
    assert after.gap is None
    assert [result.uris for result in after.results] == [result.uris for result in before.results]
    assert [result.doubtful for result in after.results] == [False, True, True]


def test_where_no_result_passes_the_answer_says_so(catalog: Catalog) -> None:
    """RET-15: a gap in the evidence, with the confidence that reviews ask for, in words and in JSON."""
    taught(catalog, *reviews(bad_below=0.98))
    answer = asked(catalog)
    assert answer.gap is not None
    assert answer.gap.match == max(result.confidence for result in answer.results) < answer.gap.threshold
    assert answer.gap.bound is None
    assert json.loads(json.dumps(answer.to_dict()))["gap"]["threshold"] == answer.gap.threshold


def tired(model: str) -> list[Report]:
    """A model that was good for twenty turns, and is not any more."""
    stated = {"event_id": "e", "ts": 0, "session_id": "s", "principal": "ada", "model": model}
    return [
        ModelQuality(**stated, turn=turn, quality=0.9 if turn < 20 else 0.2) for turn in range(1, 41) for _ in range(5)
    ]


def test_an_answer_says_when_to_hand_over(catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-8: to who names model and turn, where that model was judged; with an interval, in words and in JSON."""
    taught(catalog, *tired("small"))
    early, late = (asked(catalog, model="small", turn=turn).hand_off for turn in (3, 30))
    assert early is not None
    assert late is not None
    assert early.at == late.at
    assert early.at is not None
    assert early.earliest is not None
    assert early.latest is not None
    assert 15 <= early.earliest <= early.at <= early.latest <= 25
    assert (early.due, late.due) == (False, True)
    assert early.low <= early.quality <= early.high
    assert early.quality > 0.8
    assert late.quality < 0.4
    assert asked(catalog, model="other", turn=3).hand_off is None
    assert asked(catalog, model="small").hand_off is None
    answer = asked(catalog, model="small", turn=30)
    assert answer.to_dict()["hand_off"]["due"] is True
    print_answer(answer)
    assert "hand over to another model" in " ".join(capsys.readouterr().out.split())


def test_a_turn_is_counted_from_one() -> None:
    """LRN-8: anything else is refused where the query is made."""
    for turn in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match=r"Query\.turn"):
            Query(text="x", turn=turn)  # type: ignore[arg-type]
