"""What outcomes are worth where the same was asked again and again (LRN-4).

Outcomes under one question are alike: the same results are shown, and are right or wrong for it each time. So n of them
say as much as n / (1 + (n − 1)·ρ) of different questions would, with ρ their correlation (the design effect of a
cluster; Kish, Survey Sampling, 1965): never more than 1/ρ, however often it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.parameters import NEGATIVE, POSITIVE
from pipelines.learning.recency import Discount
from pipelines.learning.uses import Uses, numbered

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Repetition:
    """What all outcomes of known questions are worth, in observations.

    Attributes:
        worth: As many independent ones would say as much, >= 0.
        lost: By how many they are more, >= 0.
    """

    worth: float
    lost: float

    def independent(self, outcomes: float) -> float:
        """How many independent outcomes would say as much as so many, in [0, outcomes].

        What is kept by question is kept neither by domain nor by agent, so that this holds for all together. Of fewer
        it is at most too much; and what is said of contents may be more than what is said of signals.

        Examples:
            >>> Repetition(worth=100.0, lost=400.0).independent(500.0)
            100.0
            >>> Repetition(worth=100.0, lost=400.0).independent(700.0)  # of 200 nobody knows the question
            300.0
        """
        return min(outcomes, max(self.worth, outcomes - self.lost))


def read_repetition(evidence: Evidence, discount: Discount, *, correlation: float, principal_cap: float) -> Repetition:
    """What outcomes are worth by the questions that they came of.

    Args:
        correlation: ρ, that of outcomes under one question, in [0, 1].
        principal_cap: Observations that one principal's outcomes of one content under one question count at most.
    """
    per_question = _outcomes_per_question(evidence, discount, principal_cap=principal_cap)
    worth = float((per_question / (1.0 + np.maximum(per_question - 1.0, 0.0) * correlation)).sum())
    return Repetition(worth, lost=float(per_question.sum()) - worth)


def _outcomes_per_question(evidence: Evidence, discount: Discount, *, principal_cap: float) -> Floats:
    """Outcomes of each question as they count today, in observations, ascending, float64 (questions,).

    What is not known to come of any question is left out. In this order sums are the same in whichever order evidence
    was gathered.

    Args:
        principal_cap: Observations that one principal's outcomes of one content under one question count at most, so
            that nobody makes a question a common one alone. Outcomes whose principal is not known all count.

    Examples:
        >>> from pipelines.learning.uses import UsageKey
        >>> n = {("a", "ada", "x"): 3, ("a", "", "x"): 2, ("b", "ada", "x"): 1, ("c", "", "y"): 2, ("d", "", ""): 2}
        >>> usage = {UsageKey(0, *key[:1], POSITIVE, *key[1:]): each * MICRO for key, each in n.items()}
        >>> _outcomes_per_question(Evidence(usage=usage), Discount(0, 30.0), principal_cap=1.0).tolist()
        [2.0, 4.0]
    """
    uses = Uses.of(evidence.usage).columns()
    outcomes = uses.bin.holds(POSITIVE, NEGATIVE) & ~uses.question.holds("")
    question, content, principal = (
        (each.codes[outcomes], len(each.words)) for each in (uses.question, uses.content, uses.principal)
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
