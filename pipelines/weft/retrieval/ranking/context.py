"""What one query of a batch is ranked on: what channels gave, what is believed, and what people said before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.documents import Domain
from weft.domain.ranking import Channel, Signal, WeightBelief
from weft.learning.observe.allowances import capped_weights
from weft.learning.observe.precedents import Precedents, VerdictTable
from weft.retrieval.channels.run import Hits, Ranked, ScoreRows, VectorLookup
from weft.retrieval.query.understanding import Plan
from weft.retrieval.snapshot.documents import GenerationFacts
from weft.retrieval.snapshot.snapshot import BeliefReading


@dataclass(frozen=True, slots=True)
class SignalWeight:
    """What a signal is multiplied with."""

    value: float  # the weight applied: the posterior mean, or this query's draw where it explores
    belief: WeightBelief


SignalWeights = Callable[[Domain], Mapping[Signal, SignalWeight]]
"""Weights of the active signals for a candidate of this domain; they sum to 1."""

WeightDraws = Callable[[Domain], Floats]
"""Draws of all signals' weights for results of this domain, float64 (signals, draws); 0 of those that do not count."""


@dataclass(frozen=True, slots=True)
class Rerankers:
    """What scores the candidates of one query again: by signal, the values in [0, 1] of contents by row."""

    used: Mapping[Signal, ScoreRows]
    left_out: Mapping[str, str]  # why others that are wanted do not, by name


@dataclass(frozen=True, slots=True, eq=False)
class QuestionVerdicts:
    """Verdicts under a question and near ones, a line per verdict and content of this generation, (verdicts,) each."""

    row: Ints  # of the content
    table: VerdictTable  # the verdicts
    factor: Floats  # how far its question counts for this one, in (0, 1]
    own: Flags  # whether the asker said so of this very question

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(
        cls, precedents: Precedents, near: Mapping[str, float], rows: Mapping[int, Sequence[int]], principal: str
    ) -> QuestionVerdicts:
        """The verdicts under some questions."""
        lines = [
            (row, word, factor)
            for question, factor in near.items()
            for word in precedents.under(question).tolist()
            for row in rows.get(int(precedents.verdicts.content[word]), ())
        ]
        row, word, factor = zip(*lines, strict=True) if lines else ((), (), ())
        placed, factors = np.array(row, dtype=np.int64), np.array(factor, dtype=np.float64)
        verdicts = precedents.verdicts.take(np.array(word, dtype=np.int64))
        order = np.lexsort((verdicts.ms, verdicts.day, verdicts.spoken, verdicts.principal, verdicts.question, placed))
        pairs = np.stack([placed, verdicts.question, verdicts.principal])[:, order]
        last = order[np.append((np.diff(pairs) != 0).any(axis=0), True)] if len(order) else order
        placed, factors, verdicts = placed[last], factors[last], verdicts.take(last)
        mine = np.array([precedents.principals[each] == principal for each in verdicts.principal.tolist()], dtype=bool)
        return cls(placed, verdicts, factors, mine & verdicts.spoken & (factors == 1.0))

    def counted(self, some: Ints, weight: Floats, line: Ints) -> Floats:
        """What some verdicts count where each speaks of a line."""
        return counted(self.table.take(some)._replace(weight=weight), line)

    def hits(self) -> Hits:
        """Contents that more was said for than against, best first: what the channel `answered` returns (LRN-23)."""
        rows, of = np.unique(self.row, return_inverse=True)
        weight = self.counted(np.arange(len(self.row)), self.table.weight * self.factor, of)
        net = np.zeros(len(rows))
        np.add.at(net, of, weight * (2.0 * self.table.good - 1.0))
        order = np.lexsort((rows, -net))
        some = order[net[order] > 0.0]
        return Hits(rows[some], net[some])


def counted(verdicts: VerdictTable, line: Ints) -> Floats:
    """Weights such that no principal counts more than once per line, and new ones of a day as a few (FBK-13)."""
    if not len(line):
        return verdicts.weight
    _, of = np.unique(np.stack([line, verdicts.principal], axis=1), axis=0, return_inverse=True)
    total = np.bincount(of, weights=verdicts.weight)
    return capped_weights(verdicts.weight / np.maximum(total, 1.0)[of], verdicts.together, verdicts.day, line)


@dataclass(frozen=True, slots=True, eq=False)
class PastOutcomes:
    """All that is known of what came of contents, for one query."""

    precedents: Precedents
    verdicts: QuestionVerdicts
    near: Mapping[str, float]  # factor of each question that counts, by fingerprint
    numbers: Mapping[int, Sequence[int]]  # of what verdicts name, by row of the content that it is
    share: float = 1.0  # of what came of contents elsewhere, in [0, 1]: less after a change of topic
    revised: frozenset[int] = frozenset()  # numbers of contents whose text was edited since

    @property
    def own(self) -> Mapping[int, bool]:
        """Whether the asker called a content right, by row."""
        rows, good = self.verdicts.row[self.verdicts.own], self.verdicts.table.good[self.verdicts.own]
        return dict(zip(rows.tolist(), (good > 0.5).tolist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class RankingContext:
    """What one query is ranked on."""

    plan: Plan
    ranked: Mapping[Channel, Ranked]
    answered: frozenset[Channel]  # channels that have something to say
    reranking: Rerankers  # what scores the best candidates again
    reading: BeliefReading
    weights: SignalWeights
    draws: WeightDraws
    now: float  # seconds since the epoch, what ages are measured to
    facts: GenerationFacts = field(default_factory=GenerationFacts)
    # cosine of contents, by row, to what the session asked before; None without such a session
    nearness: ScoreRows | None = None
    past: PastOutcomes | None = None  # what came of contents before; None where nothing did
    # row of the content that stands for it, by row of each alias; empty where aliases stay
    representatives: Mapping[int, int] = field(default_factory=dict)

    @property
    def hits(self) -> Mapping[Channel, Hits]:
        """What each channel ranked first, as deep as was planned, representatives in the place of their aliases."""
        leaders = {alias: leader for leader, rows in self.left_out.items() for alias in rows}
        return {channel: hits.collapsed(leaders) for channel, hits in self._heads.items()}

    @cached_property
    def left_out(self) -> Mapping[int, Sequence[int]]:
        """The aliases that were found, by the row of the content that stands for them."""
        aliases: dict[int, list[int]] = {}
        if self.representatives:
            rows = {row for hits in self._heads.values() for row in hits.rows.tolist()}
            for row in sorted(rows & self.representatives.keys()):
                leader = self.representatives[row]
                if self.plan.among is None or self.plan.among.mask[leader]:
                    aliases.setdefault(leader, []).append(row)
        return aliases

    @property
    def _heads(self) -> Mapping[Channel, Hits]:
        return {channel: ranked.ranking.head(self.plan.depth) for channel, ranked in self.ranked.items()}

    @property
    def vectors(self) -> VectorLookup | None:
        """The stored vectors by the first encoder; None where the dense channel did not answer."""
        return self.ranked[Channel.DENSE].vectors if Channel.DENSE in self.ranked else None

    def threshold(self, domain: Domain) -> float | None:
        """Confidence from which on whoever asks should act on a result; None while no decision was reviewed."""
        return self.reading.beliefs.acting_threshold(domain, self.plan.query.agent)

    def scorers(self, *, complete: bool) -> Mapping[Channel, ScoreRows]:
        """What scores contents that a channel did not rank; nothing where scores are not to be completed."""
        return {
            channel: ranked.score_rows
            for channel, ranked in self.ranked.items()
            if complete and ranked.score_rows is not None
        }
