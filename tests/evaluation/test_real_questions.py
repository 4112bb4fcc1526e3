"""EVA-5, RET-9, RET-15: questions people really asked, beside plain baselines; run by `make eval`.

Documentation that is not at hand is fetched from the package index; without it there is nothing to measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_measure import OWN_RRF, PLAIN, WEFT, report
from tests.support.real_questions import UnreachableError
from weft.app.collections import measuring
from weft.evaluation.measures.compare import compare
from weft.settings import load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(7200)]

SETTINGS = measuring(load_settings())
KEY = "ndcg_at_10"
Rows = Sequence[Mapping[str, Any]]


@pytest.fixture(scope="module")
def rows(data_root: Path) -> Rows:
    try:
        return report((), SETTINGS, data_root)
    except UnreachableError as error:
        pytest.skip(f"no documentation: {error}")


def values_of(rows: Rows, system: str) -> dict[str, float]:
    return {row["id"]: row["values"][system][KEY] for row in rows if row["values"]}


@pytest.mark.parametrize("rival", [*PLAIN, OWN_RRF])
def test_weft_is_not_significantly_below_what_is_plain(rows: Rows, rival: str) -> None:
    """EVA-5, RET-9: paired by question, over every documentation."""
    assert compare(values_of(rows, rival), values_of(rows, WEFT), SETTINGS.evaluation).change.high >= 0.0


@pytest.mark.parametrize("rival", PLAIN)
def test_weft_is_ahead_of_what_is_plain_by_more_than_chance(rows: Rows, rival: str) -> None:
    """RET-9, RET-11: by .04 at least, paired by question, over every documentation."""
    change = compare(values_of(rows, rival), values_of(rows, WEFT), SETTINGS.evaluation).change
    assert change.low > 0.0
    assert change.mean >= 0.04


def test_passages_stand_under_the_right_heading(rows: Rows) -> None:
    """RET-11, RET-16: seven in ten of the judged pages among the first ten are shown where their answer begins."""
    right = [passage["right"] for row in rows for passage in row["passages"] if passage["right"] is not None]
    assert sum(right) >= 0.7 * len(right)


def test_few_answerable_questions_are_marked_as_gaps(rows: Rows) -> None:
    """RET-15: before any feedback."""
    marked = [row["gap"] for row in rows if row["values"]]
    assert sum(marked) <= 0.05 * len(marked)
