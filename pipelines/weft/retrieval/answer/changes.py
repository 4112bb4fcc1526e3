"""What stands elsewhere when the same is asked again (LRN-18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.domain.ids import ContentHash
from weft.domain.ranking import Answer, RankedResult

UNCHANGED = "nothing has changed"
_NAMED = 3  # changes told one by one: the first ones are what people look at


def rank_changes(before: Answer, now: Answer) -> str:
    """What stands elsewhere than when the same was asked before, or else whose score has changed; the best first."""
    earlier = {result.content_hash: result for result in before.results}
    were = {content: result.rank for content, result in earlier.items()}
    pages = {result.uris[0]: result.rank for result in reversed(before.results)}
    ranks = [
        f"{_was(result, were, pages)} → {result.rank}"
        for result in now.results
        if were.get(result.content_hash) != result.rank
    ]
    if ranks:
        first = now.results[0]
        because = f"; {first.uris[0]} is first: {first.why}" if first.past is not None else ""
        return f"moved: {_first(ranks)}{because}"
    scores = [
        f"{result.rank} {earlier[result.content_hash].score:.4f} → {result.score:.4f}"
        for result in now.results
        if f"{earlier[result.content_hash].score:.4f}" != f"{result.score:.4f}"
    ]
    return f"the same order; scores: {_first(scores)}" if scores else UNCHANGED


def _was(result: RankedResult, were: Mapping[ContentHash, int], pages: Mapping[str, int]) -> str:
    """A result, and where it or its page was; of a page that was shown otherwise before, that it is another passage."""
    uri = result.uris[0]
    if result.content_hash in were:
        return f"{uri} {were[result.content_hash]}"
    return f"another passage of {uri} {pages[uri]}" if uri in pages else f"{uri} new"


def _first(changes: Sequence[str]) -> str:
    rest = f", and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
    return ", ".join(changes[:_NAMED]) + rest
