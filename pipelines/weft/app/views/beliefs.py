"""What is believed, in any learned version or live, and what changed between two; commands and the service show it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from weft.catalog.catalog import Catalog
from weft.domain.ids import PRIORS_VERSION, ContentHash, VersionName
from weft.domain.ranking import Scope, Signal
from weft.indexes.generation import Generation
from weft.learning.beliefs import Beliefs, believed, read_beliefs
from weft.learning.evidence import Evidence
from weft.learning.parts import LearnedVersion
from weft.learning.priors import Priors
from weft.learning.reading import BeliefChange, Reading, read_all
from weft.retrieval.answer.trace import snippet
from weft.runtime.clock import system_clock

LIVE, PRIORS = "live", "priors"
"""Names of what is believed now, and of what was believed before anything was learned."""

VersionWeights = dict[tuple[str, tuple[Scope, ...]], list[Reading]]
"""What is believed of weights, by learned version and the scopes that are asked about."""

_SHOWN = 100  # characters of a content


class FamilyName(StrEnum):
    """Kinds of beliefs, as `Reading.family` names them."""

    WEIGHT = "weight"
    INTENT = "intent"
    DECAY = "decay"
    THRESHOLD = "threshold"
    QUALITY = "quality"
    TRUST = "trust"
    LESSON = "lesson"
    SIZE = "size"
    EXAMINATION = "examination"


def readings_of(
    catalog: Catalog, priors: Priors, version: str, family: FamilyName | None, scope: str | None
) -> list[Reading]:
    """The beliefs of a version that are of the family, and whose scope begins so."""
    beliefs, _ = beliefs_of(catalog, priors, version)
    return [
        reading
        for reading in read_all(beliefs, priors, beliefs.scopes())
        if family in (None, reading.family) and reading.scope.startswith(scope or "")
    ]


def weights_by_version(
    catalog: Catalog, priors: Priors, live: Beliefs, earlier: VersionWeights
) -> list[tuple[str, Reading]]:
    """Every weight in every scope that something was observed in by now: by the priors, in each learned version, live.

    The oldest first; of each a pair of the version and what is believed.

    Args:
        earlier: What was read of versions before, by the same priors; they never change, and are kept there.
    """
    scopes = tuple(
        scope
        for scope in live.scopes()
        if any(belief.n_effective > 0.0 for belief in live.weights(scope, tuple(Signal)).values())
    )
    rows = []
    for name in (PRIORS, *catalog.learned.versions()):
        weights = earlier.get((name, scopes))
        if weights is None:
            weights = _weights(beliefs_of(catalog, priors, name)[0], priors, scopes)
        rows.append((name, weights))
    earlier.clear()
    earlier.update({(name, scopes): weights for name, weights in rows})
    rows.append((LIVE, _weights(live, priors, scopes)))
    return [(name, each) for name, weights in rows for each in weights]


def _weights(beliefs: Beliefs, priors: Priors, scopes: Sequence[Scope]) -> list[Reading]:
    return [each for each in read_all(beliefs, priors, scopes) if each.family == FamilyName.WEIGHT]


def beliefs_of(catalog: Catalog, priors: Priors, version: str) -> tuple[Beliefs, Evidence]:
    """Beliefs of a version as they were read when it was made, of what is live, and of priors alone, now; from what."""
    if version in {PRIORS, PRIORS_VERSION}:
        return read_beliefs(priors, Evidence(), now=system_clock()), Evidence()
    pointer = catalog.pointer()
    name = pointer.learned if version == LIVE else VersionName(version)
    state = None if name is None else catalog.learned.read(name)
    if version == LIVE or state is None:
        evidence, now = catalog.live.evidence(pointer), system_clock()
    else:
        evidence, now = state.evidence, state.created_at
    return believed(priors, LearnedVersion(evidence, {} if state is None else state.parts), now=now), evidence


_HASH = 64  # digits of a content's


def content_names(generation: Generation | None, hashes: Sequence[ContentHash]) -> list[str]:
    """Where contents, or what they became, stand and how they begin; of those that are gone, the hash."""
    names = {each: each[:12] if len(each) == _HASH else str(each) for each in hashes}
    if generation is not None:
        rows = {each: row for each in hashes if (row := generation.chunks.row_now(each)) is not None}
        for each, content in zip(rows, generation.chunks.contents(list(rows.values())), strict=True):
            place = content.occurrences[0]
            start = snippet(content.text, "", _SHOWN)
            names[each] = f"{place.uri}:{place.label.start_line}  {start}"
    return [names[content_hash] for content_hash in hashes]


def change_as_json(move: BeliefChange) -> dict[str, Any]:
    """A change in JSON's own types."""
    return {
        **dict(zip(("family", "scope", "parameter"), move.key, strict=True)),
        "before": move.before and move.before.mean,
        "after": move.after and move.after.mean,
        "change": move.change,
        "certainty": move.certainty,
        "beyond_chance": move.beyond_chance,
    }
