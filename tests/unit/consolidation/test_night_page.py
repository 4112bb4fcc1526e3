"""CON-10: the page of a night shows every step's examples in one form, texts as texts, and asks for nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.feedback_events import NOON, lesson_added, lesson_outcome
from tests.support.lesson_words import evidence_of
from tests.support.lessons import a_lesson
from tests.support.nights import a_day
from weft.catalog.learned import LearnedState
from weft.catalog.live import Reach
from weft.consolidation.candidate import Proposal
from weft.consolidation.figures import as_svg
from weft.consolidation.night import StepResult
from weft.consolidation.report.findings import Findings
from weft.consolidation.report.writing import NightPage, metrics_of, page_of, pictures_of
from weft.consolidation.steps.expiry import expired, stale
from weft.consolidation.steps.gate import Decision, GateVerdict
from weft.consolidation.steps.lessons import lesson_changes
from weft.consolidation.steps.recalibrate import Recalibration
from weft.domain.ids import ContentHash, VersionName
from weft.learning.aliases import ContentAliases
from weft.learning.beliefs import believed, read_beliefs
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.triggers import LEARNED, read_triggers
from weft.learning.parts import LearnedVersion, parts_of
from weft.learning.uses import UsageKey
from weft.runtime.clock import SECONDS_PER_DAY
from weft.runtime.mlflow.runs import RecordedRun
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
DAY = 20_000
NOW = (DAY + 1.5) * SECONDS_PER_DAY
HOSTILE = "</pre><script>document.title = 'owned'</script><img src=http://a.org/x onerror=b()> {{ 1234 * 5678 }}"
A, B, C = (ContentHash(letter * 64) for letter in "abc")
SECOND = VersionName("v000002")
STEPS: dict[str, dict[str, float]] = {
    "merge": {"proposed": 7, "applied": 0, "seconds": 0.1},
    "duplicates": {"proposed": 1, "applied": 0, "seconds": 0.1, "aliases": 1},
    "tidying": {"proposed": 2, "applied": 0, "seconds": 0.1, "waiting": 3},
}
CHROMIUM = shutil.which("chromium")


def findings(decision: Decision = Decision.REVIEW, **more: Any) -> Findings:
    fresh, live = a_day(DAY), LearnedState(parent=None, evidence=Evidence(), cut=Evidence())
    reach: Reach = {}
    candidate = Proposal(
        published=None, parent=VersionName("v000001"), newest=VersionName("v000001"), live=live, last=live,
        learned=LearnedVersion(fresh), cut=fresh, fresh=fresh, reach=reach,
    )  # fmt: skip
    before, after = (believed(SETTINGS.priors, each, now=NOW) for each in (candidate.live, candidate.learned))
    return Findings(
        candidate=candidate, before=before, after=after, recalibration=Recalibration(None, False, "too few"),
        verdict=GateVerdict(decision, f"because {HOSTILE}"), now=NOW, priors=SETTINGS.priors,
        steps=STEPS, **more,
    )  # fmt: skip


def shown(
    examples: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    decision: Decision = Decision.REVIEW,
    live: VersionName | None = None,
    version: VersionName | None = SECOND,
    store: str = "/a store",
    pictured: bool = False,
) -> NightPage:
    results = {name: StepResult(examples=rows) for name, rows in examples.items()}
    told = findings(decision, version=version, live=live, store=store, results=results)
    nights = [RecordedRun(NOW - day * SECONDS_PER_DAY, metrics_of(told), {"learned": HOSTILE}) for day in (0, 1)]
    told = replace(told, nights=nights)
    drawn = pictures_of(told) if pictured else {}
    return page_of(told, {name: as_svg(figure) for name, figure in drawn.items()})


ROWS = {
    "duplicates": [
        {"alias": A, "cosine": 0.987654, "text": f"same words {HOSTILE}", "representative_text": "same here"}
    ],
    "tidying": [{"document": HOSTILE, "is_sure": True, "text": HOSTILE}, {"document": "plain", "is_sure": False}],
}


def test_every_step_shows_its_examples_by_one_form() -> None:
    """CON-10: texts side by side with what differs marked, other values before them, also of a step nobody foresaw."""
    steps = {step.name: step for step in shown(ROWS).steps}
    (pair,) = steps["duplicates"].examples
    assert pair.facts == [("alias", "a" * 12), ("cosine", "0.988")]
    assert [text.name for text in pair.texts] == ["text", "representative text"]
    assert "".join(run.words for run in pair.texts[0].runs) == f"same words {HOSTILE}"
    assert [run.words for run in pair.texts[1].runs if run.is_other] == ["here"]
    assert [example.facts for example in steps["tidying"].examples] == [[("document", HOSTILE), ("is sure", "yes")]]
    assert steps["tidying"].rows == [["plain", "no"]]
    assert steps["tidying"].outcome == "2 would change"
    assert list(steps) == ["merge", "duplicates", "tidying"]


@pytest.mark.parametrize(
    ("decision", "live", "version", "state", "commands"),
    [
        (Decision.REVIEW, None, SECOND, "waits", ["promote v000002", "refuse v000002", ""]),
        (Decision.REVIEW, SECOND, SECOND, "live", ["promote v000001", "promote v000000"]),
        (Decision.SAFE, SECOND, SECOND, "live", ["promote v000001", "promote v000000"]),
        (Decision.SAFE, None, None, "rehearsal", ["weft consolidate"]),
    ],
)
def test_the_decision_comes_first_with_the_commands_that_change_it(
    decision: Decision, live: VersionName | None, version: VersionName | None, state: str, commands: list[str]
) -> None:
    """CON-10, CON-9: what is live, why, and what can be done about it; paths are quoted for a shell."""
    page = shown({}, decision=decision, live=live, version=version)
    assert page.state == state
    assert [wanted in choice.command for wanted, choice in zip(commands, page.choices, strict=True)] == [True] * len(
        commands
    )
    assert all(choice.command.endswith("--store '/a store'") for choice in page.choices if choice.command)
    html = page.html()
    assert html.index("<h1>") < html.index("What each step")
    assert (state == "waits") == any("v000002" in line for line in page.waiting)
    assert any(line.startswith("tidying: 3 are only proposed") for line in page.waiting)


def test_texts_are_shown_as_texts_and_nothing_is_fetched() -> None:
    """CON-10: no text becomes markup, whatever field it comes in, and the page refers to nothing outside itself."""
    html = shown(ROWS, store=f"/{HOSTILE}", pictured=True).html()
    assert "<script" not in html
    assert "7006652" not in html
    assert not re.findall(r"<(?:link|script|iframe|object|embed)\b", html)
    assert all(source.startswith("data:") for source in re.findall(r"<[^>]* src=\"([^\"]*)\"", html))
    assert "url(" not in re.sub(r"base64,[^\"]*", "", html)


@pytest.mark.integration
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("width", [500, 1400])
def test_a_browser_shows_it_whole(tmp_path: Path, width: int) -> None:
    """CON-10: opened from disk, no text acts, all pictures are drawn, and nothing is wider than the window."""
    asking = """<script>document.title = [document.title, document.documentElement.scrollWidth <= window.innerWidth,
      [...document.images].every(one => one.naturalWidth > 0), document.images.length,
      document.querySelectorAll('details[open]').length].join('|')</script></body>"""
    page = tmp_path / "report.html"
    page.write_text(shown(ROWS, pictured=True).html().replace("</body>", asking), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [
        str(CHROMIUM), *options, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", "--dump-dom",
        page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    (title,) = re.findall(r"<title>(.*?)</title>", done.stdout)
    assert title.split("|")[1:] == ["true", "true", "2", "3"]
    assert title.startswith("Night of 2024-10-05: v000002 waits for you")


def test_triggers_that_expired_and_aliases_that_go_are_examples() -> None:
    """CON-6, CON-10: a word that nobody picked by for too long is shown with the text that it led to."""
    prior = SETTINGS.priors.triggers
    long_ago = DAY - prior.lasts_days
    former = Evidence(
        usage={UsageKey(long_ago, A, f"{LEARNED}checkpoint", person, ""): MICRO for person in ("ada", "grace")}
        | {UsageKey(DAY, B, f"{LEARNED}fresh", "ada", ""): MICRO}
    )
    live, learned = LearnedVersion(former, parts_of(ContentAliases({C: B}))), LearnedVersion(former)
    after = believed(SETTINGS.priors, learned, now=NOW)
    then = read_triggers(prior, former, long_ago + 1).every()
    rows = expired(stale(live, learned), then, after, lambda contents: {A: "the text"} if A in contents else {})
    assert [(row["kind"], row["what"], row["content"], row["text"]) for row in rows] == [
        ("trigger", "checkpoint", A, "the text"),
        ("alias", f"stood for by {B[:12]}", C, ""),
    ]
    assert all(row.keys() == rows[0].keys() for row in rows)


def test_lessons_that_something_new_was_heard_of_are_examples() -> None:
    """LES-11, CON-10: those that are new or of another status first, each with its text; of others nothing is said."""
    known, other, new = (a_lesson(f"Run check number {number} {HOSTILE}") for number in range(3))
    former = evidence_of([lesson_added(known), lesson_added(other)])
    fresh = evidence_of([lesson_added(new), lesson_outcome(known.id, "failure")])
    before, after = (read_beliefs(SETTINGS.priors, each, now=NOON / 1000) for each in (former, former + fresh))
    rows = lesson_changes(fresh, before, after)
    assert [(row["lesson"], row["status_before"] == "new", row["text"]) for row in rows] == [
        (known.id, False, known.content),
        (new.id, True, new.content),
    ]
    assert rows[0]["p_good"] < rows[0]["p_good_before"]
