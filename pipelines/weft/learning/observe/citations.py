"""Citations that agents make by what they use, beside those that documents make (CIT-2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import repeat

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.ids import ContentHash
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.document_priors import InternalScale
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.allowances import newcomer_shares
from weft.learning.observe.verdicts import is_good
from weft.learning.parameters import INCLUSION, REFERENCE
from weft.learning.uses import UseColumns, Uses, numbered


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
        rows = {name: number + 1 for number, name in enumerate(uses.content.values)}
        good = np.array([bool(is_good(name)) for name in uses.bin.values], dtype=bool)[uses.bin.codes]
        shares = newcomer_shares(uses.principal.codes, uses.day, uses.content.codes, most=scale.newcomers)
        count, cap, principals = len(rows), round(scale.per_agent * MICRO), len(uses.principal.values)
        cited = np.zeros(count + 1)
        for weight, counts in (
            (scale.reference, uses.bin.holds(REFERENCE)),
            (scale.request, uses.bin.holds(INCLUSION)),
            (scale.success, good),
        ):
            at, micro = _by(uses, counts, (uses.principal.codes, principals))
            of_agents = _micro(np.minimum(micro, cap) * shares[at])
            cited[1:] += weight * (_added(uses.content.codes[at], of_agents, count) / MICRO)
        named = uses.bin.holds(REFERENCE) & ~uses.principal.holds("")
        at, _ = _by(uses, named, (uses.principal.codes, principals))
        cited[1:] += scale.agent * (_added(uses.content.codes[at], _micro(MICRO * shares[at]), count) / MICRO)
        cited[1:] += scale.co_citation * (self._together(uses, good & ~uses.question.holds(""), shares) / MICRO)
        return self._aliases.with_aliases(rows), cited

    def _together(self, uses: UseColumns, counts: Flags, shares: Floats) -> Ints:
        """Of each content, the others that served under the same questions, in micro-units: each by who says so."""
        questions, contents = len(uses.question.values), len(uses.content.values)
        principal = (uses.principal.codes, len(uses.principal.values))
        at, _ = _by(uses, counts, (uses.question.codes, questions), principal)
        content, question = uses.content.codes[at], uses.question.codes[at]
        first, pair = numbered((content, contents), (question, questions))
        spoken = np.minimum(_added(pair, _micro(MICRO * shares[at]), len(first)), MICRO)
        content, question = content[first], question[first]
        others = _added(question, spoken, questions)[question] - spoken
        return _added(content, _micro(others * (spoken / MICRO)), contents)


def _by(uses: UseColumns, counts: Flags, *beside: tuple[Ints, int]) -> tuple[Ints, Ints]:
    """A row of every content with codes beside it, once, and their mass where that is above 0."""
    rows = np.flatnonzero(counts)
    codes = [(code[rows], size) for code, size in beside]
    first, number = numbered((uses.content.codes[rows], len(uses.content.values)), *codes)
    micro = np.zeros(len(first), dtype=np.int64)
    np.add.at(micro, number, uses.micro[rows])
    some = micro > 0
    return rows[first][some], micro[some]


def _micro(values: Floats) -> Ints:
    """Whole micro-units, so that sums do not depend on their order."""
    return np.rint(values).astype(np.int64)


def _added(places: Ints, values: Ints, count: int) -> Ints:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, places, values)
    return sums
