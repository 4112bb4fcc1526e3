"""Work over all shards in rounds, so that no task reads or writes everything (SCL-9).

A round is steps that every partition runs over its own tables, and tables that it sends then: each row to the partition
that an expression of the row says, to all of them, or to itself, for later. A task is one partition in a round, with a
database of its own in memory. Where there is one partition, all rounds are one task: what is sent is there already.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from weft.indexes.graph.graph import GRAPH_FOLDER
from weft.indexes.manifest import CHUNKS_FOLDER, VECTORS_FOLDER, encoder_folder
from weft.indexes.settings import GraphIndexSettings, MergeSettings
from weft.indexes.shards import MapTasks, shard_folders
from weft.runtime.storage.run_files import Brought
from weft.runtime.storage.tables import Database, database, file_rows, glob_escaped, literal

OWN, ALL = "own", "all"
"""Where a table goes as a whole: nowhere else, or to every partition."""

_TO_ALL = "all.parquet"

_FOLDER = Path(__file__).parent
_STEP = re.compile(r"-- (\w+): [^\n]*\n(.*?;)\n", re.DOTALL)
_QUERIES = dict(step for path in sorted(_FOLDER.glob("*.sql")) for step in _STEP.findall(path.read_text("utf-8")))

_TABLES = (
    "chunks",
    "contents",
    "mentions",
    "documents",
    "rejected",
)  # of a shard; `stored_` and their names in queries


@dataclass(frozen=True, slots=True)
class GraphTask:
    """The graph of one staged generation, wherever it is built."""

    staging: Path
    work: Path  # folder for what is needed until the graph is complete
    contents: tuple[int, ...]  # how many each shard has
    chunks: tuple[int, ...]
    encoder: str | None  # whose vectors are used; None without any
    similar: tuple[Path, ...]  # files of all vectors, where contents are few enough to be compared one by one
    settings: GraphIndexSettings
    merge: MergeSettings
    earlier: Path | None = None  # the folder of the generation before, which says what degrees were

    @property
    def shards(self) -> list[Path]:
        """The folders of the shards."""
        return shard_folders(self.staging, len(self.contents))

    @property
    def reads(self) -> list[Brought]:
        """What its analysis reads of all shards."""
        graphs = [Brought(shard / GRAPH_FOLDER) for shard in self.shards]
        return [*graphs, *(Brought(shard / CHUNKS_FOLDER, ("contents.",)) for shard in self.shards)]


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """One partition in some rounds: the one of a shard, whose files it reads and writes."""

    graph: GraphTask
    number: int
    folder: Path  # of the shard
    begin: int  # the first round
    end: int  # and the one after the last
    received: Mapping[str, str]  # tables that were sent in the round before, and where their rows went
    sent: Mapping[str, str]  # and in the last of its own; of none after it the shard's graph is complete

    @property
    def vectors(self) -> Path:
        """The folder of the vectors of the shard's contents."""
        return self.folder / VECTORS_FOLDER / encoder_folder(self.graph.encoder or "")

    @property
    def reads(self) -> Iterator[Brought]:
        """What other partitions have sent here."""
        if not self.begin and not self.number:
            yield from map(Brought, self.graph.similar)
        for name, to in self.received.items():
            for other in self._others:
                if to == ALL:
                    yield Brought(self._table(name, other) / _TO_ALL)
                elif to != OWN:
                    yield Brought(self._table(name, other) / f"to={self.number}", optional=True)

    @property
    def writes(self) -> Iterator[Path]:
        """What it sends to others, and in the end its graph."""
        for name, to in self.sent.items():
            if to == ALL:
                yield self._table(name, self.number) / _TO_ALL
            elif to != OWN:
                yield from (self._table(name, self.number) / f"to={other}" for other in self._others)
        if not self.sent:
            yield self.folder / GRAPH_FOLDER

    @property
    def _others(self) -> list[int]:
        return [other for other in range(len(self.graph.contents)) if other != self.number]

    def _table(self, name: str, number: int) -> Path:
        return self.graph.work / name / f"{number:04d}"


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition at work."""

    connection: Database
    task: PartitionTask
    values: Mapping[str, object]  # what stands for the `$name`s of queries
    counts: Counter[str] = field(default_factory=Counter)  # of what it wrote

    @property
    def settings(self) -> GraphIndexSettings:
        """The graph's."""
        return self.task.graph.settings

    @property
    def first_row(self) -> int:
        """The row of its first content."""
        return sum(self.task.graph.contents[: self.task.number])

    @property
    def numbers(self) -> dict[str, object]:
        """What stands for `{name}`s, where no parameter can: in views, and where rows go."""
        task = self.task
        ends = list(accumulate(task.graph.contents))
        return {
            "partition": task.number,
            "partitions": len(ends),
            "ends": ends,
            "first_row": self.first_row,
            "end_row": ends[task.number],
        }

    def run(self, name: str) -> None:
        """Run a step that is a query, by its name."""
        query = _QUERIES[name].format_map(self.numbers)
        self.connection.execute(query, {key: self.values[key] for key in re.findall(r"\$(\w+)", query)})


Step = str | Callable[[Partition], None]
"""A query by its name, or a function."""


@dataclass(frozen=True, slots=True)
class Round:
    """Steps, and tables that are sent then, each with where its rows go: an expression, `OWN` or `ALL`."""

    steps: Sequence[Step]
    sent: Mapping[str, str]


def run_rounds(
    task: GraphTask, rounds: Sequence[Round], work: Callable[[PartitionTask], Counter[str]], run: MapTasks
) -> Counter[str]:
    """All rounds of all partitions, one task each by `work`; what they counted."""
    shutil.rmtree(task.work, ignore_errors=True)  # whatever a worker left that died over it
    task.work.mkdir(parents=True)
    together = len(rounds) if len(task.shards) == 1 else 1
    counts: Counter[str] = Counter()
    for begin in range(0, len(rounds), together):
        received = rounds[begin - 1].sent if begin else {}
        sent = rounds[begin + together - 1].sent
        tasks = [
            PartitionTask(task, number, folder, begin, begin + together, received, sent)
            for number, folder in enumerate(task.shards)
        ]
        for each in run(work, tasks):
            counts.update(each)
    return counts


def run_partition(task: PartitionTask, rounds: Sequence[Round], values: Mapping[str, object]) -> Counter[str]:
    """The rounds of a task; `values` stand for the `$name`s in queries. Running it again writes the same."""
    graph = task.graph
    scratch = graph.work / f"scratch-{task.number:04d}"
    with database(scratch, memory_mb=graph.merge.memory_mb, threads=graph.merge.threads) as connection:
        counts = {"chunks": graph.chunks, "contents": graph.contents}
        for name in _TABLES:
            file = task.folder / CHUNKS_FOLDER / f"{name}.parquet"
            file_rows(connection, f"stored_{name}", file, sum(counts.get(name, ())[: task.number]))
        partition = Partition(connection, task, values)
        for former in rounds[: task.begin]:
            _receive(partition, former.sent)
        for one in rounds[task.begin : task.end]:
            for step in one.steps:
                if isinstance(step, str):
                    partition.run(step)
                else:
                    step(partition)
        if task.end < len(rounds):
            _send(partition, rounds[task.end - 1].sent)
        return partition.counts


def _receive(partition: Partition, names: Iterable[str]) -> None:
    """Name the rows of tables that were sent here."""
    number = partition.task.number
    for name in names:
        folder = partition.task.graph.work / name
        sent = sorted([*folder.glob(f"*/{_TO_ALL}"), *folder.glob(f"*/to={number}/*.parquet")])
        files = ", ".join(literal(glob_escaped(file)) for file in (folder / f"{number:04d}" / "own.parquet", *sent))
        partition.connection.execute(f"CREATE VIEW {name} AS FROM read_parquet([{files}], hive_partitioning = false)")


def _send(partition: Partition, sent: Mapping[str, str]) -> None:
    for name, to in sent.items():
        folder = partition.task.graph.work / name / f"{partition.task.number:04d}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        # Rows that stay here, perhaps none: these still say which columns there are.
        _copy(partition, f"FROM {name}" if to == OWN else f"FROM {name} LIMIT 0", folder / "own.parquet")
        if to == ALL:
            _copy(partition, f"FROM {name}", folder / _TO_ALL)
        elif to != OWN:
            rows = f'SELECT *, {to.format_map(partition.numbers)} AS "to" FROM {name}'  # noqa: S608  # our own names
            _copy(partition, rows, folder, ', PARTITION_BY ("to"), OVERWRITE_OR_IGNORE')


def _copy(partition: Partition, query: str, path: Path, options: str = "") -> None:
    partition.connection.execute(f"COPY ({query}) TO {literal(str(path))} (FORMAT parquet{options})")
