"""The candidates of all queries of a batch as one value, which stages take and return (RET-8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Channel, Signal, WeightBelief
from weft.domain.reasons import PastVerdicts
from weft.indexes.chunk_store import ChunkStore, Content
from weft.quality.groups import Groups, exact_sums
from weft.retrieval.channels.run import NOTHING, Hits
from weft.retrieval.ranking.context import RankingContext
from weft.retrieval.snapshot.documents import DOMAINS, Documents
from weft.retrieval.snapshot.filters import matches
from weft.retrieval.snapshot.ports import OpenGeneration

CHANNELS = tuple(sorted(Channel))
SIGNALS = tuple(Signal)
CHANNEL_AT = {channel: at for at, channel in enumerate(CHANNELS)}
ABOVE_ALL = 1e6  # far above any score
SIGNAL_AT = {signal: at for at, signal in enumerate(SIGNALS)}


class ScoreTerm(NamedTuple):
    """One addend of scores."""

    name: str  # A signal, a channel or a boost
    signal: Signal | None = None  # the signal whose learned weight it has; None for what has no learned weight


@dataclass(frozen=True, slots=True, eq=False)
class OccurrenceTable:
    """Where candidates stand, as far as the filters of their queries let through."""

    contents: Sequence[ContentHash]  # content hash by row, ascending
    store: ChunkStore
    documents: Documents  # facts of the generation's documents, by number
    # A line per place: the candidate's number, the chunk's and its document's; in the order of candidates, each
    # one's representative first
    owner: Ints
    place: Ints
    document: Ints
    first: Ints  # lines that are the first of their candidate in their document


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """What channels ranked: a candidate per query and content, numbered by query and then by content hash."""

    query: Ints  # place in its batch of its query, (candidates,)
    row: Ints  # of the content in every index of the generation, (candidates,)
    domain: Ints  # place in `DOMAINS` of its representative's domain: whose weights rank it, (candidates,)
    scopes: Sequence[tuple[int, Domain]]  # the pairs of query and domain that there are, each once
    scope: Ints  # place in `scopes` of its own, (candidates,)
    ranks: Ints  # where each of `CHANNELS` put it, from 1; 0 where a channel did not, (candidates, channels)
    # the channels' scores of it, also of channels that did not rank it but could score it nevertheless; NaN
    # where there is none; shape (candidates, channels)
    scores: Floats
    first: Flags | None = None  # those that stand before all others, (candidates,); None where none do


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What scores of candidates are made of, by number; a stage adds to it and takes nothing away."""

    parts: tuple[ScoreTerm, ...]
    values: Floats  # of each part, (candidates, parts); NaN where it adds nothing to a candidate
    weights: Floats
    totals: Floats  # the score: the sum of values times weights, rounded once, (candidates,)

    def added(self, numbers: Ints, parts: Sequence[ScoreTerm], values: Floats, weights: Floats) -> Scores:
        """Scores with further parts, of some candidates; NaN where a part adds nothing."""
        some = np.logical_or.reduce(~np.isnan(values * weights), axis=1).nonzero()[0]
        numbers = numbers[some]
        all_values, shares = (
            _widened(old, numbers, new[some]) for old, new in ((self.values, values), (self.weights, weights))
        )
        totals = self.totals.copy()
        totals[numbers] = exact_sums(all_values[numbers] * shares[numbers])
        return Scores((*self.parts, *parts), all_values, shares, totals)


@dataclass(frozen=True, eq=False)
class RankingBatch:
    """Contents that at least one channel ranked: a line each, by query, and there by hash or the best first.

    A batch of some lines is one, too, down to those of one query. Columns that stages fill in are stored by the
    candidate's number, so that another order moves nothing but numbers.
    """

    contexts: Sequence[RankingContext]  # what each query of the batch is ranked on
    failed: Sequence[Mapping[str, str]]  # for each query what was left out, and why
    occurrences: OccurrenceTable
    merged: Merged
    number: Ints  # of the candidate of each line, (n,)
    # Where it is shown: in the best document it speaks for, or its representative's before stage 3, (candidates,)
    documents: Ints
    places: Ints
    signals: Floats  # each of `SIGNALS` in [0, 1]; NaN where there is none, (candidates, signals)
    scores: Scores
    # documents by candidate number, the best first, of those that speak for several
    document_ids: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    # documents of near-duplicates by number of the candidate that stands for them
    duplicates: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    # what is believed of what came of candidates before, by number and name of the part
    effects: Mapping[int, Mapping[str, WeightBelief]] = field(default_factory=dict)
    past: Mapping[int, PastVerdicts] = field(default_factory=dict)  # what people called candidates before, by number

    def __len__(self) -> int:
        return len(self.number)

    @cached_property
    def query(self) -> Ints:
        """Place of each line's query in its batch, (n,)."""
        return self.merged.query[self.number]

    @property
    def ks(self) -> Ints:
        """How many results each query asks for, (queries,)."""
        return np.array([each.plan.k for each in self.contexts])

    @cached_property
    def queries(self) -> Groups:
        """The lines of each query that has any."""
        return Groups.of(self.query)

    @cached_property
    def rows(self) -> Ints:
        """Row of each line's content in every index, (n,)."""
        return self.merged.row[self.number]

    @cached_property
    def domain(self) -> Ints:
        """Place in `DOMAINS` of the domain whose weights rank each line, (n,)."""
        return self.merged.domain[self.number]

    @cached_property
    def total(self) -> Floats:
        """Score of each line, (n,)."""
        return self.scores.totals[self.number]

    @property
    def elevation(self) -> Floats | float:
        """What puts those that stand first above all others where scores are compared, (n,); 0 where none do."""
        first = self.merged.first
        return 0.0 if first is None else np.where(first[self.number], ABOVE_ALL, 0.0)

    @property
    def document(self) -> Ints:
        """Number of the document that each line is shown in, (n,)."""
        return self.documents[self.number]

    @property
    def place(self) -> Ints:
        """Number of the chunk that each line is shown as, (n,)."""
        return self.places[self.number]

    @property
    def hashes(self) -> list[ContentHash]:
        """Content hash of each line."""
        contents = self.occurrences.contents
        return [contents[row] for row in self.rows.tolist()]

    @property
    def contents(self) -> Sequence[Content]:
        """The content of each line, read now."""
        return self.occurrences.store.contents(self.rows)

    def is_ranked_by(self, channel: Channel) -> Flags:
        """Which candidates a channel ranked, (n,)."""
        return self.ranks_of(channel) > 0

    def ranks_of(self, channel: Channel) -> Ints:
        """Where a channel put each candidate, (n,)."""
        return np.asarray(self.merged.ranks[self.number, CHANNEL_AT[channel]])

    def scores_of(self, channel: Channel) -> Floats:
        """A channel's score of each candidate, (n,); NaN where there is none."""
        return np.asarray(self.merged.scores[self.number, CHANNEL_AT[channel]])

    def signal(self, signal: Signal) -> Floats:
        """A signal of each candidate, (n,); NaN where there is none."""
        return np.asarray(self.signals[self.number, SIGNAL_AT[signal]])

    def uris(self, number: int) -> tuple[str, ...]:
        """Documents that the candidate of a number speaks for, the best one first."""
        documents = self.document_ids.get(number) or (int(self.documents[number]),)
        return tuple(map(self.occurrences.documents.uri, documents))

    def take(self, lines: Ints | Flags | slice) -> RankingBatch:
        """Some lines, in the order asked for; those of each query stay together."""
        return replace(self, number=self.number[lines])

    def first(self, depth: Ints | int) -> Ints:
        """The first lines of each query."""
        most = depth if isinstance(depth, int) else depth[self.query]
        return np.asarray((self.queries.places() < most).nonzero()[0])

    def head(self, depth: Ints | int) -> RankingBatch:
        """The first of each query; see `first`."""
        return self.take(self.first(depth))

    def with_signals(self, signals: Mapping[Signal, Floats]) -> RankingBatch:
        """The same candidates with more signals, of each line."""
        columns = self.signals.copy()
        for signal, values in signals.items():
            columns[self.number, SIGNAL_AT[signal]] = values
        return replace(self, signals=columns)

    def add_terms(self, parts: Sequence[ScoreTerm], values: Floats, weights: Floats) -> RankingBatch:
        """The same candidates with further addends to their scores."""
        return replace(self, scores=self.scores.added(self.number, parts, values, weights))

    def add_term(self, name: str, values: Floats, weight: float) -> RankingBatch:
        """The same with one more addend, values · weight; NaN where it adds nothing."""
        return self.add_terms([ScoreTerm(name)], values[:, None], np.full((len(self), 1), weight))


def _widened(columns: Floats, numbers: Ints, more: Floats) -> Floats:
    """Columns with further ones, which some candidates have values in."""
    before = columns.shape[1]
    wider = np.full((len(columns), before + more.shape[1]), np.nan)
    wider[:, :before] = columns
    wider[numbers, before:] = more
    return wider


def best_first(candidates: RankingBatch) -> RankingBatch:
    """Candidates of each query by score, ties by content hash; before them those that stand first."""
    keys: tuple[np.ndarray, ...] = (candidates.number, -candidates.total, candidates.query)
    if candidates.merged.first is not None:
        keys = (*keys[:2], ~candidates.merged.first[candidates.number], candidates.query)
    return candidates.take(np.lexsort(keys))


def merge(
    contexts: Sequence[RankingContext],
    failed: Sequence[Mapping[str, str]],  # what was left out of the search for each query
    generation: OpenGeneration,
    documents: Documents,  # of the generation, by number
    *,
    complete: bool,  # whether channels score what others ranked
) -> RankingBatch:
    """One candidate per query and content, with every channel that ranked it, and what stands before all others."""
    contents = generation.contents
    by_channel, scorers = [each.hits for each in contexts], [each.scorers(complete=complete) for each in contexts]
    size = max(1, len(contents))
    hits = [
        (query, channel, each)
        for query, of_query in enumerate(by_channel)
        for channel, each in of_query.items()
        if len(each)
    ]
    keys = np.concatenate([NOTHING.rows, *(query * size + each.rows for query, _, each in hits)])
    key, line = np.unique(keys, return_inverse=True)
    query, row = np.divmod(key, size)
    columns = np.array([CHANNEL_AT[channel] for _, channel, _ in hits], dtype=np.int64)
    cells = line * len(CHANNELS) + columns.repeat([len(each) for *_, each in hits])
    ranks = np.zeros((len(key), len(CHANNELS)), dtype=np.int64)
    scores = np.full((len(key), len(CHANNELS)), np.nan)
    ranks.ravel()[cells] = np.concatenate([NOTHING.rows, *(np.arange(1, len(each) + 1) for *_, each in hits)])
    scores.ravel()[cells] = np.concatenate([NOTHING.scores, *(each.scores for *_, each in hits)])
    unknown = np.isnan(scores)
    for owner, own in Groups.of(query):
        missing = unknown[own]
        some = missing.any(axis=0).tolist()
        for channel, score in scorers[owner].items():
            if some[at := CHANNEL_AT[channel]]:
                # All are scored, though some are known: whoever reads contents for that, reads all of them once.
                np.copyto(scores[own, at], score(row[own]), where=missing[:, at])
    filters = [each.plan.query.filters for each in contexts]
    occurrences = occurrences_of(contents, generation.chunks, documents, query=query, row=row, filters=filters)
    return _with_aliases(batch_of(contexts, failed, occurrences, query=query, row=row, ranks=ranks, scores=scores))


def _with_aliases(candidates: RankingBatch) -> RankingBatch:
    """Candidates that name the documents of the aliases which they stand for (CON-2)."""
    left_out = [each.left_out for each in candidates.contexts]
    if not any(left_out):
        return candidates
    duplicates = dict(candidates.duplicates)
    occurrences, merged = candidates.occurrences, candidates.merged
    for number, (query, row) in enumerate(zip(merged.query.tolist(), merged.row.tolist(), strict=True)):
        if aliases := left_out[query].get(row):
            *_, documents = occurrences.store.occurrence_arrays(aliases)
            uris = dict.fromkeys(map(occurrences.documents.uri, documents.tolist()))
            duplicates[number] = tuple(uri for uri in uris if uri not in candidates.uris(number))
    return replace(candidates, duplicates=duplicates)


def occurrences_of(
    contents: Sequence[ContentHash],
    store: ChunkStore,
    documents: Documents,
    *,
    query: Ints,  # Of each candidate
    row: Ints,
    filters: Sequence[Mapping[str, str]],  # of each query
) -> OccurrenceTable:
    """Places of contents that the filters of their queries let through."""
    owner, place, document = store.occurrence_arrays(row)
    if any(filters):
        asked = query[owner] * len(documents.facts) + document
        distinct, of_place = np.unique(asked, return_inverse=True)
        pairs = (divmod(pair, len(documents.facts)) for pair in distinct.tolist())
        holds = np.array([matches(documents.facts[number], filters[who]) for who, number in pairs], dtype=bool)[
            of_place
        ]
        owner, place, document = owner[holds], place[holds], document[holds]
    # A content's places in one document follow one another.
    first = np.ones(len(owner), dtype=bool)
    first[1:] = (owner[1:] != owner[:-1]) | (document[1:] != document[:-1])
    return OccurrenceTable(contents, store, documents, owner, place, document, first.nonzero()[0])


def batch_of(
    contexts: Sequence[RankingContext],
    failed: Sequence[Mapping[str, str]],
    occurrences: OccurrenceTable,
    *,
    query: Ints,  # Of each candidate
    row: Ints,
    ranks: Ints,
    scores: Floats,
) -> RankingBatch:
    """Candidates by number, each at its representative, without signals."""
    count = len(row)
    at = occurrences.owner.searchsorted(np.arange(count))
    document = occurrences.document[at]
    domain, nothing = occurrences.documents.domain[document], np.zeros((count, 0))
    pairs, scope = np.unique(query * len(DOMAINS) + domain, return_inverse=True)
    scopes = [(each // len(DOMAINS), DOMAINS[each % len(DOMAINS)]) for each in pairs.tolist()]
    return RankingBatch(
        contexts,
        failed,
        occurrences,
        Merged(query, row, domain, scopes, scope, ranks, scores, _first_of_query(contexts, query, row, ranks)),
        number=np.arange(count),
        documents=document,
        places=occurrences.place[at],
        signals=np.full((count, len(SIGNALS)), np.nan),
        scores=Scores((), nothing, nothing, np.zeros(count)),
    )


def _first_of_query(contexts: Sequence[RankingContext], query: Ints, row: Ints, ranks: Ints) -> Flags | None:
    """What stands before all others, for the signs of its query or as what it names (RET-22).

    What people called right stands with what is named: by its score it is the first or is not.
    """
    if all(each.plan.first is None for each in contexts):
        return None
    first = np.zeros(len(row), dtype=bool)
    for at, lines in Groups.of(query):
        if (rows := contexts[at].plan.first) is not None:
            first[lines] = rows.mask[row[lines]]
        if contexts[at].plan.named is not None:
            first[lines] |= ranks[lines, CHANNEL_AT[Channel.ANSWERED]] > 0
    return first


def head(
    by_channel: Mapping[Channel, Hits], depth: int, contents: Sequence[ContentHash]
) -> dict[Channel, tuple[tuple[ContentHash, float], ...]]:
    """The contents that each channel ranked first to `depth` for one query, with its scores, best first."""
    heads = {channel: by_channel[channel].head(depth) for channel in CHANNELS if channel in by_channel}
    return {
        channel: tuple((contents[row], score) for row, score in hits) for channel, hits in heads.items() if len(hits)
    }
