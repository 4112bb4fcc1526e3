"""What was learned, on one page: a file that any browser shows, with nothing beside it and nothing to fetch."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np

from weft.app.views.beliefs import LIVE, PRIORS, beliefs_of, content_names
from weft.catalog.catalog import Catalog
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import ANY, Scope, Signal
from weft.learning.beliefs import Beliefs
from weft.learning.evidence import Evidence
from weft.learning.priors import Priors
from weft.learning.reading import BeliefChange, Reading, moves, path_of, read_all
from weft.runtime.clock import stamp, system_clock
from weft.runtime.pages import number, rendered

_TEMPLATE = "learned_page.html"
_FULL = 100.0  # width of a bar in its own units
_SENTENCES, _LISTED = 8, 12  # shown at most
_SEEN = 2.0  # of a bar, below which nobody would see a dot leave its tick
_OBSERVED = 1.0  # below it there is nothing to tell in a sentence
_OF_SEVERAL_UNITS = frozenset({"size", "quality", "trust", "threshold"})
_EVEN = 0.5  # between right and wrong
_OLDEST_HOURS, _POINTS, _HEIGHT = 26_280.0, 41, 40.0  # of a curve of decay: three years
_FOR_FEW = frozenset({"intent"})
_OF_FEW = frozenset("/?")  # in a scope: of a model, an agent or an intent alone

NameLookup = Callable[[Sequence[ContentHash]], Sequence[str]]
"""What people call contents: where each stands, and how it begins."""

_ABOUT: Mapping[str, tuple[str, str]] = {
    "weight": (f"Share of the score, of all {len(Signal)} signals, in {{scope}}", "signal"),
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

    @property
    def stayed(self) -> bool:
        """Whether nobody would see it move."""
        if self.at is None or self.was_at is None:
            return self.was == self.now
        return abs(self.at - self.was_at) < _SEEN


class BeliefGroup(NamedTuple):
    """Beliefs of one kind about one thing: what the rows are, what the bars show, and whether it is folded away."""

    name: str
    what: str
    scale: str
    rows: Sequence[BeliefRow]
    aside: bool


class Listed(NamedTuple):
    """A table of words."""

    name: str
    about: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class DecayCurve(NamedTuple):
    """How much of a domain still holds by age, as points of a line 100 wide and 40 high, one for each age shown."""

    domain: str
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class LearnedPage:
    """All that the page shows."""

    title: str  # of what, and made when
    level: str  # of the intervals
    moves: Sequence[str]  # what was said, and what changed by it, a sentence each
    groups: Sequence[BeliefGroup]
    lists: Sequence[Listed]
    curves: Sequence[DecayCurve]  # of domains that something was said about

    def html(self) -> str:
        """The page; whatever texts of the store hold is shown as text."""
        return rendered(__package__, _TEMPLATE, page=self)


def page_of(
    title: str, before: Beliefs, after: Beliefs, priors: Priors, *, hashes: Sequence[ContentHash], names: NameLookup
) -> LearnedPage:
    """The page of what changed between two states of evidence."""
    weights = _observed_weights(after)
    old, new = (_readings(beliefs, priors, after.scopes(), weights) for beliefs in (before, after))
    sentences = [*_verdicts(after), *_sentences(moves(old, new, level=priors.interval.level))]
    former = {reading.key: reading for reading in old}
    observed = [reading for reading in new if reading.observations > 0.0]
    groups = [
        _group(family, scope, [(reading, former.get(reading.key)) for reading in readings])
        for (family, scope), readings in groupby(observed, key=lambda reading: (reading.family, reading.scope))
    ]
    lists = [_questions(after, names), *_contents(after, hashes, names), _triggers(after, names)]
    curves = [_decay(domain, before, after) for domain in Domain if after.reported.decay(domain).observations > 0.0]
    return LearnedPage(title, f"{priors.interval.level:.0%}", sentences[:_SENTENCES], groups, lists, curves)


def version_page(
    catalog: Catalog, priors: Priors, read: tuple[Beliefs, Evidence], *, version: str = LIVE, since: str = PRIORS
) -> LearnedPage:
    """The page of one learned version, or of what is live, as `beliefs_of` reads it, beside another, or the priors."""
    (new, evidence), (old, _) = read, beliefs_of(catalog, priors, since)
    hashes = sorted({ContentHash(key.content_hash) for key in evidence.usage if key.content_hash})
    title = f"{version}, beside {since} · {catalog.root} · {stamp(system_clock())}"
    nothing_live = catalog.pointer().generation is None
    with nullcontext() if nothing_live else closing(catalog.open_live(searched=False)) as generation:
        return page_of(title, old, new, priors, hashes=hashes, names=partial(content_names, generation))


def _verdicts(beliefs: Beliefs) -> list[str]:
    """How many people said something, and of how many questions."""
    words = beliefs.precedents.verdicts.take(beliefs.precedents.verdicts.spoken)
    if not len(words.principal):
        return []
    people, questions = (len(np.unique(each)) for each in (words.principal, words.question))
    right = int((words.good >= _EVEN).sum())
    return [
        f"{_counted(people, 'person', 'people')} called {_counted(right, 'answer', 'answers')} right and "
        f"{len(words.good) - right:,} wrong, of {_counted(questions, 'question', 'questions')}."
    ]


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _sentences(changes: Sequence[BeliefChange]) -> Iterator[str]:
    """What changed, a sentence each: what every search goes by first, the largest change of those beyond chance."""
    seen = [
        (move.beyond_chance, move.before, move.after, move.change or 0.0)
        for move in changes
        if move.before is not None and move.after is not None and move.after.observations >= _OBSERVED
        if number(move.before.mean) != number(move.after.mean)
        if not _OF_FEW & set(move.after.scope)
    ]
    seen.sort(key=lambda each: (each[2].family != "weight", not each[0], -abs(each[3])))
    for beyond, before, after, _ in seen:
        yield (
            f"{_title(after.family, after.scope)}: {after.parameter} {number(before.mean)} → {number(after.mean)}, "
            f"after {number(after.observations)} observations{'' if beyond else '; chance may have done that'}."
        )


def _readings(
    beliefs: Beliefs, priors: Priors, scopes: Sequence[Scope], weights: Collection[tuple[str, str, str]]
) -> list[Reading]:
    """Every belief as reports and `weft learned show` give it; of weights those that feedback spoke of by now."""
    readings = read_all(beliefs, priors, scopes)
    shown = [each for each in readings if each.family != "weight" or each.key in weights]
    return [replace(each, parameter=each.parameter.replace("_", " ")) for each in shown]


def _observed_weights(beliefs: Beliefs) -> set[tuple[str, str, str]]:
    """Weights that there are observations of."""
    return {
        ("weight", path_of(scope), signal.value)
        for scope in beliefs.scopes()
        for signal, belief in beliefs.weights(scope, tuple(Signal)).items()
        if belief.n_effective > 0.0
    }


def _questions(beliefs: Beliefs, names: NameLookup) -> Listed:
    """What people called right and wrong, by question."""
    precedents, people = beliefs.precedents, defaultdict[tuple[str, str], list[set[int]]](lambda: [set(), set()])
    words = precedents.verdicts.take(precedents.verdicts.spoken)
    for content, question, principal, good in zip(
        words.content.tolist(), words.question.tolist(), words.principal.tolist(), words.good.tolist(), strict=True
    ):
        people[precedents.questions[question], precedents.contents[content]][good < _EVEN].add(principal)
    order = sorted(people, key=lambda pair: (-len(people[pair][0] | people[pair][1]), -len(people[pair][0]), pair))
    order = order[:_LISTED]
    named = zip(order, names([ContentHash(content) for _, content in order]), strict=True)
    rows = [
        (precedents.texts.get(pair[0], "(private)"), str(len(people[pair][0])), str(len(people[pair][1])), name)
        for pair, name in named
    ]
    about = "People who called a content right or wrong for a question: it is found by that question and near ones."
    return Listed("What people said", about, ("question", "right", "wrong", "content"), rows)


def _decay(domain: Domain, before: Beliefs, after: Beliefs) -> DecayCurve:
    """Freshness by age, from an hour to three years, on a logarithmic scale."""
    ages = np.logspace(0.0, math.log10(_OLDEST_HOURS), _POINTS)
    was, now = (
        " ".join(
            f"{_FULL * place / (_POINTS - 1):.1f},{_HEIGHT * (1.0 - fresh):.1f}"
            for place, fresh in enumerate(beliefs.freshness_many(domain, ages).tolist())
        )
        for beliefs in (before, after)
    )
    return DecayCurve(domain.value, was, now)


def _contents(beliefs: Beliefs, hashes: Sequence[ContentHash], names: NameLookup) -> tuple[Listed, Listed]:
    """The contents that were judged good most, and those judged bad most."""
    signals = beliefs.content_signals(hashes)
    usage, good, bad = signals.usage.tolist(), signals.positive.tolist(), signals.negative.tolist()
    order = sorted(range(len(hashes)), key=lambda at: (-usage[at], hashes[at]))
    best = [at for at in order if good[at] > bad[at]][:_LISTED]
    worst = [at for at in reversed(order) if bad[at] > good[at]][:_LISTED]

    def listed(name: str, about: str, places: Sequence[int]) -> Listed:
        named = zip(places, names([hashes[at] for at in places]), strict=True)
        rows = [(number(good[at]), number(bad[at]), number(usage[at]), content) for at, content in named]
        return Listed(name, about, ("good", "bad", "usage", "content"), rows)

    return (
        listed("Found good", "Outcomes as they count today; usage is the chance that the next one is good.", best),
        listed("Found bad", "What people were shown and passed over, or voted down.", worst),
    )


def _triggers(beliefs: Beliefs, names: NameLookup) -> Listed:
    """Words that contents are retrieved by because somebody once picked them from far down."""
    triggers = sorted(beliefs.triggers.every(), key=lambda each: (-each.strength, each.term, each.content_hash))
    shown = triggers[:_LISTED]
    rows = [
        (each.term, number(each.strength), "on trial" if each.on_trial else "in force", name)
        for each, name in zip(shown, names([each.content_hash for each in shown]), strict=True)
    ]
    about = "Words of queries that now find what was once picked from far down."
    return Listed("Words that lead somewhere", about, ("word", "people", "", "content"), rows)


def _group(family: str, scope: str, readings: Sequence[tuple[Reading, Reading | None]]) -> BeliefGroup:
    ends = [_end(*each) for each in readings]
    if family in _OF_SEVERAL_UNITS:
        scale = "each on a scale of its own"
    else:
        ends, scale = [max(ends)] * len(ends), f"0 to {number(max(ends))}"
    rows = [_row(*each, end) for each, end in zip(readings, ends, strict=True)]
    if family == "weight":
        rows.sort(key=lambda row: -(row.at or 0.0))
    moved = [row for row in rows if not row.stayed]
    aside = family in _FOR_FEW or not moved
    _, what = _ABOUT.get(family, ("", "belief"))
    return BeliefGroup(_title(family, scope), what, scale, moved or rows, aside)


def _end(reading: Reading, before: Reading | None) -> float:
    """The largest number that a bar has to show; 1 where there is none."""
    both = (reading,) if before is None else (reading, before)
    ends = [end for each in both for end in (each.mean, each.high) if end is not None and math.isfinite(end)]
    return max(ends, default=0.0) or 1.0


def _row(reading: Reading, before: Reading | None, most: float) -> BeliefRow:
    was = None if before is None else before.mean
    places = [
        None if value is None else round(min(max(value / most, 0.0), 1.0) * _FULL, 2)
        for value in (reading.mean, was, reading.low, reading.high)
    ]
    return BeliefRow(reading.parameter, number(was), number(reading.mean), number(reading.observations), *places)


def _title(family: str, scope: str) -> str:
    """What a belief is about, and whose it is: "code/m/a?debug" is of code, model m, agent a, asked to debug."""
    title, _ = _ABOUT.get(family, (f"{family.capitalize()} of {{scope}}", ""))
    path, _, intent = scope.partition("?")
    first, *rest = path.split("/")
    named = [f"{name} {value}" for name, value in zip(("model", "agent"), rest, strict=False) if value != ANY]
    return title.format(scope=", ".join([first, *named, *([f"asked to {intent}"] if intent else [])]))
