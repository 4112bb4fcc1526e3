"""Failure modes of a search that learns, each with an alarm of its own, from the query log (EVA-11).

An alarm rings where what it watches is beyond its bound by more than chance: where the interval of the share (Wilson,
JASA 1927) lies beyond it. With too few queries none rings, and each says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from scipy import stats

from weft.domain.ranking import RANKING_ONLY, Channel
from weft.evaluation.measures.memory import NEW_S, ItemFacts
from weft.evaluation.measures.significance import LEAST_QUERIES, EvidenceStrength
from weft.evaluation.queries.reader import LoggedQuery, LoggedResult

LOGGED_QUERIES = 5_000
"""Newest logged queries that are looked at."""

MINIMUM = LEAST_QUERIES[EvidenceStrength.DIRECTIONAL]
"""Observations below which no alarm rings."""

_BLIND_SHARE = 0.2  # of queries whose words single a content out that do not show it
_POPULARITY_SHARE = 0.3  # of queries whose first result owes its place to what was said of it
_COLD_RATIO = 0.5  # times the share of older candidates that is shown
_DRIFT_INDEX = 0.25  # of population stability; above .25 a population counts as another one in credit scoring
_COLLAPSE_SHARE = 0.5  # of queries answered from one channel; simple queries ask but one, by design
_HUB_SHARE = 0.2  # of different queries that show one and the same content
_TRIGGER_RATIO = 0.5  # times the share of other results that is liked
_LEVEL = 0.95  # of the intervals that must lie beyond a bound
_DEPTH = 10  # first results and hits: a first page
_LEXICAL_MARGIN = 1.5  # times the second best BM25 score from which on words single a content out
_DRIFT_BANDS = 5  # of relevance
_DRIFT_P = 0.01  # of the test that tells the halves apart
_TRIGGER_CHANNELS = frozenset({Channel.TRIGGERS.value})  # of learned phrases
_FLOOR = 1e-4  # share that a bin without queries has in the index of stability, which takes logarithms of shares
_WITHIN = "within its bound"


@dataclass(frozen=True, slots=True)
class Alarm:
    """One failure mode, as the log shows it."""

    name: str
    value: float  # A share of `n` observations, or an index
    low: float  # Its interval; both are the value where it has none
    high: float
    bound: float  # beyond which it is a failure
    n: int
    ringing: bool  # whether it is beyond the bound by more than chance
    says: str  # what is wrong and where to look, or why nothing is known

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "name": self.name,
            "value": self.value,
            "interval": [self.low, self.high],
            "bound": self.bound,
            "n": self.n,
            "ringing": self.ringing,
            "says": self.says,
        }


@dataclass(frozen=True, slots=True)
class AlarmInput:
    """What alarms look at."""

    queries: Sequence[LoggedQuery]  # newest first, as the log is read
    items: Mapping[str, ItemFacts]  # facts about contents, by content hash; needed to tell new ones


def alarms(watched: AlarmInput) -> list[Alarm]:
    """Every alarm, those that ring first."""
    return sorted((watch(watched) for watch in ALARMS.values()), key=lambda alarm: (not alarm.ringing, alarm.name))


def keyword_blindness(watched: AlarmInput) -> Alarm:
    """Queries whose words single out one content, and that content is not shown."""
    heads = ((query, query.heads.get(Channel.LEXICAL.value, ())) for query in watched.queries)
    blind = [
        head[0].content_hash not in _shown(query, _DEPTH)
        for query, head in heads
        if head and (len(head) == 1 or head[0].score >= _LEXICAL_MARGIN * head[1].score)
    ]
    says = "what the words single out is not shown: look at the weight of the lexical signal"
    return _share("keyword blindness", blind, _BLIND_SHARE, says=says)


def popularity_loop(watched: AlarmInput) -> Alarm:
    """Queries whose first result would be another one if nothing had come of contents under other questions."""
    owed = [
        max(query.results, key=lambda result: (result.score_without("content"), -result.rank)) is not query.results[0]
        for query in watched.queries
        if len(query.results) > 1
    ]
    says = "what was called right is shown because it was: explore more, or lower priors.outcomes.content_variance"
    return _share("popularity loop", owed, _POPULARITY_SHARE, says=says)


def cold_start(watched: AlarmInput) -> Alarm:
    """How much seldomer than others new contents are shown, of those that a channel ranks high.

    Of so many contents on either side as an alarm needs observations: how often a few are shown says something of
    these few. A young store has hardly any that are old, and cannot tell.
    """
    new: dict[str, list[bool]] = {}
    old: dict[str, list[bool]] = {}
    for query in watched.queries:
        shown = _shown(query, _DEPTH)
        high = {hit.content_hash for head in query.heads.values() for hit in head if hit.rank <= _DEPTH}
        for content in high:
            modified = watched.items.get(content, ItemFacts()).modified_at
            if modified is not None and modified <= query.at:  # what was touched since had another time then
                is_new = query.at - modified < NEW_S
                (new if is_new else old).setdefault(content, []).append(content in shown)
    seen, others = ([one for each in side.values() for one in each] for side in (new, old))
    says = f"channels find what is new, and it is not shown; of what is old, {_mean(others):.0%} is"
    if min(len(new), len(old)) < MINIMUM:
        reason = f"too few contents to tell: {len(new)} new and {len(old)} old"
        return _unknown("cold start", _COLD_RATIO * _mean(others), len(seen), reason)
    return _seldomer("cold start", seen, others, _COLD_RATIO, says=says)


def context_drift(watched: AlarmInput) -> Alarm:
    """How far what is asked now lies from what was asked before: the population stability index of kinds of queries.

    Σ (now − before) · ln(now / before) over intents with domains, and over how relevant the best result seemed; the
    larger of both. It rings only where a χ² test tells the two halves of the log apart.
    """
    ordered = sorted(watched.queries, key=lambda query: query.at)
    before, now = ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]
    name, bound, n = "context drift", _DRIFT_INDEX, min(len(before), len(now))
    if n < MINIMUM:
        return _unknown(name, bound, n)
    relevances = sorted(_best_relevance(query) for query in before)
    edges = [relevances[len(relevances) * band // _DRIFT_BANDS] for band in range(1, _DRIFT_BANDS)]
    kinds: list[list[Counter[Any]]] = [
        [Counter((query.intent, _domain(query)) for query in half) for half in (before, now)],
        [Counter(sum(_best_relevance(query) > edge for edge in edges) for query in half) for half in (before, now)],
    ]
    drifts = [(_stability(former, latter), _p_of_equal(former, latter)) for former, latter in kinds]
    index = max(value for value, _ in drifts)
    ringing = any(value > bound and p < _DRIFT_P for value, p in drifts)
    says = "what is asked changed: what was learned before may not hold; look at intents and domains over time"
    return Alarm(name, index, index, index, bound, n, ringing, says if ringing else "what is asked stays what it was")


def channel_collapse(watched: AlarmInput) -> Alarm:
    """Queries with results that fewer than two channels found; who only ranks what others found does not count."""
    answered = [query for query in watched.queries if query.results]
    few = [len({channel for result in query.results for channel in _finders(result)}) < 2 for query in answered]
    failed = Counter(failed["channel"] for query in answered for failed in query.facts.get("failed_channels", ()))
    named = (
        f"; left out: {', '.join(f'{name} {count} times' for name, count in failed.most_common())}" if failed else ""
    )
    says = f"results come from one channel{named}: look at `weft queries list`"
    return _share("channel collapse", few, _COLLAPSE_SHARE, says=says)


def hub_domination(watched: AlarmInput) -> Alarm:
    """The content that most queries show, whatever they ask; equal texts count once."""
    by_text = {query.text: _shown(query, _DEPTH) for query in watched.queries}
    shown = Counter(content for contents in by_text.values() for content in contents)
    hub = min(shown, key=lambda content: (-shown[content], content), default="")  # of equals always the same
    says = f"content {hub[:12]} is shown for too many different queries: it may be a hub of the embedding space"
    return _share("hub domination", [hub in each for each in by_text.values()], _HUB_SHARE, says=says)


def trigger_pollution(watched: AlarmInput) -> Alarm:
    """How much seldomer than others results are liked that triggers alone found; of answers with feedback."""
    alone: list[bool] = []
    others: list[bool] = []
    for query in watched.queries:
        liked = {seen.content_hash for seen in query.outcomes if seen.is_praise}
        for result in query.results if query.outcomes else ():
            finders = _finders(result)
            triggered = finders and finders <= _TRIGGER_CHANNELS
            (alone if triggered else others).append(result.content_hash in liked)
    says = f"what learned triggers alone find is seldom wanted; of other results {_mean(others):.0%} are"
    return _seldomer("trigger pollution", alone, others, _TRIGGER_RATIO, says=says)


ALARMS: Mapping[str, Callable[[AlarmInput], Alarm]] = MappingProxyType(
    {
        watch.__name__: watch
        for watch in (
            keyword_blindness,
            popularity_loop,
            cold_start,
            context_drift,
            channel_collapse,
            hub_domination,
            trigger_pollution,
        )
    }
)


def _share(name: str, seen: Sequence[bool], bound: float, *, says: str) -> Alarm:
    """Rings where the share of what was seen is above its bound."""
    n = len(seen)
    if n < MINIMUM:
        return _unknown(name, bound, n)
    low, high = wilson(sum(seen), n, _LEVEL)
    return Alarm(name, _mean(seen), low, high, bound, n, low > bound, says if low > bound else _WITHIN)


def _seldomer(name: str, seen: Sequence[bool], others: Sequence[bool], ratio: float, *, says: str) -> Alarm:
    """Rings where the share of what was seen is below `ratio` of that of others, the least that this may be."""
    n, bound = min(len(seen), len(others)), ratio * _mean(others)
    if n < MINIMUM:
        return _unknown(name, bound, n)
    low, high = wilson(sum(seen), len(seen), _LEVEL)
    ringing = high < ratio * wilson(sum(others), len(others), _LEVEL)[0]
    return Alarm(name, _mean(seen), low, high, bound, len(seen), ringing, says if ringing else _WITHIN)


def _mean(seen: Sequence[bool]) -> float:
    return sum(seen) / len(seen) if seen else 0.0


def _unknown(name: str, bound: float, n: int, says: str = "") -> Alarm:
    return Alarm(name, 0.0, 0.0, 1.0, bound, n, ringing=False, says=says or f"too few observations to tell: {n}")


def wilson(count: int, n: int, level: float) -> tuple[float, float]:
    """Wilson's score interval of a share."""
    bounds = stats.binomtest(count, n).proportion_ci(level, method="wilson")
    return float(bounds.low), float(bounds.high)


def _shown(query: LoggedQuery, depth: int) -> set[str]:
    return {str(result.content_hash) for result in query.results[:depth]}


def _finders(result: LoggedResult) -> set[str]:
    return {*result.channels} - RANKING_ONLY


def _best_relevance(query: LoggedQuery) -> float:
    return max((result.relevance for result in query.results), default=0.0)


def _domain(query: LoggedQuery) -> str:
    return query.domain or (str(query.results[0].facts["domain"]) if query.results else "")


def _stability(before: Mapping[Any, int], now: Mapping[Any, int]) -> float:
    totals = sum(before.values()), sum(now.values())
    shares = [
        [max(half.get(kind, 0) / total, _FLOOR) for half, total in zip((before, now), totals, strict=True)]
        for kind in _kinds(before, now)
    ]
    return math.fsum((after - former) * math.log(after / former) for former, after in shares)


def _p_of_equal(before: Mapping[Any, int], now: Mapping[Any, int]) -> float:
    """p-value of both halves being asked alike."""
    kinds = _kinds(before, now)
    if len(kinds) < 2:
        return 1.0
    return float(stats.chi2_contingency([[half.get(kind, 0) for kind in kinds] for half in (before, now)]).pvalue)


def _kinds(before: Mapping[Any, int], now: Mapping[Any, int]) -> list[Any]:
    return sorted({*before, *now}, key=str)
