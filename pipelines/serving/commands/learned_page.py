"""What was learned, on one page: a file that any browser shows, with nothing beside it and nothing to fetch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

from jinja2 import Environment, StrictUndefined

from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import ANY, Scope, Signal
from pipelines.learning.beliefs import Beliefs
from pipelines.learning.priors import Priors
from pipelines.learning.reading import Reading, moves, path_of, read_all

_TEMPLATE = "learned_page.html"
_FULL = 100.0  # width of a bar in its own units
_SENTENCES, _LISTED = 8, 12  # shown at most
_SEEN = 2.0  # of a bar, below which nobody would see a dot leave its tick
_OBSERVED = 1.0  # below it there is nothing to tell in a sentence
_OF_SEVERAL_UNITS = frozenset({"size", "quality", "trust", "threshold"})
_FEW, _MANY = 100.0, 1e6  # from where on decimals, and digits at all, say nothing
_FOR_FEW = frozenset({"intent"})

NameOf = Callable[[Sequence[ContentHash]], Sequence[str]]
"""What people call contents: where each stands, and how it begins."""

_ABOUT: Mapping[str, tuple[str, str]] = {
    "weight": ("How much each signal counts in {scope}", "signal"),
    "intent": ("What the intent changes: {scope}", "signal"),
    "examination": ("How often ranks are looked at, beside the first, in {scope}", "rank"),
    "decay": ("How long {scope} holds", "after half of it is out of date"),
    "threshold": ("How sure a decision must be in {scope}", "bound"),
    "quality": ("How good answers by {scope} are", "turn"),
    "trust": ("How far sources are believed: {scope}", "belief"),
    "lesson": ("Whether lesson {scope} helps", "belief"),
    "size": ("How large chunks and contexts should be in {scope}", "size"),
}


@dataclass(frozen=True, slots=True)
class BeliefRow:
    """One belief: numbers as they are shown, and their places on a bar, 0 to 100; None where there is none."""

    name: str
    was: str
    now: str
    observations: str
    at: float | None
    was_at: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class BeliefGroup:
    """Beliefs of one kind about one thing.

    Attributes:
        what: What the rows are.
        scale: What the bars show.
        aside: Whether it is shown to those alone who ask for it.
    """

    name: str
    what: str
    scale: str
    rows: Sequence[BeliefRow]
    aside: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """A table of words."""

    name: str
    about: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class LearnedPage:
    """All that the page shows.

    Attributes:
        title: Of what, and made when.
        level: Of the intervals.
        moves: What changed, a sentence each.
    """

    title: str
    level: str
    moves: Sequence[str]
    groups: Sequence[BeliefGroup]
    lists: Sequence[Listed]

    def html(self) -> str:
        """The page; whatever texts of the store hold is shown as text."""
        environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        text = files(__package__).joinpath(_TEMPLATE).read_text(encoding="utf-8")
        return environment.from_string(text).render(page=self)


def page_of(
    title: str,
    before: Beliefs,
    after: Beliefs,
    priors: Priors,
    *,
    hashes: Sequence[ContentHash],
    names: NameOf,
) -> LearnedPage:
    """The page of what changed between two states of evidence.

    Args:
        hashes: Contents that anything is known of.
        names: What is shown of contents.
    """
    old, new = (readings_of(beliefs, priors, after) for beliefs in (before, after))
    return LearnedPage(
        title=title,
        level=f"{priors.interval.level:.0%}",
        moves=in_short(old, new, most=_SENTENCES),
        groups=groups_of(old, new),
        lists=[*contents_listed(after, hashes, names, most=_LISTED), triggers_listed(after, names, most=_LISTED)],
    )


def in_short(before: Iterable[Reading], after: Iterable[Reading], *, most: int) -> list[str]:
    """What feedback moved, a sentence each, the most surprising first."""
    return [
        f"{_title(move.after.family, move.after.scope)}: {move.after.parameter} {number(move.before.mean)} → "
        f"{number(move.after.mean)}, after {number(move.after.observations)} observations."
        for move in moves(before, after)
        if move.before is not None and move.after is not None and move.change and move.after.observations >= _OBSERVED
    ][:most]


def groups_of(before: Sequence[Reading], after: Sequence[Reading]) -> list[BeliefGroup]:
    """Beliefs that feedback said anything about, beside what they were."""
    old = {reading.key: reading for reading in before}
    observed = [reading for reading in after if reading.observations > 0.0]
    return [
        _group(family, scope, list(readings), old)
        for (family, scope), readings in groupby(observed, key=lambda reading: (reading.family, reading.scope))
    ]


def contents_listed(
    beliefs: Beliefs, hashes: Sequence[ContentHash], names: NameOf, *, most: int
) -> tuple[Listed, Listed]:
    """The contents that were found good most, and those found bad most."""
    signals = beliefs.content_signals(hashes)
    usage, good, bad = signals.usage.tolist(), signals.positive.tolist(), signals.negative.tolist()
    order = sorted(range(len(hashes)), key=lambda at: (-usage[at], hashes[at]))
    best = [at for at in order if good[at] > bad[at]][:most]
    worst = [at for at in reversed(order) if bad[at] > good[at]][:most]

    def listed(name: str, about: str, places: Sequence[int]) -> Listed:
        names_shown = names([hashes[at] for at in places])
        rows = [
            (number(good[at]), number(bad[at]), number(usage[at]), content)
            for at, content in zip(places, names_shown, strict=True)
        ]
        return Listed(name, about, ("good", "bad", "usage", "content"), rows)

    return (
        listed("Found good", "Outcomes as they count today; usage is the chance that the next one is good.", best),
        listed("Found bad", "What people were shown and passed over, or voted down.", worst),
    )


def triggers_listed(beliefs: Beliefs, names: NameOf, *, most: int) -> Listed:
    """Words that contents are found by because somebody once picked them from far down."""
    triggers = sorted(beliefs.triggers.every(), key=lambda each: (-each.strength, each.term, each.content_hash))[:most]
    names_shown = names([each.content_hash for each in triggers])
    rows = [
        (each.term, number(each.strength), "on trial" if each.on_trial else "in force", name)
        for each, name in zip(triggers, names_shown, strict=True)
    ]
    about = "Words of queries that now find what was once picked from far down."
    return Listed("Words that lead somewhere", about, ("word", "people", "", "content"), rows)


def readings_of(beliefs: Beliefs, priors: Priors, now: Beliefs) -> list[Reading]:
    """Every belief, and the weights of what feedback spoke of: those alone, so that they sum to 1 as in a search.

    Args:
        now: Who has heard that feedback, and how much of it.
    """
    weights = [reading for scope in now.scopes() for reading in _weights(beliefs, scope, now)]
    return weights + read_all(beliefs, priors, ())


def number(value: float | None, *, sign: bool = False) -> str:
    """A number in as many characters as are worth reading.

    Examples:
        >>> [number(value) for value in (0.25, 1234.5, 5.9e70, None)]
        ['0.250', '1,234', '6e+70', '–']
    """
    if value is None:
        return "–"
    size = abs(value)
    form = ",.3f" if size < _FEW else ",.0f" if size < _MANY else ".0e"
    return f"{value:{'+' if sign else ''}{form}}"


def _weights(beliefs: Beliefs, scope: Scope, now: Beliefs) -> list[Reading]:
    observed = {signal: belief.n_effective for signal, belief in now.weights(scope, tuple(Signal)).items()}
    signals = [signal for signal, observations in observed.items() if observations > 0.0]
    believed = beliefs.weights(scope, signals) if signals else {}
    return [
        Reading(
            "weight", path_of(scope), _words(signal), each.mean, each.low, each.high, observed[signal], 0.0, each.level
        )
        for signal, each in believed.items()
    ]


def _words(signal: Signal) -> str:
    return signal.value.replace("_", " ")


def _group(
    family: str, scope: str, readings: Sequence[Reading], old: Mapping[tuple[str, str, str], Reading]
) -> BeliefGroup:
    _, what = _ABOUT.get(family, ("", "belief"))
    former = [old.get(reading.key) for reading in readings]
    ends = [_end(*pair) for pair in zip(readings, former, strict=True)]
    if family in _OF_SEVERAL_UNITS:
        scale = "each on a scale of its own"
    else:
        ends, scale = [max(ends)] * len(ends), f"0 to {number(max(ends))}"
    rows = [_row(*each) for each in zip(readings, former, ends, strict=True)]
    if family == "weight":
        rows.sort(key=lambda row: -(row.at or 0.0))
    as_before = all(_stayed(row) for row in rows)
    return BeliefGroup(_title(family, scope), what, scale, rows, as_before or family in _FOR_FEW)


def _stayed(row: BeliefRow) -> bool:
    """Whether nobody would see it move."""
    if row.at is None or row.was_at is None:
        return row.was == row.now
    return abs(row.at - row.was_at) < _SEEN


def _end(reading: Reading, before: Reading | None) -> float:
    """The largest number that a bar has to show; 1 where there is none."""
    both = (reading,) if before is None else (reading, before)
    ends = [end for each in both for end in (each.mean, each.high) if end is not None and math.isfinite(end)]
    return max(ends, default=0.0) or 1.0


def _row(reading: Reading, before: Reading | None, most: float) -> BeliefRow:
    def place(value: float | None) -> float | None:
        return None if value is None else round(min(max(value / most, 0.0), 1.0) * _FULL, 2)

    was = None if before is None else before.mean
    return BeliefRow(
        reading.parameter,
        number(was),
        number(reading.mean),
        number(reading.observations),
        place(reading.mean),
        place(was),
        place(reading.low),
        place(reading.high),
    )


def _title(family: str, scope: str) -> str:
    title, _ = _ABOUT.get(family, (f"{family.capitalize()} of {{scope}}", ""))
    return title.format(scope=scope_in_words(scope))


def scope_in_words(scope: str) -> str:
    """Whose belief it is, for people.

    Examples:
        >>> [scope_in_words(scope) for scope in ("code", "code/m", "code/*/a", "code/m/a?debug")]
        ['code', 'code, model m', 'code, agent a', 'code, model m, agent a, asked to debug']
    """
    path, _, intent = scope.partition("?")
    first, *rest = path.split("/")
    named = [f"{name} {value}" for name, value in zip(("model", "agent"), rest, strict=False) if value != ANY]
    return ", ".join([first, *named, *([f"asked to {intent}"] if intent else [])])
