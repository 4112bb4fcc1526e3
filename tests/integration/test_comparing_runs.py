"""EVA-1, EVA-7, EVA-9, EVA-10: the job compares runs and configurations, and switches features off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab import ablation, encoders
from tests.support.tiny_bert import save_tiny_bert
from weft.cli.reports import evaluate
from weft.domain.ranking import Signal
from weft.evaluation.measures.beir import read_dataset
from weft.runtime.stages import HERE
from weft.settings import load_settings

WORDS = ("lock", "batch", "query", "chunk", "shard", "token", "graph", "cache", "merge", "epoch")
CONTRACT = {"ndcg_at_10", "mrr_at_5", "mrr_at_10", "recall_at_20", "recall_at_100", "hit_rate_at_1", "queries"}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty records about pairs of words, each asked for by a query of its own."""
    folder = tmp_path_factory.mktemp("pairs")
    pairs = [(one, other) for one in WORDS for other in WORDS[:4] if one != other][:36]
    records = [
        {"_id": f"d{n}", "title": one, "text": f"Every {one} holds a {other}."} for n, (one, other) in enumerate(pairs)
    ]
    queries = [{"_id": f"q{n}", "text": f"what does a {one} hold of {other}"} for n, (one, other) in enumerate(pairs)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, records)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("".join(f"q{n}\td{n}\t1\n" for n in range(len(pairs))))
    return folder


@pytest.fixture(scope="module")
def store(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("store")
    settings = evaluate.measuring(load_settings([], [f"storage.root={root}"], environment={}))
    evaluate.indexed(read_dataset(dataset, "test"), settings, executor=HERE)
    return root


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert evaluate.main([*map(str, arguments), "--json"]) == 0
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    return summary


@pytest.mark.slow
def test_configurations_and_run_files_compare_in_any_combination(
    dataset: Path, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-1, EVA-7, EVA-10: contract keys of B, paired differences, strength, halves, and how far rankings moved."""
    common = ["--dataset", dataset, "--store", store]
    evaluated(capsys, *common, "--fusion", "rrf", "--run-file", tmp_path / "rrf.run")
    (tmp_path / "rrf.yaml").write_text("retrieval: {fusion: rrf}\n")
    compared = [*common, "--compare", tmp_path / "rrf.run", "retrieval.channels=[lexical]"]
    summary = evaluated(capsys, *compared)
    assert summary.keys() >= CONTRACT | {"p50_ms", "p95_ms", "differences", "strength", "halves", "unjudged", "shadow"}
    assert summary["strength"] == "directional"
    change = summary["differences"]["ndcg_at_10"]
    assert change["change"] == pytest.approx(summary["ndcg_at_10"] - summary["control"]["ndcg_at_10"])
    assert change["interval"][0] <= change["change"] <= change["interval"][1]
    assert evaluate.main(list(map(str, compared))) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("directional evidence", "held-out half", "unjudged", "rankings moved"))
    same = evaluated(capsys, *common, "--compare", tmp_path / "rrf.yaml", tmp_path / "rrf.run")
    assert same["differences"]["ndcg_at_10"]["better"] == same["differences"]["ndcg_at_10"]["worse"] == 0
    assert (same["shadow"]["kendall_tau"], same["p50_ms"]) == (1.0, None)
    base = evaluated(capsys, *common, "--compare", "base", "base", "--limit", "5")
    assert (base["queries"], base["strength"]) == (5, "anecdotal")
    assert 0.0 < base["p50_ms"] <= base["p95_ms"]


def test_a_run_file_that_is_none_is_refused(
    dataset: Path, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-5: in one line; and one thing at a time."""
    common = ["--dataset", str(dataset), "--store", str(store)]
    assert evaluate.main([*common, "--compare", str(tmp_path / "absent.run"), "base"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert evaluate.main([*common, "--compare", "base", "base", "--run-file", "x.run"]) == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--run-file", "a.run", "--compare", "base", "base"), "give one of --compare and --run-file"),
        (("--judgements", "j.jsonl", "--judge", "3"), "--judgements and --judge: only without a --dataset"),
        (("--bootstrap", "localhost:9092"), "--bootstrap: only without a --dataset"),
        (("--days", "7"), "--days: only without a --dataset"),
    ],
)
def test_what_would_be_left_undone_is_wrong_usage(
    dataset: Path, store: Path, arguments: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-5: nobody waits for a run file or a judgement that was never going to be looked at."""
    assert evaluate.main(["--dataset", str(dataset), "--store", str(store), *arguments]) == 2
    assert reason in " ".join(capsys.readouterr().err.split())


def test_the_halves_of_a_data_set_share_no_query(
    dataset: Path, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-10: settings are chosen on one and measured on the other."""
    common = ["--dataset", dataset, "--store", store]
    counts = [evaluated(capsys, *common, "--half", half)["queries"] for half in ("tuned", "held-out")]
    assert sum(counts) == 36
    assert min(counts) > 5


def test_every_feature_is_switched_off_in_turn(dataset: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """EVA-9: one table, effects with intervals, found from the settings."""
    assert ablation.main(["--dataset", str(dataset), "--store", str(store), "--limit", "6", "--json"]) == 0
    printed = capsys.readouterr().out
    summary = json.loads(printed.splitlines()[-1])
    effects = {row["feature"]: row for row in summary["features"]}
    weighed = (Signal.VECTOR, Signal.LEXICAL, Signal.FRESHNESS)
    assert {f"signal {signal.value}" for signal in weighed} | {"channel dense", "mpab_factor"} <= effects.keys()
    assert "channel dense_3" not in effects  # no such encoder: nothing of it took part
    # Nothing is dated here, so that this tells nothing apart.
    assert effects["signal freshness"]["verdict"] == "no effect"
    assert all(row["interval"][0] <= row["change"] <= row["interval"][1] for row in effects.values())
    assert "learned weights (priors alone)" not in effects


@pytest.mark.slow
def test_one_table_compares_an_encoder_another_and_both(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-5, ING-19: each on an index of its own; two together are asked by two channels, and nothing is left out."""
    model, small = save_tiny_bert(tmp_path / "tiny", WORDS), "embedding.tokens.dimension=16"
    prompts = {"prompts": {"query": "query: ", "document": "passage: "}}
    (model / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    ways = encoders.ways_of(str(model), without_prompts=True)
    for more in ways.values():
        settings = load_settings([], [f"storage.root={tmp_path}", small, *more], environment={})
        evaluate.indexed(read_dataset(dataset, "test"), evaluate.measuring(settings), executor=HERE)
    arguments = ["--encoder", str(model), "--dataset", f"{dataset}:test", "--store", str(tmp_path), "--set", small]
    assert encoders.main([*arguments, "--without-prompts", "--json"]) == 0
    rows = {row["encoder"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(rows) == list(ways) == ["as set", "tiny", "tiny, no prompts", "with tiny"]
    assert len({row["alone"] for row in rows.values()}) == len(rows)
    assert rows["as set"]["difference"]["change"] == 0.0
    for row in rows.values():
        assert row["difference"]["change"] == pytest.approx(row["weft"] - rows["as set"]["weft"])
    assert encoders.main([*arguments, "--dataset", str(dataset)]) == 1
    assert "DIR:SPLIT" in capsys.readouterr().err
