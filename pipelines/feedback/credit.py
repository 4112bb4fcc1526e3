"""Which results a piece of feedback speaks about, for or against, and how loudly."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from pipelines.domain.errors import InvalidEventError
from pipelines.domain.events import (
    Explicit,
    Feedback,
    Impression,
    Inclusion,
    Reference,
    Retrieval,
    Selection,
    ShownResult,
    Success,
)
from pipelines.feedback.settings import CreditSettings
from pipelines.learning.observations import INCLUSION, REFERENCE, RETRIEVAL, Leaf, Tally


class Credit(Struct, frozen=True, gc=False):
    """One shown result found good or bad, with a weight >= 0 in observations.

    Attributes:
        use: What was done with it, where that is counted beside the outcome: a bin of usage, else "".
        used: How much of one use that was, in [0, 1].
    """

    result: ShownResult
    good: bool
    weight: float
    use: str = ""
    used: float = 1.0


def credits_of(
    feedback: Feedback, impression: Impression, *, chosen: Collection[int], rules: CreditSettings
) -> list[Credit]:
    """What one piece of feedback says about the results of its impression.

    A verdict with a content hash is about that result; one without is shared equally by all results that were
    included, as success is. Retrieval, inclusion and reference are about the results they name; a reference that names
    none is shared like success. What was retrieved and left out is weakly bad: being found is never good by itself
    (FBK-12). A selection speaks for the chosen result, and against each result ranked above it that was passed over
    (skip-above: Joachims et al., Accurately interpreting clickthrough data as implicit feedback, SIGIR 2005). A
    result is passed over once and chosen once, however often its answer is clicked.

    Args:
        feedback: The event.
        impression: What it answers.
        chosen: Ranks that earlier selections of this impression chose.
        rules: Weights in observations.

    Raises:
        InvalidEventError: "unknown_result": it is about something that was never shown.
    """
    if isinstance(feedback, Selection):
        return _selection(feedback, impression, chosen, rules)
    return _RULES[type(feedback)](feedback, impression, rules)


def tally_credits(tally: Tally, found: Sequence[Credit], impression: Impression, *, day: int, bins: int) -> None:
    """Add credits to a tally, each under its result's own domain and the impression's model and agent."""
    model, agent, intent = impression.model, impression.agent, impression.intent
    for credit in found:
        result, good = credit.result, credit.good
        # Ranges were checked when the events were decoded.
        leaf = Leaf(day, result.domain.value, model, agent, intent, good, bins)
        tally.note(
            leaf,
            result.signals,
            score=result.score,
            weight=credit.weight,
            content_hash=result.content_hash,
            made=result.made,
        )
        if credit.use:
            tally.note_use(day, result.content_hash, credit.use, credit.used)


def chosen_rank(selection: Selection, impression: Impression) -> int:
    """The rank at which the impression shows what was selected; what the event itself says is not relied on."""
    return _shown(selection.content_hash, impression).rank


def _verdict(verdict: Explicit, impression: Impression, rules: CreditSettings) -> list[Credit]:
    weight = abs(verdict.signal) * rules.explicit
    if weight == 0.0:
        return []
    good = verdict.signal > 0.0
    if verdict.content_hash is not None:
        return [Credit(_shown(verdict.content_hash, impression), good, weight)]
    return _shared(impression, good, weight)


def _success(success: Success, impression: Impression, rules: CreditSettings) -> list[Credit]:
    return _shared(impression, True, rules.success)


def _retrieval(retrieval: Retrieval, impression: Impression, rules: CreditSettings) -> list[Credit]:
    left_out = _all_shown(retrieval.content_hashes, impression)
    return [Credit(result, False, rules.retrieved, RETRIEVAL) for result in left_out]


def _inclusion(inclusion: Inclusion, impression: Impression, rules: CreditSettings) -> list[Credit]:
    put_in = _all_shown(inclusion.content_hashes, impression)
    return [Credit(result, True, rules.included, INCLUSION) for result in put_in]


def _reference(reference: Reference, impression: Impression, rules: CreditSettings) -> list[Credit]:
    match = reference.match
    if reference.content_hashes is None:
        named, match = _included(impression), match / len(_included(impression))
    else:
        named = _all_shown(reference.content_hashes, impression)
    return [Credit(result, True, match * rules.referenced, REFERENCE, match) for result in named]


def _shared(impression: Impression, good: bool, weight: float) -> list[Credit]:
    included = _included(impression)
    return [Credit(result, good, weight / len(included)) for result in included]


def _included(impression: Impression) -> list[ShownResult]:
    """At least one result."""
    included = [result for result in impression.results if result.included]
    if not included:
        raise InvalidEventError("unknown_result", f"query {impression.query_id!r} was answered with no results")
    return included


def _selection(
    selection: Selection, impression: Impression, chosen: Collection[int], rules: CreditSettings
) -> list[Credit]:
    result = _shown(selection.content_hash, impression)
    if result.rank in chosen:
        return []
    # Everything above the lowest earlier choice was passed over then, and has been counted.
    looked_at = max(chosen, default=0)
    passed_over = [other for other in impression.results if looked_at < other.rank < result.rank]
    return [Credit(result, True, rules.selected), *(Credit(other, False, rules.skipped) for other in passed_over)]


def _all_shown(content_hashes: Iterable[str], impression: Impression) -> list[ShownResult]:
    """Each named result once, in the order of the names; every one of them must have been shown."""
    by_hash = {result.content_hash: result for result in impression.results}
    named = dict.fromkeys(content_hashes)
    if strange := next((each for each in named if each not in by_hash), None):
        raise InvalidEventError("unknown_result", f"{strange[:12]}… was not shown for {impression.query_id!r}")
    return [by_hash[each] for each in named]


def _shown(content_hash: str, impression: Impression) -> ShownResult:
    for result in impression.results:
        if result.content_hash == content_hash:
            return result
    raise InvalidEventError("unknown_result", f"{content_hash[:12]}… was not shown for {impression.query_id!r}")


_RULES: Mapping[type[Feedback], Callable[[Any, Impression, CreditSettings], list[Credit]]] = MappingProxyType(
    {
        Retrieval: _retrieval,
        Inclusion: _inclusion,
        Reference: _reference,
        Success: _success,
        Explicit: _verdict,
    }
)
