"""CON-7: which beliefs about sizes ask for documents to be cut anew."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support import sizing
from weft.app.rebuilding import RebuildResult, moved_sizes, same_sizes, within_window
from weft.domain.documents import Domain
from weft.ingestion.sizing import active_sizes, snapshots
from weft.learning.evidence import Evidence
from weft.learning.observe.sizes import last_day, read_sizing
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
DAY = 20_000
liked = partial(sizing.liked, day=DAY)


def wanted(evidence: Evidence) -> dict[str, list[str]]:
    return snapshots(active_sizes(SETTINGS.chunking, SETTINGS.priors, evidence, limit=10_000, learned="v000001"))


def moved(evidence: Evidence, domain: Domain = Domain.GENERAL) -> list[str]:
    believed = read_sizing(SETTINGS.priors, evidence, last_day(evidence) or 0)
    before, level = wanted(Evidence()), SETTINGS.priors.interval.level
    found = moved_sizes(before, wanted(evidence), believed, [domain], level=level)
    for each in found:
        assert not each.low <= float(each.before) <= each.high
    return [each.size for each in found]


def test_nothing_moves_without_evidence() -> None:
    """CON-7: what priors say is what was cut."""
    assert moved(Evidence()) == []


def test_much_evidence_for_another_length_moves_the_target() -> None:
    """CON-7: a few useful chunks leave the size within its interval, thousands do not; other domains listen in part."""
    stated = SETTINGS.priors.sizing.domains[Domain.GENERAL].target
    assert moved(liked(round(stated), 5_000)) == []
    assert moved(liked(round(stated / 3), 1)) == []
    assert "target" in moved(liked(round(stated / 3), 5_000))


def test_versions_are_no_sizes() -> None:
    """CON-7: generations of the same sizes are the same, whichever version put these in force."""
    one = snapshots(active_sizes(SETTINGS.chunking, SETTINGS.priors, Evidence(), limit=10_000, learned="v000001"))
    other = snapshots(active_sizes(SETTINGS.chunking, SETTINGS.priors, Evidence(), limit=10_000, learned="v000002"))
    assert one != other
    assert same_sizes(one, other)
    assert not same_sizes(one, wanted(liked(30, 5_000)))


def test_a_target_beyond_what_the_encoder_reads_cuts_nothing_anew() -> None:
    """CON-7: 200 and some 300 tokens cut alike for an encoder that reads 126, and a target below that does not."""
    window, name = 126, Domain.GENERAL.value
    stated, beyond, below = (
        {name: wanted(evidence)[name]} for evidence in (Evidence(), liked(300, 5_000), liked(60, 5_000))
    )
    assert not same_sizes(stated, beyond)
    assert same_sizes(within_window(stated, window), within_window(beyond, window))
    assert not same_sizes(within_window(stated, window), within_window(below, window))


@pytest.mark.parametrize("declined", [False, True])
def test_what_was_taken_back_is_not_proposed_again(declined: bool) -> None:
    """CON-7, CON-7a: a person's roll-back holds for as long as the same sizes are believed."""
    evidence = liked(30, 5_000)
    believed = read_sizing(SETTINGS.priors, evidence, DAY)
    some = moved_sizes(wanted(Evidence()), wanted(evidence), believed, [Domain.GENERAL], level=0.9)
    assert some
    assert RebuildResult(some, declined).as_step()["proposed"] == int(not declined)
