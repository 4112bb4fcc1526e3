"""Dense search over stored vectors: exact for small corpora, else IVF-PQ with a refine stage (ING-22).

FAISS proposes candidates; every score that leaves this module is the cosine of the stored float16 vectors, so it does
not depend on which index proposed it.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import faiss
import numpy as np

from weft.domain.errors import CorruptionError
from weft.indexes.dense.isolation import read_isolation
from weft.indexes.dense.samples import (
    VECTORS_FILE,
    mapped_vectors,
    read_samples,
    sample_vectors,
    unit,
    write_samples,
)
from weft.indexes.manifest import DenseFacts
from weft.indexes.rows import RowSet, evenly_spaced
from weft.indexes.settings import VectorSettings
from weft.indexes.shards import MapTasks, Numbering, Stacked, await_all, stacked, take_over
from weft.runtime.storage.run_files import Brought

FAISS_FILE = "index.faiss"
_CODES = 256  # of one byte: training them takes as many vectors at least
_GPU_CODES = frozenset({1, 2, 3, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96})  # bytes of code that a GPU takes
_CODE_BITS = 8  # one byte per code: the only width FAISS scans with its fast tables


@dataclass(frozen=True, slots=True)
class IvfPqTuning:
    """How IVF-PQ indexes are trained and tuned; part of the content hash of a generation."""

    recall_depth: int = 10  # results compared per sampled vector
    recall_sample: int = 512  # stored vectors searched as queries, evenly spaced over the rows
    recall_margin: float = 0.005  # above the target on the sample: queries that are not stored find a little less
    lists_per_root: float = 4.0  # inverted lists = this × √contents, the usual range being 4 to 16
    points_per_list: int = 39  # fewest training points per list for which k-means gives steady centroids
    training_points_per_list: int = 128  # training sample = this × lists; more changes centroids little
    training_points_per_code: int = 40  # training points for each of the 256 codes of a byte; time grows with it
    training_rounds: int = 12  # k-means iterations of lists and codes
    dimensions_per_code: int = 8  # numbers that share one byte of code, at most; fewer when recall stays short
    probe_share: float = 0.02  # part of the lists visited at first
    probe_growth: float = 1.5  # factor by which probes are raised until the target is met
    refine_factor: int = 8  # candidates re-scored = this × results asked for; doubled when recall stays short
    max_refine_factor: int = 32  # beyond it more lists are visited instead
    outgrown: float = 2.0  # times as many or as few lists as a corpus asks for: inherited quantisers serve up to this
    seed: int = 1234  # of k-means, so that the same vectors give the same index


TUNING = IvfPqTuning()


class Near(NamedTuple):
    """What one index, or one part of it, finds near a query."""

    rows: np.ndarray  # int64 (n,), by cosine, best first, ties by row
    cosines: np.ndarray  # float32 (n,)
    closeness: np.ndarray | None  # how close FAISS takes them to be, float32 (n,); None where all are compared
    reach: np.ndarray | None  # the closeness of all that were compared, however near they are
    compared: int  # how many of all parts together are compared

    def moved(self, rows: int) -> Near:
        """The same, numbered among all contents."""
        return self._replace(rows=self.rows + rows)


def merged_near(parts: Sequence[Near], k: int) -> Near:
    """What is near in any part: the k nearest of those that one index of all would have compared."""
    rows, cosines = (np.concatenate([getattr(near, name) for near in parts]) for name in ("rows", "cosines"))
    closeness = reach = None
    reaches = [near.reach for near in parts if near.reach is not None]
    if len(reaches) == len(parts):
        reach = np.sort(np.concatenate(reaches))[::-1][: parts[0].compared]
        closeness = np.concatenate([near.closeness for near in parts if near.closeness is not None])
        some = closeness >= reach[-1:].min(initial=np.inf)
        rows, cosines, closeness = rows[some], cosines[some], closeness[some]
    order = np.lexsort((rows, -cosines))[:k]
    return Near(rows[order], cosines[order], None if closeness is None else closeness[order], reach, parts[0].compared)


def hits_of(nears: Sequence[Near], k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, int64 (n, k), and cosines, float32 (n, k), of n queries; row −1 with cosine −1 pads."""
    rows = np.full((len(nears), k), -1, dtype=np.int64)
    cosines = np.full((len(nears), k), -1.0, dtype=np.float32)
    for at, near in enumerate(nears):
        rows[at, : len(near.rows)], cosines[at, : len(near.rows)] = near.rows[:k], near.cosines[:k]
    return rows, cosines


def _of_share(count: int, share: float) -> int:
    """How many of so many may lie in a share of the contents: rows are ordered by hash, so that any part has its share.

    Six standard deviations above the mean: once in a billion there are more.
    """
    return min(count, math.ceil(count * share + 6.0 * math.sqrt(count * share * (1.0 - share))))


class DenseIndex:
    """Nearest contents by cosine; immutable and safe to share between threads."""

    def __init__(
        self,
        stored: Any,
        facts: DenseFacts,
        approximate: Any | None = None,
        *,
        isolation: np.ndarray | None = None,
    ) -> None:
        """Take float16 (n, dimension) vectors, the isolation of each, float32 (n,), and for "ivfpq" FAISS's index."""
        self.facts = facts
        self.isolation = isolation
        self._stored = stored
        self._approximate = approximate

    @cached_property
    def _exact(self) -> np.ndarray | None:
        """All vectors, where they are compared one by one; made when something is first searched."""
        if self._approximate is not None:
            return None
        exact = np.empty(self._stored.shape, dtype=np.float32)
        for start in range(0, len(exact), _ROWS_TOGETHER):
            exact[start : start + _ROWS_TOGETHER] = unit(self._stored[start : start + _ROWS_TOGETHER])
        return exact

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Stored vectors of some rows, as `vectors` gives them, for who looks at all of them once."""
        some = unit(self._stored[rows])
        for array in self._stored.arrays if isinstance(self._stored, Stacked) else [self._stored]:
            if isinstance(file := getattr(array.base, "_mmap", None), mmap.mmap):
                file.madvise(mmap.MADV_DONTNEED)
        return some

    def search(self, vectors: np.ndarray, k: int, among: RowSet | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest contents of each query among some: rows, int64 (n, k), and cosines, best first, ties by row.

        Row −1 with cosine −1 pads.
        """
        queries = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
        if queries.shape[1] != self.facts.dimension or k < 1:
            raise ValueError(f"expected (n, {self.facts.dimension}) vectors and k >= 1, got {queries.shape} and {k}")
        return hits_of(self.nearest(queries, k, among), k)

    def nearest(
        self, vectors: np.ndarray, k: int, among: RowSet | None = None, *, of: tuple[int, int] | None = None
    ) -> list[Near]:
        """The nearest of each query, as `search` has them.

        Args:
            of: How many contents there are in all, and may match, where these are some of them.
        """
        queries = unit(np.asarray(vectors, dtype=np.float32))
        near = []
        for at, (candidates, reach) in enumerate(self._candidates(queries, k, among, of)):
            rows, cosines = self.refined(queries[at], candidates, k)
            closeness = None
            if reach is not None:
                order = np.argsort(candidates)
                closeness = reach[order[np.searchsorted(candidates, rows, sorter=order)]]
            near.append(Near(rows, cosines, closeness, reach, k * self.facts.refine_factor))
        return near

    def near_pairs(self, k: int, least: float) -> Iterator[tuple[int, int, float]]:
        """(row, other row, cosine) of the k nearest others of each row, as far as their cosine is at least `least`."""
        unit = self.vectors(np.arange(len(self))) if self._exact is None else self._exact
        for start in range(0, len(unit), _ROWS_TOGETHER):
            for row, similarities in enumerate(unit[start : start + _ROWS_TOGETHER] @ unit.T, start):
                # Products of matrices round by their shape: single precision proposes a little more, double decides.
                near = np.flatnonzero(similarities >= np.float32(least) - _ROUNDING)
                others, cosines = self.refined(unit[row], near[near != row], k)
                pairs = zip(others.tolist(), cosines.tolist(), strict=True)
                yield from ((row, other, cosine) for other, cosine in pairs if cosine >= least)

    def vectors(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """Stored vectors of some rows: float32 (n_rows, dimension), unit rows."""
        return unit(self._stored[np.asarray(rows, dtype=np.int64)])

    def _candidates(
        self, queries: np.ndarray, k: int, among: RowSet | None, of: tuple[int, int] | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Rows that may be among the nearest of each query, and how close FAISS takes them to be, the closest first."""
        own = len(self) if among is None else len(among)
        contents, size = of or (len(self), own)
        wanted = min(own, k * self.facts.refine_factor)
        if not wanted:
            return iter([(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))] * len(queries))
        if self._exact is not None:
            if among is None:
                return ((near, None) for near in self._nearest(queries, self._exact, wanted))
            return ((among.rows[near], None) for near in self._nearest(queries, self._exact[among.rows], wanted))
        # Visiting a share of the lists compares that share of all vectors: no fewer than a small set has.
        if among is not None and size * self.facts.lists <= contents * self.facts.probes:
            return ((among.rows[near], None) for near in self._nearest(queries, self.vectors(among.rows), wanted))
        index: Any = self._approximate
        wanted = min(own, _of_share(min(size, k * self.facts.refine_factor), len(self) / contents))
        closeness, rows = index.search(queries, wanted, params=self._visits(among, contents / size))
        return ((some[some >= 0], close[some >= 0]) for some, close in zip(rows, closeness, strict=True))

    def _visits(self, among: RowSet | None, fewer: float) -> Any:
        """How FAISS searches: the fewer contents are allowed, the more lists, so that as many of them are met."""
        if among is None:
            return faiss.SearchParametersIVF(nprobe=self.facts.probes)  # type: ignore[call-arg]
        probes = min(self.facts.lists, math.ceil(self.facts.probes * fewer))
        allowed = faiss.IDSelectorBitmap(np.packbits(among.mask, bitorder="little"))  # type: ignore[call-arg,arg-type]
        return faiss.SearchParametersIVF(nprobe=probes, sel=allowed)  # type: ignore[call-arg]

    @staticmethod
    def _nearest(queries: np.ndarray, exact: np.ndarray, wanted: int) -> Iterator[np.ndarray]:
        for start in range(0, len(queries), _QUERY_BLOCK):
            for similarities in np.ascontiguousarray((exact @ queries[start : start + _QUERY_BLOCK].T).T):
                # All rows that tie with the last place compete, so that neither rounding nor partition decides.
                limit = np.partition(similarities, -wanted)[-wanted]
                yield np.flatnonzero(similarities >= limit - _ROUNDING)

    def refined(self, query: np.ndarray, candidates: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest of some rows to a unit vector: rows and cosines, as `search` has them."""
        rows = candidates
        stored = self._stored[rows].astype(np.float32)
        if len(rows) > k:
            near = _closest(query, stored, k)
            rows, stored = rows[near], stored[near]
        # Double precision now, so that the single-precision score is the same in whatever order it was summed.
        cosines = _cosines(query.astype(np.float64), stored.astype(np.float64)).astype(np.float32)
        order = np.lexsort((rows, -cosines))[:k]
        return rows[order], cosines[order]


def _closest(query: np.ndarray, stored: np.ndarray, k: int) -> np.ndarray:
    """Which ones single precision cannot rule out from the k nearest: all but a few of many are far off."""
    cosines = _cosines(query, stored)
    limit = np.partition(cosines, -k)[-k]
    return np.flatnonzero(cosines >= limit - _ROUNDING)


def _cosines(query: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Of a unit vector to vectors of any length, 0 to those of none."""
    lengths = np.sqrt(np.einsum("ij,ij->i", stored, stored))
    cosines: np.ndarray = (stored @ query) / np.where(lengths > 0.0, lengths, 1.0).astype(stored.dtype)
    return cosines


_ROWS_TOGETHER = 512  # rows compared with all others at once: products of 64 take twice as long
_QUERY_BLOCK = 64  # queries multiplied at once: bounds memory, changes nothing else
_SPARE = 8  # more than asked for that single precision proposes
_ROUNDING = np.float32(1e-5)  # bounds single-precision rounding of a cosine: 384 products of at most 2^-24 each


def build_dense(folder: Path, stored: np.ndarray, settings: VectorSettings) -> DenseFacts:
    """Write float16 (n, dimension) vectors of one encoder, row = contents row, and index them; see `index_vectors`."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / VECTORS_FILE, stored)
    with TemporaryDirectory() as work:
        return index_vectors(StoredVectors((folder,), (len(stored),), stored.shape[1]), settings, Path(work))


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Vectors of one encoder that share quantisers."""

    folders: tuple[Path, ...]  # a shard's each
    counts: tuple[int, ...]  # how many it has
    dimension: int


@dataclass(frozen=True, slots=True)
class TrainedIndex:
    """An index of the same encoder over another corpus."""

    index: Path
    probes: int  # lists that were visited for its target
    share: float = 1.0  # of the contents at hand that its quantisers were trained on
    # by folder of vectors that are the same in that corpus, their index there
    filled: Mapping[Path, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrainTask:
    """Quantisers to be trained, or taken over."""

    out: Path  # the trained index without any vector
    count: int  # of all contents
    dimension: int
    codes: int  # bytes of code per vector; 0 of quantisers that were trained before
    samples: tuple[Path, ...]  # files of the vectors to train on
    trained: TrainedIndex | None
    on_gpu: bool  # whether a GPU trains and fills

    @property
    def reads(self) -> list[Brought]:
        """The vectors to train on."""
        return [Brought(file) for file in self.samples]

    @property
    def writes(self) -> list[Path]:
        """The trained index."""
        return [self.out]


@dataclass(frozen=True, slots=True)
class FillTask:
    """One shard whose vectors are added to a trained index."""

    folder: Path
    number: int
    quantisers: Path
    same: Path | None  # its index of before, where nothing in it would change
    on_gpu: bool

    @property
    def reads(self) -> list[Brought]:
        """The trained index."""
        return [Brought(self.quantisers)]


@dataclass(frozen=True, slots=True)
class NearTask:
    """What is near to some vectors in one shard."""

    folder: Path
    number: int
    facts: DenseFacts  # how it is searched
    queries: np.ndarray
    k: int
    of: int  # contents of all shards


def index_vectors(
    vectors: StoredVectors,
    settings: VectorSettings,
    work: Path,
    *,
    trained: TrainedIndex | None = None,
    run: MapTasks = map,
    on_gpus: MapTasks | None = None,
) -> DenseFacts:
    """Index vectors: above the exact limit with an index for each shard that reaches the target recall.

    All shards have the same quantisers, trained on an even sample over all rows (SCL-7), and are filled side by side.
    Refine factor and probes are raised until the measured recall reaches the target, then finer codes are trained; else
    search stays exact.

    Args:
        work: A folder for what is needed meanwhile.
        on_gpus: Runs tasks that hold a GPU each, of which FAISS makes use: these train and fill (SCL-15). Their bits
            need not be those of a CPU. None where there is no such GPU.
    """
    count, dimension = sum(vectors.counts), vectors.dimension
    exact = DenseFacts(dimension=dimension, kind="exact")
    if count < max(settings.exact_below, _CODES):
        return exact
    samples: tuple[Path, ...] = ()
    fills: list[FillTask] = []
    # Cheap to costly, and the first that reaches the target is taken: what it costs to search is decided here, once.
    for codes in [*([0] if trained else []), *_code_sizes(count, dimension, settings)]:
        if codes and not samples:
            some = evenly_spaced(count, _lists(count) * TUNING.training_points_per_list)
            samples = write_samples(vectors.folders, vectors.counts, some, work / "sampled", run)
        task = TrainTask(
            work / f"quantisers-{codes}.faiss", count, dimension, codes, samples, trained, on_gpus is not None
        )
        (facts,) = (on_gpus or run)(_train, [task])
        if facts is None:
            continue
        filled = {} if trained is None or codes else trained.filled
        fills = [
            FillTask(folder, number, task.out, filled.get(folder), task.on_gpu)
            for number, folder in enumerate(vectors.folders)
        ]
        await_all((on_gpus or run)(_fill, fills))
        tuned = _tuned(vectors, facts, trained if trained and not codes else None, settings, run)
        if tuned is not None:
            device = "cuda" if _takes_gpu(tuned.codes, on_gpu=task.on_gpu) else "cpu"
            return tuned.model_copy(update={"device": device})
    await_all(run(_emptied, fills))
    return exact


def _train(task: TrainTask) -> DenseFacts | None:
    """Write the trained index without any vector, and tell of it; a corpus may have outgrown what it has."""
    with _all_threads():
        index = _trained(task) if task.codes else _inherited(task)
    if index is None:
        return None
    task.out.parent.mkdir(parents=True, exist_ok=True)
    faiss.write_index(index, str(task.out))
    return DenseFacts(dimension=index.d, kind="ivfpq", lists=index.nlist, codes=index.pq.M)


def _fill(task: FillTask) -> None:
    """Write the index of one shard; of one that is as it was, with the same quantisers, it is taken over."""
    _emptied(task)  # of coarser codes, which was not good enough
    if task.same is not None:
        take_over(task.same.parent, task.folder, [task.same.name])
        return
    index = _placed(faiss.read_index(str(task.quantisers)), on_gpu=task.on_gpu)
    stored = mapped_vectors(task.folder)
    with _all_threads():
        for start in range(0, len(stored), _ADD_ROWS):
            index.add(unit(stored[start : start + _ADD_ROWS]))
    faiss.write_index(_on_cpu(index), str(task.folder / FAISS_FILE))


def _emptied(task: FillTask) -> None:
    (task.folder / FAISS_FILE).unlink(missing_ok=True)


def _tuned(
    vectors: StoredVectors, index: DenseFacts, trained: TrainedIndex | None, settings: VectorSettings, run: MapTasks
) -> DenseFacts | None:
    """The least effort that reaches the target over all shards; None where none does."""
    count = sum(vectors.counts)
    most, share = index.lists, 1.0
    if trained is not None:
        most, share = math.ceil(trained.probes * TUNING.probe_growth), trained.share
    sample = evenly_spaced(count, TUNING.recall_sample)
    queries = unit(sample_vectors(vectors.folders, vectors.counts, sample, run))

    def neighbours(near: Callable[[NearTask], list[Near]], facts: DenseFacts) -> list[set[int]]:
        # One more than compared: a stored vector's nearest is itself, which every index finds.
        k = TUNING.recall_depth + 1
        tasks = [NearTask(folder, number, facts, queries, k, count) for number, folder in enumerate(vectors.folders)]
        firsts = Numbering(vectors.counts).firsts.tolist()
        by_shard = [[one.moved(first) for one in each] for first, each in zip(firsts, run(near, tasks), strict=True)]
        nearest = [merged_near(nears, k).rows for nears in zip(*by_shard, strict=True)]
        return [set(rows.tolist()) - {int(own)} for own, rows in zip(sample, nearest, strict=True)]

    truth = neighbours(_exactly_near, index)
    for facts in _efforts(index, most):
        recall = _recall(neighbours(_near, facts), truth)
        if recall >= settings.target_recall + TUNING.recall_margin:
            return facts.model_copy(update={"recall": recall, "trained_on": share})
    return None


def _near(task: NearTask) -> list[Near]:
    with _all_threads():
        approximate = faiss.read_index(str(task.folder / FAISS_FILE))
        index = DenseIndex(mapped_vectors(task.folder), task.facts, approximate)
        return index.nearest(task.queries, task.k, of=(task.of, task.of))


def _exactly_near(task: NearTask) -> list[Near]:
    """The same by comparing everything, block by block."""
    stored, most = mapped_vectors(task.folder), task.k + _SPARE
    best = np.full((len(task.queries), most), -np.inf, dtype=np.float32)
    rows = np.full((len(task.queries), most), -1, dtype=np.int64)
    for start in range(0, len(stored), _ADD_ROWS):
        similarities = task.queries @ unit(stored[start : start + _ADD_ROWS]).T
        # The best so far compete with every block: memory is that of a block, and the result that of all at once.
        places = np.arange(start, start + similarities.shape[1])
        places = np.concatenate([rows, np.broadcast_to(places, similarities.shape)], axis=1)
        similarities = np.concatenate([best, similarities], axis=1)
        nearest = np.argpartition(-similarities, most - 1, axis=1)[:, :most]
        best, rows = np.take_along_axis(similarities, nearest, axis=1), np.take_along_axis(places, nearest, axis=1)
    # Single precision proposes a little more, double decides: for any number of shards it is the same.
    index = DenseIndex(stored, task.facts)
    nearby = (index.refined(query, own[own >= 0], task.k) for query, own in zip(task.queries, rows, strict=True))
    return [Near(own, cosines, None, None, task.k) for own, cosines in nearby]


def has_gpu(_: object = None) -> bool:
    """Whether this process has a GPU that FAISS computes on: its build for GPUs is installed, and finds one."""
    return hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0


def _takes_gpu(codes: int, *, on_gpu: bool) -> bool:
    return on_gpu and codes in _GPU_CODES


def _placed(index: Any, *, on_gpu: bool) -> Any:
    """An index where it is trained and filled: on the GPU that the process holds, unless that takes no such codes."""
    if not _takes_gpu(index.pq.M, on_gpu=on_gpu):
        return index
    options = faiss.GpuClonerOptions()
    options.useFloat16 = True  # of tables for searches, which nothing uses: those of more codes fit into its memory
    return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index, options)


def _on_cpu(index: Any) -> Any:
    return index if isinstance(index, faiss.IndexIVFPQ) else faiss.index_gpu_to_cpu(index)


@contextmanager
def _all_threads() -> Iterator[None]:
    """A thread for each CPU, on which no result depends: a task of Ray has one, unless it is told."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(len(os.sched_getaffinity(0)))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _stored_in(folders: Sequence[Path]) -> Any:
    return stacked([mapped_vectors(folder) for folder in folders])


def _read_filled(folders: Sequence[Path]) -> Any:
    """The indexes of all shards as one: its lists hold vectors in the order of rows, as if they were filled at once."""
    index, *others = [faiss.read_index(str(folder / FAISS_FILE)) for folder in folders]
    for other in others:
        index.merge_from(other, index.ntotal)
    return index


def open_dense(folders: Sequence[Path], facts: DenseFacts) -> DenseIndex:
    """Open one encoder's vectors in the folders of all shards: memory-mapped, with the index that `facts` names."""
    try:
        stored = _stored_in(folders)
        approximate = _read_filled(folders) if facts.kind == "ivfpq" else None
        isolation = read_isolation(folders)
    except (ValueError, RuntimeError) as error:
        raise CorruptionError(
            f"{folders[0]}: expected readable vectors, found: {error}; rebuild or roll back"
        ) from error
    actual = (stored.dtype, stored.shape[1:], None if approximate is None else approximate.ntotal)
    expected = (np.dtype(np.float16), (facts.dimension,), None if approximate is None else len(stored))
    if actual != expected:
        raise CorruptionError(f"{folders[0]}: expected (type, shape, indexed) {expected}, found {actual}; rebuild")
    if isolation is not None and isolation.shape != (len(stored),):
        raise CorruptionError(
            f"{folders[0]}: expected the isolation of {len(stored)} vectors, found {isolation.shape}; rebuild"
        )
    return DenseIndex(stored, facts, approximate, isolation=isolation)


def _inherited(task: TrainTask) -> Any | None:
    """An empty index with the quantisers of another one, unless the corpus has outgrown its lists."""
    if task.trained is None or not task.trained.index.exists():
        return None
    index: Any = faiss.read_index(str(task.trained.index))
    wanted = _lists(task.count)
    # Within a factor of `outgrown` of as many lists as the corpus asks for, either way.
    if index.d != task.dimension or not wanted <= index.nlist * TUNING.outgrown <= wanted * TUNING.outgrown**2:
        return None
    index.reset()
    return index


def _trained(task: TrainTask) -> Any:
    lists, dimension = _lists(task.count), task.dimension
    centres = faiss.IndexFlatIP(dimension)
    own = faiss.IndexIVFPQ(centres, dimension, lists, task.codes, _CODE_BITS, faiss.METRIC_INNER_PRODUCT)
    index = _placed(own, on_gpu=task.on_gpu)
    for clustering in (index.cp, index.pq.cp):
        clustering.seed = TUNING.seed
        clustering.niter = TUNING.training_rounds
        clustering.min_points_per_centroid = 1
    index.pq.cp.max_points_per_centroid = TUNING.training_points_per_code
    index.train(unit(read_samples(task.samples)))
    return _on_cpu(index)


_ADD_ROWS = 65_536  # rows turned to float32 at once while adding: bounds memory, changes nothing else


def _lists(count: int) -> int:
    return max(1, min(round(TUNING.lists_per_root * math.sqrt(count)), count // TUNING.points_per_list))


def _code_sizes(count: int, dimension: int, settings: VectorSettings) -> Iterator[int]:
    """Bytes of code per vector, coarse to fine, within the memory that id, code and share of the centroids may take."""
    shared = 4 * dimension * (_lists(count) + _CODES) / count
    for width in range(TUNING.dimensions_per_code, 0, -1):
        if dimension % width == 0 and dimension // width + _ID_BYTES + shared <= settings.bytes_per_vector:
            yield dimension // width


_ID_BYTES = 8


def _efforts(index: DenseFacts, most: int) -> Iterator[DenseFacts]:
    """Search efforts, cheap to costly: re-scoring more is tried before visiting more lists, `most` at last."""
    probes = max(1, math.ceil(TUNING.probe_share * index.lists))
    while True:
        refine = TUNING.refine_factor
        while refine <= TUNING.max_refine_factor:
            yield index.model_copy(update={"probes": probes, "refine_factor": refine})
            refine *= 2
        if probes >= most:
            return
        probes = min(most, math.ceil(probes * TUNING.probe_growth))


def _recall(neighbours: Sequence[set[int]], truth: Sequence[set[int]]) -> float:
    expected = sum(len(nearest) for nearest in truth)
    return sum(len(ours & nearest) for ours, nearest in zip(neighbours, truth, strict=True)) / max(1, expected)
