"""CON-4: how often what acts by itself is right, on pairs planted in real texts."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.duplicate_bench import collection
from tests.support.opposed_texts import Pair, opposed, unopposed
from weft.consolidation.steps.duplicates import word_lists
from weft.quality.opposites import opposition
from weft.quality.statements import Statements
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
LISTS, RULES = word_lists(SETTINGS), SETTINGS.consolidation
EACH = 30
PRECISION = 0.95


def verdicts(texts: list[str], makers: Mapping[str, Callable[[str], Pair | None]]) -> dict[str, Counter[str]]:
    """How many pairs of each kind act, are proposed, and are neither."""
    told: dict[str, Counter[str]] = {}
    for kind, make in makers.items():
        pairs = [pair for text in texts if (pair := make(text)) is not None][:EACH]
        assert len(pairs) == EACH
        found = [
            opposition(*(Statements(each, LISTS) for each in pair), LISTS, least=RULES.duplicates.least_overlap)
            for pair in pairs
        ]
        told[kind] = Counter(
            "nothing"
            if one is None
            else "acts"
            if one.exact and one.polarity in RULES.contradictions.acting
            else "proposed"
            for one in found
        )
    return told


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scifact", "cacm"])
def test_what_acts_by_itself_is_right(name: str, data_root: Path) -> None:
    """CON-4: of 240 planted pairs, 90 of them opposed, those that act are opposed in 95 % at least."""
    rng = random.Random(4)
    texts = collection(name, data_root)
    some = rng.sample(texts, min(len(texts), 1000))
    right, wrong = verdicts(some, opposed(rng)), verdicts(some, unopposed(some, rng))
    lines = [f"{kind}: {dict(counts)}" for kind, counts in {**right, **wrong}.items()]
    sys.stderr.write("\n".join(["", name, *lines, ""]))
    true, false = (sum(counts["acts"] for counts in each.values()) for each in (right, wrong))
    assert true / (true + false) >= PRECISION
    assert min(right[kind]["acts"] for kind in ("denied", "always")) >= 0.8 * EACH
    assert right["renumbered"]["acts"] == 0  # another number may be that of another version, table or year
    assert right["renumbered"]["proposed"] >= 0.8 * EACH
