"""A world in one thread: a producer's log, updaters, a disk and clocks, all of which fail as a seed says.

The updaters, their pipeline and their stores are the real ones, over SQLite. Around them:

- the log delivers any part of what it holds, delivers again, loses calls, shows holes that close when asked again, and
  has holes that never close, and control records that nobody gets; record times jump forward and backward and are
  sometimes no times at all;
- a process dies at any call to the log, the dead-letter topic or the store, also in the middle of a transaction; a
  power cut kills all processes and keeps of the write-ahead log what was synced and any part of what was not;
- a second updater takes partitions over while the first one holds a batch in its hands.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from tests.support.feedback_events import NOON, reports_daily, rules
from tests.support.feedback_fold import fold_log
from tests.support.feedback_publisher import republisher
from tests.support.feedback_source import Killed
from tests.support.feedback_traffic import traffic
from tests.support.folded_evidence import Folded
from weft.domain.errors import BrokerUnavailableError, FencedError
from weft.feedback.run.partitions import UPDATERS
from weft.feedback.run.updater import Updater
from weft.runtime.kafka.log import Batches, LogFacts, OpenTransaction, Record

PARTITIONS = 2
POLLS = (1, 2, 3, 7, 50, 5_000)
DECADES_MS = 36 * 365 * 86_400_000
HOUR_MS = 3_600_000
LIVES = 40
DAILY = 2.0
REPORTS_DAILY = reports_daily(1.0)
"""Observations of a principal that move parameters: so few that they are used up."""

MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
"""Where small stores that come and go by the hundred lie: what a crash leaves of a file is simulated."""

_connect = sqlite3.connect


class PowerCut(Killed):
    """Every process ends here, and the disk keeps what it keeps."""


@dataclass
class Simulation:
    """One world, made and driven by one seed."""

    seed: int
    folder: Path
    events: int = 60
    rng: random.Random = field(init=False)
    happened: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.records, self.control = log_of(self.rng, self.events)
        self.written = [0] * PARTITIONS  # how much of each partition the producer has written by now
        self.told: set[bytes] = set()
        self.faults = True
        self.now = 0.0
        self.countdown = 0
        self.uncommitted: dict[Path, int] = {}  # bytes of each write-ahead log before the commit under way
        self.nested = False
        self.store = self.folder / "0"
        self.store.mkdir()

    def run(self) -> None:
        """Live and die until everything was written, then once in peace until everything is consumed."""
        for _ in range(LIVES):
            if self.written == [len(records) for records in self.records]:
                break
            self.life()
        self.faults = False
        self.written = [len(records) for records in self.records]
        with self.updater() as last:
            while last.step(self.now) or not last.caught_up:
                self.now += 0.1
            last.publish()

    def expected(self) -> Folded:
        """What an independent reading of the log comes to."""
        settings = rules()
        weights = settings.credit.model_dump() | {
            "principal_daily": DAILY,
            "reports_daily": REPORTS_DAILY,
            "newcomers": settings.limits.newcomers,
        }
        return fold_log(
            [[record.value for record in records] for records in self.records],
            weights=weights,
            times=settings.time.model_dump(),
            timestamps=[[record.timestamp for record in records] for records in self.records],
        )

    def life(self) -> None:
        """One updater from its start to its death, sometimes with another one that takes over."""
        self.uncommitted.clear()
        self.countdown = round(self.rng.expovariate(1 / 250))
        steps = self.rng.randint(1, 12)
        try:
            with self.updater() as updater:
                for _ in range(steps):
                    self.produce()
                    self.now += self.rng.choice((0.0, 0.1, 1.0, 5.0))
                    self.attempt(updater)
            self.happened["closed"] += 1
        except PowerCut:
            self.happened["power cut"] += 1
        except Killed:
            self.happened["killed"] += 1
        except FencedError:
            self.happened["fenced"] += 1
        except BrokerUnavailableError:
            self.happened["no broker at the start"] += 1

    def attempt(self, updater: Updater) -> None:
        try:
            updater.step(self.now)
        except BrokerUnavailableError:
            self.happened["no broker"] += 1

    @contextlib.contextmanager
    def updater(self) -> Iterator[Updater]:
        """An updater over the store as it is now, with settings of its own."""
        settings = rules(
            poll_records=self.rng.choice(POLLS),
            publish_every_s=self.rng.choice((1.0, 5.0)),
            lock_timeout_s=0.001,
            limits__principal_daily=DAILY,
            limits__reports_daily=REPORTS_DAILY,
        )
        opened: list[sqlite3.Connection] = []

        def connected(path: Path, **options: Any) -> sqlite3.Connection:
            opened.append(_connect(path, factory=connection_in(self, Path(path)), **options))
            return opened[-1]

        try:
            with mock.patch.object(sqlite3, "connect", connected):
                updater = Updater.open(
                    SimulatedSource(self),
                    self.store,
                    range(PARTITIONS),
                    settings,
                    dead_letters=republisher(DeadTopic(self), settings),
                )
            yield updater
            updater.close()
        finally:
            for connection in opened:
                connection.close()

    def end(self, partition: int, offset: int) -> int:
        """Where the log goes on behind the control records from `offset` on."""
        while offset in self.control[partition]:
            offset += 1
        return offset

    def produce(self) -> None:
        for partition, records in enumerate(self.records):
            more = self.rng.choice((0, 1, 5, 40))
            self.written[partition] = min(len(records), self.written[partition] + more)

    def point(self, name: str) -> None:
        """An instant at which anything may happen."""
        if not self.faults or self.nested:
            return
        self.countdown -= 1
        if self.countdown == 0:
            self.happened[f"died at {name}"] += 1
            self.die()

    def die(self) -> None:
        if self.rng.random() < 0.5:
            raise Killed
        after = self.folder / str(int(self.store.name) + 1)
        shutil.copytree(self.store, after, ignore=shutil.ignore_patterns("*-shm"))
        for path, synced in self.uncommitted.items():
            tear(self.rng, after / path.relative_to(self.store), synced)
        self.store = after
        raise PowerCut

    def meanwhile(self) -> None:
        """Perhaps another updater takes everything over, and gets somewhere."""
        if not self.faults or self.nested or self.rng.random() > 0.03:
            return
        self.nested = True
        try:
            with self.updater() as other:
                for _ in range(self.rng.randint(0, 3)):
                    self.attempt(other)
            self.happened["taken over"] += 1
        except BrokerUnavailableError:
            self.happened["no broker at the start"] += 1
        finally:
            self.nested = False

    def maybe_away(self, chance: float) -> None:
        if self.faults and self.rng.random() < chance:
            raise BrokerUnavailableError("nobody answers")


class SimulatedSource:
    """A reader of the simulated log; implements `FeedbackSource`."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._positions: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._reached: dict[int, int] = {}

    def assign(self, partitions: Sequence[int]) -> None:
        self._world.point("assign")

    def seek(self, partition: int, offset: int) -> None:
        self._world.point("seek")
        self._positions[partition] = offset
        self._reached.pop(partition, None)

    def poll(self, max_records: int, timeout_s: float) -> Batches:
        world = self._world
        world.point("poll")
        world.maybe_away(0.05)
        batches: dict[int, list[Record]] = {}
        left = max_records
        for partition in sorted(self._positions, key=lambda _: world.rng.random()):
            written = world.records[partition][: world.written[partition]]
            self._ends[partition] = world.end(partition, written[-1].offset + 1 if written else 0)
            waiting = [record for record in written if record.offset >= self._positions[partition]]
            if taken := self._part(waiting, written, left):
                batches[partition] = taken
                self._positions[partition] = max(self._positions[partition], taken[-1].offset + 1)
                left -= len(taken)
            if world.end(partition, self._positions[partition]) == self._ends[partition]:
                self._reached[partition] = self._ends[partition]
        return batches

    def reached(self, partition: int) -> int | None:
        return self._reached.get(partition)

    def skipped(self, partition: int, first: int, behind: int) -> int:
        self._world.point("skipped")
        self._world.maybe_away(0.05)
        return len(self._world.control[partition] & set(range(first, behind)))

    def open_transaction(self, partition: int) -> OpenTransaction | None:
        return None

    def note_offsets(self, offsets: Mapping[int, int]) -> None:
        self._world.point("note offsets")

    def facts(self) -> LogFacts:
        self._world.point("facts")
        self._world.maybe_away(0.05)
        self._world.meanwhile()
        return LogFacts("weft.feedback", "one", PARTITIONS)

    def log_start(self, partition: int) -> int:
        self._world.point("log start")
        return 0

    def highwater(self, partition: int) -> int | None:
        return self._ends.get(partition)

    def close(self) -> None:
        self._world.point("close")

    def _part(self, waiting: list[Record], written: list[Record], left: int) -> list[Record]:
        rng, faults = self._world.rng, self._world.faults
        if not faults:
            return waiting[:left]
        taken = waiting[: min(left, rng.choice((0, 1, 5, left)))]
        if taken and rng.random() < 0.1:  # delivered again after a reconnection
            taken = written[max(0, len(written) - len(waiting) - rng.randint(1, 9)) :][: len(taken)]
            self._world.happened["delivered again"] += 1
        if len(taken) > 2 and rng.random() < 0.1:  # not stored yet, though what lies behind it is
            taken = [*taken[:1], *taken[2:]]
            self._world.happened["late in the log"] += 1
        return taken


class DeadTopic:
    """Where dead letters are published."""

    def __init__(self, world: Simulation) -> None:
        self._world = world

    def deliver(self, records: Sequence[tuple[bytes, bytes]]) -> Sequence[None]:
        self._world.point("dead letters")
        self._world.maybe_away(0.1)
        self._world.told |= {key for key, _ in records}
        self._world.point("dead letters published")
        return [None] * len(records)

    def close(self) -> None: ...


def connection_in(world: Simulation, path: Path) -> Callable[..., sqlite3.Connection]:
    """A connection whose every statement is an instant at which the world may end."""
    wal = path.with_name(path.name + "-wal")

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql != "commit":
                world.point(sql.split("(", maxsplit=1)[0][:30])
                return super().execute(sql, *parameters)
            world.point("before the commit")
            world.uncommitted[wal] = wal.stat().st_size if wal.exists() else 0
            done = super().execute(sql, *parameters)
            world.point("inside the commit")
            world.uncommitted.pop(wal)
            world.point("after the commit")
            return done

        def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
            world.point(sql.split("(", maxsplit=1)[0][:30])
            return super().executemany(sql, rows)

    return Connection


def tear(rng: random.Random, wal: Path, synced: int) -> None:
    """Leave any part of what a commit wrote and had not reported as durable yet."""
    if not wal.exists():
        return
    data = wal.read_bytes()
    kept = data[: rng.randint(min(synced, len(data)), len(data))]
    rest = len(data) - len(kept)
    wal.write_bytes(kept + rng.choice((b"", bytes(rest), rng.randbytes(rest))))


def log_of(rng: random.Random, events: int) -> tuple[list[list[Record]], list[set[int]]]:
    """Traffic over both partitions, with holes that never close and times that cannot be relied on.

    Returns:
        The records of each partition, and the offsets of its control records, some of them at its end.
    """
    partitions: list[list[Record]] = [[] for _ in range(PARTITIONS)]
    control: list[set[int]] = [set() for _ in range(PARTITIONS)]
    offsets, time = [0] * PARTITIONS, NOON
    for key, value in traffic(rng, events, until_ms=NOON, duplicates=0.1, garbage=0.05, foreign=0.1):
        time += rng.choice((0, 40, 40, 40, 60_000))
        if rng.random() < 0.02:
            time += rng.choice((-30 * HOUR_MS, -HOUR_MS, 2 * HOUR_MS, 30 * HOUR_MS))
        stated = rng.choice((-1, 0, 2**62, time + DECADES_MS)) if rng.random() < 0.04 else time
        partition = sum(key) % PARTITIONS
        offsets[partition] += rng.choice((1, 1, 17)) if rng.random() < 0.03 else 0
        _mark(rng, control[partition], offsets, partition, chance=0.1)
        partitions[partition].append(Record(partition, offsets[partition], stated, key, value))
        offsets[partition] += 1
    for partition in range(PARTITIONS):
        _mark(rng, control[partition], offsets, partition, chance=0.5)
    return partitions, control


def _mark(rng: random.Random, control: set[int], offsets: list[int], partition: int, *, chance: float) -> None:
    """Perhaps a transaction's marker, or two of them."""
    if rng.random() < chance:
        markers = rng.choice((1, 1, 2))
        control.update(range(offsets[partition], offsets[partition] + markers))
        offsets[partition] += markers


def folders_of(store: Path) -> list[Path]:
    return sorted((store / UPDATERS).iterdir())
