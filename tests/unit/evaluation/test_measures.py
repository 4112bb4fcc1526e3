"""EVA-1, EVA-5: measures, intervals, comparisons, data sets and run files."""

import gzip
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from weft.domain.errors import SourceError
from weft.evaluation.measures.beir import read_dataset
from weft.evaluation.measures.compare import compare
from weft.evaluation.measures.measuring import measure_searcher
from weft.evaluation.measures.metrics import MEASURES, estimate, estimates, measure
from weft.evaluation.measures.runs import as_ranked, write_run
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).evaluation


def a_dataset(folder: Path, *, queries: dict[str, tuple[str, dict]], qrels: list[tuple[str, str, int]]) -> Path:
    (folder / "qrels").mkdir(parents=True)
    with gzip.open(folder / "queries.jsonl.gz", "wt") as file:
        for name, (text, metadata) in queries.items():
            file.write(json.dumps({"_id": name, "text": text, "metadata": metadata}) + "\n")
    (folder / "corpus.jsonl").write_text(json.dumps({"_id": "d1", "title": "t", "text": "x"}) + "\n")
    lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in qrels)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    return folder


def test_every_measure_is_its_formula() -> None:
    """EVA-1: graded nDCG, reciprocal rank with a cut, recall, hit rate and average precision."""
    run = {"q": {document: -float(rank) for rank, document in enumerate(["x", "good", "y", "best"])}}
    measured = measure(run, {"q": {"best": 3, "good": 1, "missed": 1, "x": 0}})
    dcg = 1 / math.log2(3) + 3 / math.log2(5)
    ideal = 3 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4)
    expected = {
        "ndcg_at_10": dcg / ideal,
        "mrr_at_5": 1 / 2,
        "mrr_at_10": 1 / 2,
        "recall_at_20": 2 / 3,
        "recall_at_100": 2 / 3,
        "hit_rate_at_1": 0.0,
        "map": (1 / 2 + 2 / 4) / 3,
    }
    assert {name: values["q"] for name, values in measured.items()} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("scores", "place"),
    [
        ({"d1": 1.0, "d2": 1.0, "d3": 1.0}, "d3 d2 d1"),
        ({f"d{n:02}": 0.0 for n in range(3)}, "d02 d01 d00"),
        ({"d1": 1.0000000001, "d2": 1.0}, "d2 d1"),
        ({"d1": 1_000_000_001.0, "d2": 1_000_000_000.0}, "d2 d1"),
        ({"d1": 1e300, "d2": 1e299, "d3": -1e300, "d4": -1e299}, "d2 d1 d4 d3"),
    ],
)
def test_ties_stand_in_one_order_for_every_measure(scores: dict[str, float], place: str) -> None:
    """EVA-1, EVA-5: scores are compared in 32 bits, and equal ones stand by id from the last to the first."""
    for rank, document in enumerate(place.split(), start=1):
        measured = measure({"q": scores}, {"q": {document: 1}})
        assert measured["mrr_at_10"]["q"] == measured["map"]["q"] == pytest.approx(1 / rank)
        assert measured["hit_rate_at_1"]["q"] == float(rank == 1)
        assert measured["ndcg_at_10"]["q"] == pytest.approx(1 / math.log2(rank + 1))


@given(
    st.dictionaries(
        st.text("abé", min_size=1, max_size=3), st.sampled_from([0.0, -0.0, 0.1, 0.1 + 1e-12, 1e39, -1e39])
    ),
    st.sets(st.text("abé", min_size=1, max_size=3), min_size=1),
)
def test_the_first_result_counts_alike_in_every_measure(scores: dict[str, float], good: set[str]) -> None:
    """EVA-1: the reciprocal rank is 1 exactly where the first result is a hit, and never below its hit."""
    measured = {name: values["q"] for name, values in measure({"q": scores}, {"q": dict.fromkeys(good, 1)}).items()}
    assert measured["mrr_at_10"] >= measured["hit_rate_at_1"]
    assert (measured["mrr_at_10"] == 1.0) == (measured["hit_rate_at_1"] == 1.0)


def test_the_cut_of_a_measure_is_kept() -> None:
    """EVA-1: rank 6 is beyond MRR@5 and within MRR@10."""
    run = {"q": {**{f"x{n}": 10.0 - n for n in range(5)}, "good": 1.0}}
    measured = measure(run, {"q": {"good": 1}})
    assert (measured["mrr_at_5"]["q"], measured["mrr_at_10"]["q"]) == (0.0, pytest.approx(1 / 6))


def test_a_query_without_results_counts_as_0() -> None:
    """EVA-1."""
    measured = measure({"q": {}}, {"q": {"good": 1}})
    assert all(measured[name] == {"q": 0.0} for name in MEASURES)


def test_an_interval_holds_the_mean_narrows_with_more_queries_and_repeats() -> None:
    """EVA-1: the seed is fixed; four times the queries halve the width."""
    few, many = (estimate([0.0, 1.0] * n, SETTINGS) for n in (50, 200))
    assert few == estimate([0.0, 1.0] * 50, SETTINGS)
    assert few.low < few.mean == 0.5 < few.high
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(2.0, rel=0.2)


def test_pairing_finds_a_small_change_that_single_intervals_do_not() -> None:
    """EVA-1: every query gains .02, though queries differ by much more."""
    control = {f"q{n}": (n % 10) / 10 for n in range(100)}
    treatment = {name: value + 0.02 for name, value in control.items()}
    difference = compare(control, treatment, SETTINGS)
    assert difference.significant
    assert difference.change.mean == pytest.approx(0.02)
    assert (difference.better, difference.worse) == (100, 0)
    alone = estimates({"c": control, "t": treatment}, SETTINGS)
    assert alone["t"].low < alone["c"].high


def test_runs_over_other_queries_are_not_compared() -> None:
    """EVA-1."""
    with pytest.raises(ValueError, match="same queries"):
        compare({"a": 1.0}, {"b": 1.0}, SETTINGS)


def test_a_dataset_is_read_with_the_queries_of_its_split(tmp_path: Path) -> None:
    """EVA-5: plain or compressed files; grades, 0 among them, as they stand."""
    folder = a_dataset(
        tmp_path / "set",
        queries={"1": ("one", {}), "2": ("two", {"group": "g"})},
        qrels=[("2", "d1", 2), ("2", "d2", 0)],
    )
    dataset = read_dataset(folder, "test")
    assert [(query.query_id, query.metadata) for query in dataset.queries] == [("2", {"group": "g"})]
    assert dataset.qrels == {"2": {"d1": 2, "d2": 0}}
    assert (dataset.name, dataset.corpus.name) == ("set", "corpus.jsonl")


def test_a_missing_split_is_refused_with_those_there_are(tmp_path: Path) -> None:
    """EVA-5."""
    folder = a_dataset(tmp_path / "set", queries={"1": ("one", {})}, qrels=[("1", "d1", 1)])
    with pytest.raises(SourceError, match=r"qrels/dev\.tsv, found splits \['test'\]"):
        read_dataset(folder, "dev")


@pytest.mark.parametrize("line", ["2\td1", "2 d1 1", "2\td1\tgood", "2\td1\t--1", "\td1\t1", "2\t \t1"])
def test_a_malformed_judgement_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    """EVA-5."""
    folder = a_dataset(tmp_path / "set", queries={"2": ("two", {})}, qrels=[("2", "d1", 1)])
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(SourceError, match=r"test\.tsv:3: expected query-id, corpus-id"):
        read_dataset(folder, "test")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("queries.jsonl.gz", gzip.compress(b"\n" * 99_999)[:-20]),
        ("queries.jsonl.gz", b"no gzip"),
        ("queries.jsonl", b'{"_id": "2", "text": "caf\xe9"}\n'),
        ("queries.jsonl", b'{"_id": "2", "text": "two", "metadata": "none"}\n'),
        ("queries.jsonl", b"[" * 100_000),
        ("qrels/test.tsv", b"2\td\xe9\t1\n"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    """EVA-5: a download that ended early, another encoding, a file of something else."""
    folder = a_dataset(tmp_path / "set", queries={"2": ("two", {})}, qrels=[("2", "d1", 1)])
    (folder / name).write_bytes(content)
    with pytest.raises(SourceError, match=rf"{name}\S*: expected a"):
        read_dataset(folder, "test")


def test_a_run_file_orders_ties_as_trec_eval_does(tmp_path: Path) -> None:
    """EVA-5, ARC-4: every document of a content is credited; ties by id from the last, then strictly falling."""
    answer = a_searcher(MemoryGeneration({"b": ["same"], "a": ["same"], "c": ["other"]})).search(a_query("same"))
    ranked = as_ranked(answer.results, depth=10)
    assert list(ranked) == ["b", "a", "c"]
    scores = list(ranked.values())
    assert scores[0] > scores[1] > scores[2]
    assert [float(score) for score in scores] == sorted(set(scores), reverse=True)
    write_run(tmp_path / "run.txt", {"q1": ranked}, "weft")
    fields = [line.split() for line in (tmp_path / "run.txt").read_text().splitlines()]
    assert [row[:4] for row in fields] == [["q1", "Q0", "b", "1"], ["q1", "Q0", "a", "2"], ["q1", "Q0", "c", "3"]]
    assert [float(row[4]) for row in fields] == scores


def test_measuring_asks_each_query_within_its_group(tmp_path: Path) -> None:
    """EVA-5: a data set divided into groups is searched group by group."""
    generation = MemoryGeneration(
        {"d1": ["red apple"], "d2": ["red pear"], "d3": ["red plum"]},
        {"d1": {"metadata": {"group": "g"}}, "d2": {"metadata": {"group": "h"}}, "d3": {"metadata": {"group": "h"}}},
    )
    folder = a_dataset(tmp_path / "set", queries={"1": ("red apple", {"group": "h"})}, qrels=[("1", "d2", 1)])
    measurement = measure_searcher(a_searcher(generation), read_dataset(folder, "test"), SETTINGS)
    assert set(measurement.run["1"]) == {"d2", "d3"}
    summary = measurement.summary()
    assert summary["queries"] == 1
    assert summary["recall_at_20"] == 1.0
    assert 0.0 < summary["p50_ms"] <= summary["p95_ms"]
    assert set(MEASURES) <= summary.keys()
    # "red" is in both, so words find both; meaning finds whatever is nearest.
    assert summary["contributions"]["lexical"]["shown"] == 1.0
    assert summary["contributions"]["lexical"]["relevant"] == 1.0
