"""ING-3, LRN-13: what grows with its input grows no faster than it: ratios of processor time, within one run."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from weft.chunking.config.file import entries_of
from weft.domain.documents import Domain
from weft.ingestion.sources.files import kind_of
from weft.ingestion.sources.transcripts import sessions
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
TIMES = 8
"""How many times more input the second measurement takes: a square would take 64 times as long."""

pytestmark = pytest.mark.slow


def spent(work: Callable[[], object]) -> float:
    """Processor seconds, the best of three."""
    spans = []
    for _ in range(3):
        began = time.process_time()
        work()
        spans.append(time.process_time() - began)
    return min(spans)


@pytest.mark.parametrize("unit", ["x\n", "\n", "[", "{},", "w", "10:31 ", '"role"', "\\section{", "# a\n"])
@pytest.mark.parametrize("name", ["a.json", "a.txt", "a.tex", "a.md"])
def test_telling_a_kind_costs_what_the_size_costs(name: str, unit: str) -> None:
    """ING-3: no text is read again for each of its parts."""

    def told(size: int) -> Callable[[], object]:
        text = "Ann: a\nBob: b\n" * 4 + unit * (size // len(unit))
        return lambda: (kind_of(name, text), list(sessions(text, "f")))

    assert spent(told(TIMES * 100_000)) <= 3 * TIMES * max(spent(told(100_000)), 1e-3)


@pytest.mark.parametrize("text", ["{", "''", ": ", "\n"])
def test_reading_entries_costs_what_the_size_costs(text: str) -> None:
    """ING-9: hostile files, too."""
    small, large = (("{a: '" + text * size).encode() for size in (50_000, 50_000 * TIMES))
    assert spent(lambda: entries_of("a.yaml", "yaml", large)[1]) <= 3 * TIMES * max(
        spent(lambda: entries_of("a.yaml", "yaml", small)[1]), 1e-3
    )


def test_beliefs_cost_what_their_leaves_cost() -> None:
    """LRN-5, LRN-13: domains × agents × signals, from evidence to pooled beliefs."""

    def leaves(agents: int) -> Evidence:
        return Evidence(
            {
                EvidenceKey(100, domain.value, f"m{agent % 50}", f"a{agent}", "*", "signal.usage.good", side): MICRO
                for domain in Domain
                for agent in np.arange(agents)
                for side in ("for", "against")
            }
        )

    few, many = leaves(2_000), leaves(2_000 * TIMES)
    read = [spent(lambda some=some: read_beliefs(PRIORS, some, now=100 * 86_400.0)) for some in (few, many)]
    assert read[1] <= 2 * TIMES * read[0]
