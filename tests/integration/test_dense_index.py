from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
import pytest

from weft.domain.errors import CorruptionError
from weft.indexes.dense.vectors import DenseIndex, StoredVectors, TrainedIndex, build_dense, index_vectors, open_dense
from weft.indexes.manifest import DenseFacts
from weft.indexes.rows import RowSet
from weft.indexes.settings import VectorSettings
from weft.settings import load_settings

CONTENTS, DIMENSION = 20_000, 32


def settings(**changes: object) -> VectorSettings:
    return load_settings(environment={}).index.vectors.model_copy(update=changes)


def clustered(count: int, seed: int) -> np.ndarray:
    """float32 unit vectors around 300 centres: what texts on a few hundred topics look like."""
    centres = np.random.default_rng(7).normal(size=(300, DIMENSION))
    rng = np.random.default_rng(seed)
    vectors = centres[rng.integers(0, 300, count)] + 0.6 * rng.normal(size=(count, DIMENSION))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def brute_force(stored: np.ndarray, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    exact = stored.astype(np.float64)
    cosines = queries.astype(np.float64) @ (exact / np.linalg.norm(exact, axis=1, keepdims=True)).T
    rows = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return rows, np.take_along_axis(cosines, rows, axis=1)


@pytest.fixture(scope="module")
def stored() -> np.ndarray:
    return clustered(CONTENTS, seed=1).astype(np.float16)


@pytest.fixture(scope="module")
def built(stored: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DenseFacts]:
    folder = tmp_path_factory.mktemp("ivfpq")
    return folder, build_dense(folder, stored, settings(exact_below=1_000))


def test_recall_at_10_reaches_its_target(stored: np.ndarray, built: tuple[Path, DenseFacts]) -> None:
    """ING-22: IVF-PQ with refine finds at least 95 % of the exact top ten, for queries that are not in the index."""
    folder, facts = built
    queries = clustered(300, seed=2)
    rows, _ = open_dense([folder], facts).search(queries, 10)
    truth, _ = brute_force(stored, queries, 10)
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(rows.tolist(), truth.tolist(), strict=True)])
    assert (facts.kind, len(np.load(folder / "vectors.npy"))) == ("ivfpq", CONTENTS)
    assert recall >= 0.95
    assert facts.recall >= 0.95


def test_quantisers_are_trained_once(stored: np.ndarray, built: tuple[Path, DenseFacts], tmp_path: Path) -> None:
    """ING-22: vectors come and go while the quantisers of the generation before serve, within the target."""
    folder, facts = built
    fewer = np.delete(stored, np.s_[::10], axis=0)
    np.save(tmp_path / "vectors.npy", fewer)
    again = index_vectors(
        StoredVectors((tmp_path,), (len(fewer),), DIMENSION),
        settings(exact_below=1_000),
        tmp_path / "work",
        trained=TrainedIndex(folder / "index.faiss", facts.probes),
    )
    before, after = (faiss.read_index(str(path / "index.faiss")) for path in (folder, tmp_path))
    assert again.recall >= 0.95
    assert after.ntotal == len(fewer)
    assert np.array_equal(_centroids(before), _centroids(after))


@pytest.mark.slow
def test_quantisers_that_do_not_serve_any_more_are_trained_anew(stored: np.ndarray, tmp_path: Path) -> None:
    """ING-22: the health guard measures recall at every build; another kind of vectors asks for other quantisers."""
    flat = stored.copy()
    flat[:, 4:] = 0  # another corpus, in four dimensions
    old = build_dense(tmp_path / "old", flat, settings(exact_below=1_000))
    (tmp_path / "new").mkdir()
    np.save(tmp_path / "new" / "vectors.npy", stored)
    trained = TrainedIndex(tmp_path / "old" / "index.faiss", old.probes)
    vectors = StoredVectors((tmp_path / "new",), (len(stored),), DIMENSION)
    facts = index_vectors(vectors, settings(exact_below=1_000), tmp_path / "work", trained=trained)
    before, after = (faiss.read_index(str(tmp_path / name / "index.faiss")) for name in ("old", "new"))
    assert (facts.kind, facts.recall >= 0.95) == ("ivfpq", True)
    assert not np.array_equal(_centroids(before), _centroids(after))


def _centroids(index: faiss.IndexIVFPQ) -> np.ndarray:
    return index.quantizer.reconstruct_n(0, index.nlist)


def test_an_index_stays_within_its_memory(stored: np.ndarray, built: tuple[Path, DenseFacts]) -> None:
    """ING-22: codes, ids and centroids together take at most the bytes per vector that are configured."""
    size = (built[0] / "index.faiss").stat().st_size
    assert size / CONTENTS <= settings().bytes_per_vector


def test_scores_are_the_cosines_of_the_stored_vectors(stored: np.ndarray, built: tuple[Path, DenseFacts]) -> None:
    """ING-22: candidates are re-scored exactly, so that scores do not depend on codes or probes."""
    queries = clustered(20, seed=3)
    rows, cosines = open_dense([built[0]], built[1]).search(queries, 10)
    exact = stored[rows].astype(np.float64)
    expected = np.einsum("qd,qkd->qk", queries.astype(np.float64), exact) / np.linalg.norm(exact, axis=2)
    np.testing.assert_allclose(cosines, expected, atol=1e-6)
    assert (np.diff(cosines, axis=1) <= 0).all()


def test_the_same_vectors_give_the_same_files(
    stored: np.ndarray, built: tuple[Path, DenseFacts], tmp_path: Path
) -> None:
    """ARC-9: training and adding are deterministic, whatever the number of threads."""
    threads = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(1)
        facts = build_dense(tmp_path, stored, settings(exact_below=1_000))
    finally:
        faiss.omp_set_num_threads(threads)
    assert facts == built[1]
    assert (tmp_path / "index.faiss").read_bytes() == (built[0] / "index.faiss").read_bytes()


def test_exact_search_is_brute_force(stored: np.ndarray, tmp_path: Path) -> None:
    """ING-22: small corpora are searched exactly, one query at a time or many at once."""
    facts = build_dense(tmp_path, stored[:900], settings(exact_below=1_000))
    index = open_dense([tmp_path], facts)
    queries = clustered(70, seed=4)
    rows, cosines = index.search(queries, 12)
    truth, expected = brute_force(stored[:900], queries, 12)
    assert (facts.kind, facts.recall) == ("exact", 1.0)
    np.testing.assert_array_equal(rows, truth)
    np.testing.assert_allclose(cosines, expected, atol=1e-6)
    singly = [index.search(query, 12) for query in queries]
    np.testing.assert_array_equal(np.concatenate([one for one, _ in singly]), rows)
    np.testing.assert_array_equal(np.concatenate([one for _, one in singly]), cosines)


def test_half_precision_is_read_exactly() -> None:
    """ING-22: every finite number, its sign included, whatever lies between in memory."""
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = every[np.isfinite(every)][:, None]
    pairs = np.hstack([halves, np.ones_like(halves)])
    index = DenseIndex(pairs, DenseFacts(dimension=2, kind="ivfpq"), approximate=object())
    plain = pairs.astype(np.float32)
    assert np.array_equal(index.vectors(range(len(pairs))), plain / np.linalg.norm(plain, axis=1, keepdims=True))


def test_ties_go_by_row_and_missing_places_are_padded() -> None:
    """ARC-9: equal cosines are ordered by row; asking for more than there is pads with row −1."""
    same = np.tile(np.array([1.0, 0.0], dtype=np.float16), (5, 1))
    rows, cosines = DenseIndex(same, DenseFacts(dimension=2, kind="exact")).search(np.array([[2.0, 0.0]]), 7)
    assert rows.tolist() == [[0, 1, 2, 3, 4, -1, -1]]
    assert cosines.tolist() == [[1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0]]


@pytest.mark.slow
def test_a_target_out_of_reach_leaves_search_exact(stored: np.ndarray, tmp_path: Path) -> None:
    """ING-22: where no effort reaches the target, recall wins over speed."""
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(600, 4)).astype(np.float16)
    stingy = settings(exact_below=10, target_recall=1.0)
    facts = build_dense(tmp_path, noise, stingy)
    rows, _ = open_dense([tmp_path], facts).search(noise[:5].astype(np.float32), 3)
    norms = np.linalg.norm(noise[:5].astype(np.float64), axis=1, keepdims=True)
    np.testing.assert_array_equal(rows, brute_force(noise, noise[:5].astype(np.float64) / norms, 3)[0])
    assert (facts.kind, (tmp_path / "index.faiss").exists()) == ("exact", False)


@pytest.mark.parametrize(("shape", "k"), [((1, DIMENSION + 1), 5), ((1, DIMENSION), 0)])
def test_wrong_queries_are_refused(stored: np.ndarray, shape: tuple[int, int], k: int) -> None:
    """ING-22: another encoder's vectors are an error, not noise."""
    index = DenseIndex(stored[:10], DenseFacts(dimension=DIMENSION, kind="exact"))
    with pytest.raises(ValueError, match="expected"):
        index.search(np.ones(shape, dtype=np.float32), k)


def test_files_that_do_not_fit_the_manifest_are_refused(built: tuple[Path, DenseFacts], tmp_path: Path) -> None:
    """ARC-2: vectors of another shape, or an unreadable index, are corruption."""
    folder, facts = built
    with pytest.raises(CorruptionError, match="expected"):
        open_dense([folder], facts.model_copy(update={"dimension": 8}))
    (tmp_path / "vectors.npy").write_bytes((folder / "vectors.npy").read_bytes())
    (tmp_path / "index.faiss").write_bytes((folder / "index.faiss").read_bytes()[:1000])
    with pytest.raises(CorruptionError, match="expected readable vectors"):
        open_dense([tmp_path], facts)


def test_what_is_alike_is_what_a_search_finds_near() -> None:
    """ING-14: the k nearest others of every row above a cosine, by comparing everything; rows ascending, best first."""
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(60, 32))
    stored = (centres[rng.integers(0, 60, 700)] + 0.35 * rng.normal(size=(700, 32))).astype(np.float16)
    index = DenseIndex(stored, DenseFacts(dimension=32, kind="exact"))
    rows, cosines = index.search(index.vectors(range(700)), 700)
    expected = []
    for row in range(700):
        near = [
            (row, int(other), float(cosine))
            for other, cosine in zip(rows[row], cosines[row], strict=True)
            if other != row and cosine >= 0.8
        ]
        expected += near[:4]
    assert 500 < len(expected) < 2_800
    found = list(index.near_pairs(4, 0.8))
    assert [pair[:2] for pair in found] == [pair[:2] for pair in expected]
    assert [pair[2] for pair in found] == pytest.approx([pair[2] for pair in expected], abs=1e-6)


def some(share: float, seed: int = 5) -> RowSet:
    return RowSet(np.random.default_rng(seed).random(CONTENTS) < share)


def found_by_force(stored: np.ndarray, queries: np.ndarray, among: RowSet, k: int) -> np.ndarray:
    return among.rows[brute_force(stored[among.rows], queries, k)[0]]


@pytest.mark.parametrize("share", [0.0005, 0.01, 0.5, 0.99])
def test_exact_search_among_some_rows_is_brute_force_over_them(stored: np.ndarray, share: float) -> None:
    """RET-4: a filter decides what is compared, not what is left of the nearest."""
    queries, among = clustered(40, seed=6), some(share)
    k = min(10, len(among))
    rows, cosines = DenseIndex(stored, DenseFacts(dimension=DIMENSION, kind="exact")).search(queries, k, among)
    assert np.array_equal(rows, found_by_force(stored, queries, among, k))
    assert np.all(np.diff(cosines, axis=1) <= 0.0)


@pytest.mark.parametrize("share", [0.0005, 0.01, 0.1, 0.5, 0.99])
def test_ivfpq_among_some_rows_keeps_its_recall(
    stored: np.ndarray, built: tuple[Path, DenseFacts], share: float
) -> None:
    """RET-4, ING-22: the selector is FAISS's own; few rows are compared one by one, with nothing missed."""
    queries, among = clustered(200, seed=7), some(share)
    k = min(10, len(among))
    rows, _ = open_dense([built[0]], built[1]).search(queries, k, among)
    assert set(rows.ravel().tolist()) <= set(among.rows.tolist())
    truth = found_by_force(stored, queries, among, k)
    recall = np.mean([len(set(a) & set(b)) / k for a, b in zip(rows.tolist(), truth.tolist(), strict=True)])
    assert recall >= (1.0 if share <= 0.01 else 0.95)


def test_nothing_is_found_among_nothing(stored: np.ndarray, built: tuple[Path, DenseFacts]) -> None:
    """RET-4: a filter that no document fits."""
    nothing = RowSet(np.zeros(CONTENTS, dtype=bool))
    for index in (open_dense([built[0]], built[1]), DenseIndex(stored, DenseFacts(dimension=DIMENSION, kind="exact"))):
        rows, cosines = index.search(clustered(2, seed=8), 3, nothing)
        assert (rows == -1).all()
        assert (cosines == -1.0).all()
