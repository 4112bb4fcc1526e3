"""Names that evidence is kept under (LRN-1, LRN-4).

| parameter                | bin                                | one unit is                                      |
| ------------------------ | ---------------------------------- | ------------------------------------------------ |
| `signal.<s>.good`, …     | `for`, `against`                   | an outcome that signal s agreed with, or not     |
| `product.<s>.<t>.good`, … | `for`, `against`                  | an outcome of a result, times s · t or the rest  |
| `relevance`              | `07/20.good`, `07/20.bad`          | an outcome of a result with a score in that bin  |
| `decay`                  | `22/4.accurate`, `22/4.inaccurate` | a document of that bin of age (LRN-6)            |
| `threshold`              | `14/20.good`, `14/20.bad`          | a decision of that bin of confidence (LRN-7)     |
| `quality`                | `7/64.n`, `.sum`, `.squares`       | a turn of that bin; its quality; squared (LRN-8) |
| `trust.<source>`         | `verified`, `refuted`              | a verification of a source of that type (LRN-10) |
| `speaker`                | fingerprint of a principal         | something that it reported (LRN-20)              |

Bins name the width they were made with, so that a later change of it leaves older evidence readable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from weft.domain.ranking import ANY, Scope, Signal
from weft.learning.evidence import Evidence, EvidenceKey

SIGNAL = "signal"
RELEVANCE = "relevance"
DECAY, THRESHOLD, QUALITY, TRUST = "decay", "threshold", "quality", "trust"

FOR, AGAINST = "for", "against"
POSITIVE, NEGATIVE = "positive", "negative"
ACCURATE, INACCURATE = "accurate", "inaccurate"
GOOD, BAD = "good", "bad"
VERIFIED, REFUTED = "verified", "refuted"
RETRIEVAL, INCLUSION, REFERENCE = "retrieval", "inclusion", "reference"

PRODUCT = "product."
"""What comes before the parameter of how two signals occur together: mass per pair, by domain alone (LRN-4)."""
SURPLUS = "surplus."
"""What comes before the parameter of evidence beyond its principal's allowance: see `within_allowances` (LRN-20)."""
SPEAKER = "speaker"
"""The parameter of who reported: those who judge contents are known from their uses."""

SIGNALS = tuple(Signal)
ALONE = len(SIGNALS)
"""The place of "no other signal" in a pair: what every signal is itself on average, beside the products."""
PAIRS = tuple((i, j) for i in range(len(SIGNALS)) for j in (*range(i, len(SIGNALS)), ALONE))
"""Every pair of signals once, each with itself, and each alone."""

RELEVANCE_BINS = 20
"""Bins of equal width over the score of a result, and over the measures of its match."""
CONFIDENCE_BINS = 20
"""Bins of equal width over the confidence of a decision."""
AGE_BINS = 4
"""Bins per doubling of an age: ages within one differ by a fifth, far less than what is known of any decay rate."""
TURN_BINS = 64
"""Turns of a conversation kept one by one: most end before; later ones share bins that grow by an eighth."""

Masses = Mapping[str, int]
"""Micro-units by bin, of one parameter."""


def signal_parameter(signal: Signal, *, good: bool) -> str:
    """The parameter that a signal's agreement with outcomes of one kind is kept under."""
    return f"{SIGNAL}.{signal.value}.{GOOD if good else BAD}"


def product_parameter(first: int, second: int, *, good: bool) -> str:
    """The parameter that the product of two signals, named by their places, is kept under."""
    names = [SIGNALS[place].value for place in (first, second) if place != ALONE]
    return f"{PRODUCT}{'.'.join(names)}.{GOOD if good else BAD}"


def relevance_bin(index: int, *, good: bool) -> str:
    """The bin for scores in [index / n, (index + 1) / n), of n = `RELEVANCE_BINS`."""
    return f"{index:02d}/{RELEVANCE_BINS}.{GOOD if good else BAD}"


def by_bin(masses: Masses, kinds: tuple[str, ...]) -> list[tuple[int, int, list[int]]]:
    """Masses of bins "index/width.kind": index, width and the mass of each kind, in order."""
    rows: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * len(kinds))
    for bin_, micro in masses.items():
        place, _, kind = bin_.rpartition(".")
        index, _, width = place.partition("/")
        rows[int(index), int(width)][kinds.index(kind)] += micro
    return [(*place, values) for place, values in sorted(rows.items())]


def reported_evidence(day: int, scope: Scope, parameter: str, masses: Masses) -> Evidence:
    """What was reported outright about one parameter, as evidence."""
    at = (day, scope.domain.value, scope.model, scope.agent, ANY, parameter)
    return Evidence({EvidenceKey(*at, bin_): micro for bin_, micro in masses.items()})
