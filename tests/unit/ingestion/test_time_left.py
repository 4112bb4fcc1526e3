"""How long a run still takes, on a clock of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import accumulate

import pytest

from weft.ingestion.report import IndexProgress
from weft.ingestion.sources.items import FileItem
from weft.ingestion.units import Unit, grouped, shuffled
from weft.settings import load_settings

INGEST = load_settings(environment={}).ingest
SMALL, LARGE = 400, 400_000
PER_BYTE_S = 1e-4


def units_of(sizes: Sequence[int]) -> list[Unit]:
    items = [FileItem("/r", (f"{n}",), f"r/{n}", size=size) for n, size in enumerate(sizes)]
    return shuffled(grouped(items, INGEST.unit_documents))


def evenly(unit: Unit, place: float) -> float:
    """Time by bytes alone: a document costs nothing besides its text."""
    return PER_BYTE_S * sum(item.size for item in unit.items if isinstance(item, FileItem))


def by_document(unit: Unit, place: float) -> float:
    """A document costs twice as much as is counted for it."""
    return evenly(unit, place) + 2 * PER_BYTE_S * (unit.work - unit.size)


def after_loading(unit: Unit, place: float) -> float:
    """The first unit waits a minute for models."""
    return evenly(unit, place) + (60.0 if place == 0.0 else 0.0)


def slowing_down(unit: Unit, place: float) -> float:
    """The last fifth takes twice as long, as where an index outgrows memory."""
    return evenly(unit, place) * (2.0 if place >= 0.8 else 1.0)


def unevenly(unit: Unit, place: float) -> float:
    """Each takes between half as long and twice as long."""
    return evenly(unit, place) * 2.0 ** random.Random(unit.number).uniform(-1.0, 1.0)


CORPORA = {
    "alike": [SMALL * 20] * 2000,
    "large ones last": [SMALL] * 4000 + [LARGE] * 40,
    "large ones first": [LARGE] * 40 + [SMALL] * 4000,
    "large ones here and there": ([SMALL] * 100 + [LARGE]) * 40,
}


@pytest.mark.parametrize(
    ("seconds_of", "until"),
    [(evenly, 0.9), (by_document, 0.9), (after_loading, 0.9), (unevenly, 0.9), (slowing_down, 0.5)],
)
@pytest.mark.parametrize("corpus", CORPORA)
def test_the_time_left_is_within_a_factor_of_two_after_a_third(
    corpus: str, seconds_of: Callable[[Unit, float], float], until: float
) -> None:
    """OPS-15, ING-27: from a third of the time on, whatever the order of small and large documents."""
    require_within_a_factor_of_two(units_of(CORPORA[corpus]), seconds_of, until)


@pytest.mark.parametrize("dear_first", [True, False])
def test_folders_of_different_kinds_say_the_time_left_of_each_other(dear_first: bool) -> None:
    """OPS-15, ING-27: half of the folders take three times as long for a byte; units come in a mixed order."""
    units = units_of(CORPORA["alike"])

    def by_kind(unit: Unit, place: float) -> float:
        dear = (unit.number < len(units) / 2) == dear_first
        return evenly(unit, place) * (3.0 if dear else 1.0)

    require_within_a_factor_of_two(units, by_kind, until=0.9)


def test_the_mixed_order_is_always_the_same() -> None:
    """ARC-9: and no unit is lost by it."""
    numbers = [unit.number for unit in units_of(CORPORA["alike"])]
    assert numbers == [unit.number for unit in units_of(CORPORA["alike"])]
    assert numbers != sorted(numbers)
    assert sorted(numbers) == list(range(len(numbers)))


def require_within_a_factor_of_two(
    units: Sequence[Unit], seconds_of: Callable[[Unit, float], float], until: float
) -> None:
    work = [unit.work for unit in units]
    ends = list(accumulate(seconds_of(unit, number / len(units)) for number, unit in enumerate(units)))
    progress = IndexProgress("reading", total=len(units), begun=0.0, now=0.0).entering("embedding", 0.0, work=sum(work))
    for amount, now in zip(work, ends, strict=True):
        progress = progress.after({}, now, work=amount)
        if ends[-1] / 3 <= now <= ends[-1] * until:
            assert progress.seconds_left is not None
            assert 0.5 <= progress.seconds_left / (ends[-1] - now) <= 2.0


def test_what_was_done_before_a_phase_says_nothing_of_its_pace() -> None:
    """ING-27: thousands of unchanged documents are compared in a moment, and the few new ones take long."""
    progress = IndexProgress("comparing", total=1010, begun=0.0, now=0.0, work=1010.0)
    progress = progress.after({}, 1.0, units=1000, work=1010.0)
    assert progress.seconds_left == 0.0
    progress = progress.entering("embedding", 1.0, work=10.0)
    assert progress.seconds_left is None
    assert progress.after({}, 21.0, work=2.0).seconds_left == pytest.approx(80.0)


def test_work_that_is_nothing_changes_no_pace() -> None:
    """ING-27: a task whose units have all changed is no unit done."""
    progress = IndexProgress("comparing", total=4, begun=0.0, now=0.0).after({}, 5.0, units=0)
    assert progress.seconds_left is None
    assert progress.after({}, 10.0).seconds_left == pytest.approx(30.0)
