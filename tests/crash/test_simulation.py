"""FBK-5, ARC-3: thousands of small worlds that fail in every way, and one state that all of them must come to.

`WEFT_SIMULATION_SEED` runs one world again; `WEFT_SIMULATION_WORLDS=60:2500` runs a part of the ten thousand.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.feedback_simulation import MEMORY, PARTITIONS, Simulation, folders_of
from tests.support.folded_evidence import digest_of_stores

SHORT = 20


def test_thirty_worlds_come_to_what_their_logs_say() -> None:
    """FBK-5: killed inside and between steps, cut off, fenced, delivered to twice: the independent fold's bits."""
    happened = simulate(chosen(range(30)))
    for event in ("killed", "power cut", "fenced", "taken over", "no broker", "delivered again", "late in the log"):
        assert happened[event] or len(chosen(range(30))) == 1, (event, happened)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_ten_thousand_worlds_come_to_what_their_logs_say() -> None:
    """FBK-5: the long run, of shorter logs: what fails is mostly at the start of lives, and those are as many."""
    first, last = map(int, os.environ.get("WEFT_SIMULATION_WORLDS", "60:10060").split(":"))
    happened = simulate(range(first, last), events=SHORT)
    sys.stderr.write(f"worlds {first} to {last - 1} passed\n")
    sys.stderr.write("".join(f"{count:8,} {event}\n" for event, count in happened.most_common()))


def chosen(seeds: range) -> Iterable[int] | range:
    one = os.environ.get("WEFT_SIMULATION_SEED")
    return seeds if one is None else range(int(one), int(one) + 1)


def simulate(seeds: Iterable[int], *, events: int = 60) -> Counter[str]:
    happened: Counter[str] = Counter()
    for seed in seeds:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            world = Simulation(seed, Path(folder), events)
            world.run()
            require_the_logs_state(world)
        happened += world.happened
    return happened


def require_the_logs_state(world: Simulation) -> None:
    """Same masses, same fates, every record accounted for, every dead letter kept and told."""
    expected = world.expected()
    folders = folders_of(world.store)
    assert digest_of_stores(folders) == expected.digest(), world.seed
    fates: Counter[str] = Counter()
    for partition, folder in enumerate(folders):
        with closing(sqlite3.connect(folder / "state.sqlite")) as connection:
            consumed, applied, duplicate, dead, late, skipped, holes, end = connection.execute(
                "select consumed, applied, duplicate, dead_lettered, late, skipped, holes, next_offset from progress"
            ).fetchone()
            letters = {offset for (offset,) in connection.execute("select offset from dead_letters")}
        records = world.records[partition]
        control = world.control[partition]
        last = world.end(partition, records[-1].offset + 1 if records else 0)
        assert (consumed, end, skipped) == (len(records), last, len(control)), world.seed
        assert holes == last - len(records) - len(control), world.seed
        assert consumed == applied + duplicate + dead + late, world.seed
        assert len(letters) == dead, world.seed
        assert {b"%d:%d" % (partition, offset) for offset in letters} <= world.told, world.seed
        fates.update(applied=applied, duplicate=duplicate, dead_lettered=dead, late=late)
    assert len(folders) == PARTITIONS
    assert +fates == +expected.fates, world.seed
