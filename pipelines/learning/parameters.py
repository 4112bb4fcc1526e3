"""Names that evidence of outcomes is kept under (LRN-1, LRN-4)."""

from __future__ import annotations

from pipelines.domain.ranking import Signal

SIGNAL = "signal"
"""What the parameters of agreement begin with."""
RELEVANCE = "relevance"
"""The parameter that calibration is fitted on: mass per bin of the score, by outcome."""

FOR, AGAINST = "for", "against"
POSITIVE, NEGATIVE = "positive", "negative"
PRODUCT = "product."
"""What comes before the parameter of how two signals occur together: mass per pair, by domain alone (LRN-4)."""
SURPLUS = "surplus."
"""What comes before the parameter of evidence beyond its principal's allowance: kept, and read by nobody (LRN-3)."""
RETRIEVAL, INCLUSION, REFERENCE = "retrieval", "inclusion", "reference"

SIGNALS = tuple(Signal)
ALONE = len(SIGNALS)
"""The place of "no other signal" in a pair: what every signal is itself on average, beside the products."""
PAIRS = tuple((i, j) for i in range(len(SIGNALS)) for j in (*range(i, len(SIGNALS)), ALONE))
"""Every pair of signals once, each with itself, and each alone."""


def signal_parameter(signal: Signal, *, good: bool) -> str:
    """The parameter that a signal's agreement with outcomes of one kind is kept under."""
    return f"{SIGNAL}.{signal.value}.{'good' if good else 'bad'}"


def product_parameter(first: int, second: int, *, good: bool) -> str:
    """The parameter that the product of two signals, named by their places, is kept under.

    Examples:
        >>> product_parameter(0, 0, good=True), product_parameter(0, ALONE, good=False)
        ('product.vector.vector.good', 'product.vector.bad')
    """
    names = [SIGNALS[place].value for place in (first, second) if place != ALONE]
    return f"{PRODUCT}{'.'.join(names)}.{'good' if good else 'bad'}"


def relevance_bin(index: int, bins: int, *, good: bool) -> str:
    """The bin for scores in [index / bins, (index + 1) / bins); it names `bins`, so a later change leaves it readable.

    Examples:
        >>> relevance_bin(7, 20, good=False)
        '07/20.bad'
    """
    return f"{index:02d}/{bins}.{'good' if good else 'bad'}"
