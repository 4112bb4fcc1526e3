"""CON-4: opposites are shown side by side, and what supersedes a result stands before it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.test_diversity import contenders, scored, tuned
from tests.support.candidate_tables import told, with_vectors
from weft.domain.reasons import SUPERSEDED
from weft.retrieval.ranking.diversity import Choice, contending, diverse, lowered
from weft.retrieval.snapshot.relations import Counterparts, ResolvedRelations

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12)


def standing(found, pairs: list[tuple[int, int]]) -> ResolvedRelations:
    """Relations in which the content at the first place of a pair is superseded by that at the second."""
    rows = sorted(found[0].rows.tolist())
    newer: dict[int, set[int]] = {}
    opposed: dict[int, set[int]] = {}
    for one, other in ((rows[a % len(rows)], rows[b % len(rows)]) for a, b in pairs):
        if one != other:
            newer.setdefault(one, set()).add(other)
            opposed.setdefault(one, set()).add(other)
            opposed.setdefault(other, set()).add(one)
    frozen = [{row: frozenset(each) for row, each in sets.items()} for sets in (opposed, newer)]
    return ResolvedRelations(opposed=Counterparts(frozen[0]), newer=Counterparts(frozen[1]))


def answered(found, relations: ResolvedRelations, k: int = 10, **changes: object):
    return diverse(with_vectors(*found, k), tuned(**changes), relations)


@given(contenders(), PAIRS, st.integers(1, 10), st.sampled_from([0.0, 0.2]))
def test_what_supersedes_stands_first_and_scores_add_up(found, pairs, k: int, mmr: float) -> None:
    """CON-4, ARC-7: of those shown, but for circles; the order is that of scores, which are sums of what is told."""
    acyclic = [(min(pair), max(pair)) for pair in pairs]
    count = len(found[0])
    relations = standing(found, [pair for pair in acyclic if max(pair) < count])
    shown = answered(found, relations, k, mmr=mmr)
    rows = shown.rows.tolist()
    for older, others in relations.newer.rows.items():
        for other in others:
            if older in rows and other in rows:
                assert rows.index(other) < rows.index(older)
    answer = told(shown)
    assert [one.score for one in answer] == sorted((one.score for one in answer), reverse=True)
    for one in answer:
        assert one.score == math.fsum(part.amount for part in one.contributions)
    plain = answered(found, ResolvedRelations(opposed=relations.opposed), k, mmr=mmr)
    assert {one.content_hash for one in answer} == {one.content_hash for one in told(plain)}
    moved = {one.content_hash for one in answer for part in one.contributions if part.name == SUPERSEDED}
    assert moved <= {found[0].occurrences.contents[row] for row in relations.newer.rows}


@given(contenders(), PAIRS, st.integers(1, 10), st.booleans())
def test_a_draw_shows_what_a_search_shows(found, pairs, k: int, represent: bool) -> None:
    """CON-4, EVA-7: propensities know opposites and successors, too."""
    relations = standing(found, pairs)
    choice = Choice(contending(with_vectors(*found, k), 0), tuned(represent=represent).diversity, relations)
    totals = choice.contenders.scores.totals[choice.contenders.number]
    names = [choice.contenders.hashes[line] for line in choice.ranked(totals[:, None])[:, 0] if line >= 0]
    assert names == [one.content_hash for one in told(answered(found, relations, k, represent=represent))]


@pytest.mark.timeout(60)
def test_scores_of_very_different_sizes_are_put_in_order() -> None:
    """CON-4: where one loses the last bit of 1, the next must lose as much, though it has 1e-20 (it never ended)."""
    found = scored([(1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)], a=1.0, b=1e-20, c=0.0)
    one, other, newest = found[0].rows.tolist()
    newer = Counterparts({one: frozenset({newest}), other: frozenset({one, newest})})
    shown = told(answered(found, ResolvedRelations(newer=newer)))
    assert [each.content_hash for each in shown] == ["c", "a", "b"]
    assert shown[0].score > shown[1].score > shown[2].score


@pytest.mark.parametrize("related", [True, False])
def test_opposites_are_no_near_duplicates(related: bool) -> None:
    """CON-4, RET-12: two texts with a cosine of .9988 are both shown where one contradicts the other, else one is."""
    found = scored([(1.0, 0.0, 0.0, 0.0), (math.cos(0.05), math.sin(0.05), 0.0, 0.0)], a=0.5, b=0.25)
    one, other = found[0].rows.tolist()
    opposed = Counterparts({one: frozenset({other}), other: frozenset({one})} if related else {})
    shown = told(answered(found, ResolvedRelations(opposed=opposed), duplicate_cosine=0.98))
    assert [each.content_hash for each in shown] == (["a", "b"] if related else ["a"])


def test_a_circle_orders_nothing() -> None:
    """CON-4: where each supersedes the other, people contradict themselves: the scores decide."""
    found = scored([(1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)], a=0.5, b=0.25)
    assert [one.content_hash for one in told(answered(found, standing(found, [(0, 1), (1, 0)])))] == ["a", "b"]
    assert [one.content_hash for one in told(answered(found, standing(found, [(0, 1)])))] == ["b", "a"]


def test_a_circle_of_which_a_part_is_shown_orders_nothing() -> None:
    """CON-4, EVA-7: whether what closes it is among the first makes no difference, of answers as of draws."""
    found = scored([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)], a=0.5, b=0.25, c=0.125)
    circle = standing(found, [(0, 1), (1, 2), (2, 0)])
    for k in (2, 3):
        assert [one.content_hash for one in told(answered(found, circle, k))] == ["a", "b", "c"][:k]


def test_what_is_not_shown_moves_nothing() -> None:
    """CON-4: of two draws only the one in which both are shown is put in order."""
    scores, shown = np.array([[0.5, 0.5], [0.25, 0.25]]), np.array([[True, True], [True, False]])
    assert lowered(scores, shown, [(0, 1)])[0].tolist() == [0.5 - (0.25 + np.spacing(0.5)), 0.5]


def test_draws_lose_what_a_sum_can_tell() -> None:
    """EVA-7: below 0, 1/8 falls by its last bit and 0 by the least of all: so a search shows them, too."""
    scores = np.array([[0.125], [0.0], [0.0]])
    lost = lowered(scores, np.ones((3, 1), dtype=bool), [(0, 1), (2, 1)])
    assert lost[0, 0] < lost[2, 0] < lost[1, 0] == 0.0
