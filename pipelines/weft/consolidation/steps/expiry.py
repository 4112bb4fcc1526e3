"""The step `expiry`: aliases and edges that were not found again, triggers that nobody picks by any more (CON-6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, ClassVar

from weft.catalog.catalog import Catalog
from weft.consolidation.night import NightContext, StepResult, When
from weft.domain.ids import ContentHash
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.beliefs import Beliefs
from weft.learning.edges import NO_EDGES, LearnedEdges
from weft.learning.observe.triggers import LearnedTrigger, read_triggers
from weft.learning.parts import LearnedVersion
from weft.runtime.clock import SECONDS_PER_DAY, day_of

_EXAMPLES = 10  # that a report shows


class Expiry:
    """Counts what the candidate lets go; its parts are without it already."""

    name: ClassVar[str] = "expiry"
    says: ClassVar[str] = "letting go of aliases and edges whose contents are gone"
    when: ClassVar[When] = When.JUDGED

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`."""
        live, learned, parent = context.candidate.live, context.learned, context.candidate.parent
        then: Sequence[LearnedTrigger] = ()
        if parent is not None:
            day = day_of(context.catalog.learned.manifest(parent).created_at)
            then = read_triggers(context.settings.priors.triggers, live.evidence, day).every()
        gone = stale(live, learned)
        rows = expired(gone, then, context.after, lambda names: texts_of(context.catalog, names))
        return StepResult(counts={"proposed": len(gone)}, examples=rows)


def stale(before: LearnedVersion, after: LearnedVersion) -> list[tuple[str, ContentHash, str]]:
    """Aliases, then edges, that one version has and the other lacks: kind, content, and what was said of it."""
    aliases = (after.part(ContentAliases) or NO_ALIASES).changes(before.part(ContentAliases))
    edges = (after.part(LearnedEdges) or NO_EDGES).changes(before.part(LearnedEdges))
    return [
        (label, ContentHash(each.content), each.what)
        for label, changes in (("alias", aliases), ("edge", edges))
        for each in sorted(changes.gone)
    ]


def expired(
    gone: Sequence[tuple[str, ContentHash, str]],
    then: Sequence[LearnedTrigger],
    after: Beliefs,
    texts: Callable[[Sequence[ContentHash]], Mapping[ContentHash, str]],
) -> list[dict[str, Any]]:
    """Triggers that were in force when the live version was made and no longer are, then what is `stale`."""
    still = {(each.term, each.content_hash) for each in after.triggers.every()}
    lost = [each for each in then if (each.term, each.content_hash) not in still]
    lost.sort(key=lambda each: (each.on_trial, -each.strength, each.term, each.content_hash))
    rows = [
        *(("trigger", each.content_hash, each.term, _day(each.last)) for each in lost),
        *((*each, "") for each in gone),
    ][:_EXAMPLES]
    read_texts = texts(sorted({content for _, content, _, _ in rows}))
    return [
        {"kind": kind, "what": what, "last_picked": last, "content": content, "text": read_texts.get(content, "")}
        for kind, content, what, last in rows
    ]


def texts_of(catalog: Catalog, contents: Sequence[ContentHash]) -> dict[ContentHash, str]:
    """The texts of contents that the live generation holds; none where nothing is live."""
    if not contents or catalog.pointer().generation is None:
        return {}
    with closing(catalog.open_live()) as generation:
        rows = sorted({row for each in contents if (row := generation.chunks.row_of(each)) is not None})
        names = [generation.contents[row] for row in rows]
        return dict(zip(names, generation.chunks.texts(rows), strict=True))


def _day(day: int) -> str:
    return datetime.fromtimestamp(day * SECONDS_PER_DAY, UTC).date().isoformat()
