"""Write a night's report: metrics, tables, pictures, the page of all of it, and a note for MLflow's own page.

Of a metric, the name begins with what it belongs to, and a slash follows: so MLflow draws them together.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
from matplotlib.figure import Figure

from weft.consolidation import figures
from weft.consolidation.improvement import Improvement, as_metrics
from weft.consolidation.night import NightContext, RunRecord, StepResult, When
from weft.consolidation.report.findings import MEASURES, NIGHTS, Findings, summary_of
from weft.consolidation.steps.gate import Decision
from weft.consolidation.steps.lessons import LessonMeasures
from weft.consolidation.steps.recalibrate import unreliable
from weft.domain.documents import Domain
from weft.domain.ids import PRIORS_VERSION
from weft.domain.ranking import Scope, Signal
from weft.learning.calibration.reliability import Band
from weft.learning.reading import Reading, read_all
from weft.runtime.clock import stamp
from weft.runtime.mlflow.runs import RecordedRun
from weft.runtime.pages import number, rendered

# The top of a night's page in MLflow, in Markdown.

_FATES = {
    Decision.SAFE: "goes live",
    Decision.MONITORED: "goes live; it moved enough to deserve a look",
    Decision.REVIEW: "waits as **challenger** until someone moves the alias **champion** to it",
}


def note_of(findings: Findings) -> str:
    """What was decided and why, what each step came to, and what somebody should look at; figures are on the page."""
    observed, verdict = findings.candidate.observations, findings.verdict
    lines = [
        f"## Learned version {findings.version or '(rehearsal: nothing was published)'}",
        f"**{verdict.decision.value}**: {_FATES[verdict.decision]}. {verdict.reason}.",
        "",
        f"- built on: {findings.candidate.parent or 'the priors'}",
        f"- observations: {observed['observations']:,.1f}, {observed['observations_new']:,.1f} of them new",
        *(
            f"- {name}: {result.note}" + (f"; see `tables/{name}.csv`" if result.examples else "")
            for name, result in findings.results.items()
            if result.note and result.note != verdict.reason
        ),
        *(f"- ⚠ {alarm}" for alarm in alarms(findings)),
        "",
        "**Artifacts → report.html** shows all of it on one page; `pictures/` and `tables/` hold the parts.",
    ]
    return "\n".join(lines)


def alarms(findings: Findings) -> list[str]:
    """What somebody should look at."""
    after, dead = findings.recalibration.after, findings.dead_letters
    off = [] if after is None else unreliable(after)
    return [
        *(
            f"confidence {band.lower:.2f}–{band.upper:.2f} is off by {band.deviation:.2f}"
            f" ({band.observations:,.0f} observations): look at the reliability diagram"
            for band in off
        ),
        *([f"{dead:,} dead letters: see `tables/updaters.csv`"] if dead else []),
    ]


# A night on one page: the decision and what can be done first, then what each step changes, with examples.

_TEMPLATE = "night.html"
_EXAMPLES = 10  # of a step, at most
_LONGEST = 4_000  # characters of a text that are shown
_HASH = re.compile(r"[0-9a-f]{40,}")
_TAKEN = 12  # digits of a hash that are enough to find it by
_ALWAYS = frozenset({"recalibrate", "fit", "gate", "publish", "report"})  # steps of which every night has one
_UNTOLD = frozenset({"publish", "report"})  # steps that the top of the page tells of
_OVER_NIGHTS = {"nDCG@10": "ndcg_at_10/after", "ECE": "calibration/ece/after"}
_OF_STEP = frozenset({"proposed", "applied", "seconds"})
_CAPTIONS = {
    "reliability": "What confidences are worth: predicted against observed, before and after.",
    "weights": f"Each signal's share of the score, of all {len(Signal)}, with 90 % intervals; hollow: live before.",
    "retrieval": "Retrieval before and after, with 95 % intervals.",
    "ageing": "After how many hours half of what a domain says is out of date.",
}
_WIDE = frozenset({"weights"})


class Run(NamedTuple):
    """Words of a text, and whether the other text beside it lacks them."""

    words: str
    is_other: bool


class ShownText(NamedTuple):
    """A text of an example."""

    name: str
    runs: Sequence[Run]


class ShownExample(NamedTuple):
    """An example: short values by name, and texts side by side."""

    facts: Sequence[tuple[str, str]]
    texts: Sequence[ShownText]


class ShownStep(NamedTuple):
    """What a step came to: a sentence, counts of its own, and examples with texts, or a table of those without."""

    name: str
    about: str
    outcome: str
    counts: Sequence[tuple[str, str]]
    examples: Sequence[ShownExample]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class ReviewOption(NamedTuple):
    """Something that a reviewer can do, what comes of it, and the command that does it."""

    what: str
    effect: str
    command: str


class ShownPicture(NamedTuple):
    """A picture as a data URI; a wide one takes a row of its own."""

    caption: str
    source: str
    is_wide: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NightPage:
    """All that the page shows."""

    title: str
    about: str
    state: str  # which of `live`, `waits` and `rehearsal` the night is
    headline: str
    why: str
    choices: Sequence[ReviewOption]
    figures: Sequence[tuple[str, str, str]]  # what changed in a few numbers: name, before, after
    waiting: Sequence[str]  # what a person must decide or look at
    steps: Sequence[ShownStep]
    columns: Sequence[str]  # Counts over nights, this one first
    nights: Sequence[Sequence[str]]
    pictures: Sequence[ShownPicture]

    def html(self) -> str:
        """The page; whatever texts of the store hold is shown as text."""
        return rendered(__package__, _TEMPLATE, page=self)


Row = Mapping[str, Any]
"""An example: values by name, the same names in all rows of a step.

The page shows what is named `text` or ends with `_text` side by side, and the rest before it.
"""


def page_of(findings: Findings, pictures: Mapping[str, str]) -> NightPage:
    """The page of a night; its pictures are SVG."""
    state, nights = _state(findings), _night_cells(findings)
    moved = [
        {
            "domain": each.domain.value,
            "signal": each.signal.value,
            "share before": each.before,
            "share after": each.after,
            "change": each.change,
        }
        for each in findings.moved
    ]
    shown = {name: result.examples for name, result in findings.results.items()} | {"merge": moved}
    live = findings.live or f"{PRIORS_VERSION}, the priors,"
    headline = {
        "rehearsal": "Nothing was published: this was a rehearsal",
        "waits": f"{findings.version} waits for you; {live} stays live",
        "live": f"{findings.version} is live",
        "past": f"{findings.version} is published; {live} is live",
    }[state]
    return NightPage(
        title=f"Night of {stamp(findings.now)[:10]}: {headline}",
        about=f"{stamp(findings.now)} · {findings.store} · built on {findings.candidate.parent or 'the priors'}",
        state=state,
        headline=headline,
        why=f"{findings.verdict.decision.value}: {findings.verdict.reason}",
        choices=_choices(state, findings),
        figures=_figures(findings),
        waiting=_waiting(state, findings),
        steps=[_step(name, findings, state, shown.get(name, ())) for name in findings.steps if name not in _UNTOLD],
        columns=[name for name, _ in nights[0]],
        nights=[[value for _, value in cells] for cells in nights],
        pictures=[
            ShownPicture(_CAPTIONS.get(name, name), _as_source(pictures[name]), name in _WIDE)
            for name in _drawn(pictures)
        ],
    )


def _state(findings: Findings) -> str:
    if findings.version is None:
        return "rehearsal"
    if findings.live == findings.version:
        return "live"
    return "past" if findings.verdict.decision.goes_live else "waits"


def _choices(state: str, findings: Findings) -> list[ReviewOption]:
    store, parent = f"--store {shlex.quote(findings.store)}", findings.candidate.parent or PRIORS_VERSION
    if state == "rehearsal":
        return [ReviewOption("Publish it", "the same night, for good", f"weft consolidate {store}")]

    def promote(version: str) -> str:
        return f'weft learned promote {version} --why "…" {store}'

    forward = ReviewOption("Let it go live", "searches follow within a minute", promote(findings.version or ""))
    if state == "waits":
        return [
            forward,
            ReviewOption(
                "Refuse it",
                "all that is said below is left out, for good",
                f'weft learned refuse {findings.version} --why "…" {store}',
            ),
            ReviewOption("Leave it", "what it learned counts on as streamed feedback; the next night builds on it", ""),
        ]
    back = ReviewOption(f"Roll back to {parent}", "exactly this night is out", promote(parent))
    beginning = ReviewOption("Roll back to the beginning", "the priors alone", promote(PRIORS_VERSION))
    first = [back] if state == "live" else [forward]
    return first if parent == PRIORS_VERSION and state == "live" else [*first, beginning]


def _figures(findings: Findings) -> list[tuple[str, str, str]]:
    observed, measured = findings.candidate.observations, dict(findings.measured)
    before, after = observed["observations"] - observed["observations_new"], observed["observations"]
    rows = [
        *(
            (
                f"{one.measure.replace('_at_', '@')}, {one.questions} {one.source} questions",
                *_both(one.before.mean, one.after.mean),
            )
            for one in findings.improvements
        ),
        *(
            (label, *_both(*(getattr(measured[when].measures, name) for when in ("before", "after"))))
            for name, label in MEASURES.items()
            if len(measured) > 1
        ),
    ]
    return [("observations", f"{before:,.0f}", f"{after:,.0f}"), *(row for row in rows if row[1] != row[2])]


def _both(before: float, after: float) -> tuple[str, str]:
    return number(before), number(after)


def _waiting(state: str, findings: Findings) -> list[str]:
    version = [f"{findings.version}: go live, or be refused"] if state == "waits" else []
    counts = {name: values["waiting"] for name, values in findings.steps.items() if values.get("waiting")}
    proposed = [
        f"{name}: {_count(count)} are only proposed, and act once somebody declares them"
        for name, count in counts.items()
    ]
    return [*version, *proposed, *alarms(findings)]


def _step(name: str, findings: Findings, state: str, rows: Sequence[Row]) -> ShownStep:
    counts, result = findings.steps[name], findings.results.get(name)
    proposed, texts = counts.get("proposed", 0), [each for each in rows if any(map(_is_text, each))]
    plain = [each for each in rows if each not in texts][:_EXAMPLES]
    verb = "changed" if state in {"live", "past"} else "would change"
    return ShownStep(
        name=name,
        about=findings.says.get(name, ""),
        outcome=(result and result.note) or (f"{_count(proposed)} {verb}" if proposed else "nothing changes"),
        counts=[(_words(key), _count(value)) for key, value in counts.items() if key not in _OF_STEP],
        examples=[_example(each) for each in texts[:_EXAMPLES]],
        columns=[_words(key) for key in plain[0]] if plain else [],
        rows=[[_value(value) for value in each.values()] for each in plain],
    )


def _is_text(name: str) -> bool:
    return name == "text" or name.endswith("_text")


def _example(row: Row) -> ShownExample:
    texts = [(key, str(value)) for key, value in row.items() if _is_text(key) and value]
    facts = [
        (_words(key), _value(value)) for key, value in row.items() if not _is_text(key) and value not in ("", None)
    ]
    cut = [text[:_LONGEST] + ("…" if len(text) > _LONGEST else "") for _, text in texts]
    runs = list(_compared(*cut)) if len(cut) == 2 else [[Run(text, is_other=False)] for text in cut]
    return ShownExample(facts, [ShownText(_words(key), each) for (key, _), each in zip(texts, runs, strict=True)])


def _compared(one: str, other: str) -> Iterator[list[Run]]:
    """Two texts as runs of words that the other has in the same order, and that it lacks."""
    words: list[list[str]] = [re.findall(r"\s+|\w+|[^\w\s]", text) for text in (one, other)]
    blocks = SequenceMatcher(None, words[0], words[1], autojunk=False).get_opcodes()
    for side in (0, 1):
        spans = [(operation, block[2 * side], block[2 * side + 1]) for operation, *block in blocks]
        yield [Run("".join(words[side][a:b]), operation != "equal") for operation, a, b in spans if b > a]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _count(value: float | None) -> str:
    """A number that may be a count, without decimals where it is one."""
    return f"{int(value):,}" if value is not None and value == int(value) else number(value)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else number(value)
    text = "–" if value is None else str(value)
    return text[:_TAKEN] if _HASH.fullmatch(text) else text


def _night_cells(findings: Findings) -> list[list[tuple[str, str]]]:
    """What is shown of each night by name, this one first; steps in which anything was proposed on any of them."""
    recorded = {name for one in findings.nights for name, value in one.metrics.items() if value}
    of_steps = {name: f"steps/{name}/proposed" for name in findings.steps if name not in _ALWAYS}
    shown = {_words(name): metric for name, metric in of_steps.items() if metric in recorded}
    shown |= {name: metric for name, metric in _OVER_NIGHTS.items() if metric in recorded}
    return [
        [
            ("night", stamp(one.started)[:16]),
            ("version", one.parameters.get("learned", "–")),
            ("decision", one.parameters.get("decision", "–")),
            ("new observations", _count(one.metrics.get("observations/new"))),
            *((name, _count(one.metrics.get(metric))) for name, metric in shown.items()),
        ]
        for one in findings.nights
    ]


def _drawn(pictures: Mapping[str, str]) -> list[str]:
    return [*(name for name in _CAPTIONS if name in pictures), *(name for name in pictures if name not in _CAPTIONS)]


def _as_source(svg: str) -> str:
    """A picture within the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")


PAGE = "report"
"""The name of the page among a run's artifacts."""

_EVENTS = ("consumed", "applied", "duplicate", "dead_lettered", "late")


class Summary(dict[str, Any]):
    """What a night came to, for machines."""


class Report:
    """Draws and writes the report of a night that published a version, or of a rehearsal that published nothing."""

    name: ClassVar[str] = "report"
    says: ClassVar[str] = "drawing and writing the report"
    when: ClassVar[When] = When.JUDGED

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`."""
        findings = Findings.of(context, context.night.recorded(limit=NIGHTS))
        report(context.page, findings)
        return StepResult(outcome=Summary({**summary_of(findings), "run": context.page.run_id or None}))


def report(page: RunRecord, findings: Findings) -> None:
    """Write a report; the note comes last, so that what it promises is there."""
    metrics = metrics_of(findings)
    outcome = {"learned": findings.version or "", "decision": findings.verdict.decision.value}
    findings = replace(findings, nights=[RecordedRun(findings.now, metrics, outcome), *findings.nights])
    page.metrics(metrics, now=findings.now)
    page.parameters(outcome)
    for name, table in tables_of(findings).items():
        page.table(f"tables/{name}", table)
    pictures = {name: figures.as_svg(figure) for name, figure in pictures_of(findings).items()}
    for name, picture in pictures.items():
        page.picture(f"pictures/{name}", picture)
    page.page(PAGE, page_of(findings, pictures).html())
    page.document("summary", summary_of(findings))
    page.note(note_of(findings))


def pictures_of(findings: Findings) -> dict[str, Figure]:
    """The pictures that the findings have something for, by name."""
    scopes = [Scope(domain) for domain in Domain]
    was, now = (read_all(beliefs, findings.priors, scopes) for beliefs in (findings.before, findings.after))

    def of(family: str, readings: Sequence[Reading]) -> list[Reading]:
        return [each for each in readings if each.family == family]

    pictures: dict[str, Figure] = {
        "weights": figures.intervals(
            of("weight", now), f"Share of the score, of all {len(Signal)} signals", of("weight", was)
        ),
        "ageing": figures.intervals(of("decay", now), "Half-life in hours", of("decay", was), logarithmic=True),
    }
    before, after = findings.recalibration.before, findings.recalibration.after
    if before is not None and after is not None:
        pictures["reliability"] = figures.reliability(before, after)
    if findings.improvements:
        pictures["retrieval"] = figures.retrieval(findings.improvements)
    return pictures


def metrics_of(findings: Findings) -> dict[str, float]:
    """Every figure of a night by name, such as `weights/code/vector`, `ndcg_at_10/before`, `steps/merge/proposed`."""
    observed, counts = findings.candidate.observations, findings.counters.values()
    events = {name: sum(each.get(name, 0) for each in counts) for name in _EVENTS} if counts else {}
    weights = {
        f"{domain.value}/{signal.value}": belief.mean
        for domain, beliefs in findings.weights_after.items()
        for signal, belief in beliefs.items()
    }
    lessons = next(
        (each.outcome for each in findings.results.values() if isinstance(each.outcome, LessonMeasures)), None
    )
    errors = {
        f"{name}/{when}": float(getattr(one.measures, name)) for name in MEASURES for when, one in findings.measured
    }
    return {
        **_named("calibration", errors),
        **_named("gate", findings.verdict.figures),
        **_named("observations", {"all": observed["observations"], "new": observed["observations_new"]}),
        **_named("weights", weights),
        **as_metrics(findings.improvements),
        **_named("lessons", lessons or {}),
        **_named("events", events),
        **{f"steps/{step}/{name}": value for step, counts in findings.steps.items() for name, value in counts.items()},
    }


def _named(group: str, figures: Mapping[str, float]) -> dict[str, float]:
    return {f"{group}/{name}": value for name, value in figures.items()}


def tables_of(findings: Findings) -> dict[str, pa.Table]:
    """Every table that the findings have rows for, by name."""
    rows_by_table: dict[str, Sequence[Mapping[str, object]]] = {
        "weights": _weights(findings),
        "ageing": _ageing(findings),
        "calibration_bands": [row for when, one in findings.measured for row in _bands(when, one.bands)],
        "calibration_bins": [row for when, one in findings.measured for row in _bands(when, one.diagram)],
        "retrieval": _retrieval(findings),
        "fit": _fitted(findings),
        **{name: result.examples for name, result in findings.results.items()},
        "updaters": [{"partition": name, **counts} for name, counts in sorted(findings.counters.items())],
    }
    return {name: pa.Table.from_pylist([dict(row) for row in rows]) for name, rows in rows_by_table.items() if rows}


def _weights(findings: Findings) -> list[Mapping[str, object]]:
    before, after = findings.weights_before, findings.weights_after
    rows = ((domain, signal, after[domain][signal], before[domain][signal]) for domain in Domain for signal in Signal)
    return [
        {
            "domain": domain.value,
            "signal": signal.value,
            "weight": now.mean,
            "low_90": now.low,
            "high_90": now.high,
            "live_version": past.mean,
            "change": now.mean - past.mean,
            "observations": now.n_effective,
            "level": now.level,
        }
        for domain, signal, now, past in rows
    ]


def _ageing(findings: Findings) -> list[Mapping[str, object]]:
    days = {"after_1_day": 1, "after_1_week": 7, "after_1_month": 30, "after_1_year": 365}
    rows: list[Mapping[str, object]] = []
    for domain in Domain:
        low, median, high = findings.after.reported.decay(domain).half_life(findings.priors.interval.level)
        fresh = {name: findings.after.freshness(domain, 24.0 * age) for name, age in days.items()}
        rows.append(
            {
                "domain": domain.value,
                "half_life_days": median / 24.0,
                "low_90": low / 24.0,
                "high_90": high / 24.0,
                **fresh,
            }
        )
    return rows


def _bands(when: str, bands: Sequence[Band]) -> list[Mapping[str, object]]:
    return [
        {
            "calibration": when,
            "from": band.lower,
            "to": band.upper,
            "predicted": band.predicted,
            "observed": band.observed,
            "low_90": band.low,
            "high_90": band.high,
            "deviation": band.deviation,
            "observations": band.observations,
            "enough": band.sufficient,
        }
        for band in bands
    ]


def _fitted(findings: Findings) -> list[Mapping[str, object]]:
    """Where the fit and counting disagree, signal by signal."""
    return [
        {"domain": domain.value, "signal": signal.value, "fitted": fitted, "counted": counted, "live": one.wins}
        for domain, one in findings.fitting.contests.items()
        for signal, fitted, counted in zip(
            one.fit.signals, one.fit.shares.tolist(), one.fit.counted.tolist(), strict=True
        )
    ]


def _retrieval(findings: Findings) -> list[Mapping[str, object]]:
    return [
        {
            "questions": one.source.value,
            "metric": one.measure,
            "number": one.questions,
            **{f"{name}{part}": value for name, interval in _intervals(one) for part, value in interval.items()},
            "significant": one.significant,
        }
        for one in findings.improvements
    ]


def _intervals(one: Improvement) -> Iterator[tuple[str, Mapping[str, float]]]:
    for name, interval in (("before", one.before), ("after", one.after), ("change", one.change)):
        yield name, {"": interval.mean, "_low": interval.low, "_high": interval.high}
