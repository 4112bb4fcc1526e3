"""What is shown together: near-duplicates, MMR, a word from every channel (RET-12), and how likely (EVA-7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from scipy.sparse import coo_matrix, csgraph

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.ranking import Channel
from weft.domain.reasons import STANDS_FIRST, SUPERSEDED
from weft.retrieval.ranking.batch import CHANNELS, RankingBatch, best_first
from weft.retrieval.ranking.signals import may_answer
from weft.retrieval.settings import SEARCHING, DiversitySettings, FusionMode, RetrievalSettings
from weft.retrieval.snapshot.relations import NO_RELATIONS, Counterparts, ResolvedRelations

# What supersedes a result stands before it (CON-4).

Pairs = Sequence[tuple[int, int]]
"""Lines of what is superseded, and of what supersedes it."""


def after_successors(shown: RankingBatch, among: RankingBatch, newer: Counterparts) -> RankingBatch:
    """Results of which those that are superseded stand after what supersedes them, where both are shown.

    Each loses just what sets it above the other, as a contribution, so that scores still fall (ARC-7).
    """
    if not newer.rows and not newer.documents:
        return shown
    places = {number: at for at, number in enumerate(shown.number.tolist())}
    every = [among.take(lines) for _, lines in among.queries]
    pairs = [
        (places[own[older]], places[own[other]])
        for own, some in ((each.number.tolist(), each) for each in every)
        for older, other in successions(some, newer)
        if own[older] in places and own[other] in places
    ]
    if not pairs:
        return shown
    total = shown.total
    taken = total - lowered(total[:, None], np.ones((len(shown), 1), dtype=bool), pairs)[:, 0]
    older, other = np.array(pairs).T
    while True:  # a sum is rounded once more: until each is below the other to the last bit
        ordered = shown.add_term(SUPERSEDED, np.where(taken > 0.0, taken, np.nan), -1.0)
        above = ordered.total[older] - ordered.total[other]
        wrong = np.unique(older[above >= 0.0])
        if not len(wrong):
            return best_first(ordered)
        # By all that is missing at once: what one loses may be far more than the last bit of another.
        missing = np.zeros(len(taken))
        np.maximum.at(missing, older, above)
        taken[wrong] += np.maximum(missing, np.spacing(np.maximum(np.abs(total), taken)))[wrong]


def successions(candidates: RankingBatch, newer: Counterparts) -> Pairs:
    """Lines of one query's candidates that one supersedes the other of, none of a circle."""
    uris = [candidates.uris(number)[0] for number in candidates.number.tolist()]
    pairs = newer.pairs(candidates.rows.tolist(), uris)
    if not pairs:
        return pairs
    older, other = np.array(pairs).T
    graph = coo_matrix((np.ones(len(pairs)), (older, other)), shape=(len(uris), len(uris)))
    circle = csgraph.connected_components(graph, directed=True, connection="strong")[1]
    lift = np.broadcast_to(candidates.elevation, len(uris))
    stands = (circle[older] != circle[other]) & (lift[older] <= lift[other])
    return [pair for pair, holds in zip(pairs, stands.tolist(), strict=True) if holds]


def lowered(scores: Floats, shown: Flags, pairs: Pairs) -> Floats:
    """Scores in which what is superseded has less than what supersedes it, under many draws at once.

    Each is what is left of the score once something is taken, for so it is told: 1/8 loses its last bit at least.
    """
    less, moved = scores.copy(), True
    while moved:
        moved = False
        for older, other in pairs:
            falls = shown[older] & shown[other] & (less[older] >= less[other])
            if falls.any():
                less[older], moved = np.where(falls, _just_below(scores[older], less[other]), less[older]), True
    return less


def _just_below(scores: Floats, bounds: Floats) -> Floats:
    """The most that scores come to, of what is below each bound, when something is taken from them."""
    taken = scores - bounds
    while (above := scores - taken >= bounds).any():
        taken = np.where(above, taken + np.spacing(np.maximum(np.abs(scores), np.abs(taken))), taken)
    return scores - taken


MMR = "mmr"
"""Name of the contribution by which what stands above takes from what is like it."""


Passes = Callable[[RankingBatch], bool]
"""Whether a candidate, a table of one, is good enough to stand for its channel."""


def diverse(
    candidates: RankingBatch,  # best first by final score, more of each query than are shown where there are more
    settings: RetrievalSettings,
    relations: ResolvedRelations = NO_RELATIONS,
    passes: Passes = may_answer,
) -> RankingBatch:
    """The candidates to show, best first."""
    tuned, learned = settings.diversity, settings.fusion is FusionMode.LEARNED
    chosen = marginal(candidates, tuned, relations.opposed) if learned else candidates
    shown = _head(chosen, settings, passes)
    return lifted_first(after_successors(shown, candidates, relations.newer) if learned else shown)


def lifted_first(shown: RankingBatch) -> RankingBatch:
    """Results of which those that stand first have all gained what the least of them lacks to the best of the others.

    So scores fall from place to place, and say by how much the query's own signs, or what it names, decided over them
    (RET-22): also in the 32 bits that trec_eval reads.
    """
    if (first := shown.merged.first) is None:
        return shown
    stands, total = first[shown.number], shown.total
    gained = np.full(len(shown), np.nan)
    for _, lines in shown.queries:
        ahead, behind = total[lines][stands[lines]], total[lines][~stands[lines]]
        if len(ahead) and len(behind) and not _is_above(ahead.min(), behind.max()):
            gained[lines][stands[lines]] = max(0.0, behind.max() - ahead.min())
    if np.isnan(gained).all():
        return shown
    while True:  # a sum is rounded once more: until all of them are above the others
        lifted, short = shown.add_term(STANDS_FIRST, gained, 1.0), False
        for _, lines in shown.queries:
            own = ~np.isnan(gained[lines])
            best = total[lines][~stands[lines]].max(initial=-np.inf)
            if own.any() and not _is_above(lifted.total[lines][own].min(), best):
                gained[lines][own] += np.spacing(np.float32(max(abs(best), gained[lines][own].max())))
                short = True
        if not short:
            return lifted


def _is_above(one: float, other: float) -> bool:
    return bool(np.float32(one) > np.float32(other))


def _head(chosen: RankingBatch, settings: RetrievalSettings, passes: Passes) -> RankingBatch:
    tuned, learned = settings.diversity, settings.fusion is FusionMode.LEARNED
    if not tuned.represent:
        return chosen.head(chosen.ks)
    # What was called right stands where its effects put it: who called it wrong since is not shown it again.
    weighed = {channel for channel in SEARCHING if learned or settings.static_weights[channel] > 0.0}
    counted = [channel in weighed for channel in CHANNELS]
    return represented(chosen, tuned, passes, np.array(counted))


def marginal(
    candidates: RankingBatch,  # best first
    settings: DiversitySettings,
    opposed: Counterparts = NO_RELATIONS.opposed,  # what takes nothing from one another, whatever its cosine
) -> RankingBatch:
    """Candidates without near-duplicates, in the order of score − mmr · greatest cosine to what stands above.

    That greatest cosine only grows while more is chosen, so that scores fall from each to the next (ARC-7 holds: the
    subtraction is a contribution). A near-duplicate is left out, and named by the one that stands above it.
    """
    taken = np.full(len(candidates), np.nan)  # the cosine that is subtracted
    stays = np.ones(len(candidates), dtype=bool)
    duplicates = dict(candidates.duplicates)
    lifted = candidates.total + candidates.elevation
    for _, lines in candidates.queries:
        compared = candidates.number[lines][: settings.depth]
        first = candidates.take(slice(lines.start, lines.start + len(compared)))
        cosines = cosines_of(first, settings, opposed)
        if cosines is None:
            continue
        # Candidates of one score come by content hash.
        turns, nearest = marginal_relevance(lifted[lines][: len(compared), None], cosines, settings)
        taken[lines.start + turns[:, 0]] = nearest[:, 0]
        for at, left_out in _twins(turns[:, 0], nearest[:, 0], cosines).items():
            stays[[lines.start + place for place in left_out]] = False
            number, twins = int(compared[at]), compared[left_out].tolist()
            uris = (uri for twin in twins for uri in (*candidates.uris(twin), *candidates.duplicates.get(twin, ())))
            duplicates[number] = tuple(dict.fromkeys((*candidates.duplicates.get(number, ()), *uris)))
    if settings.mmr <= 0.0 and not duplicates:
        return candidates
    left = candidates.add_term(MMR, taken, -settings.mmr) if settings.mmr > 0.0 else candidates
    return best_first(replace(left, duplicates=duplicates).take(stays))


def cosines_of(candidates: RankingBatch, settings: DiversitySettings, opposed: Counterparts) -> np.ndarray | None:
    """Of candidates of one query, −1 to themselves and to what opposes them; None where they do not matter."""
    vectors = candidates.contexts[int(candidates.query[0])].vectors if len(candidates) else None
    if vectors is None or (settings.mmr <= 0.0 and settings.duplicate_cosine > 1.0):
        return None
    unit = vectors(candidates.rows)
    cosines: np.ndarray = np.fmax(unit @ unit.T, -1.0)  # what is no number is like nothing
    np.fill_diagonal(cosines, -1.0)
    uris = [candidates.uris(number)[0] for number in candidates.number.tolist()]
    for pair in opposed.pairs(candidates.rows.tolist(), uris):
        cosines[pair] = -1.0
    return None if settings.mmr <= 0.0 and cosines.max() < settings.duplicate_cosine else cosines


def marginal_relevance(scores: Floats, cosines: np.ndarray, settings: DiversitySettings) -> tuple[Ints, Floats]:
    """The order of score − mmr · greatest cosine to what is kept before, under many draws of scores at once.

    Whose turn it is, and its greatest cosine to those kept before, NaN of near-duplicates; both (steps, draws).
    """
    order = np.argsort(-scores.T, axis=1, kind="stable")[:, : settings.depth]  # a line per draw, here and below
    each = np.arange(len(order))
    waiting = np.take_along_axis(scores.T, order, axis=1)  # −inf once it had its turn
    nearest = np.zeros(waiting.shape)  # greatest cosine to anything kept so far
    turns, taken = np.empty(waiting.T.shape, dtype=np.int64), np.empty(waiting.T.shape)
    for step in range(len(turns)):
        place = (waiting - settings.mmr * nearest).argmax(axis=1)
        turns[step] = at = order[each, place]
        taken[step] = reached = nearest[each, place]
        waiting[each, place] = -np.inf
        # Rows, not columns: a product of matrices need not be symmetric to the last bit.
        to_others = cosines.take(at[:, None] * len(cosines) + order)
        np.maximum(nearest, to_others, out=nearest, where=(reached < settings.duplicate_cosine)[:, None])
    taken[taken >= settings.duplicate_cosine] = np.nan
    return turns, taken


def _twins(turns: Ints, taken: Floats, cosines: np.ndarray) -> dict[int, list[int]]:
    """Near-duplicates of one draw by the one kept before them that each is most like, the first of equals."""
    twins: dict[int, list[int]] = {}
    chosen, left_out = np.flatnonzero(~np.isnan(taken)), np.flatnonzero(np.isnan(taken))
    likeness = np.where(chosen[:, None] < left_out, cosines[turns[chosen][:, None], turns[left_out]], -np.inf)
    for at, twin in zip(turns[chosen[likeness.argmax(axis=0)]].tolist(), turns[left_out].tolist(), strict=True):
        twins.setdefault(at, []).append(twin)
    return twins


def represented(candidates: RankingBatch, settings: DiversitySettings, passes: Passes, counted: Flags) -> RankingBatch:
    """The best of each query, the last of them making room for the best of each channel that none was ranked by.

    Such a candidate passes and its cosine to the query reaches `least_similarity`; the best result of all stays.
    """
    if not len(candidates):
        return candidates
    by_channel = (candidates.merged.ranks[candidates.number] > 0) & counted
    head = candidates.queries.places() < candidates.ks[candidates.query]
    starts = candidates.queries.starts
    shown = np.logical_or.reduceat(by_channel & head[:, None], starts, axis=0)
    missing = np.logical_or.reduceat(by_channel & ~head[:, None], starts, axis=0) & ~shown
    # What is not known is not similar enough: no comparison with NaN holds.
    fit = candidates.scores_of(Channel.DENSE) >= settings.least_similarity
    for at, (_, lines) in enumerate(candidates.queries):
        if missing[at].any():
            able = by_channel[lines] & fit[lines, None] & missing[at]
            fits = partial(_passes_at, candidates.take(lines), passes)
            head[lines] = with_channel_coverage(head[lines], by_channel[lines], able, fits)
    return best_first(candidates.take(head)) if missing.any() else candidates.take(head)


def _passes_at(candidates: RankingBatch, passes: Passes, at: int) -> bool:
    return passes(candidates.take(slice(at, at + 1)))


def with_channel_coverage(head: Flags, by_channel: Flags, able: Flags, passes: Callable[[int], bool]) -> Flags:
    """Which candidates of one query are shown, (n,), where they stand best first."""
    shown = np.flatnonzero(head).tolist()
    for channel in np.flatnonzero(able.any(axis=0)).tolist():
        waiting = np.flatnonzero(able[:, channel] & ~head).tolist()
        newcomer = next((at for at in waiting if passes(at)), None)
        leaving = next((place for place in range(len(shown) - 1, 0, -1) if _spare(by_channel[shown], place)), None)
        if newcomer is not None and leaving is not None and newcomer not in shown:
            shown[leaving : leaving + 1] = []
            shown.append(newcomer)
    chosen = np.zeros(len(head), dtype=bool)
    chosen[shown] = True
    return chosen


def _spare(by_channel: Flags, at: int) -> bool:
    """Whether others were ranked by every channel that ranked this one."""
    return bool((by_channel.sum(axis=0) > by_channel[at])[by_channel[at]].all())


def contending(candidates: RankingBatch, query: int) -> RankingBatch:
    """Those of one query, by content hash."""
    lines = np.flatnonzero(candidates.query == query)
    return candidates.take(lines[np.argsort(candidates.number[lines])])


@dataclass(frozen=True, slots=True)
class Choice:
    """How one query's results are chosen."""

    contenders: RankingBatch  # of that query alone, all that might be shown, by content hash, as equals come
    settings: DiversitySettings
    relations: ResolvedRelations = NO_RELATIONS  # see `diverse`

    def ranked(self, scores: Floats) -> Ints:
        """What is shown at each rank under each draw: lines of `contenders`, (k, draws); −1 where nothing is."""
        left = self._lowered((scores.T + self.contenders.elevation).T)
        order = np.argsort(-left, axis=0, kind="stable")
        stays = np.isfinite(np.take_along_axis(left, order, axis=0))
        head = stays & (np.arange(len(scores))[:, None] < self._k)
        if self.settings.represent:
            self._represent(order, stays, head)
        order, head = self._after_successors(left, order, head)
        ranked = np.full((self._k, scores.shape[1]), -1, dtype=np.int64)
        place, draw = np.nonzero(head)
        ranked[(np.cumsum(head, axis=0) - 1)[place, draw], draw] = order[place, draw]
        return ranked

    def _after_successors(self, scores: Floats, order: Ints, head: Flags) -> tuple[Ints, Flags]:
        """Order and head where what supersedes another stands before it; as `after_successors` has it."""
        if not (pairs := successions(self.contenders, self.relations.newer)):
            return order, head
        shown = np.zeros_like(head)
        np.put_along_axis(shown, order, head, axis=0)
        order = np.argsort(-lowered(scores, shown, pairs), axis=0, kind="stable")
        return order, np.take_along_axis(shown, order, axis=0)

    @property
    def _k(self) -> int:
        """How many results are shown."""
        contenders = self.contenders
        return int(contenders.ks[contenders.query[0]]) if len(contenders) else 0

    def _lowered(self, scores: Floats) -> Floats:
        """Scores less what those above take from them, −inf of near-duplicates; as `diversity.marginal` has it."""
        cosines = cosines_of(self.contenders, self.settings, self.relations.opposed)
        if cosines is None:
            return scores
        turns, nearest = marginal_relevance(scores, cosines, self.settings)
        left = np.take_along_axis(scores, turns, axis=0) - self.settings.mmr * nearest
        lower = scores.copy()
        np.put_along_axis(lower, turns, np.where(np.isnan(left), -np.inf, left), axis=0)
        return lower

    def _represent(self, order: Ints, stays: Flags, head: Flags) -> None:
        """Give channels their word in every draw where one is missing, in place; as `diversity.represented` has it."""
        by_channel = self.contenders.merged.ranks[self.contenders.number] > 0
        fit = self.contenders.scores_of(Channel.DENSE) >= self.settings.least_similarity
        passes = cache(partial(_passes_at, self.contenders, may_answer))

        by_place = by_channel[order]  # (places, draws, channels)
        shown = np.logical_or.reduce(by_place & head[:, :, None], axis=0)
        missing = np.logical_or.reduce(by_place & (stays & ~head)[:, :, None], axis=0) & ~shown
        for draw in np.flatnonzero(np.logical_or.reduce(missing, axis=1)).tolist():
            lines = order[:, draw]
            able = by_channel[lines] & (fit[lines] & stays[:, draw])[:, None] & missing[draw]
            head[:, draw] = with_channel_coverage(
                head[:, draw], by_channel[lines], able, partial(_line_passes, passes, lines)
            )


def _line_passes(passes: Callable[[int], bool], lines: Ints, at: int) -> bool:
    return passes(int(lines[at]))
