"""What came of contents before, added to their scores (LRN-18): an effect over all questions, and one under this one.

A score has the probability p0 with logit p0 = intercept + slope · its share of the query's best score. Results are
ordered by logit p = logit p0 + u_content + u_question. An effect of u is u · best / slope of a score, so that
everything adds up. A near question's effect counts as far as the near question does (LRN-19). Who called a result right
finds it first, who called it wrong finds it below the third, whatever others say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.ranking import Channel, WeightBelief
from weft.domain.reasons import CONTENT, OWN, QUESTION, NewcomerVerdicts, PastVerdicts
from weft.learning.families.random_effect import random_effects
from weft.learning.observe.precedents import VerdictTable
from weft.learning.priors import OutcomePrior
from weft.learning.uses import numbered
from weft.retrieval.ranking.batch import CHANNEL_AT, RankingBatch, ScoreTerm, best_first
from weft.retrieval.ranking.context import PastOutcomes, counted
from weft.retrieval.settings import FusionMode, ResultUnit, RetrievalSettings

# What people called results before, counted by who said so, and where each would stand without that (RET-18).

_ROUNDED = 1e-9  # sums of shares are not exact
_HARDLY = 0.5  # of a person; who counts less than that, hardly counts


class RanksWithoutVerdicts(NamedTuple):
    """Where results of one query would stand, from 1, if nobody had called anything right or wrong."""

    rows: Mapping[int, int]  # by row of the content
    uris: Mapping[str, int]  # by document, of those that stand for it there

    def of(self, row: int, uris: Sequence[str]) -> int | None:
        """Of one result: by itself, or else by what stood for its documents; None where nothing finds it."""
        places = [self.uris[uri] for uri in uris if uri in self.uris]
        return self.rows.get(row, min(places, default=None))


def with_past_verdicts(
    shown: RankingBatch,  # the results
    scored: RankingBatch,  # what they were chosen from
    best_of: Callable[..., RankingBatch],
    page: Callable[[RankingBatch], RankingBatch],  # what is shown of these
    settings: RetrievalSettings,
) -> RankingBatch:
    """Results with what people called them before; where scores are not learned, that counts for nothing."""
    outcomes = [each.past for each in shown.contexts]
    spoken = np.array([each is not None and len(each.verdicts) > 0 for each in outcomes], dtype=bool)
    if settings.fusion is not FusionMode.LEARNED or not spoken.any():
        return shown
    unspoken = replace(scored, contexts=[replace(each, past=None) for each in scored.contexts])
    ranks = np.delete(scored.merged.ranks[scored.number], CHANNEL_AT[Channel.ANSWERED], axis=1)
    ranked = unspoken.take(spoken[scored.query] & (ranks > 0).any(axis=1))  # not by what people said alone
    every = best_of(ranked, every=True)
    first = page(every.head(every.ks + settings.diversity.depth))
    before = ranks_without_verdicts(first, every, by_document=settings.unit is ResultUnit.DOCUMENT)
    return replace(shown, past=past_verdicts(shown, before))


def ranks_without_verdicts(
    page: RankingBatch, every: RankingBatch, *, by_document: bool
) -> dict[int, RanksWithoutVerdicts]:
    """Places of each query by its place in the batch: what its page shows first, then all others in their order."""
    before, first = {}, dict(page.queries)
    for query, lines in every.queries:
        shown = page.number[first[query]].tolist() if query in first else []
        order = list(dict.fromkeys([*shown, *every.number[lines].tolist()]))
        rows = {row: place for place, row in enumerate(every.merged.row[order].tolist(), start=1)}
        uris: dict[str, int] = {}
        for place, number in enumerate(order, start=1):
            own = every.uris(number) if by_document else ()
            for uri in (*own, *page.duplicates.get(number, ())):
                uris.setdefault(uri, place)
        before[query] = RanksWithoutVerdicts(rows, uris)
    return before


def past_verdicts(candidates: RankingBatch, before: Mapping[int, RanksWithoutVerdicts]) -> dict[int, PastVerdicts]:
    """What people called candidates before, by the candidate's number; of those of whom anybody said anything."""
    past: dict[int, PastVerdicts] = {}
    for query, lines in candidates.queries:
        past_outcomes, places = candidates.contexts[query].past, before.get(query, RanksWithoutVerdicts({}, {}))
        if past_outcomes is None:
            continue
        for number, row in zip(candidates.number[lines].tolist(), candidates.rows[lines].tolist(), strict=True):
            some = np.flatnonzero(past_outcomes.verdicts.row == row)
            if len(some):
                past[number] = _counted(past_outcomes, some, places.of(row, candidates.uris(number)))
    return past


def _counted(past_outcomes: PastOutcomes, some: Ints, rank: int | None) -> PastVerdicts:
    """The verdicts on one content that were said outright, counted by who said them."""
    lines, precedents = past_outcomes.verdicts, past_outcomes.precedents
    some = some[lines.table.spoken[some]]
    verdicts, factor, own = lines.table.take(some), lines.factor[some], lines.own[some]
    good, same = verdicts.good > 0.5, factor == 1.0
    crowd, counts_as = _crowd(verdicts, own, precedents.prior.newcomers)

    def people(among: Flags) -> tuple[int, int, int, int]:
        """How many called it right and wrong, and right and wrong under near questions."""
        right, wrong, near_right, near_wrong = (
            len(set(verdicts.principal[among & asked & side].tolist()))
            for asked, side in ((same, good), (same, ~good), (~same, good), (~same, ~good))
        )
        return right, wrong, near_right, near_wrong

    right, wrong, near_right, near_wrong = people(~crowd)
    nearest = (
        precedents.questions[int(verdicts.question[int(np.argmax(np.where(same, 0.0, factor)))])] if len(some) else ""
    )
    return PastVerdicts(
        right=right,
        wrong=wrong,
        near_right=near_right,
        near_wrong=near_wrong,
        nearest="" if same.all() else precedents.texts.get(nearest, ""),
        own=bool(good[own][-1]) if own.any() else None,
        rank_before=rank,
        new=NewcomerVerdicts(*people(crowd), counts_as) if crowd.any() else None,
        edited=len(set(verdicts.principal[np.isin(verdicts.content, list(past_outcomes.revised))].tolist())),
    )


def _crowd(verdicts: VerdictTable, own: Flags, most: int) -> tuple[Flags, int]:
    """Which verdicts are of new principals that do not count one by one, and as how many people these count at most."""
    new = np.isfinite(verdicts.together) & ~np.isin(verdicts.principal, verdicts.principal[own])
    days, day = np.unique(verdicts.day, return_inverse=True)
    names = np.unique(np.stack([day[new], verdicts.principal[new]]), axis=1)[0]
    voices = np.where(new, verdicts.weight * most / verdicts.together, 0.0)
    crowd = new & ((np.bincount(names, minlength=len(days))[day] > most) | (voices < 1.0 - _ROUNDED))
    people = np.minimum(np.bincount(day[crowd], weights=voices[crowd], minlength=len(days)), most).sum()
    return crowd, 0 if people < _HARDLY else math.ceil(people - _ROUNDED)


_FIRST_PLACES = 3  # a result that its asker called wrong is none of so many (LRN-18)


_NONE = np.zeros(0, dtype=np.int64)


class Effects(NamedTuple):
    """Both effects of some contents in log-odds, with their deviations and observations; (n,) each, NaN without any."""

    content: Floats
    question: Floats
    content_deviation: Floats
    question_deviation: Floats
    content_observations: Floats
    question_observations: Floats


def effects_of(past_outcomes: PastOutcomes, rows: Ints, share: Floats) -> Effects:
    """The effects of contents by row (LRN-18)."""
    log_odds = past_outcomes.precedents.expected(share)
    content, content_deviation, elsewhere = _over_all_questions(past_outcomes, rows)
    content = content * past_outcomes.share
    question, deviation, here = _under_this_question(past_outcomes, rows, log_odds + np.nan_to_num(content))
    return Effects(content, question, content_deviation, deviation, elsewhere, here)


def _over_all_questions(past_outcomes: PastOutcomes, rows: Ints) -> tuple[Floats, Floats, Floats]:
    """The effect of each content by what came of it under other questions, each of which counts once at most.

    Its own effect pulls what is expected of a question towards one half (MacKay, Neural Computation 1992).
    """
    precedents, near = past_outcomes.precedents, set(past_outcomes.near)
    pairs = [
        (line, word)
        for line, row in enumerate(rows.tolist())
        for number in past_outcomes.numbers.get(row, ())
        for word in precedents.of_content(number).tolist()
        if precedents.questions[int(precedents.verdicts.question[word])] not in near
    ]
    line, word = (np.array(column, dtype=np.int64) for column in (zip(*pairs, strict=True) if pairs else ((), ())))
    verdicts = precedents.verdicts.take(word)
    weight = counted(verdicts, line)
    count, variance = len(rows), precedents.content_variance
    first, cell = numbered((line, count), (verdicts.question, len(precedents.questions)))
    expected, good, weight = _together(cell, weight, precedents.unconditional(verdicts.share), verdicts.good)
    of = line[first]
    mode, deviation = random_effects(expected, good, weight, of, count=count, variance=variance)
    observations = np.bincount(of, weights=weight, minlength=count).astype(np.float64)
    nothing = observations == 0.0
    return np.asarray(np.where(nothing, np.nan, mode)), deviation, observations


def _under_this_question(past_outcomes: PastOutcomes, rows: Ints, log_odds: Floats) -> tuple[Floats, Floats, Floats]:
    """The effect of each content under this question.

    What came of it under near questions is a belief that is `factor` of theirs, with so much more variance.
    """
    verdicts, count, variance = past_outcomes.verdicts, len(rows), past_outcomes.precedents.question_variance
    order = np.argsort(rows, kind="stable")
    at = np.minimum(np.searchsorted(rows[order], verdicts.row), max(0, count - 1))
    here = np.flatnonzero(rows[order][at] == verdicts.row) if count else _NONE
    line, factor = order[at[here]] if count else _NONE, verdicts.factor[here]
    good, weight = verdicts.table.good[here], verdicts.table.weight[here]
    near, same = factor < 1.0, factor == 1.0
    most = np.zeros(count)
    np.maximum.at(most, line[near], factor[near])
    by_near = verdicts.counted(here[near], weight[near] * factor[near] / most[line[near]], line[near])
    by_same = verdicts.counted(here[same], weight[same], line[same])
    theirs, spread = random_effects(
        log_odds[line[near]], good[near], by_near, line[near], count=count, variance=variance
    )
    mean = most * theirs
    left = variance * (1.0 - most**2) + (most * spread) ** 2
    mode, deviation = random_effects(
        (log_odds + mean)[line[same]], good[same], by_same, line[same], count=count, variance=left
    )
    observations = np.bincount(line[near], weights=by_near, minlength=count).astype(np.float64)
    observations += np.bincount(line[same], weights=by_same, minlength=count)
    # Two against one leave a result below where it was, however little was expected of it: a majority has its way.
    for_and_against = np.zeros(len(here))
    for_and_against[near], for_and_against[same] = by_near * most[line[near]], by_same
    net = np.bincount(line, weights=for_and_against * (2.0 * good - 1.0), minlength=count)
    effect = np.where(np.sign(net) * (mean + mode) > 0.0, mean + mode, 0.0)
    return np.where(observations == 0.0, np.nan, effect), deviation, observations


def _together(cell: Ints, weight: Floats, *columns: Floats) -> tuple[Floats, Floats, Floats]:
    """Means of two columns by cell, and what each cell counts, in [0, 1]."""
    total = np.bincount(cell, weights=weight)
    shared = np.maximum(total, np.finfo(np.float64).tiny)
    first, second = (np.bincount(cell, weights=weight * column) / shared for column in columns)
    return first, second, np.minimum(total, 1.0)


def lifts(candidates: RankingBatch) -> Floats:
    """How much both effects would add to scores so far, by the candidate's number; 0 where nothing is known."""
    lifted = np.zeros(len(candidates.merged.query))
    for query, lines in candidates.queries:
        past_outcomes = candidates.contexts[query].past
        if past_outcomes is not None and len(past_outcomes.verdicts):
            effects, unit = _effects_in(candidates.take(lines), past_outcomes)
            lifted[candidates.number[lines]] = (np.nan_to_num(effects.content) + np.nan_to_num(effects.question)) * unit
    return lifted


def _effects_in(candidates: RankingBatch, past_outcomes: PastOutcomes) -> tuple[Effects, float]:
    """Effects of the candidates of one query, and what one log-odd of them is in its scores."""
    best = max(float(candidates.total.max(initial=0.0)), np.finfo(np.float64).tiny)
    effects = effects_of(past_outcomes, candidates.rows, candidates.total / best)
    return effects, best / past_outcomes.precedents.prior.curve.slope


def with_effects(candidates: RankingBatch) -> RankingBatch:
    """Candidates with what came of them before added to their scores, best first."""
    values, units = np.full((len(candidates), 2), np.nan), np.ones(len(candidates))
    beliefs: dict[int, dict[str, WeightBelief]] = {}
    for query, lines in candidates.queries:
        past_outcomes = candidates.contexts[query].past
        if past_outcomes is None:
            continue
        effects, units[lines] = _effects_in(candidates.take(lines), past_outcomes)
        values[lines] = np.stack([effects.content, effects.question], axis=1)
        beliefs |= _beliefs(candidates.number[lines], effects, candidates.contexts[query].reading.beliefs.interval)
    if np.isnan(values).all():
        return candidates
    parts, weights = [ScoreTerm(CONTENT), ScoreTerm(QUESTION)], np.repeat(units[:, None], 2, axis=1)
    return best_first(replace(candidates.add_terms(parts, values, weights), effects=beliefs))


def _beliefs(numbers: Ints, effects: Effects, level: float) -> dict[int, dict[str, WeightBelief]]:
    """What is believed of each effect, by the candidate's number and the contribution's name."""
    reach = float(ndtri((1.0 + level) / 2.0))
    beliefs: dict[int, dict[str, WeightBelief]] = {}
    for name, mode, deviation, observations in (
        (CONTENT, effects.content, effects.content_deviation, effects.content_observations),
        (QUESTION, effects.question, effects.question_deviation, effects.question_observations),
    ):
        for line in np.flatnonzero(~np.isnan(mode)).tolist():
            mean, apart = float(mode[line]), reach * float(deviation[line])
            belief = WeightBelief(mean, mean - apart, mean + apart, float(observations[line]), name)
            beliefs.setdefault(int(numbers[line]), {})[name] = belief
    return beliefs


def with_own_verdicts(candidates: RankingBatch) -> RankingBatch:
    """Candidates with their asker's own verdicts added: right ones first, wrong ones below the third.

    Own verdicts are evidence with a large variance; what is missing to their place is added on top.
    """
    values, units = np.full(len(candidates), np.nan), np.ones(len(candidates))
    for query, lines in candidates.queries:
        past_outcomes = candidates.contexts[query].past
        own = {} if past_outcomes is None else past_outcomes.own
        if past_outcomes is None or not own:
            continue
        right, wrong = (
            np.array([own.get(row) is side for row in candidates.rows[lines].tolist()]) for side in (True, False)
        )
        prior, scores = past_outcomes.precedents.prior, candidates.total[lines]
        units[lines] = unit = max(float(scores.max()), np.finfo(np.float64).tiny) / prior.curve.slope
        values[lines] = _own_effects(prior, scores / unit, right, wrong)
    if np.isnan(values).all():
        return candidates
    return best_first(candidates.add_terms([ScoreTerm(OWN)], values[:, None], units[:, None]))


def _own_effects(prior: OutcomePrior, scores: Floats, right: Flags, wrong: Flags) -> Floats:
    """By how much own verdicts move results of one query; NaN of those that they say nothing of."""
    own = np.flatnonzero(right | wrong)
    mode, _ = random_effects(
        prior.curve.intercept + scores[own],
        right[own].astype(np.float64),
        np.ones(len(own)),
        np.arange(len(own)),
        count=len(own),
        variance=prior.own_variance,
    )
    moved = np.full(len(scores), np.nan)
    moved[own] = mode
    others = np.sort(scores[~(right | wrong)])[::-1]
    if right.any() and len(others):
        lacking = others[0] - (scores[right] + moved[right]).min()
        moved[right] += max(0.0, lacking + moved[right].min())
    ahead = np.sort(np.concatenate([scores[right] + moved[right], others]))[::-1]
    if wrong.any() and len(ahead) >= _FIRST_PLACES:
        beyond = (scores[wrong] + moved[wrong]).max() - ahead[_FIRST_PLACES - 1]
        moved[wrong] -= max(0.0, beyond - moved[wrong].max())
    return moved
