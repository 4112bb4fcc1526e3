"""LRN-6, RET-13: how fresh contents are and how new, in searches of a small real store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.parts import ENCODER, a_document, write_part
from tests.support.small_store import DirectionEncoder, published_store
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.domain.documents import COMMITTED_AT, Domain
from weft.domain.ids import content_hash
from weft.domain.ranking import Query, Signal
from weft.feedback.fold.names import principal_fingerprint
from weft.indexes.builder import GenerationBuilder
from weft.learning.evidence import Evidence, day_of
from weft.learning.observe.accuracy import accuracy_use
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
NOW = 1.7e9 - 1.7e9 % 3600.0  # ages are counted in whole hours
DAY = 86_400.0


def text_of(name: str) -> str:
    return f"the valve of {name} opens slowly"


def published(root: Path, facts: Mapping[str, Mapping[str, Any]]) -> Catalog:
    """A store of documents that differ in a name and in what is known of them."""
    plain = {name: a_document(name, text_of(name)) for name in facts}
    return published_store(
        root, [(replace(document, **facts[name]), chunks) for name, (document, chunks) in plain.items()]
    )


def signals(catalog: Catalog, signal: Signal, **query: Any) -> dict[str, float]:
    """The signal of every document, in the order of the answer."""
    source = CatalogSource(catalog, SETTINGS.priors, clock=lambda: NOW)
    with Searcher(source, DirectionEncoder(), SETTINGS.retrieval, clock=lambda: NOW) as searcher:
        answer = searcher.search(Query(text="the valve opens slowly", query_id="q", k=20, **query))
    return {result.uris[0]: result.signals[signal] for result in answer.results if signal in result.signals}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def dated(domain: Domain, days: float | None, **more: Any) -> dict[str, Any]:
    return {"domain": domain, "modified_at": None if days is None else NOW - days * DAY, **more}


def test_what_has_no_date_is_as_fresh_as_the_middle_of_what_has_one(root: Path) -> None:
    """LRN-6: not .5, which is fresher than any code older than four days; of its own domain, or else of all."""
    code = {f"code {days}": dated(Domain.CODE, days) for days in (1, 30, 300)}
    others = {"notes": dated(Domain.GENERAL, None), "undated": dated(Domain.CODE, None)}
    fresh = signals(published(root, code | others), Signal.FRESHNESS)
    assert fresh["code 1"] > fresh["code 30"] > fresh["code 300"]
    assert fresh["undated"] == fresh["code 30"] < 0.1
    general = SETTINGS.priors.decay.domains[Domain.GENERAL]
    middle = (general.rate_hours / (general.rate_hours + 30 * 24)) ** general.shape
    assert fresh["notes"] == pytest.approx(middle)


def test_what_was_decided_and_what_failed_does_not_go_stale(root: Path) -> None:
    """LRN-6: of history alone, as its documents declare their intent."""
    facts = {
        "decision": dated(Domain.HISTORY, 900, intent="Decision"),
        "failure": dated(Domain.HISTORY, 900, intent="failure"),
        "chat": dated(Domain.HISTORY, 900, intent="smalltalk"),
        "plain": dated(Domain.HISTORY, 900),
        "code": dated(Domain.CODE, 900, intent="decision"),
    }
    fresh = signals(published(root, facts), Signal.FRESHNESS)
    assert fresh["decision"] == fresh["failure"] == 1.0
    assert max(fresh["chat"], fresh["plain"], fresh["code"]) < 0.01


def test_papers_age_gently_and_heavy_citation_overrides_age(root: Path) -> None:
    """LRN-6: a much cited paper of ten years is fresher than a new one that nobody cites; code is not helped by it."""
    facts = {
        "classic": dated(Domain.ACADEMIC, 3650, citations=5_000),
        "some": dated(Domain.ACADEMIC, 3650, citations=20),
        "forgotten": dated(Domain.ACADEMIC, 3650, citations=0),
        "recent": dated(Domain.ACADEMIC, 10),
        "code": dated(Domain.CODE, 10, citations=5_000),
    }
    fresh = signals(published(root, facts), Signal.FRESHNESS)
    assert fresh["classic"] > 0.95 > fresh["recent"] > 0.7 > fresh["some"] > fresh["forgotten"]
    assert fresh["code"] < fresh["recent"] - 0.3


def test_code_older_than_the_last_commit_that_touched_it_is_stale_at_once(root: Path) -> None:
    """LRN-6: however new it is, and until somebody validates it."""
    committed = {"metadata": {COMMITTED_AT: "2023-11-14T22:00:00+00:00"}}  # a quarter of an hour before now
    facts = {
        "overtaken": dated(Domain.CODE, 0.5, **committed),
        "current": dated(Domain.CODE, 0.5),
        "later": dated(Domain.CODE, 0.0, **committed),
        "prose": dated(Domain.GENERAL, 0.5, **committed),
    }
    catalog = published(root, facts)
    fresh = signals(catalog, Signal.FRESHNESS)
    assert fresh["overtaken"] == 0.0
    assert min(fresh["current"], fresh["later"], fresh["prose"]) > 0.8
    looked(catalog, "overtaken", days_ago=0, accurate=True)
    assert signals(catalog, Signal.FRESHNESS)["overtaken"] == 1.0


def looked(catalog: Catalog, name: str, *, days_ago: int, accurate: bool, principal: str = "ada") -> None:
    """Somebody looked at a document's content; all that was known before is known still."""
    day, who = day_of(NOW) - days_ago, principal_fingerprint(principal)
    seen = Evidence(usage=accuracy_use(day, content_hash(text_of(name)), who, accurate=accurate))
    newest = next(reversed(catalog.learned.versions()), None)
    before = Evidence() if newest is None else catalog.learned.read(newest).evidence
    state = LearnedState(parent=newest, evidence=before + seen, cut=Evidence())
    catalog.make_live(catalog.learned.publish(state, expected_newest=newest))


def test_what_was_validated_ages_from_then_and_what_was_refuted_is_stale(root: Path) -> None:
    """LRN-6: an `accuracy` event moves the content that it names, and no other."""
    facts = {name: dated(Domain.CODE, 300) for name in ("validated", "refuted", "untouched")}
    catalog = published(root, facts)
    before = signals(catalog, Signal.FRESHNESS)
    looked(catalog, "validated", days_ago=2, accurate=True)
    looked(catalog, "refuted", days_ago=2, accurate=False)
    after = signals(catalog, Signal.FRESHNESS)
    assert after["untouched"] == before["untouched"]
    assert after["refuted"] < before["refuted"]
    assert after["validated"] > 0.6 > before["validated"] + 0.5
    looked(catalog, "validated", days_ago=0, accurate=False)  # the same person changed their mind
    assert signals(catalog, Signal.FRESHNESS)["validated"] < after["validated"] / 1.8


def indexed_again(catalog: Catalog, *names: str, at: float, full: bool = False) -> Catalog:
    """The next generation, made at some time; all of its documents are read anew, or everything is."""
    live, staging = catalog.pointer().generation, catalog.stage()
    folder = None if live is None else catalog.folder_of(live)
    builder = GenerationBuilder(staging, SETTINGS.index)
    parts = [write_part(catalog.root / f"part {at}", [a_document(name, text_of(name)) for name in names])]
    merged = builder.merge(parts, base=None if full else folder, earlier=folder)
    builder.index(merged, {"created_at": at, "models": {"encoder": ENCODER}})
    catalog.publish(staging, expected_parent=live)
    return catalog


def test_novelty_counts_from_when_a_document_was_first_indexed(root: Path) -> None:
    """RET-13: whatever its file's date; carried from generation to generation, and silent where all are equally new."""
    half_life = SETTINGS.retrieval.quality.novelty_half_life_hours * 3600.0
    catalog = indexed_again(Catalog(root), "old", at=NOW - 3 * half_life)
    assert signals(catalog, Signal.NOVELTY) == {}
    indexed_again(catalog, "old", "new", at=NOW - half_life)
    assert signals(catalog, Signal.NOVELTY) == pytest.approx({"old": 1 / 8, "new": 1 / 2})
    indexed_again(catalog, "old", "new", "newest", at=NOW, full=True)
    assert signals(catalog, Signal.NOVELTY) == pytest.approx({"old": 1 / 8, "new": 1 / 2, "newest": 1.0})


def test_what_was_declared_acts_at_the_priors_and_what_was_not_costs_nothing(root: Path) -> None:
    """RET-13: high above undeclared above low, in signal and in score; a word that nobody knows is none."""
    words = {"core": "core", "archive": "archive", "unheard": "whatever"}
    facts: dict[str, dict[str, Any]] = {name: {"tier": word} for name, word in words.items()}
    catalog = published(root, facts | {"plain": {}})
    tiers = signals(catalog, Signal.TIER)
    assert tiers["core"] > tiers["plain"] == tiers["unheard"] > tiers["archive"]
    weights = SETTINGS.priors.signals.weights
    for signal in (Signal.TIER, Signal.VALIDATION, Signal.CONGRUENCE, Signal.NOVELTY, Signal.SESSION):
        assert all(weights[domain][signal] > 0.0 for domain in Domain)
