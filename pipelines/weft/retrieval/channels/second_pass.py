"""A second search, in other words, deeper, or with all channels (RET-2, RET-3, RET-6)."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.ranking import Channel
from weft.domain.understanding import Complexity, SessionMemory, Variant
from weft.retrieval.channels.run import (
    DENSE,
    NOTHING,
    ChannelRankings,
    ChannelRequest,
    Hits,
    Ranked,
    ScoreRows,
    scores_of,
)
from weft.retrieval.query.understanding import Plan, centroid, escalated_plan, names_all, shift_of
from weft.retrieval.settings import ExpansionSettings, RetrievalSettings

_WORD = re.compile(r"[^\W\d_]\w*")
_WORDS_AND_MEANING = (*DENSE, Channel.LEXICAL)

FEEDBACK, NEIGHBOURS = "feedback", "neighbours"

_SAME_BEGINNING = 5  # characters by which a keyword is one of the words in a name: what is stemmed differs behind them
_MOST_WORDS = 100  # of a query that is expanded at all: a page of text has said enough
_FEEDBACK_TEXTS, _BACKGROUND_TEXTS = 5, 45  # first results taken for relevant, and what their terms stand out from
_FEEDBACK_TERMS, _NAMES = 6, 6  # added at most, of such terms and of names near those in the query
_SHORTEST_TERM = 3  # characters


@dataclass(frozen=True, slots=True)
class Hints:
    """What a second pass may ask of the generation."""

    texts_of: Callable[[Sequence[int]], Sequence[str]]  # texts of contents by row
    names_near: Callable[[str, int], Sequence[str]]  # at most so many names near those in a text
    name_of: Callable[[int], str]  # what a content is called, by row: title, symbol, headings and place of the document
    count_answering: Callable[[Plan, Mapping[Channel, Ranked], Ints], int]


def search_again(
    plans: Sequence[Plan],
    first_pass: ChannelRankings,
    run: Callable[[Sequence[ChannelRequest]], ChannelRankings],  # A search through the channels for a batch
    hints: Hints,
    settings: RetrievalSettings,
) -> tuple[list[Plan], ChannelRankings]:
    """The plans after a first look, and all rankings, with those of queries that needed another pass."""
    revised = [revise_plan(plan, first_pass.of(at), hints, settings) for at, plan in enumerate(plans)]
    # Whether the query's own words would match something else now.
    changed = [(old.depth, old.channels) != (new.depth, new.channels) for old, new in zip(plans, revised, strict=True)]
    repeated = [at for at, plan in enumerate(revised) if plan.understanding.variants or changed[at]]
    if not repeated:
        return revised, first_pass
    requests = [request for at in repeated for request in _requests(revised[at], own=changed[at])]
    second = run(requests)
    rankings = {channel: dict(of_channel) for channel, of_channel in first_pass.rankings.items()}
    failed = [*first_pass.failed]
    places = iter(range(len(requests)))
    for at in repeated:
        own = next(places) if changed[at] else None
        variants = [next(places) for _ in revised[at].understanding.variants]
        first = first_pass.of(at) if own is None else second.of(own)
        reasons = failed[at] if own is None else second.failed[own]
        failed[at] = {**reasons, **{name: why for one in variants for name, why in second.failed[one].items()}}
        for channel, ranked in _combined(first, [second.of(one) for one in variants], settings).items():
            rankings.setdefault(channel, {})[at] = ranked
    elapsed_ms = first_pass.elapsed_ms + second.elapsed_ms * len(requests) / len(plans)
    return revised, ChannelRankings(rankings, failed, elapsed_ms)


def _requests(plan: Plan, *, own: bool) -> list[ChannelRequest]:
    """What is asked for a plan: its own text where that is to be searched again, and its variants."""
    both = [channel for channel in plan.channels if channel in _WORDS_AND_MEANING]
    again = [ChannelRequest(plan.text, plan.channels, plan.depth, plan.among)] if own else []
    return [*again, *(ChannelRequest(each.text, both, plan.depth, plan.among) for each in plan.understanding.variants)]


def revise_plan(plan: Plan, by_channel: Mapping[Channel, Ranked], hints: Hints, settings: RetrievalSettings) -> Plan:
    """The plan after a first look at the rankings; the same where they were enough."""
    if plan.first is not None:
        return plan  # what it asks for first is there, and other words would put others before it
    tuned, vector, memory = settings.understanding, query_vector(by_channel), plan.query.memory
    if plan.channels != settings.channels:
        return plan if _words_answer(plan, by_channel, hints) else escalated_plan(plan, settings)
    shift = None if vector is None or memory is None else shift_of(vector, memory, tuned.shift)
    widening = tuned.shift.widening if shift is not None and shift.dampens else 1.0
    rows, least = _first_rows(by_channel), tuned.expansion.fewer_than
    looked_at = np.array(rows[: max(settings.rerank.depth, least)], dtype=np.int64)
    few = tuned.expansion.enabled and hints.count_answering(plan, by_channel, looked_at) < least
    wanted = few or plan.understanding.complexity is Complexity.COMPLEX
    if shift is None and not wanted:
        return plan
    understanding = replace(plan.understanding, shift=shift)
    if tuned.expansion.enabled and wanted and len(plan.text.split()) <= _MOST_WORDS:
        variants = _variants(plan.text, rows, hints, tuned.expansion)
        understanding = replace(understanding, variants=variants)
    return replace(plan, understanding=understanding, depth=round(plan.depth * widening))


def _words_answer(plan: Plan, by_channel: Mapping[Channel, Ranked], hints: Hints) -> bool:
    """Whether a query is answered by one channel, by words: the best of it bears what is asked for as its name."""
    hits = by_channel[Channel.LEXICAL].ranking if Channel.LEXICAL in by_channel else NOTHING
    if not len(hits):
        return False
    return names_all(plan.text, hints.name_of(int(hits.rows[0])), _SAME_BEGINNING)


def query_vector(by_channel: Mapping[Channel, Ranked]) -> np.ndarray | None:
    """The query's embedding by the first encoder; None where it made none."""
    return by_channel[Channel.DENSE].vector if Channel.DENSE in by_channel else None


def nearness_to_session(by_channel: Mapping[Channel, Ranked], memory: SessionMemory | None) -> ScoreRows | None:
    """Cosine of contents, by row, to the centroid of a session's recent queries; None without any."""
    ranked = by_channel.get(Channel.DENSE)
    if memory is None or ranked is None or ranked.vector is None or ranked.cosines is None:
        return None
    middle = centroid([query for query in memory.queries if len(query) == len(ranked.vector)])
    return None if middle is None else partial(ranked.cosines, middle)


def _first_rows(by_channel: Mapping[Channel, Ranked]) -> list[int]:
    """Rows that words and meaning rank, those first that both rank high."""
    ranks: defaultdict[int, float] = defaultdict(float)
    for channel in _WORDS_AND_MEANING:
        for rank, (row, _) in enumerate(by_channel[channel].ranking if channel in by_channel else (), start=1):
            ranks[row] += 1.0 / rank
    return sorted(ranks, key=lambda row: (-ranks[row], row))


def _variants(text: str, first: Sequence[int], hints: Hints, settings: ExpansionSettings) -> tuple[Variant, ...]:
    if not settings.variants:
        return ()
    neighbours = neighbour_variant(text, hints.names_near(text, _NAMES))
    texts = hints.texts_of(first[: _FEEDBACK_TEXTS + _BACKGROUND_TEXTS])
    head, rest = texts[:_FEEDBACK_TEXTS], texts[_FEEDBACK_TEXTS:]
    feedback = feedback_variant(text, head, rest) if head else None
    return tuple(variant for variant in (feedback, neighbours) if variant is not None)[: settings.variants]


def feedback_variant(query: str, first: Sequence[str], others: Sequence[str]) -> Variant | None:
    """The terms that tell the first results from the further ones, best first; None where there are none.

    Pseudo-relevance feedback (Rocchio 1971; Lavrenko and Croft, SIGIR 2001), with the further results of the same
    query as background: (share of the first texts) · ln((1 + texts) / (1 + texts with the term)).
    """
    in_first, in_all = (
        Counter(term for text in texts for term in _terms(text)) for texts in (first, [*first, *others])
    )
    query_terms = _terms(query)
    texts = 1 + len(first) + len(others)
    gains = {
        term: count / len(first) * math.log(texts / (1 + in_all[term]))
        for term, count in in_first.items()
        # What one text alone says is about that text.
        if term not in query_terms and len(term) >= _SHORTEST_TERM and (count > 1 or len(first) == 1)
    }
    best = sorted(gains, key=lambda term: (-gains[term], term))[:_FEEDBACK_TERMS]
    return Variant(" ".join(best), FEEDBACK) if best and gains[best[0]] > 0.0 else None


def neighbour_variant(query: str, names: Iterable[str]) -> Variant | None:
    """Names that stand near those in the query, such as other spellings and what is mentioned beside them."""
    query_terms = _terms(query)
    others = [name for name in dict.fromkeys(names) if not _terms(name) <= query_terms]
    nearest = others[:_NAMES]
    return Variant(" ".join(nearest), NEIGHBOURS) if nearest else None


def _terms(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _combined(
    original: Mapping[Channel, Ranked], variants: Sequence[Mapping[Channel, Ranked]], settings: RetrievalSettings
) -> Mapping[Channel, Ranked]:
    """The channels' rankings of a query and its variants as one, the query counting more often."""
    weight = settings.understanding.expansion.original_weight
    combined = dict(original)
    for channel in original.keys() & set(_WORDS_AND_MEANING) if variants else ():
        others = [each[channel] for each in variants if channel in each]
        combined[channel] = _mean_of(original[channel], others, weight)
    return combined


def _mean_of(original: Ranked, variants: Sequence[Ranked], weight: float) -> Ranked:
    """Contents by the mean of their scores for the query, which counts `weight` times, and for its variants."""
    scored = [scores_of(ranked) for ranked in (original, *variants)]
    rows = np.unique(np.concatenate([ranked.ranking.rows for ranked in (original, *variants)]))

    def score_rows(rows: Ints) -> Floats:
        columns = zip(*(scores(rows).tolist() for scores in scored), strict=True)
        sums = [weight * own + math.fsum(others) for own, *others in columns]
        return np.array(sums, dtype=np.float64) / (weight + len(variants))

    scores = score_rows(rows)
    order = np.lexsort((rows, -scores))
    scorer = None if original.score_rows is None else score_rows
    return replace(original, ranking=Hits(rows[order], scores[order]), score_rows=scorer, alone=original)
