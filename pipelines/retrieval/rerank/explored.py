"""What an exploring search would show, had its weights been drawn otherwise (EVA-7, RET-12).

What stands at a rank is not what has that rank by its score: near-duplicates are left out, and channels that found none
of the best have a word. A propensity that knew of scores alone would call what always comes to stand somewhere so next
to impossible. So every draw is followed to its end, all of them together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from pipelines.domain.ranking import Channel
from pipelines.retrieval.channels.run import VectorsOf
from pipelines.retrieval.ranking.table import Candidates, Flags, Floats, Ints
from pipelines.retrieval.rerank.diversity import Passes, cosines_of, marginal_relevance, with_newcomers
from pipelines.retrieval.settings import DiversitySettings


def contending(candidates: Candidates, query: int) -> Candidates:
    """Those of one query, by content hash."""
    lines = np.flatnonzero(candidates.query == query)
    return candidates.take(lines[np.argsort(candidates.number[lines])])


@dataclass(frozen=True, slots=True)
class Choice:
    """How one query's results are chosen.

    Attributes:
        contenders: Of that query alone, all that might be shown, by content hash, as equals come.
        k: How many are shown.
        vectors: None where no vectors are kept.
        passes: Whether one of them may stand for its channel.
    """

    contenders: Candidates
    k: int
    vectors: VectorsOf | None
    settings: DiversitySettings
    passes: Passes

    def ranked(self, scores: Floats) -> Ints:
        """What is shown at each rank under each draw: lines of `contenders`, (k, draws); −1 where nothing is.

        Args:
            scores: Of each contender under each draw, (contenders, draws).
        """
        lowered = self._lowered(scores)
        order = np.argsort(-lowered, axis=0, kind="stable")
        stays = np.isfinite(np.take_along_axis(lowered, order, axis=0))
        head = stays & (np.arange(len(scores))[:, None] < self.k)
        if self.settings.represent:
            self._represent(order, stays, head)
        ranked = np.full((self.k, scores.shape[1]), -1, dtype=np.int64)
        place, draw = np.nonzero(head)
        ranked[(np.cumsum(head, axis=0) - 1)[place, draw], draw] = order[place, draw]
        return ranked

    def _lowered(self, scores: Floats) -> Floats:
        """Scores less what those above take from them, −inf of near-duplicates; as `diversity.marginal` has it."""
        cosines = cosines_of(self.vectors, self.contenders.rows, self.settings)
        if cosines is None:
            return scores
        turns, nearest = marginal_relevance(scores, cosines, self.settings)
        left = np.take_along_axis(scores, turns, axis=0) - self.settings.mmr * nearest
        lowered = scores.copy()
        np.put_along_axis(lowered, turns, np.where(np.isnan(left), -np.inf, left), axis=0)
        return lowered

    def _represent(self, order: Ints, stays: Flags, head: Flags) -> None:
        """Let channels have their word in every draw where one is missing, in place; as `diversity.represented` has it.

        Args:
            order: Lines of contenders under each draw, the best first; `stays` and `head` follow it.
        """
        by_channel = self.contenders.merged.ranks[self.contenders.number] > 0
        fit = self.contenders.scores_of(Channel.DENSE) >= self.settings.least_similarity
        passed: dict[int, bool] = {}

        def passes(line: int) -> bool:
            if line not in passed:
                passed[line] = self.passes(self.contenders.take(slice(line, line + 1)))
            return passed[line]

        by_place = by_channel[order]  # (places, draws, channels)
        shown = np.logical_or.reduce(by_place & head[:, :, None], axis=0)
        missing = np.logical_or.reduce(by_place & (stays & ~head)[:, :, None], axis=0) & ~shown
        for draw in np.flatnonzero(np.logical_or.reduce(missing, axis=1)).tolist():
            lines = order[:, draw]
            able = by_channel[lines] & (fit[lines] & stays[:, draw])[:, None] & missing[draw]
            head[:, draw] = with_newcomers(head[:, draw], by_channel[lines], able, partial(_at, lines, passes))


def _at(lines: Ints, passes: Callable[[int], bool], at: int) -> bool:
    return passes(int(lines[at]))
