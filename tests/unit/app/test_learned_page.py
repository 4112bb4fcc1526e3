"""LRN-12, ARC-7: the page that shows what was learned says what the beliefs say, and shows texts as texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from weft.app.views.learned_page import LearnedPage, page_of
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.cli.main import main
from weft.consolidation.steps.gate import weights_of
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, Evidence, EvidenceKey, day_of
from weft.learning.uses import UsageKey
from weft.runtime.pages import number
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
NOW = 1_790_000_000.0
TODAY = day_of(NOW)
GOOD, BAD = ContentHash("a" * 64), ContentHash("b" * 64)
HOSTILE = "<script>alert('x')</script> & more"


def clicks() -> Evidence:
    """Clicks that words foretold, and meaning no better than chance; one content found good, the other bad."""
    at = (TODAY, "code", "m", "a", "*")
    counts = {}
    for signal, agreed in (("lexical", 240), ("vector", 150)):
        for outcome in ("good", "bad"):
            counts[EvidenceKey(*at, f"signal.{signal}.{outcome}", "for")] = agreed * MICRO
            counts[EvidenceKey(*at, f"signal.{signal}.{outcome}", "against")] = (300 - agreed) * MICRO
    usage = {
        UsageKey(TODAY, GOOD, "positive", "p", "q"): 3 * MICRO,
        UsageKey(TODAY, BAD, "negative", "p", "q"): 2 * MICRO,
        UsageKey(TODAY - 2, GOOD, "[learned:]checkpoint", "p", ""): MICRO,
        UsageKey(TODAY - 2, GOOD, "[learned:]checkpoint", "r", ""): MICRO,
    }
    return Evidence(counts, usage)


def named(hashes: Sequence[ContentHash]) -> list[str]:
    return [{GOOD: "app.py:3  def save", BAD: HOSTILE}[each] for each in hashes]


def shown(evidence: Evidence) -> LearnedPage:
    before, after = (read_beliefs(PRIORS, each, now=NOW) for each in (Evidence(), evidence))
    hashes = [GOOD, BAD] if evidence.usage else []
    return page_of("live", before, after, PRIORS, hashes=hashes, names=named)


def test_a_weight_is_one_number_wherever_it_is_told() -> None:
    """LRN-4, CON-10: the share of all signals, as the night's report has it; of those that feedback spoke of alone."""
    page, beliefs = shown(clicks()), read_beliefs(PRIORS, clicks(), now=NOW)
    for scope, words in ((Scope(Domain.CODE), " code"), (Scope(Domain.CODE, "m", "a"), " code, model m, agent a")):
        (group,) = [group for group in page.groups if group.what == "signal" and group.name.endswith(words)]
        assert group.name.startswith(f"Share of the score, of all {len(Signal)} signals, in")
        rows, weights = {row.name: row for row in group.rows}, beliefs.weights(scope, tuple(Signal))
        assert rows.keys() == {"lexical", "vector"}
        for name, row in rows.items():
            assert row.now == number(weights[Signal(name)].mean)
        assert rows["lexical"].now > rows["lexical"].was
        assert group.rows[0].name == "lexical"
    assert weights_of(beliefs)[Domain.CODE] == beliefs.weights(Scope(Domain.CODE), tuple(Signal))


def test_places_on_a_bar_are_in_order_and_within_it() -> None:
    """LRN-4: what is believed lies between the ends of its interval."""
    rows = [row for group in shown(clicks()).groups for row in group.rows]
    assert rows
    for row in rows:
        places = [place for place in (row.low, row.at, row.high) if place is not None]
        assert places == sorted(places)
        assert all(0.0 <= place <= 100.0 for place in places)


def test_what_moved_is_told_in_sentences_and_contents_by_what_came_of_them() -> None:
    """LRN-12, FBK-6, RET-17: the surest first; each list holds what belongs there."""
    page = shown(clicks())
    assert page.moves
    assert "→" in page.moves[0]
    asked, best, worst, words = page.lists
    assert not asked.rows  # nobody said anything outright
    assert [row[-1] for row in best.rows] == ["app.py:3  def save"]
    assert [row[-1] for row in worst.rows] == [HOSTILE]
    assert [(row[0], row[-1]) for row in words.rows] == [("checkpoint", "app.py:3  def save")]


def test_texts_of_the_store_are_shown_and_never_run() -> None:
    """LRN-12: whatever a content holds; and nothing is fetched from elsewhere."""
    html = shown(clicks()).html()
    assert "<script" not in html
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; more" in html
    assert not re.search(r"(?:src|href)=|url\(|@import", html)


def test_without_feedback_it_says_so() -> None:
    """LRN-12: a new user learns what to do."""
    page = shown(Evidence())
    assert (page.moves, page.groups) == ([], [])
    assert "every belief is its prior" in page.html()


def test_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-12: `weft learned page` writes one file; contents that no generation holds go by their hash."""
    catalog = Catalog(tmp_path / "store")
    state = LearnedState(parent=None, evidence=clicks(), cut=Evidence())
    version = catalog.learned.publish(state, expected_newest=None)
    catalog.make_live(version)
    out = tmp_path / "page.html"
    assert main(["learned", "page", version, "--out", str(out), "--store", str(tmp_path / "store")]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    html = out.read_text(encoding="utf-8")
    assert f"{version}, beside priors" in html
    assert GOOD[:12] in html
    assert main(["learned", "page", "v000009", "--out", str(out), "--store", str(tmp_path / "store")]) == 1
