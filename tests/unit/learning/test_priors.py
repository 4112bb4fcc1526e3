"""LRN-12: priors are complete, typed, and known by their hash."""

import re

import pytest

from weft.domain.documents import Domain
from weft.domain.errors import ConfigurationError
from weft.domain.ranking import Signal
from weft.settings import CONF, load_settings


def test_every_number_in_the_priors_has_a_comment_on_why() -> None:
    """LRN-12: on its line, or on a line of its own above it in the same section."""
    explained = False
    for line in (CONF / "priors.yaml").read_text().splitlines():
        if line.lstrip().startswith("#") or " #" in line:
            explained = True
        elif re.match(r"\S", line) or not line.strip():
            explained = False
        elif re.search(r"\d", line):
            assert explained, f"no reason stated for: {line}"


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("priors.signals.weights.code.vector=-1", "greater than or equal to 0"),
        ("priors.lessons.sources={other: 0.5}", "missing .*agent_inference"),
        ("priors.decay.domains.code.rate_hours=0", "greater than 0"),
        ("priors.pooling.initial=1000", "minimum <= initial <= maximum"),
        ("priors.usage.half_life_days=.inf", "finite"),
    ],
)
def test_incomplete_or_impossible_priors_are_refused(assignment: str, complaint: str) -> None:
    """OPS-3, LRN-12."""
    with pytest.raises(ConfigurationError, match=complaint):
        load_settings([], [assignment], environment={})


def test_a_signal_that_is_not_named_weighs_nothing() -> None:
    """RET-14: and its agreement is expected to be that of chance, one in two."""
    signals = load_settings(environment={}).priors.signals
    assert signals.weights[Domain.CODE][Signal.AUTHORITY] == 0.0
    assert signals.mean(Domain.CODE, Signal.AUTHORITY) == 0.5


def test_a_signal_that_is_not_named_can_be_given_a_weight() -> None:
    """OPS-3: alone, too, and only one that there is."""
    signals = load_settings([], ["priors.signals.weights.code.authority=0.1"], environment={}).priors.signals
    assert signals.weights[Domain.CODE][Signal.AUTHORITY] == 0.1
    with pytest.raises(ConfigurationError, match="Input should be 'vector'"):
        load_settings([], ["priors.signals.weights.code.fame=0.1"], environment={})


def test_the_fingerprint_follows_the_values() -> None:
    """LRN-12: a store records which priors its beliefs were read with."""
    first, same = (load_settings(environment={}).priors for _ in range(2))
    other = load_settings([], ["priors.trust.multiplier=0.5"], environment={}).priors
    assert first.fingerprint == same.fingerprint != other.fingerprint
