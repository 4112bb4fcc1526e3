"""What is reported outright rather than learned from answers, as evidence: accuracy, reviews, quality, verifications.

| parameter        | bin                                | one unit is                                        |
| ---------------- | ---------------------------------- | -------------------------------------------------- |
| `decay`          | `22/4.accurate`, `22/4.inaccurate` | a document of that bin of age (LRN-6)              |
| `threshold`      | `14/20.good`, `14/20.bad`          | a decision of that bin of confidence (LRN-7)       |
| `quality`        | `7/64.n`, `.sum`, `.squares`       | a turn of that bin; its quality; squared (LRN-8)   |
| `trust.<source>` | `verified`, `refuted`              | a verification of a source of that type (LRN-10)   |
| `lesson.<id>`    | `success`, `failure`, …            | an outcome of that lesson (LRN-4)                  |

Bins name the width they were made with, so that a later change of it leaves older evidence readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipelines.domain.ranking import ANY, Scope
from pipelines.learning.evidence import Evidence, EvidenceKey
from pipelines.learning.families.beta import BetaEvidence
from pipelines.learning.families.gaussian_process import QualityEvidence
from pipelines.learning.families.survival import SurvivalEvidence
from pipelines.learning.families.threshold import ThresholdEvidence

DECAY, THRESHOLD, QUALITY, TRUST, LESSON = "decay", "threshold", "quality", "trust", "lesson"
ACCURATE, INACCURATE = "accurate", "inaccurate"
GOOD, BAD = "good", "bad"
STATISTICS = ("n", "sum", "squares")
VERIFIED, REFUTED = "verified", "refuted"
SUCCESS, CONFIRMATION, FAILURE, CONTRADICTION = "success", "confirmation", "failure", "contradiction"

Masses = Mapping[str, int]
"""Micro-units by bin, of one parameter."""


def accuracy_evidence(day: int, scope: Scope, seen: SurvivalEvidence) -> Evidence:
    """What was found accurate or not at which age.

    Examples:
        >>> from pipelines.domain.documents import Domain
        >>> seen = SurvivalEvidence.of(48.0, accurate=False, per_doubling=4)
        >>> [(key.parameter, key.bin) for key in accuracy_evidence(0, Scope(Domain.CODE), seen).counts]
        [('decay', '22/4.inaccurate')]
    """
    pairs = {f"{place}/{width}": masses for (place, width), masses in seen.masses.items()}
    return _evidence(day, scope, DECAY, _named(pairs, (ACCURATE, INACCURATE)))


def review_evidence(day: int, scope: Scope, seen: ThresholdEvidence) -> Evidence:
    """What came of decisions of which confidence."""
    pairs = {f"{place}/{width}": masses for (place, width), masses in seen.masses.items()}
    return _evidence(day, scope, THRESHOLD, _named(pairs, (GOOD, BAD)))


def quality_evidence(day: int, scope: Scope, seen: QualityEvidence, *, turns: int) -> Evidence:
    """How good turns were; `turns` of them were kept one by one."""
    triples = {f"{place}/{turns}": masses for place, masses in seen.masses.items()}
    return _evidence(day, scope, QUALITY, _named(triples, STATISTICS))


def trust_evidence(day: int, scope: Scope, source: str, seen: BetaEvidence) -> Evidence:
    """How often a type of source held when it was verified."""
    return _evidence(day, scope, f"{TRUST}.{source}", {VERIFIED: seen.hits, REFUTED: seen.misses})


def lesson_evidence(day: int, scope: Scope, lesson: str, outcome: str, mass: int) -> Evidence:
    """What came of a lesson: success and confirmation speak for it, failure and contradiction against it."""
    return _evidence(day, scope, f"{LESSON}.{lesson}", {outcome: mass})


def survival_in(masses: Masses) -> SurvivalEvidence:
    """The evidence about decay in the masses of one parameter."""
    return SurvivalEvidence(
        {_pair(place): (accurate, bad) for place, (accurate, bad) in _grouped(masses, (ACCURATE, INACCURATE)).items()}
    )


def decisions_in(masses: Masses) -> ThresholdEvidence:
    """The evidence about a threshold in the masses of one parameter."""
    return ThresholdEvidence(
        {_pair(place): (good, bad) for place, (good, bad) in _grouped(masses, (GOOD, BAD)).items()}
    )


def quality_in(masses: Masses, *, turns: int) -> QualityEvidence:
    """The evidence about quality in the masses of one parameter; that of other widths of bins is left out."""
    triples = {_pair(place): values for place, values in _grouped(masses, STATISTICS).items()}
    return QualityEvidence(
        {place: (n, total, squares) for (place, width), (n, total, squares) in triples.items() if width == turns}
    )


def trust_in(masses: Masses) -> BetaEvidence:
    """The evidence about a type of source in the masses of one parameter; a negative balance counts as none."""
    return BetaEvidence(max(masses.get(VERIFIED, 0), 0), max(masses.get(REFUTED, 0), 0))


def lesson_in(masses: Masses) -> BetaEvidence:
    """The evidence about a lesson in the masses of one parameter; a negative balance counts as none."""
    hits, misses = (
        sum(max(masses.get(outcome, 0), 0) for outcome in side)
        for side in ((SUCCESS, CONFIRMATION), (FAILURE, CONTRADICTION))
    )
    return BetaEvidence(hits, misses)


def _evidence(day: int, scope: Scope, parameter: str, masses: Masses) -> Evidence:
    at = (day, scope.domain.value, scope.model, scope.agent, ANY, parameter)
    return Evidence({EvidenceKey(*at, bin_): mass for bin_, mass in masses.items()})


def _named(values: Mapping[str, tuple[int, ...]], names: Iterable[str]) -> dict[str, int]:
    wanted = tuple(names)
    return {
        f"{place}.{name}": mass for place, masses in values.items() for name, mass in zip(wanted, masses, strict=True)
    }


def _grouped(masses: Masses, names: tuple[str, ...]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for bin_, mass in masses.items():
        place, _, name = bin_.rpartition(".")
        grouped.setdefault(place, [0] * len(names))[names.index(name)] += mass
    return grouped


def _pair(place: str) -> tuple[int, int]:
    index, _, width = place.partition("/")
    return int(index), int(width)
