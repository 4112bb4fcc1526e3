"""How signals vary together among outcomes of one kind: what keeps a weight from counting the same thing twice (LRN-4).

A result is shown because its signals together are high. A shown result that is low in one signal was lifted by the
others. So signals look opposed that are not, and each alone looks worse or better than it is. Signals that say the same
thing, such as two encoders, look good twice. Their covariance within outcomes of one kind undoes both (Fisher, Annals
of Eugenics 1936).

Outcomes under one question are alike: the same results are shown, and are right or wrong for it each time. So n of them
say as much as n / (1 + (n − 1)·ρ) of different questions, with ρ their correlation (the design effect of a cluster;
Kish, Survey Sampling, 1965). That is never more than 1/ρ, however often it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.documents import Domain
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.verdicts import is_good
from weft.learning.parameters import FOR, PAIRS, product_parameter
from weft.learning.pooling.daily import DailyMasses
from weft.learning.pooling.gathering import SIGNALS
from weft.learning.priors import CovariancePrior
from weft.learning.recency import Discount, capped_share
from weft.learning.uses import Uses, numbered

_DOMAINS: tuple[Domain, ...] = tuple(Domain)
_COLUMNS = {
    product_parameter(*pair, good=good): (not good) * len(PAIRS) + place
    for place, pair in enumerate(PAIRS)
    for good in (True, False)
}


@dataclass(frozen=True, slots=True)
class DesignEffect:
    """What all outcomes of known questions are worth, in observations."""

    worth: float  # as many independent ones would say as much, >= 0
    lost: float  # by how many they are more, >= 0

    def independent(self, outcomes: float) -> float:
        """How many independent outcomes would say as much as so many, in [0, outcomes].

        What is kept by question is kept neither by domain nor by agent, so that this holds for all together. Of fewer
        it is at most too much; and what is said of contents may be more than what is said of signals.
        """
        return min(outcomes, max(self.worth, outcomes - self.lost))


def read_design_effect(
    evidence: Evidence, discount: Discount, *, correlation: float, principal_cap: float
) -> DesignEffect:
    """What outcomes are worth by the questions that they came of."""
    per_question = _outcomes_per_question(evidence, discount, principal_cap=principal_cap)
    worth = float((per_question / (1.0 + np.maximum(per_question - 1.0, 0.0) * correlation)).sum())
    return DesignEffect(worth, lost=float(per_question.sum()) - worth)


def _outcomes_per_question(evidence: Evidence, discount: Discount, *, principal_cap: float) -> Floats:
    """Outcomes of each question as they count today, in observations, ascending, float64 (questions,).

    What is not known to come of any question is left out. In this order sums are the same in whichever order evidence
    was gathered.

    Examples:
        >>> from weft.learning.uses import UsageKey
        >>> n = {("a", "ada", "x"): 3, ("a", "", "x"): 2, ("b", "ada", "x"): 1, ("c", "", "y"): 2, ("d", "", ""): 2}
        >>> usage = {UsageKey(0, *key[:1], "positive", *key[1:]): each * MICRO for key, each in n.items()}
        >>> _outcomes_per_question(Evidence(usage=usage), Discount(0, 30.0), principal_cap=1.0).tolist()
        [2.0, 4.0]
    """
    uses = Uses.of(evidence.usage).columns()
    bins = [name for name in uses.bin.values if is_good(name) is not None]
    outcomes = uses.bin.holds(*bins) & ~uses.question.holds("")
    question, content, principal = (
        (each.codes[outcomes], len(each.values)) for each in (uses.question, uses.content, uses.principal)
    )
    first, speaker = numbered(question, content, principal)
    by_speaker = np.zeros(len(first), dtype=np.int64)
    masses = discount.of_days(uses.micro[outcomes].astype(np.float64), uses.day[outcomes]).astype(np.int64)
    np.add.at(by_speaker, speaker, masses)
    identified = ~uses.principal.holds("")[outcomes][first]
    most = np.where(identified, round(principal_cap * MICRO), np.iinfo(np.int64).max)
    of_question, asked = np.unique(question[0][first], return_inverse=True)
    counted = np.zeros(len(of_question), dtype=np.int64)
    np.add.at(counted, asked, np.clip(by_speaker, 0, most))
    return np.asarray(np.sort(counted) / MICRO)


@dataclass(frozen=True, slots=True)
class SignalCovariance:
    """How signals vary within outcomes of one kind."""

    covariance: Floats  # float64 (signals, signals), positive definite
    # float64 (signals,) in [0, 1), how far what was seen of a signal's spread says more than its prior
    certainty: Floats
    # float64 (signals,) in (0, 1], what each adds to the number of directions in which chance may find something: less
    # for one that was seen and hardly varies
    free: Floats
    # float64 (signals,) in (0, 1], how far a mean of the signal is from the truth, in units of how far it would be if
    # the signal varied as stated
    noise: Floats
    # Product of the shares of both kinds of outcome, in (0, ¼]: where one is rare, means differ by chance
    balance: float
    caution: float  # Variance of the difference of both means, in units of that of independent outcomes
    repetition: DesignEffect  # What outcomes are worth where the same was asked again, in whatever domain


def read_signal_covariance(
    prior: CovariancePrior, evidence: Evidence, discount: Discount, *, daily_cap: float, principal_cap: float
) -> Mapping[Domain, SignalCovariance]:
    """The spread of the signals in each domain.

    Σ = (ν·v·I + Σ over kinds of n·C) / (ν + Σ n) with C the covariance among outcomes of that kind and n how many there
    were; before any evidence all signals vary alike, by v, and independently. Off its diagonal it is shrunk by
    n/(n + μ). A signal's scatter Σ n·c, in units of ν·v, says how far its own spread is known: 1 − e^(−scatter).
    """
    masses = _masses(evidence, discount, daily_cap)
    repetition = read_design_effect(
        evidence, discount, correlation=prior.question_correlation, principal_cap=principal_cap
    )
    return {domain: _spread(prior, masses[place], repetition) for place, domain in enumerate(_DOMAINS)}


def _masses(evidence: Evidence, discount: Discount, daily_cap: float) -> Ints:
    """Micro-units as they count today, int64 (domains, kinds of outcome, pairs, for and against)."""
    rows = [
        (_DOMAINS.index(Domain(key.domain)) * len(_COLUMNS) + column, key.day, micro, key.bin != FOR)
        for key, micro in evidence.counts.items()
        if (column := _COLUMNS.get(key.parameter)) is not None and key.domain in _DOMAINS
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    daily = DailyMasses.of(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(np.bool_))
    share = capped_share(np.maximum(daily.hits + daily.misses, 0) / MICRO, daily_cap)
    counted = np.zeros((len(_DOMAINS) * len(_COLUMNS), 2), dtype=np.int64)
    for side, micro in enumerate((daily.hits, daily.misses)):
        masses_today = np.rint(discount.of_days(micro.astype(np.float64), daily.day) * share)
        np.add.at(counted[:, side], daily.place, masses_today.astype(np.int64))
    return counted.reshape(len(_DOMAINS), 2, len(PAIRS), 2)


def _spread(prior: CovariancePrior, masses: Ints, repetition: DesignEffect) -> SignalCovariance:
    size = len(SIGNALS)
    scatter, seen = np.zeros((size, size)), np.zeros((size, size))
    outcomes = []
    for kind in masses:
        covariance, n = _covariance(np.maximum(kind, 0) / MICRO)
        scatter += n * covariance
        seen += n
        outcomes.append(float(np.diag(n).max()))
    stated = prior.strength * prior.variance
    strength = seen + prior.strength
    # Variances count at once. How two signals vary together must be seen often: there are many pairs to be wrong in.
    shared = np.where(np.eye(size, dtype=bool), 1.0, seen / (seen + prior.apart))
    covariance = _positive(shared * (scatter + stated * np.eye(size)) / strength, prior)
    varied = np.maximum(np.diag(scatter), 0.0) / stated
    return SignalCovariance(
        covariance=covariance,
        certainty=-np.expm1(-varied),
        free=1.0 - np.diag(seen / strength) / (1.0 + varied),
        noise=np.minimum(1.0, np.sqrt(np.diag(covariance) / prior.variance)),
        balance=_balance(*outcomes),
        caution=prior.caution,
        repetition=repetition,
    )


def _balance(good: float, bad: float) -> float:
    """Product of the shares of both, with half of an outcome more of either: ¼ where none was seen."""
    total = good + bad + 1.0
    return (good + 0.5) * (bad + 0.5) / total**2


def _covariance(kind: Floats) -> tuple[Floats, Floats]:
    """Of one kind of outcome, and how many told both signals; 0 where none did. float64 (signals, signals) each."""
    total = kind.sum(axis=1)
    mean = np.divide(kind[:, 0], total, out=np.zeros_like(total), where=total > 0.0)
    size = len(SIGNALS)
    product, seen, alone = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    for place, (first, second) in enumerate(PAIRS):
        if second == size:
            alone[first] = mean[place]
        else:
            product[first, second] = product[second, first] = mean[place]
            seen[first, second] = seen[second, first] = total[place]
    return np.where(seen > 0.0, product - np.outer(alone, alone), 0.0), seen


def _positive(covariance: Floats, prior: CovariancePrior) -> Floats:
    """The same, with no direction in which signals vary less than by `prior.least`.

    Moments of signals that were not always told together need not be those of any distribution.
    """
    values, vectors = np.linalg.eigh(covariance)
    bounded: Floats = (vectors * np.maximum(values, prior.least)) @ vectors.T
    return bounded
