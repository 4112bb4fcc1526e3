"""Work over all shards in rounds, so that no task reads or writes everything (SCL-9).

A round is steps that every partition runs over its own tables, and tables that it sends then: each row to the partition
that an expression of the row says, to all of them, or to itself, for later. A task is one partition in a round, with a
database of its own in memory. Where there is one partition, all rounds are one task: what is sent is there already.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import pyarrow.parquet as pq

from weft.indexes.dense.vectors import DenseIndex, open_dense
from weft.indexes.manifest import CHUNKS_FOLDER, VECTORS_FOLDER, DenseFacts, encoder_folder, tables_of
from weft.indexes.settings import GraphIndexSettings, MergeSettings
from weft.indexes.shards import MapTasks, shards_of
from weft.runtime.storage.tables import Database, database, file_rows, glob_escaped, literal

OWN, ALL = "own", "all"
"""Where a table goes as a whole: nowhere else, or to every partition."""

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
    dense: Mapping[str, DenseFacts]  # how the vectors of each encoder are searched; the first one's are used
    settings: GraphIndexSettings
    merge: MergeSettings
    earlier: Path | None = None  # the folder of the generation before, which says what degrees were

    def vectors(self) -> DenseIndex | None:
        """The vectors of all contents; None without any."""
        if not self.dense:
            return None
        encoder = min(self.dense)
        folders = [shard / VECTORS_FOLDER / encoder_folder(encoder) for shard in shards_of(self.staging)]
        return open_dense(folders, self.dense[encoder])


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """One partition in some rounds: the one of a shard, whose files it reads and writes."""

    graph: GraphTask
    number: int
    folder: Path  # of the shard
    contents: tuple[int, ...]  # how many each shard has
    chunks: tuple[int, ...]
    begin: int  # the first round
    end: int  # and the one after the last


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
    def numbers(self) -> dict[str, object]:
        """What stands for `{name}`s, where no parameter can: in views, and where rows go."""
        task = self.task
        ends = list(accumulate(task.contents))
        first = ends[task.number] - task.contents[task.number]
        return {
            "partition": task.number,
            "partitions": len(ends),
            "ends": ends,
            "first_row": first,
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
    shards = shards_of(task.staging)
    contents, chunks = (
        tuple(pq.read_metadata(file).num_rows for file in tables_of(task.staging, name))
        for name in ("contents", "chunks")
    )
    shutil.rmtree(task.work, ignore_errors=True)  # whatever a worker left that died over it
    task.work.mkdir(parents=True)
    together = len(rounds) if len(shards) == 1 else 1
    counts: Counter[str] = Counter()
    for begin in range(0, len(rounds), together):
        tasks = [
            PartitionTask(task, number, folder, contents, chunks, begin, begin + together)
            for number, folder in enumerate(shards)
        ]
        for each in run(work, tasks):
            counts.update(each)
    return counts


def run_partition(task: PartitionTask, rounds: Sequence[Round], values: Mapping[str, object]) -> Counter[str]:
    """The rounds of a task; `values` stand for the `$name`s in queries. Running it again writes the same."""
    graph = task.graph
    scratch = graph.work / f"scratch-{task.number:04d}"
    with database(scratch, memory_mb=graph.merge.memory_mb, threads=graph.merge.threads) as connection:
        counts = {"chunks": task.chunks, "contents": task.contents}
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
        sent = sorted([*folder.glob("*/all.parquet"), *folder.glob(f"*/to={number}/*.parquet")])
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
            _copy(partition, f"FROM {name}", folder / "all.parquet")
        elif to != OWN:
            rows = f'SELECT *, {to.format_map(partition.numbers)} AS "to" FROM {name}'  # noqa: S608  # our own names
            _copy(partition, rows, folder, ', PARTITION_BY ("to"), OVERWRITE_OR_IGNORE')


def _copy(partition: Partition, query: str, path: Path, options: str = "") -> None:
    partition.connection.execute(f"COPY ({query}) TO {literal(str(path))} (FORMAT parquet{options})")
