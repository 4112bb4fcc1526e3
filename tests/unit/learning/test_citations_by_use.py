"""CIT-2: what agents do with contents adds to their citations."""

from __future__ import annotations

import pytest

from weft.domain.ids import ContentHash
from weft.learning.aliases import ContentAliases
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.citations import CitationsByUse
from weft.learning.uses import UsageKey
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
SCALE = PRIORS.authority.internal
ONE, OTHER, THIRD = (ContentHash(letter * 64) for letter in "abc")


def used(
    bin_: str, mass: float, *, content: ContentHash = ONE, principal: str = "", question: str = "", day: int = 100
) -> Evidence:
    return Evidence(usage={UsageKey(day, content, bin_, principal, question): round(mass * MICRO)})


def cited(*evidence: Evidence, of: ContentHash = ONE) -> float:
    return float(CitationsByUse(SCALE, Evidence.sum(evidence)).of([of])[0])


def test_each_kind_of_use_counts_as_it_is_stated() -> None:
    """CIT-2: references, different agents, requests, successes."""
    assert cited(used("reference", 1.0)) == SCALE.reference  # nobody is named, so no agent
    assert cited(used("reference", 1.0, principal="ann")) == pytest.approx(SCALE.reference + SCALE.agent)
    assert cited(used("inclusion", 1.0, principal="ann")) == SCALE.request
    assert cited(used("positive", 1.0, principal="ann")) == SCALE.success
    assert cited(used("negative", 9.0), used("retrieval", 9.0)) == 0.0
    assert cited(used("reference", 1.0), of=OTHER) == 0.0


def test_many_agents_say_more_than_one_who_says_it_often() -> None:
    """CIT-2: one agent counts up to its share, whatever it sends."""
    flood = cited(*(used("reference", 50.0, principal="ann", day=day) for day in range(90, 100)))
    crowd = cited(*(used("reference", 1.0, principal=name) for name in ("ann", "bob", "eve")))
    assert flood == pytest.approx(SCALE.reference * SCALE.per_agent + SCALE.agent)
    assert crowd == pytest.approx(3 * (SCALE.reference + SCALE.agent))
    assert crowd > flood


def test_contents_that_served_under_one_question_are_cited_together() -> None:
    """CIT-2: co-citation; what served alone has no company."""
    together = [used("positive", 1.0, content=each, question="q") for each in (ONE, OTHER, THIRD)]
    assert cited(*together) == pytest.approx(SCALE.success + 2 * SCALE.co_citation)
    assert (
        cited(used("positive", 1.0, question="q"), used("positive", 1.0, content=OTHER, question="r")) == SCALE.success
    )


@pytest.mark.parametrize("kind", ["reference", "inclusion", "positive"])
def test_a_thousand_new_names_cite_as_three_agents_do(kind: str) -> None:
    """FBK-13, CIT-2: who was there on another day counts in full beside them."""
    crowd = Evidence.sum(used(kind, 50.0, principal=f"made up {number}") for number in range(1_000))
    three = [used(kind, 50.0, principal=name) for name in ("ann", "bob", "eve")]
    before = [used("inclusion", 1.0, content=OTHER, principal=name, day=99) for name in ("ann", "bob", "eve")]
    assert cited(*before, *three) == pytest.approx(cited(*three))
    assert cited(crowd) == pytest.approx(cited(*three), rel=1e-3)
    assert cited(crowd, *before, *three) == pytest.approx(2 * cited(*three), rel=1e-3)


def test_a_thousand_new_names_make_the_company_of_three_questions() -> None:
    """FBK-13, CIT-2: each praises two contents under a question of its own."""
    crowd = [
        used("positive", 1.0, content=each, principal=f"made up {number}", question=f"q{number}")
        for number in range(1_000)
        for each in (ONE, OTHER)
    ]
    assert cited(*crowd) <= 3 * (SCALE.success + SCALE.co_citation) + 1e-3


def test_what_was_taken_back_is_no_citation() -> None:
    """CIT-2: unlearning takes the agent out, too."""
    said = used("reference", 1.0, principal="ann")
    assert cited(said, used("reference", -1.0, principal="ann", day=101)) == 0.0


def test_aliases_share_what_was_made_of_any() -> None:
    """CIT-2, CON-2: and beliefs hold it."""
    evidence = Evidence.sum([used("reference", 1.0, content=each, principal="ann") for each in (ONE, OTHER)])
    aliases = ContentAliases({OTHER: ONE})
    believed = read_beliefs(PRIORS, evidence, now=101 * 86400.0, aliases=aliases).citations.of([ONE, OTHER, THIRD])
    assert believed.tolist() == pytest.approx([2 * SCALE.reference + SCALE.agent] * 2 + [0.0])
