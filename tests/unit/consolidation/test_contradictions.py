"""CON-4: what a night makes of contents that say opposite things."""

from __future__ import annotations

import random
from collections.abc import Sequence

from weft.consolidation.steps.contradictions import Contradictions, DeclaredContradictions, find_contradictions
from weft.consolidation.steps.duplicates import Duplicates, NearPair, word_lists
from weft.domain.ids import ContentHash, content_hash
from weft.learning.aliases import ContentAliases
from weft.learning.evidence import MICRO, Evidence
from weft.learning.uses import UsageKey
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
LISTS, RULES = word_lists(SETTINGS), SETTINGS.consolidation
TEXT = "Workers {0} listed in the console with the machine that they run on. The queue holds {1} tasks at a time."
A, B, C, D = sorted(content_hash(letter) for letter in "abcd")


def pair(one: ContentHash, other: ContentHash, *, verb: str = "are not", number: int = 3) -> NearPair:
    return NearPair(one, other, 0.97, TEXT.format("are", 3), TEXT.format(verb, number))


def found(
    refused: Sequence[NearPair],
    *,
    aliases: ContentAliases | None = None,
    declared: DeclaredContradictions | None = None,
    evidence: Evidence | None = None,
) -> Contradictions:
    duplicates = Duplicates(aliases or ContentAliases(), len(refused), refused, ())
    return find_contradictions(
        duplicates, declared or DeclaredContradictions(), evidence or Evidence(), LISTS, RULES.contradictions, least=0.8
    )


def test_what_is_sure_acts_and_the_rest_is_proposed() -> None:
    """CON-4: a denial acts, another number waits for a person, another subject is nothing."""
    told = found([pair(A, B), pair(A, C, verb="are", number=5), pair(A, D, verb="are")])
    assert [(each.content, each.target, each.source.value) for each in told.edges.edges] == [(A, B, "auto")]
    assert told.counts() == {"detected": 2, "acting": 1, "waiting": 1, "declared": 0, "clusters": 1}
    assert [(each.other, each.acts, each.polarity) for each in told.examples] == [
        (B, True, "denial"),
        (C, False, "number"),
    ]
    assert told.examples[0].statement != told.examples[0].other_statement


def test_what_people_settled_is_left_to_them() -> None:
    """CON-4: where one supersedes or contradicts the other already nothing is found anew, and clusters hold both."""
    by_hand = NearPair(C, D, 0.0, "one", "another")
    told = found(
        [pair(A, B), pair(C, D)], declared=DeclaredContradictions([by_hand], lambda one, other: (one, other) == (C, D))
    )
    assert (len(told.edges), told.declared, told.clusters) == (1, 1, 2)
    joined = found([pair(A, C)], declared=DeclaredContradictions([by_hand]))
    assert (joined.declared, joined.clusters) == (1, 1)


def test_near_duplicates_stand_in_the_report_once() -> None:
    """CON-4, CON-10: aliases of one content contradict the same; what served most comes first."""
    served = Evidence(usage={UsageKey(20_000, D, "positive", "ada", "q"): MICRO})
    told = found([pair(A, B), pair(A, C), pair(B, D)], aliases=ContentAliases({C: B}), evidence=served)
    assert len(told.edges) == 3
    assert [{each.content, each.other} for each in told.examples] == [{B, D}, {A, B}]
    assert told.clusters == 1


def test_the_order_in_which_pairs_come_says_nothing() -> None:
    """CON-4: a night that is repeated finds the same."""
    pairs = [pair(A, B), pair(A, C, verb="are", number=5), pair(B, D), pair(C, D)]
    other = random.Random(1).sample(pairs, len(pairs))
    assert found(pairs) == found(other)
