"""RET-12: laws of what is shown together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.support.candidate_tables import AHit, a_hit, a_table, told, with_vectors
from tests.support.retrieval_fakes import settings
from weft.domain.ranking import Channel, ChannelHit
from weft.retrieval.answers import Candidate
from weft.retrieval.ranking.batch import RankingBatch
from weft.retrieval.ranking.diversity import Choice, contending, diverse
from weft.retrieval.settings import DiversitySettings, RetrievalSettings

CHANNELS = (Channel.DENSE, Channel.LEXICAL, Channel.GRAPH)


NEAR = [(math.cos(angle), math.sin(angle), 0.0, 0.0) for angle in (0.0, 0.05, 0.7, 1.5)]
# Cosines of 0, .5 and 1 to the last bit: less a quarter of them, scores in eighths are equal to others.
EXACT = [(1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.5, 0.5, 0.5, 0.5), (0.5, 0.5, -0.5, -0.5)]


@st.composite
def contenders(draw: st.DrawFn) -> tuple[RankingBatch, np.ndarray]:
    """Candidates best first, each found by some channels, and unit vectors in few directions."""
    names = draw(st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=10, unique=True))
    made = []
    for name in names:
        by = draw(st.sets(st.sampled_from(CHANNELS), min_size=1))
        score = draw(st.integers(0, 8)) / 8
        hits = {channel: ChannelHit(1, draw(st.sampled_from([0.0, 0.5]))) for channel in sorted(by)}
        similarity = {Channel.DENSE: draw(st.sampled_from([0.1, 0.6]))}
        made.append(a_hit(name, hits, name, further=similarity, score=score))
    directions = st.sampled_from(draw(st.sampled_from([NEAR, EXACT])))
    return pointing(made, draw(st.lists(directions, min_size=len(made), max_size=len(made))))


def pointing(made: Sequence[AHit], directions: Sequence[tuple[float, ...]]) -> tuple[RankingBatch, np.ndarray]:
    """Candidates best first, and the unit vector of each."""
    ordered = a_table(*made)
    vectors = {one.name: direction for one, direction in zip(made, directions, strict=True)}
    return ordered, np.array([vectors[name] for name in ordered.hashes], dtype=np.float32)


def scored(directions: Sequence[tuple[float, ...]], **scores: float) -> tuple[RankingBatch, np.ndarray]:
    made = [a_hit(name, {Channel.DENSE: ChannelHit(1, 0.5)}, name, score=score) for name, score in scores.items()]
    return pointing(made, directions)


# The last is like none of the others: where it is compared, too, one of them is not.
CROWD = scored([NEAR[0], NEAR[1], NEAR[1], NEAR[3]], a=0.5, b=0.5, c=0.5, d=0.375)
# Once the best is shown, the other two are equal, and like one another.
TIED = scored([EXACT[0], EXACT[2], EXACT[1]], c=1.0, b=0.5, a=0.375)
USUAL = settings()


def tuned(**changes: object) -> RetrievalSettings:
    usual = {"depth": 50, "duplicate_cosine": 0.99, "mmr": 0.0, "represent": False, "least_similarity": 0.2}
    return USUAL.model_copy(update={"diversity": DiversitySettings.model_validate({**usual, **changes})})


def shown(found: tuple[RankingBatch, np.ndarray], k: int, **changes: object) -> list[Candidate]:
    return told(diverse(with_vectors(*found, k), tuned(**changes)))


@given(contenders(), st.integers(1, 12), st.floats(0.0, 0.5), st.booleans())
def test_scores_fall_and_are_the_sum_of_what_is_told(found, k: int, mmr: float, represent: bool) -> None:
    """RET-12, ARC-7: whatever is taken from a score is a contribution, and the order is that of the scores."""
    answer = shown(found, k, mmr=mmr, represent=represent)
    assert answer == sorted(answer, key=lambda one: (-one.score, one.content_hash))
    assert len(answer) <= k
    assert len({one.content_hash for one in answer}) == len(answer)
    for one in answer:
        assert one.score == math.fsum(part.amount for part in one.contributions)
        assert all(part.amount == part.value * part.weight for part in one.contributions)


@given(contenders(), st.integers(1, 12))
def test_switched_off_it_is_the_head_of_what_came(found, k: int) -> None:
    """ARC-8: bit for bit."""
    assert shown(found, k, duplicate_cosine=2.0) == told(found[0])[:k]


@given(contenders(), st.floats(0.0, 0.5))
def test_no_two_shown_are_near_duplicates_and_none_left_out_goes_unnamed(found, mmr: float) -> None:
    """RET-12: what is left out is named by something that stands for it."""
    candidates, vectors = found
    answer = shown(found, len(candidates), mmr=mmr, duplicate_cosine=0.99)
    of = {one.content_hash: vector for one, vector in zip(told(candidates), vectors, strict=True)}
    kept = np.array([of[one.content_hash] for one in answer])
    assert (kept @ kept.T)[np.triu_indices(len(kept), 1)].max(initial=0.0) < 0.99
    named = {uri for one in answer for uri in (*one.uris, *one.duplicates)}
    assert named == {uri for one in told(candidates) for uri in one.uris}


@given(contenders())
def test_a_near_duplicate_is_named_by_what_it_is_most_like(found) -> None:
    """RET-12: of all that stands above it; what is only like something left out stays."""
    candidates, vectors = found
    kept = {one.content_hash: set(one.duplicates) for one in shown(found, len(candidates), duplicate_cosine=0.78)}
    named: dict[str, set[str]] = {name: set() for name in kept}
    for at, one in enumerate(told(candidates)):
        if one.content_hash not in kept:
            above = [place for place in range(at) if candidates.hashes[place] in kept]
            likest = max(above, key=lambda place: float(vectors[place] @ vectors[at]))
            assert vectors[likest] @ vectors[at] >= 0.78
            named[candidates.hashes[likest]] |= set(one.uris)
    assert kept == named


@given(contenders(), st.sampled_from([0.0, 0.2]))
def test_a_vector_that_is_no_number_is_like_none(found, mmr: float) -> None:
    """RET-12: it costs nobody else a place, nor anything of a score."""
    candidates, vectors = found
    answers = []
    for worst in (np.nan, 0.0):
        vectors[0] = worst
        answers.append(shown((candidates, vectors), len(candidates), mmr=mmr))
    assert answers[0] == answers[1]


@given(contenders())
def test_the_best_of_all_stays_first(found) -> None:
    """RET-12: diversity never costs the best result its place."""
    for changes in ({"mmr": 0.4}, {"represent": True}, {"duplicate_cosine": 0.9}):
        assert shown(found, 3, **changes)[0].content_hash == found[0].hashes[0]


@given(contenders(), st.integers(1, 6))
def test_each_channel_has_a_word_if_it_fits_and_there_is_room(found, k: int) -> None:
    """RET-12: with a cosine of .2 at least; where k is too small for all, the best keep their places."""
    candidates = told(found[0])
    answer = shown(found, k, duplicate_cosine=2.0, represent=True)
    speaking = {channel for one in answer for channel in one.channels}
    able = {channel for one in candidates for channel in one.channels if one.scores[Channel.DENSE] >= 0.2}
    if k > len(CHANNELS):
        assert able <= speaking
    assert len(answer) == min(k, len(candidates))
    kept = [one for one in candidates[:k] if one in answer]
    assert kept == [one for one in answer if one in candidates[:k]]


@given(contenders(), st.integers(1, 6))
def test_none_stands_for_its_channel_that_does_not_pass(found, k: int) -> None:
    """RET-12: whoever is not good enough takes nobody's place."""
    settled = tuned(duplicate_cosine=2.0, represent=True)
    asked_for = with_vectors(*found, k)
    answer = diverse(asked_for, settled, passes=lambda _: False)
    assert told(answer) == told(found[0])[:k]
    asked = []
    diverse(asked_for, settled, passes=lambda one: bool(asked.append(one)))
    assert all(len(one) == 1 and one.number[0] not in found[0].number[:k] for one in asked)


@given(contenders(), st.floats(0.01, 0.5))
def test_what_is_like_what_stands_above_loses_most(found, mmr: float) -> None:
    """RET-12: each score is its own less mmr times the greatest cosine to any before it (Carbonell and Goldstein)."""
    candidates, vectors = found
    of = {one.content_hash: vector for one, vector in zip(told(candidates), vectors, strict=True)}
    own = {one.content_hash: one.score for one in told(candidates)}
    answer = shown(found, len(candidates), mmr=mmr, duplicate_cosine=2.0)
    for at, one in enumerate(answer):
        above = max((float(of[one.content_hash] @ of[other.content_hash]) for other in answer[:at]), default=0.0)
        assert abs(one.score - (own[one.content_hash] - mmr * max(0.0, above))) < 1e-5


def test_of_equals_the_one_of_the_higher_score_has_its_turn() -> None:
    """RET-12: .5 − .25 · .5 = .375 − .25 · 0; the second of them then loses .25 · .5 to the first."""
    answer = shown(TIED, 3, mmr=0.25, duplicate_cosine=2.0)
    assert [(one.content_hash, one.score) for one in answer] == [("c", 1.0), ("b", 0.375), ("a", 0.25)]


def a_choice(found: tuple[RankingBatch, np.ndarray], k: int, **changes: object) -> Choice:
    return Choice(contending(with_vectors(*found, k), 0), tuned(**changes).diversity)


@given(
    contenders(),
    st.integers(1, 12),
    st.booleans(),
    st.fixed_dictionaries(
        {
            "mmr": st.sampled_from([0.0, 0.2, 0.25]),
            "duplicate_cosine": st.sampled_from([0.99, 2.0]),
            "depth": st.sampled_from([3, 50]),
        }
    ),
)
@example(CROWD, 10, False, {"mmr": 0.2, "duplicate_cosine": 2.0, "depth": 3})
@example(TIED, 10, False, {"mmr": 0.25, "duplicate_cosine": 2.0, "depth": 50})
def test_what_a_draw_would_show_is_what_a_search_with_its_scores_shows(
    found, k: int, represent: bool, rules: dict[str, float]
) -> None:
    """EVA-7, RET-12: propensities follow every draw to its end: near-duplicates, what is alike, channels' words."""
    choice = a_choice(found, k, represent=represent, **rules)
    totals = choice.contenders.scores.totals[choice.contenders.number]
    ranked = choice.ranked(np.stack([totals, totals], axis=1))
    names = [choice.contenders.hashes[line] for line in ranked[:, 1] if line >= 0]
    assert names == [one.content_hash for one in shown(found, k, represent=represent, **rules)]
    assert ranked[:, 0].tolist() == ranked[:, 1].tolist()


@given(contenders(), st.integers(1, 6), st.sampled_from([0.0, 0.2, 0.25]), st.sampled_from([3, 50]), st.data())
def test_no_draw_minds_another(found, k: int, mmr: float, depth: int, data: st.DataObject) -> None:
    """EVA-7, RET-12: what is kept and what is left out in one draw is nothing to the others."""
    eighths = st.integers(0, 8).map(lambda number: number / 8)
    scores = data.draw(arrays(np.float64, (len(found[0]), data.draw(st.integers(2, 5))), elements=eighths))
    choice = a_choice(found, k, mmr=mmr, depth=depth)
    alone = [choice.ranked(scores[:, [draw]])[:, 0].tolist() for draw in range(scores.shape[1])]
    assert choice.ranked(scores).T.tolist() == alone
