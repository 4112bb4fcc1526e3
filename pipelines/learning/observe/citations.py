"""Citations that agents make by what they use, beside those that documents make (CIT-2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.ids import ContentHash
from pipelines.learning.aliases import NO_ALIASES, ContentAliases
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.observe.verdicts import is_good
from pipelines.learning.parameters import INCLUSION, REFERENCE
from pipelines.learning.priors import InternalScale
from pipelines.learning.uses import UseColumns, Uses, numbered

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class CitationsByUse:
    """How often contents were cited by use, in citations of documents; counted when it is asked for first."""

    def __init__(self, scale: InternalScale, evidence: Evidence, aliases: ContentAliases = NO_ALIASES) -> None:
        """Keep what to count; masses of a class stand under its representative, and its aliases read the same."""
        self._scale = scale
        self._uses = Uses.of(evidence.usage)
        self._aliases = aliases

    def of(self, hashes: Sequence[ContentHash]) -> Floats:
        """Σ weight · count over the kinds of use, (contents,), as `InternalScale` weighs them; 0 without any."""
        if not len(self._uses):
            return np.zeros(len(hashes))
        rows, cited = self._counted
        return cited[np.fromiter(map(rows.get, hashes, repeat(0)), np.int64, len(hashes))]

    @cached_property
    def _counted(self) -> tuple[dict[str, int], Floats]:
        uses, scale = self._uses.columns(), self._scale
        rows = {name: number + 1 for number, name in enumerate(uses.content.words)}
        good = np.array([bool(is_good(name)) for name in uses.bin.words], dtype=bool)[uses.bin.codes]
        count, cap = len(rows), round(scale.per_agent * MICRO)
        cited = np.zeros(count + 1)
        for weight, counts in (
            (scale.reference, uses.bin.holds(REFERENCE)),
            (scale.request, uses.bin.holds(INCLUSION)),
            (scale.success, good),
        ):
            content, _, micro = _by(uses, uses.principal.codes, len(uses.principal.words), counts)
            cited[1:] += weight * (_added(content, np.minimum(micro, cap), count) / MICRO)
        named = uses.bin.holds(REFERENCE) & ~uses.principal.holds("")
        content, _, _ = _by(uses, uses.principal.codes, len(uses.principal.words), named)
        cited[1:] += scale.agent * np.bincount(content, minlength=count)
        content, question, _ = _by(uses, uses.question.codes, len(uses.question.words), good & ~uses.question.holds(""))
        others = np.bincount(question, minlength=len(uses.question.words))[question] - 1
        cited[1:] += scale.co_citation * _added(content, others, count)
        return self._aliases.with_aliases(rows), cited


def _by(uses: UseColumns, codes: Ints, words: int, counts: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """Every content with a number beside it, once, and their mass where that is above 0."""
    content, beside = uses.content.codes[counts], codes[counts]
    first, pair = numbered((content, len(uses.content.words)), (beside, words))
    micro = np.zeros(len(first), dtype=np.int64)
    np.add.at(micro, pair, uses.micro[counts])
    some = micro > 0
    return content[first][some], beside[first][some], micro[some]


def _added(places: Ints, values: Ints, count: int) -> Ints:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, places, values)
    return sums
