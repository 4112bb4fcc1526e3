"""RET-13: what each signal means at its edges."""

import pytest

from weft.domain.ranking import Signal
from weft.quality import signals

NAN = float("nan")  # not known


def test_every_signal_has_its_function() -> None:
    """RET-13."""
    assert all(callable(getattr(signals, signal.value)) for signal in Signal)


def test_a_list_of_one_counts_as_a_hit_in_both_channels() -> None:
    """RET-9: a single-result list does not normalise to 0."""
    assert signals.vector([0.2]) == signals.lexical([0.7]) == 1.0


def test_the_last_lexical_hit_is_no_miss() -> None:
    """RET-9: BM25 is measured from its floor, 0, not from the worst candidate."""
    assert signals.lexical([8.0, 6.0]).tolist() == [1.0, 6.0 / 8.0]


def test_no_candidates_and_no_hits_are_answered() -> None:
    """RET-13."""
    assert signals.vector([]).tolist() == signals.lexical([]).tolist() == []
    assert signals.vector([NAN, NAN]).tolist() == signals.lexical([NAN, 0.0]).tolist() == [0.0, 0.0]


def test_a_signal_that_is_not_a_number_is_refused() -> None:
    """RET-13."""
    with pytest.raises(ValueError, match="NaN"):
        signals.cross_encoder([0.5, NAN])
