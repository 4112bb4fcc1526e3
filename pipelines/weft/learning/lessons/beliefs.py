"""How good each lesson is, how sure that is, and what may be done with it (LES-2, LES-3, LES-4).

A lesson has the prior Beta(s·m, s·(1 − m)), updated by its outcomes. m is the first confidence of its source. It is
higher for a repeated mistake and a critical lesson, and lower if people disagree. That of a revision is drawn towards
its parent's. What is expected of a source is learned from the lessons of all:

    shift        δ of all sources together: the mode of a normal with mean 0, after H good observations where the
                 sources' n_s were expected to be σ(logit m₀ + δ)
    of a source  (K·σ(logit m₀ + δ) + h) / (K + n), with h of its n observations good

One lesson tells of its source as n·t/(t + n) observations, and nothing of what was to be expected of itself; a source
of all sources as n·K/(K + n).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec.structs import replace
from scipy.special import betainc, betaincinv, expit, logit

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import INJECTABLE, Lesson, LessonPriority, LessonResult, LessonSource, LessonStatus
from weft.domain.lesson_match import BelievedLesson
from weft.learning.evidence import MICRO, Evidence
from weft.learning.families.beta import Beta
from weft.learning.lesson_priors import LessonPrior
from weft.learning.lessons.counts import PRIORITIES, RESULTS, SOURCES, LessonCounts
from weft.learning.lessons.rows import LessonNote, injected_of, lesson_in, note_in
from weft.learning.uses import Uses

ACTIVE, NEEDS_VALIDATION, DORMANT, RETIRED = range(4)
STATUSES = (LessonStatus.ACTIVE, LessonStatus.NEEDS_VALIDATION, LessonStatus.DORMANT, LessonStatus.RETIRED)
_URGENT = [PRIORITIES.index(each) for each in (LessonPriority.CRITICAL, LessonPriority.HIGH)]


@dataclass(frozen=True, slots=True)
class LessonBelief:
    """What is believed of one lesson."""

    id: str
    p_good: float  # posterior mean of the share of good outcomes; `lower` and `upper` hold it with the level asked for
    lower: float
    upper: float
    prior: float  # its first confidence, by source
    status: LessonStatus
    reason: str  # why it has its status, for people
    source: LessonSource
    priority: LessonPriority
    counts: Mapping[LessonResult, int]  # outcomes as they came
    observations: float
    sayings: int
    injected: int  # how often it was put before an agent
    representative: str  # the lesson that it is merged into; its own id where it is merged into none
    # Days since the epoch, of the first and the last that was heard of it, and of its last injection; None where
    # there was none
    first_day: int
    last_day: int
    injected_day: int | None


class LessonBeliefs:
    """What is believed of every lesson at one time; arrays are computed when they are first asked for, and kept."""

    def __init__(self, counts: LessonCounts, prior: LessonPrior, *, effective_cap: float, level: float) -> None:
        self.counts = counts
        self._prior = prior
        self._cap = effective_cap
        self._level = level

    @property
    def ids(self) -> list[str]:
        """Every lesson that anything was said of, or came of."""
        return list(self.counts.ids)

    @property
    def separate(self) -> frozenset[frozenset[str]]:
        """Pairs of ids that somebody spoke of and that are two."""
        return self.counts.separate

    def believed_share(self, lesson_id: str) -> Beta:
        """The share of a lesson's outcomes that are good; of one that is unknown, the prior of other sources."""
        place = self.counts.place.get(lesson_id)
        if place is None:
            mean = self._prior.sources[LessonSource.OTHER]
            return Beta(self._prior.strength * mean, self._prior.strength * (1.0 - mean))
        a, b, n = (float(each[self.counts.of_class[place]]) for each in (*self._posterior, self._observations))
        return Beta(a, b, n)

    def of(self, lesson_id: str) -> LessonBelief | None:
        """What is believed of a lesson; None where nothing is known of it."""
        place = self.counts.place.get(lesson_id)
        return None if place is None else self._belief(place)

    def all(self) -> list[LessonBelief]:
        """What is believed of every lesson, in the order of their ids."""
        return [self._belief(place) for place in range(len(self.counts))]

    def lesson(self, lesson_id: str) -> Lesson | None:
        """A lesson as most said it; None where nobody said it, or it was forgotten."""
        place = self.counts.place.get(lesson_id)
        return None if place is None else self._lessons([place]).get(place)

    def lessons(self) -> dict[str, Lesson]:
        """All lessons with a text, by id."""
        return {self.counts.ids[place]: each for place, each in self._lessons(range(len(self.counts))).items()}

    def injectable(self) -> list[BelievedLesson]:
        """The lessons that may be put before an agent, active or in need of validation, in the order of their ids."""
        injectable = np.isin(self.status, [STATUSES.index(each) for each in INJECTABLE])
        own = self.counts.of_class == np.arange(len(self.counts))
        places = [int(each) for each in np.flatnonzero(injectable & own)]
        texts = self._lessons(places)
        return [self._believed(place, texts[place]) for place in places if place in texts]

    def believed(self, lesson_id: str) -> BelievedLesson | None:
        """A lesson with what is believed of it; None where it has no text."""
        text = self.lesson(lesson_id)
        return None if text is None else self._believed(self.counts.place[lesson_id], text)

    def history(self, lesson_id: str) -> list[LessonNote]:
        """What happened to a lesson, and to those merged with it, in order: when, by whom, why.

        What was said of another lesson and names one of these is told, too: that it revises it, is it, or is not.
        """
        place = self.counts.place.get(lesson_id)
        if place is None:
            return []
        members = self.counts.members(place)
        own = {self.counts.ids[each] for each in members}
        bins = self.counts.notes({*members, *self.counts.naming(members)})
        notes = (replace(note_in(name), lesson=of) for of, name in bins)
        return sorted((note for note in notes if note.lesson in own or note.other in own), key=_in_order)

    def propensity(self, lesson_id: str) -> float:
        """The probability that a lesson is injected where it fits: 1 of an active one; of one in need of validation
        that a draw from its belief is as good as an active one; else 0 (LES-3).
        """
        place = self.counts.place.get(lesson_id)
        if place is None or self.status[place] in {DORMANT, RETIRED}:
            return 0.0
        if self.status[place] == ACTIVE:
            return 1.0
        a, b = (float(each[self.counts.of_class[place]]) for each in self._posterior)
        return float(1.0 - betainc(a, b, self._prior.active))

    def calibration(self) -> list[tuple[float, bool]]:
        """P(good) as it was stamped on each injection, and whether what came of it was good (LES-11)."""
        hits = ((injected_of(bin_)[1], good) for _, bin_, _, good in self.counts.injected())
        return sorted((stamped, good) for stamped, good in hits if stamped is not None and good is not None)

    @cached_property
    def sources(self) -> Mapping[LessonSource, float]:
        """The first confidence of lessons of each source, as it was learned (LES-2)."""
        nothing = np.zeros(len(SOURCES))
        means = self._rates.means(np.arange(len(SOURCES)), nothing, nothing)
        return {source: float(mean) for source, mean in zip(SOURCES, means, strict=True)}

    @cached_property
    def status(self) -> Ints:
        """Numbers of `STATUSES`, int64 (n,); those of a class share one, and a lesson that was revised is retired."""
        by_class = self._status_of_class[self.counts.of_class]
        superseded = np.zeros(len(self.counts), dtype=bool)
        for child, parent in self.counts.parents.items():
            superseded[parent] |= by_class[child] != RETIRED
        return np.where(superseded, RETIRED, by_class)

    @cached_property
    def _status_of_class(self) -> Ints:
        prior, (a, b) = self._prior, self._posterior
        mean = a / (a + b)
        urgent = np.isin(self._priority, _URGENT)
        status = np.where(mean >= prior.dormant, NEEDS_VALIDATION, DORMANT)
        status = np.where((mean >= prior.active) | ((mean >= prior.active_urgent) & urgent), ACTIVE, status)
        return np.where(self.fails | self.failed | self.unwanted, RETIRED, status)

    @cached_property
    def fails(self) -> Flags:
        """Whether each class is wrong more often than not, as sure as `retired`, with failures counted double: (n,)."""
        a, b = self._posterior
        misses = self.counts.counted[:, 1] / MICRO * self._scale
        doubled = b + (self._prior.failures - 1.0) * misses
        fails = np.zeros(len(self.counts), dtype=bool)
        some = np.flatnonzero((self.counts.counted[:, 1] > 0) & (doubled > a))  # else at most one half
        fails[some] = betainc(a[some], doubled[some], 0.5) >= self._prior.retired
        return fails

    @cached_property
    def failed(self) -> Flags:
        """Whether each class failed a lone user three times of late, and hardly did any good: bool (n,).

        Nobody else will say so; of several people it takes more, however good the lesson was to be.
        """
        hits, misses = (self.counts.counted / MICRO).T
        prior = self._prior
        return np.asarray((misses >= prior.lone_failures) & (hits <= prior.lone_share * misses) & self.counts.lone)

    @cached_property
    def unwanted(self) -> Flags:
        """Whether people want each class gone, bool (n,)."""
        unwanted = np.zeros(len(self.counts), dtype=bool)
        for place, opinion in self.counts.opinions.items():
            unwanted[place] = opinion.is_against
        return unwanted

    @cached_property
    def _source(self) -> Ints:
        """The source that speaks most for each class, int64 (n,); `other` of one that nobody said."""
        sayings = self.counts.statements_by_source > 0
        stated = np.array([self._prior.sources[source] for source in SOURCES])
        best = np.where(sayings, stated[None, :], -1.0).argmax(axis=1)
        return np.where(sayings.any(axis=1), best, SOURCES.index(LessonSource.OTHER))

    @cached_property
    def _priority(self) -> Ints:
        """The priority that was said most, of equals the most urgent; medium of one that nobody said."""
        sayings = self.counts.sayings.sum(axis=1)
        return np.where(sayings.any(axis=1), sayings.argmax(axis=1), PRIORITIES.index(LessonPriority.MEDIUM))

    @cached_property
    def _scale(self) -> Floats:
        n = self.counts.counted.sum(axis=1) / MICRO
        return np.asarray(np.minimum(1.0, np.divide(self._cap, n, out=np.ones_like(n), where=n > 0.0)))

    @cached_property
    def _observations(self) -> Floats:
        return np.asarray(self.counts.counted.sum(axis=1) / MICRO * self._scale)

    @cached_property
    def _of_lessons(self) -> tuple[Floats, Floats]:
        """What each class tells of its source: good observations, and all, float64 (n,) each."""
        own = self.counts.of_class == np.arange(len(self.counts))
        hits, misses = (self.counts.counted_of_sources[:, side] / MICRO * own for side in (0, 1))
        # Of one lesson much is observed, and little of it tells of its source: outcomes of a lesson go together.
        per_lesson = np.divide(self._prior.per_lesson, self._prior.per_lesson + hits + misses)
        return np.asarray(hits * per_lesson), np.asarray((hits + misses) * per_lesson)

    @cached_property
    def _rates(self) -> SourceRates:
        return SourceRates.of(self._prior, self._source, *self._of_lessons)

    @cached_property
    def _first(self) -> Floats:
        """The prior mean of each class by its source, float64 (n,)."""
        prior, sayings = self._prior, self.counts.statements_by_source
        mean = self._rates.means(
            self._source, *self._of_lessons
        )  # what came of a lesson is no reason to have expected it
        repeated = SOURCES.index(LessonSource.REPEATED_MISTAKE)
        again = np.clip(sayings[:, repeated] / MICRO - 1.0, 0.0, prior.most_repetitions)
        mean = mean + np.where(self._source == repeated, prior.repetition * again, 0.0)
        critical = self._priority == PRIORITIES.index(LessonPriority.CRITICAL)
        mean = np.where(critical, np.minimum(prior.highest, mean * prior.critical), mean)
        split = [place for place, opinion in self.counts.opinions.items() if opinion.split]
        mean[split] *= prior.conflicting
        return np.clip(mean, prior.lowest, prior.highest)

    @cached_property
    def first_confidence(self) -> Floats:
        """The prior mean of each class, revisions drawn towards their parents, float64 (n,)."""
        mean, share, strength = self._first.copy(), self._prior.revised, self._prior.strength
        counted = self.counts.counted / MICRO * self._scale[:, None]
        of, parents = self.counts.of_class, self.counts.parents
        # Parents first: what a revision is drawn towards holds already what its parent was drawn towards.
        for child in _ancestors_first(parents):
            own, parent = of[child], of[parents[child]]
            if own != parent:
                hits, misses = counted[parent]
                before = (strength * mean[parent] + hits) / (strength + hits + misses)
                mean[own] = (1.0 - share) * mean[own] + share * before
        return mean

    @cached_property
    def _posterior(self) -> tuple[Floats, Floats]:
        counted, strength = self.counts.counted / MICRO * self._scale[:, None], self._prior.strength
        return strength * self.first_confidence + counted[:, 0], strength * (1.0 - self.first_confidence) + counted[
            :, 1
        ]

    def _belief(self, place: int) -> LessonBelief:
        of = int(self.counts.of_class[place])
        a, b = (float(each[of]) for each in self._posterior)
        lower, upper = self._interval(a, b)
        injected, last = self.counts.injections
        first_day, last_day = self.counts.days
        return LessonBelief(
            id=self.counts.ids[place],
            p_good=a / (a + b),
            lower=lower,
            upper=upper,
            prior=float(self.first_confidence[of]),
            status=STATUSES[self.status[place]],
            reason=self._reason(place, of),
            source=SOURCES[self._source[of]],
            priority=PRIORITIES[self._priority[of]],
            counts=self._came(of),
            observations=float(self._observations[of]),
            sayings=int(self.counts.sayings[of].sum()) // MICRO,
            injected=int(injected[place]),
            representative=self.counts.ids[of],
            first_day=int(first_day[place]),
            last_day=int(last_day[place]),
            injected_day=None if last[place] < 0 else int(last[place]),
        )

    def _interval(self, a: float, b: float) -> tuple[float, float]:
        tail, mean = (1.0 - self._level) / 2.0, a / (a + b)
        return min(float(betaincinv(a, b, tail)), mean), max(float(betaincinv(a, b, 1.0 - tail)), mean)

    def _came(self, of: int) -> dict[LessonResult, int]:
        halves = 2 * self.counts.outcomes[of] // MICRO  # of what was heard a part counts: rounded, half of one up
        return {result: (int(half) + 1) // 2 for result, half in zip(RESULTS, halves, strict=True)}

    def _reason(self, place: int, of: int) -> str:
        prior, (a, b) = self._prior, self._posterior
        mean = float(a[of] / (a[of] + b[of]))
        instead = sorted(self.counts.ids[child] for child, parent in self.counts.parents.items() if parent == place)
        bound = prior.active if mean >= prior.active else prior.active_urgent
        reason = {
            LessonStatus.ACTIVE: f"P(good) {mean:.2f} is at least {bound:g}",
            LessonStatus.NEEDS_VALIDATION: f"P(good) {mean:.2f} is below {prior.active:g}: outcomes will tell",
            LessonStatus.DORMANT: f"P(good) {mean:.2f} is below {prior.dormant:g}",
            LessonStatus.RETIRED: f"revised by {', '.join(instead)}",
        }[STATUSES[self.status[place]]]
        if self.unwanted[of]:
            reason = f"a person's word: {self.counts.opinions[of].word}"
        elif self.fails[of]:
            times = f"failures counted {prior.failures:g} times"
            reason = f"it fails: P(rate < .5) is at least {prior.retired:g} with {times}"
        elif self.failed[of]:
            reason = "it fails: three times of late, and hardly anything good came of it"
        elif of != place and self.status[place] != RETIRED:
            reason = f"merged into {self.counts.ids[of]}; {reason}"
        return reason

    def _believed(self, place: int, text: Lesson) -> BelievedLesson:
        of = int(self.counts.of_class[place])
        a, b = (float(each[of]) for each in self._posterior)
        lower, upper = self._interval(a, b)
        return BelievedLesson(
            lesson=text,
            p_good=a / (a + b),
            lower=lower,
            upper=upper,
            status=STATUSES[self.status[place]],
            counts=self._came(of),
        )

    def _lessons(self, places: Iterable[int]) -> dict[int, Lesson]:
        hits: dict[int, Lesson] = {}
        for place, name in self.counts.texts(places).items():
            try:
                hits[place] = lesson_in(name, SOURCES[self._source[self.counts.of_class[place]]])
            except InvalidLessonError:
                continue  # written by another version: what does not hold today is shown to nobody
        return hits


def read_lessons(
    prior: LessonPrior, evidence: Evidence, today: int, *, effective_cap: float, level: float
) -> LessonBeliefs:
    """What is believed of lessons on the day `today`; time is linear in the masses of use."""
    counts = LessonCounts(Uses.of(evidence.usage).columns(), prior, today)
    return LessonBeliefs(counts, prior, effective_cap=effective_cap, level=level)


def _in_order(note: LessonNote) -> tuple[int, str, str]:
    return note.at, note.what, note.event


def _ancestors_first(parents: Mapping[int, int]) -> list[int]:
    """Revisions behind those that they revise; one in a circle stands for itself."""
    order: list[int] = []
    placed: set[int] = set()
    for start in sorted(parents):
        chain = [start]
        while (above := parents.get(chain[-1])) in parents and above not in placed and above not in chain:
            chain.append(above)  # type: ignore[arg-type]
        for each in reversed(chain):
            if each not in placed:
                placed.add(each)
                order.append(each)
    return order


_STEPS = 30  # of Newton's method: log-odds of ten are beyond all stated ones


@dataclass(frozen=True, slots=True)
class SourceRates:
    """What lessons tell of their sources.

    Attributes:
        stated: Log-odds as stated, float64 (sources,), in the order of `SOURCES`.
        goods, totals: Good observations and all, (sources,).
        share: Of those, what is of all sources together, (sources,).
        shift: Of all sources, in log-odds.
    """

    prior: LessonPrior
    stated: Floats
    goods: Floats
    totals: Floats
    share: Floats
    shift: float

    @classmethod
    def of(cls, prior: LessonPrior, source: Ints, good: Floats, total: Floats) -> SourceRates:
        """The rates by what each lesson tells.

        Args:
            source: Number in `SOURCES` of each lesson's source, int64 (n,).
            good, total: Good observations that it is worth, and all, float64 (n,).
        """
        stated = logit(np.array([prior.sources[each] for each in SOURCES]))
        goods, totals = (
            np.bincount(source, weights=each, minlength=len(SOURCES)).astype(np.float64) for each in (good, total)
        )
        # What one source has of its own is not all that it says of others.
        share = prior.source_strength / (prior.source_strength + totals)
        shift = _common_shift(float(goods @ share), totals * share, stated, prior.root_spread)
        return cls(prior, stated, goods, totals, share, shift)

    def means(self, source: Ints, good: Floats, total: Floats) -> Floats:
        """The mean of some sources, (k,), from what lessons tell of them but for some observations of each."""
        rates = expit(self.stated + self.shift)
        curve = (self.totals * self.share) @ (rates * (1.0 - rates)) + 1.0 / self.prior.root_spread**2
        rate, of = rates[source], self.share[source]
        # From the mode of all, one step of Newton's method leads to that without a few.
        without = self.shift + of * (total * rate - good) / (curve - of * total * rate * (1.0 - rate))
        strength = self.prior.source_strength
        left_good, left = np.maximum(0.0, self.goods[source] - good), np.maximum(0.0, self.totals[source] - total)
        return np.asarray((strength * expit(self.stated[source] + without) + left_good) / (strength + left))


def _common_shift(hits: float, n: Floats, expected: Floats, spread: float) -> float:
    """By how much all sources are better than stated, in log-odds: normal around 0, and logistic."""
    shift, precision = 0.0, 1.0 / spread**2
    for _ in range(_STEPS):
        rates = expit(expected + shift)
        slope = hits - float(n @ rates) - precision * shift
        # A step is bounded: of a concave function this leads to the mode all the same.
        shift += float(np.clip(slope / (float(n @ (rates * (1.0 - rates))) + precision), -1.0, 1.0))
    return shift
