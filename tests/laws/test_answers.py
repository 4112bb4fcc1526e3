"""RET-18, RET-8, ARC-9: laws that every answer keeps, whatever is searched and however it is fused."""

import math

from hypothesis import given
from hypothesis import strategies as st

from tests.support.candidate_tables import a_context, a_hit, a_table
from tests.support.retrieval_fakes import EvenBeliefs, a_query, settings
from weft.domain.ranking import Channel, ChannelHit
from weft.retrieval.answers import Verdict, explain_candidates, results
from weft.retrieval.ranking.final_score import BONUS, best_results
from weft.retrieval.ranking.fusion import believed_weights, fuse
from weft.retrieval.ranking.signals import active_signals, with_similarity
from weft.retrieval.settings import FusionMode, ResultUnit

SETTINGS = settings()
SCORES = {Channel.DENSE: st.floats(-1.0, 1.0), Channel.LEXICAL: st.floats(0.0, 50.0)}


@st.composite
def found(draw: st.DrawFn):
    """Candidates as channels give them: distinct contents, each in some documents, ranked by score per channel."""
    names = draw(st.lists(st.text("abcdef", min_size=1, max_size=4), min_size=1, max_size=12, unique=True))
    hits: dict[str, dict[Channel, ChannelHit]] = {name: {} for name in names}
    for channel, scores in SCORES.items():
        members = draw(st.lists(st.sampled_from(names), unique=True))
        values = sorted(draw(st.lists(scores, min_size=len(members), max_size=len(members))), reverse=True)
        for rank, (name, score) in enumerate(zip(members, values, strict=True), start=1):
            hits[name][channel] = ChannelHit(rank, score)
    documents = st.lists(st.sampled_from(["d1", "d2", "d3", "d4"]), min_size=1, max_size=2, unique=True)
    return [a_hit(name, channels, *draw(documents)) for name, channels in hits.items() if channels]


def ranked(hits, mode: FusionMode, unit: ResultUnit, *, explore: bool = False, k: int = 50):
    query = a_query("q", k=k, explore=explore)
    answered = {channel for hit in hits for channel in hit.channels}
    weights = believed_weights(query, EvenBeliefs(), active_signals(answered))
    by_channel = {Channel.DENSE: 0.7, Channel.LEXICAL: 1.3}
    tuned = SETTINGS.model_copy(update={"fusion": mode, "unit": unit, "channel_weights": by_channel})
    candidates = a_table(*hits, context=a_context(query, answered=answered, weights=weights))
    fused = fuse(with_similarity(candidates, tuned), tuned)
    explained = explain_candidates(best_results(fused, tuned).head(k))
    return results(explained, EvenBeliefs(), [Verdict()] * len(explained))


modes, units = st.sampled_from(FusionMode), st.sampled_from(ResultUnit)


@given(found(), modes, units, st.booleans())
def test_the_contributions_sum_to_the_score(candidates, mode, unit, explore) -> None:
    """RET-18: exactly, and every contribution is its value times its weight."""
    for result in ranked(candidates, mode, unit, explore=explore):
        assert result.score == math.fsum(part.amount for part in result.contributions)
        assert all(part.amount == part.value * part.weight for part in result.contributions)
        assert len({part.name for part in result.contributions}) == len(result.contributions)


@given(found(), modes, units)
def test_results_are_ordered_by_score_then_content_hash_and_each_content_stands_once(candidates, mode, unit) -> None:
    """RET-8, RET-9, ARC-9."""
    answer = ranked(candidates, mode, unit)
    order = [(-result.score, result.content_hash) for result in answer]
    assert order == sorted(order)
    assert len(set(order)) == len(order)
    assert [result.rank for result in answer] == list(range(1, len(answer) + 1))


@given(found(), modes, units, st.randoms(use_true_random=False))
def test_the_order_in_which_candidates_come_changes_nothing(candidates, mode, unit, random) -> None:
    """ARC-9."""
    shuffled = list(candidates)
    random.shuffle(shuffled)
    assert ranked(shuffled, mode, unit) == ranked(candidates, mode, unit)


@given(found(), modes, units)
def test_every_signal_is_told_and_lies_between_0_and_1(candidates, mode, unit) -> None:
    """RET-13, ARC-7: whether weighted or not; and so does relevance."""
    answered = {channel for candidate in candidates for channel in candidate.channels}
    for result in ranked(candidates, mode, unit):
        assert active_signals(answered) <= set(result.signals)
        assert all(0.0 <= value <= 1.0 for value in result.signals.values())
        assert 0.0 <= result.relevance <= 1.0


@given(found(), units, st.booleans())
def test_only_the_further_chunks_of_a_document_take_a_learned_score_above_1(candidates, unit, explore) -> None:
    """RET-11, RET-14, ARC-7: what weights and signals come to stays in [0, 1]; what goes beyond is told by its name."""
    for result in ranked(candidates, FusionMode.LEARNED, unit, explore=explore):
        learned = math.fsum(part.amount for part in result.contributions if part.belief is not None)
        others = [part for part in result.contributions if part.belief is None]
        assert 0.0 <= learned <= 1.0
        assert {part.name for part in others} <= {BONUS}
        assert all(part.amount >= 0.0 for part in others)


@given(found(), st.integers(1, 5), modes, units)
def test_asking_for_fewer_results_gives_the_head_of_more(candidates, k, mode, unit) -> None:
    """ARC-9."""
    assert ranked(candidates, mode, unit, k=k) == ranked(candidates, mode, unit)[:k]


@given(found(), modes)
def test_every_document_of_every_candidate_is_named_once_per_unit(candidates, mode) -> None:
    """ARC-4: collapsing loses no document."""
    documents = {place.uri for candidate in candidates for place in candidate.places}
    named = [uri for result in ranked(candidates, mode, ResultUnit.DOCUMENT) for uri in result.uris]
    assert sorted(named) == sorted(documents)
