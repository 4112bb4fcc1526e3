"""EVA-2, EVA-3, EVA-4, EVA-7, EVA-8, EVA-11: the query log of a store, measured by command."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.judging_model import a_model
from tests.support.nights import a_day, stream
from weft.app import log_evaluation, night
from weft.app.searching.engines import opened
from weft.app.searching.replay import StoreReplay
from weft.cli.commands import reindex
from weft.cli.commands.consolidate import run_visibly
from weft.cli.main import main
from weft.cli.reports import evaluate
from weft.cli.searches import search
from weft.domain.ids import QueryId
from weft.domain.ranking import Channel, Query
from weft.evaluation.ground_truth.collect import JudgementSource, judged, keep, stored_judgements
from weft.evaluation.measures.beir import read_dataset
from weft.evaluation.queries.days import OUTCOME_LOG, day_folder
from weft.evaluation.queries.schema import OUTCOMES
from weft.evaluation.queries.writer import QueryLog, write_rows
from weft.indexes.generation import Generation
from weft.learning.calibration.matching import answering_from
from weft.learning.evidence import Evidence
from weft.retrieval.settings import RetrievalSettings
from weft.runtime.clock import day_of, system_clock
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

WORDS = ("lock", "batch", "query", "chunk", "shard", "token", "graph", "cache", "merge", "epoch")
ASKED = [f"what holds a {one}" for one in WORDS] * 4


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Ten records, forty logged queries, every third of them explored, and a click on the first result of each."""
    folder = tmp_path_factory.mktemp("words")
    records = [{"_id": f"d{n}", "title": word, "text": f"Every {word} holds a {word}."} for n, word in enumerate(WORDS)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, records)))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "lock"}))
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("q\td0\t1\n")
    root = tmp_path_factory.mktemp("store")
    settings = evaluate.measuring(load_settings([], [f"storage.root={root}"], environment={}))
    stored = evaluate.indexed(read_dataset(folder, "test"), settings, executor=HERE)
    root = Path(stored.storage.root)
    now = system_clock()
    with opened(stored) as searcher, QueryLog(root, stored.query_log) as log:
        rows = []
        for number, text in enumerate(ASKED):
            answer = searcher.search(Query(text=text, query_id=QueryId(f"q{number}"), k=5, explore=number % 3 == 0))
            log.emit(answer)
            rows.append(
                {
                    "said_at": round(now * 1000),
                    "event_id": f"e{number}",
                    "query_id": f"q{number}",
                    "session_id": "s",
                    "principal": "ada",
                    "kind": "selection",
                    "rank": 1,
                    "value": 1.0,
                    "content_hash": answer.results[0].content_hash,
                }
            )
    write_rows(day_folder(root / OUTCOME_LOG, day_of(now)), rows, OUTCOMES)
    return stored


def told(capsys: pytest.CaptureFixture[str], store: Settings, *arguments: object) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(shown(capsys, store, *arguments, "--json"))
    return summary


def shown(capsys: pytest.CaptureFixture[str], store: Settings, *arguments: object) -> str:
    assert evaluate.main(["--store", store.storage.root, *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_log_of_a_store_is_measured(store: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """EVA-2, EVA-4, EVA-11: contract keys, implicit ground truth, the measures of a memory, and every alarm."""
    found = told(capsys, store)
    assert found["queries"] == found["judged"] == len(ASKED)
    assert found["ndcg_at_10"] > 0.9  # clicks on first results are all that is known to be right
    assert 0.0 < found["p50_ms"] <= found["p95_ms"]
    assert found["strength"] == "directional"
    assert found["memory"]["channels"]["lexical"]["relevant"] > 0.0
    assert found["memory"]["queries"]["intent_weighted_ndcg"] == 0  # nobody stated an intent, and none was read
    assert len(found["alarms"]) == 7
    hub = next(alarm for alarm in found["alarms"] if alarm["name"] == "hub domination")
    assert "too few" in hub["says"]  # ten different queries
    assert "hub domination" in shown(capsys, store)


def test_judgements_and_clicks_go_out_in_the_layout_of_beir(
    store: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-5b: what people said is a split that data sets' readers read; clicks are counted by rank."""
    assert main(["queries", "export", str(tmp_path), "--store", store.storage.root, "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    dataset = read_dataset(tmp_path, "log")
    assert len(dataset.queries) == written["queries"] == len(ASKED)
    assert sum(map(len, dataset.qrels.values())) == written["judgements"] >= len(ASKED)
    assert written["gone"] == 0
    corpus = {each["_id"]: each for each in map(json.loads, dataset.corpus.read_text().splitlines())}
    assert corpus.keys() == {content for grades in dataset.qrels.values() for content in grades}
    best = {query.query_id: max(grades := dataset.qrels[query.query_id], key=grades.get) for query in dataset.queries}
    assert all(corpus[best[query.query_id]]["text"] for query in dataset.queries)
    first, second, *_ = (tmp_path / "clicks.tsv").read_text().splitlines()[1:]
    assert first == f"1\t{len(ASKED)}\t{len(ASKED)}\t0\t0"  # shown, opened, called right, called wrong
    assert second.startswith(f"2\t{len(ASKED)}\t0\t")


def test_judgements_of_people_overrule_feedback(
    store: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-4: what was clicked is wrong after all."""
    asked = log_evaluation.read(store, days=7, judgements=None, ask=0)
    lines = [
        {"text": query.text, "content_hash": query.results[0].content_hash, "grade": 0, "by": "ada"}
        for query in asked.queries
        if query.text == ASKED[0]
    ]
    (tmp_path / "judged.jsonl").write_text("\n".join(dict.fromkeys(map(json.dumps, lines))))
    before = told(capsys, store)
    after = told(capsys, store, "--judgements", tmp_path / "judged.jsonl")
    assert after["hit_rate_at_1"] < before["hit_rate_at_1"]


def test_a_model_judges_what_was_shown_and_not_judged_yet(
    store: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """EVA-4: as many as asked for, kept with the model's name, and not asked about twice."""
    root = Path(store.storage.root)
    opened, closed = [], []
    opens, closes = Generation.__init__, Generation.close
    monkeypatch.setattr(Generation, "__init__", lambda self, *a, **k: (opened.append(self), opens(self, *a, **k))[1])
    monkeypatch.setattr(Generation, "close", lambda self: (closed.append(self), closes(self))[1])
    with a_model(*["1"] * 3, *["2"] * 2) as (url, seen):
        endpoint = ["--set", f"evaluation.ground_truth.endpoint={url}", "--set", "evaluation.ground_truth.model=m"]
        told(capsys, store, "--judge", 3, *endpoint)
        told(capsys, store, "--judge", 2, *endpoint)
    assert opened
    assert closed == opened  # a night asks for alarms in a process that goes on
    found = [one for one in stored_judgements(root) if one.by == "m"]
    assert sorted(one.grade for one in found) == [1, 1, 1, 2, 2]
    assert len({(one.text, one.content_hash) for one in found}) == len(seen) == 5
    assert evaluate.main(["--store", str(root), "--judge", "1"]) == 1
    assert "endpoint" in capsys.readouterr().err


def test_what_was_judged_and_has_expired_is_judged_anew(store: Settings, tmp_path: Path) -> None:
    """EVA-4: a judgement that holds no longer says nothing about what was shown."""
    root = tmp_path / "store"
    shutil.copytree(store.storage.root, root)
    asked = log_evaluation.read(store, days=7, judgements=None, ask=0).queries
    pairs = {(query.text, result.content_hash) for query in asked for result in query.results}
    keep(root, [judged(*pair, 1, source=JudgementSource.JUDGED, by="old", now=0.0) for pair in pairs], now=0.0)
    with a_model("2") as (url, seen):
        changes = [f"storage.root={root}", f"evaluation.ground_truth.endpoint={url}"]
        log_evaluation.read(load_settings([], changes, environment={}), days=7, judgements=None, ask=1)
    assert len(seen) == 1


def test_logged_queries_are_asked_again_under_two_configurations(
    store: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-7: the gate's decision on how far rankings move, and what both would have earned."""
    same = told(capsys, store, "--compare", "base", "base")
    assert (same["queries"], same["shadow"]["decision"], same["shadow"]["kendall_tau"]) == (10, "safe", 1.0)
    other = ("--compare", "base", "retrieval.channels=[lexical]")
    found = told(capsys, store, *other)
    assert found["shadow"]["kendall_tau"] < 1.0
    control, treatment = found["off_policy"]
    assert set(control) == {"coverage", "ips", "snips", "doubly_robust"}
    assert all(value["n"] == 14 for value in [*control.values(), *treatment.values()])
    assert "would have earned" in shown(capsys, store, *other)
    assert evaluate.main(["--store", store.storage.root, "--compare", "base", "absent.run"]) == 1
    assert evaluate.main(["--store", store.storage.root, "--run-file", "x.run"]) == 2


def test_a_night_judges_its_candidate_by_the_logged_queries(
    store: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-7, CON-9: beliefs that evidence moved rank the logged queries otherwise than the priors do."""
    shadow = night.shadow_of(store, StoreReplay(store, times=2))
    assert shadow is not None
    taught = a_day(day_of(system_clock()), outcomes=500)
    before, after = shadow(Evidence()), shadow(taught)
    assert len(before) == len(after) == 10
    assert [list(ranking) for ranking in before] == [list(ranking) for ranking in shadow(Evidence())]
    stream(Path(store.storage.root), 0, taught)
    judged_night = replace(night.night_of(store), shadow=shadow)
    assert run_visibly(judged_night, dry_run=True)["reason"].startswith("10 replayed queries")
    empty = store.model_copy(update={"storage": store.storage.model_copy(update={"root": str(tmp_path)})})
    assert night.shadow_of(empty, StoreReplay(empty, times=2)) is None
    assert night.look_of(empty, StoreReplay(empty, times=2)) is None


def test_what_is_published_meanwhile_is_not_asked(store: Settings, tmp_path: Path) -> None:
    """EVA-7, ARC-2: control and treatment are asked of one generation at one time, whatever a reindexing publishes."""
    root = tmp_path / "store"
    shutil.copytree(store.storage.root, root)
    settings = store.model_copy(update={"storage": store.storage.model_copy(update={"root": str(root)})})
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "new", "title": "lock", "text": "A lock holds a lock."}))
    queries = [Query(text=ASKED[0], query_id=QueryId("q"), k=5)]
    with closing(StoreReplay(settings, times=2)) as again:
        (before,) = again.answers_per_condition(queries, [(settings, Evidence())])
        published = reindex.run(reindex.plan_of(settings, [tmp_path / "corpus.jsonl"]), executor=HERE)
        (after,) = again.answers_per_condition(queries, [(settings, Evidence())])
    assert [result.content_hash for result in after[0].results] == [one.content_hash for one in before[0].results]
    assert after[0].generation == before[0].generation != published.generation


@pytest.mark.slow
def test_what_processes_answer_is_what_this_one_does(
    store: Settings, cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """RET-20, ARC-9, EVA-7: a file of queries and a night's replays, spread over processes and here."""
    spread = "retrieval.spread.least_queries=4"
    many = store.model_copy(update={"retrieval": retrieval_with(store, least_queries=4)})
    taught, shown = a_day(day_of(system_clock()), outcomes=500), {}
    for name, settings in (("here", store), ("spread", many)):
        with closing(StoreReplay(settings, times=2)) as again:
            shadow = night.shadow_of(settings, again)
            assert shadow is not None
            shown[name] = [[list(ranking) for ranking in shadow(evidence)] for evidence in (Evidence(), taught)]
    assert shown["here"] == shown["spread"]
    lines = [json.dumps({"_id": f"q{number}", "text": text}) for number, text in enumerate(ASKED)]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines))
    arguments = ["--queries", str(tmp_path / "queries.jsonl"), "--store", store.storage.root, "--json"]
    arguments += ["--set", "query_log.sample=0"]
    found = []
    for more in ([], ["--set", spread]):
        assert search.main([*arguments, *more]) == 0
        answers = json.loads(capsys.readouterr().out.splitlines()[-1])["answers"]
        found.append([{**answer, "timings_ms": None} for answer in answers])
    assert found[0] == found[1]
    assert len(found[0]) == len(ASKED)


def retrieval_with(settings: Settings, **spread: int) -> RetrievalSettings:
    changed = settings.retrieval.spread.model_copy(update=spread)
    return settings.retrieval.model_copy(update={"spread": changed})


def test_a_night_looks_what_is_shown_for_logged_queries(store: Settings) -> None:
    """RET-15: on pages of all channels, and by each alone, of which it knows how well it matches over both."""
    look = night.look_of(store, StoreReplay(store, times=2))
    assert look is not None
    found = look()
    assert sum(rank == 1 for rank, _ in found.pages) == 10
    assert all(match.dense is not None and match.lexical is not None for _, match in found.pages)
    assert set(found.alone) == {Channel.DENSE, Channel.LEXICAL}
    for matches in found.alone.values():
        assert matches
        assert all(match.dense is not None and match.lexical is not None for match in matches)
    assert all(match.lexical for match in found.alone[Channel.LEXICAL])


def test_figures_are_recorded_with_the_hash_of_the_configuration(
    store: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-8: one run per measurement in MLflow, numbers as metrics, found again by the configuration."""
    found = told(capsys, store, "--snapshot")
    from weft.runtime.mlflow.tracking import Tracking

    tracking = Tracking.of(store.tracking, Path(store.storage.root))
    run = tracking._client.get_run(found["run"])
    assert run.data.metrics["ndcg_at_10"] == pytest.approx(found["ndcg_at_10"])
    assert run.data.metrics["alarms.hub_domination.value"] == 0.0
    assert run.data.params["generation"]
    assert len(run.data.params["settings"]) == 16
    assert run.data.tags["weft.settings"] == run.data.params["settings"]


def test_a_night_asks_what_the_store_has_no_answer_to(store: Settings) -> None:
    """RET-15: every probe has a match on either scale, so that a threshold rests on all of them."""
    probe = night.probe_of(store)
    assert probe is not None
    kinds = probe()
    assert kinds
    assert [len(kind) for kind in kinds] in ([100], [100, store.consolidation.calibration.scrambled])
    assert all(match.dense is not None and match.lexical is not None for kind in kinds for match in kind)
    assert answering_from(kinds, bound=0.05, confidence=0.9) is not None


def test_an_empty_log_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """EVA-3."""
    assert evaluate.main(["--store", str(tmp_path)]) == 1
    assert "search first" in capsys.readouterr().err


def test_what_rings_is_told_every_night(store: Settings, tmp_path: Path) -> None:
    """EVA-11: of an empty log, nothing; of this one, only what rings."""
    assert all(alarm.ringing for alarm in log_evaluation.ringing(store))
    empty = store.model_copy(update={"storage": store.storage.model_copy(update={"root": str(tmp_path)})})
    assert log_evaluation.ringing(empty) == []
