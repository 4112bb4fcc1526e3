"""A night on one page: the decision and what can be done first, then what each step changes, with examples."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from weft.consolidation.report.findings import MEASURES, Findings
from weft.consolidation.report.note import alarms
from weft.domain.ids import PRIORS_VERSION
from weft.runtime.clock import stamp
from weft.runtime.pages import number, rendered

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
    "nights": "The last nights.",
    "reliability": "What confidences are worth: predicted against observed, before and after.",
    "movers": "What moved most.",
    "weights": "How much each signal counts, with 90 % intervals; hollow: the live version before.",
    "retrieval": "Retrieval before and after, with 95 % intervals.",
    "ageing": "How long things hold.",
}
_WIDE = frozenset({"weights", "nights"})


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
    moved = [{**asdict(each), "change": each.change} for each in findings.moved]
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
        return [ReviewOption("Publish it", "the same night, for good", f"python -m jobs.consolidate {store}")]

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
    return [
        ("observations", f"{before:,.0f}", f"{after:,.0f}"),
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
