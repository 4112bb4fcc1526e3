"""The night on a real catalog and a real SQLite-backed MLflow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from tests.support.consolidating import (
    DAY,
    FIRST_DAY,
    NIGHT,
    PUBLISH,
    SECOND_DAY,
    SETTINGS,
    THIRD_DAY,
    TRACKING,
    Killed,
    go,
    killed,
    move_alias_in_the_ui,
    overturned,
    runs,
    state_of,
    the_ui,
)
from tests.support.logged_worlds import a_world
from tests.support.nights import a_day, improved, stream
from weft.catalog.learned import LearnedState
from weft.cli.main import main
from weft.consolidation.champion import (
    CHALLENGER,
    CHAMPION,
    EXPERIMENT,
    PROMOTED_TAG,
    REFUSED_TAG,
    ChampionFollower,
    follow_champion,
)
from weft.consolidation.improvement import Improvement
from weft.consolidation.night import Night
from weft.domain.documents import Domain
from weft.domain.ids import PRIORS_VERSION
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import Evidence
from weft.learning.parts import LearnedVersion
from weft.learning.pooling.fitted import FIT, FittedWeights
from weft.retrieval.snapshot.live import CatalogSource
from weft.runtime.mlflow.tracking import REGISTERED_MODEL


def test_a_night_publishes_what_was_streamed_and_makes_it_live(root: Path, night: Night) -> None:
    """CON-9, LRN-1: the base is the sum of the snapshots, the alias names it, and beliefs are as before the night."""
    stream(root, 0, FIRST_DAY)
    stream(root, 1, SECOND_DAY)
    believed = night.catalog.live.evidence()
    summary = go(night)
    learned = summary["learned"]
    assert night.tracking.alias(CHAMPION) == learned == night.catalog.pointer().learned
    assert night.catalog.learned.read(learned).evidence == FIRST_DAY + SECOND_DAY
    assert night.catalog.live.evidence() == believed == FIRST_DAY + SECOND_DAY
    assert summary["decision"] == "safe"
    assert summary["ece_after"] < summary["ece_before"]
    recorded = len(runs(night))
    again = go(night)
    assert again.pop("steps")["publish"]["proposed"] == 0
    assert again == {"learned": learned, "decision": "nothing new", "ndcg_at_10": None, "run": None}
    assert (night.catalog.learned.versions(), len(runs(night))) == ([learned], recorded)


def test_moving_the_alias_back_takes_exactly_one_night_out(root: Path, night: Night) -> None:
    """CON-9, ARC-8: rolled back, beliefs are those of the first version and what came after the newest cut."""
    stream(root, 0, FIRST_DAY)
    first = go(night)["learned"]
    stream(root, 0, FIRST_DAY + SECOND_DAY)
    second = go(night)["learned"]
    assert night.catalog.learned.read(second).evidence == FIRST_DAY + SECOND_DAY
    assert night.catalog.learned.read(second).parent == first
    stream(root, 0, FIRST_DAY + SECOND_DAY + THIRD_DAY)
    assert night.catalog.live.evidence() == FIRST_DAY + SECOND_DAY + THIRD_DAY
    move_alias_in_the_ui(night, first)
    assert follow_champion(night.catalog, night.tracking) == first
    assert night.catalog.live.evidence() == FIRST_DAY + THIRD_DAY
    third = go(night)["learned"]
    assert night.catalog.learned.read(third).evidence == FIRST_DAY + THIRD_DAY
    move_alias_in_the_ui(night, second)
    follower = ChampionFollower(night.catalog, night.tracking, every_s=15.0, clock=lambda: 0.0)
    follower.tick()
    follower.close(30.0)
    assert (follower.moved, follower.failed) == (1, 0)
    assert night.catalog.pointer().learned == second


def test_a_doubtful_night_waits_until_someone_promotes_it(root: Path, night: Night) -> None:
    """EVA-7, ARC-8: what turns rankings round does not become the version to fall back to until someone says so."""
    stream(root, 0, FIRST_DAY)
    first = go(night)["learned"]
    stream(root, 0, FIRST_DAY + SECOND_DAY)
    summary = go(replace(night, shadow=overturned))
    second = summary["learned"]
    assert summary["decision"] == "review"
    assert (night.tracking.alias(CHAMPION), night.tracking.alias(CHALLENGER)) == (first, second)
    assert night.catalog.pointer().learned == first
    assert night.catalog.live.evidence() == FIRST_DAY + SECOND_DAY  # what was streamed counts on while it waits
    move_alias_in_the_ui(night, second)
    follow_champion(night.catalog, night.tracking)
    assert night.catalog.live.evidence() == FIRST_DAY + SECOND_DAY
    move_alias_in_the_ui(night, first)
    follow_champion(night.catalog, night.tracking)
    assert night.catalog.live.evidence() == FIRST_DAY  # decided against: exactly that day is out


def test_a_version_is_promoted_and_rolled_back_by_a_command(
    root: Path, night: Night, capsys: pytest.CaptureFixture[str]
) -> None:
    """CON-9, ARC-8: it does what the UI does, at once, and keeps who did it and why; what is refused does nothing."""
    stream(root, 0, FIRST_DAY)
    first = go(night)["learned"]
    stream(root, 0, FIRST_DAY + SECOND_DAY)
    second = go(replace(night, shadow=overturned))["learned"]

    def weft(*words: str) -> int:
        return main(["learned", "promote", *words, "--store", str(root)])

    before = state_of(root)
    assert weft("v999999", "--why", "mistyped") == 1
    assert state_of(root) == before
    capsys.readouterr()
    assert weft(second, "--why", "the page looks right", "--by", "ada") == 0
    assert capsys.readouterr().out == f"{second} is live, instead of {first}\n"
    assert (night.catalog.pointer().learned, night.tracking.alias(CHAMPION)) == (second, second)
    assert night.tracking.alias(CHALLENGER) is None
    assert weft(first, "--by", "grace") == 0
    assert (night.catalog.pointer().learned, night.catalog.live.evidence()) == (first, FIRST_DAY)
    told = {
        version: [
            json.loads(value) for key, value in (night.tracking.tags_of(version) or {}).items() if PROMOTED_TAG in key
        ]
        for version in (first, second)
    }
    assert told == {
        second: [{"by": "ada", "instead_of": first, "why": "the page looks right"}],
        first: [{"by": "grace", "instead_of": second, "why": ""}],
    }
    stream(root, 0, FIRST_DAY + SECOND_DAY + THIRD_DAY)
    assert night.catalog.learned.read(go(night)["learned"]).evidence == FIRST_DAY + THIRD_DAY  # nothing waits any more


@pytest.mark.slow
def test_the_priors_are_a_version_to_roll_back_to(root: Path, night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    """CON-9, CON-7a: v000000 is registered and listed, the command and the UI make it live, and what is streamed after
    the newest cut counts on, as after any other roll-back; the next night builds on it.
    """
    stream(root, 0, FIRST_DAY)
    first = go(night)["learned"]
    stream(root, 0, FIRST_DAY + SECOND_DAY)
    second = go(night)["learned"]
    store = ["--store", str(root)]
    assert main(["learned", "promote", PRIORS_VERSION, "--why", "begin anew", "--by", "ada", *store]) == 0
    assert capsys.readouterr().out == f"{PRIORS_VERSION} is live, instead of {second}\n"
    assert night.tracking.alias(CHAMPION) == night.catalog.pointer().learned == PRIORS_VERSION
    assert night.catalog.live.evidence() == Evidence()
    assert main(["learned", "list", "--json", *store]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["version"], one["live"]) for one in listed] == [
        (PRIORS_VERSION, True), (first, False), (second, False),
    ]  # fmt: skip
    stream(root, 0, FIRST_DAY + SECOND_DAY + THIRD_DAY)
    assert night.catalog.live.evidence() == THIRD_DAY
    move_alias_in_the_ui(night, second)
    assert follow_champion(night.catalog, night.tracking) == second
    move_alias_in_the_ui(night, PRIORS_VERSION)
    assert follow_champion(night.catalog, night.tracking) == PRIORS_VERSION
    third = go(night)["learned"]
    built = night.catalog.learned.read(third)
    assert (built.parent, built.evidence) == (PRIORS_VERSION, THIRD_DAY)


def test_a_refused_version_leaves_no_trace(root: Path, night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    """CON-7a: what it held counts neither now nor in the next night, what came after it does; who said so is kept."""
    stream(root, 0, FIRST_DAY)
    first = go(night)["learned"]
    stream(root, 0, FIRST_DAY + SECOND_DAY)
    second = go(replace(night, shadow=overturned))["learned"]
    store, live = ["--store", str(root)], night.catalog.pointer()
    assert main(["learned", "refuse", first, *store]) == 1
    assert f"found {second} to wait and not {first}" in capsys.readouterr().err
    assert night.catalog.pointer() == live
    assert main(["learned", "refuse", second, "--why", "turned round", "--by", "ada", *store]) == 0
    assert capsys.readouterr().out == f"{second} is refused; {first} is live\n"
    assert (night.catalog.live.evidence(), night.tracking.alias(CHALLENGER)) == (FIRST_DAY, None)
    tags = night.tracking.tags_of(second) or {}
    assert [json.loads(tags[key]) for key in tags if REFUSED_TAG in key] == [{"by": "ada", "why": "turned round"}]
    stream(root, 0, FIRST_DAY + SECOND_DAY + THIRD_DAY)
    assert night.catalog.live.evidence() == FIRST_DAY + THIRD_DAY
    assert night.catalog.learned.read(go(night)["learned"]).evidence == FIRST_DAY + THIRD_DAY


@pytest.mark.slow
def test_a_version_that_the_registry_lost_is_promoted_from_the_store(root: Path, night: Night) -> None:
    """OPS-15, CON-9: it is registered with its files, and no later night takes that decision back."""
    stream(root, 0, FIRST_DAY)
    first = go(night)["learned"]
    stream(root, 0, FIRST_DAY + SECOND_DAY)
    second = go(night)["learned"]
    the_ui(night).delete_registered_model(REGISTERED_MODEL)
    assert main(["learned", "promote", first, "--why", "lost", "--store", str(root)]) == 0
    assert night.tracking.alias(CHAMPION) == night.catalog.pointer().learned == first
    (version,) = the_ui(night).search_model_versions(f"name='{REGISTERED_MODEL}'")
    files = {path.name for path in Path(the_ui(night).download_artifacts(version.run_id, first)).iterdir()}
    assert {"evidence.parquet", "cut.parquet"} <= files
    assert go(night)["decision"] == "nothing new"
    assert night.catalog.pointer().learned == first
    stream(root, 0, FIRST_DAY + SECOND_DAY + THIRD_DAY)
    third = go(night)["learned"]
    assert night.catalog.learned.read(third).evidence == FIRST_DAY + THIRD_DAY
    assert night.catalog.learned.versions() == [first, second, third]
    registered = the_ui(night).search_model_versions(f"name='{REGISTERED_MODEL}'")
    numbers = {each.tags["weft.learned"]: int(each.version) for each in registered}
    assert numbers == {first: 1, second: 2, third: 3}


def test_a_night_restores_its_deleted_experiment_and_publishes(root: Path, night: Night) -> None:
    """OPS-15: what "Delete" in the UI does keeps no night from learning."""
    deleted = the_ui(night).create_experiment(EXPERIMENT, artifact_location=(root / "mlflow" / "artifacts").as_uri())
    the_ui(night).delete_experiment(deleted)
    stream(root, 0, FIRST_DAY)
    summary = go(night)
    assert summary["learned"] == night.catalog.pointer().learned == night.tracking.alias(CHAMPION)
    assert the_ui(night).get_run(summary["run"]).info.experiment_id == deleted


@pytest.mark.slow
def test_the_night_after_a_doubtful_one_keeps_its_evidence(root: Path, night: Night) -> None:
    """CON-9: a night that waits is neither lost nor counted twice by the next."""
    stream(root, 0, FIRST_DAY)
    go(night)
    stream(root, 0, FIRST_DAY + SECOND_DAY)
    go(replace(night, shadow=overturned))
    stream(root, 0, FIRST_DAY + SECOND_DAY + THIRD_DAY)
    third = go(night)["learned"]
    assert night.catalog.learned.read(third).evidence == FIRST_DAY + SECOND_DAY + THIRD_DAY
    assert night.tracking.alias(CHALLENGER) is None
    assert night.catalog.live.evidence() == FIRST_DAY + SECOND_DAY + THIRD_DAY


def test_fitted_weights_go_live_with_their_version_and_leave_with_it(root: Path, night: Night) -> None:
    """CON-8, CON-9: where the fit orders held-out questions better than what was counted does."""
    stream(root, 0, a_day(DAY, telling=Signal.FRESHNESS))
    summary = go(replace(night, logged=lambda: a_world(SETTINGS.priors, questions=100)))
    assert summary["fit"].keys() == {"code"}
    assert summary["fit"]["code"]["live"]
    assert summary["fit"]["code"]["change"] > 0.0
    catalog, now = night.catalog, night.now
    fitted = catalog.learned.read(summary["learned"]).part(FittedWeights)
    assert fitted is not None
    source = CatalogSource(catalog, SETTINGS.priors, clock=lambda: now)
    pinned = source._now().learned.part(FittedWeights)
    assert pinned is not None
    assert pinned.to_table() == fitted.to_table()
    live = read_beliefs(SETTINGS.priors, catalog.live.evidence(), now=now, fitted=fitted)
    weights = live.weights(Scope(Domain.CODE), fitted.by_domain[Domain.CODE].signals)
    assert {belief.level for belief in weights.values()} == {FIT}
    assert weights[Signal.LEXICAL].mean > weights[Signal.FRESHNESS].mean
    nothing = catalog.learned.publish(
        LearnedState(parent=None, evidence=Evidence(), cut=Evidence()), expected_newest=summary["learned"]
    )
    catalog.make_live(nothing)
    assert source._now().learned.part(FittedWeights) is None


def test_a_fit_that_questions_show_to_be_worse_stays_out(root: Path, night: Night) -> None:
    """CON-8: the gate compares on questions, too; what was counted goes live, and the report says why."""
    stream(root, 0, a_day(DAY, telling=Signal.FRESHNESS))

    def improve(_former: LearnedVersion, latter: LearnedVersion) -> Sequence[Improvement]:
        return [improved("ndcg_at_10", 0.5, 0.6 if latter.part(FittedWeights) is None else 0.4)]

    summary = go(replace(night, logged=lambda: a_world(SETTINGS.priors, questions=100), improve=improve))
    assert not summary["fit"]["code"]["live"]
    assert night.catalog.learned.read(summary["learned"]).part(FittedWeights) is None
    assert summary["ndcg_at_10"]["after"] == 0.6


def test_a_rehearsal_changes_nothing(root: Path, night: Night) -> None:
    """CON-9: `--dry-run` says what would happen, byte for byte without effect."""
    stream(root, 0, FIRST_DAY)
    before = state_of(root)
    summary = go(night, dry_run=True)
    assert (summary["decision"], summary["learned"], summary["run"]) == ("safe", None, None)
    assert {
        name: data for name, data in state_of(root).items() if not name.endswith(("-wal", "-shm", ".opening"))
    } == before


@pytest.mark.parametrize(
    "killed_before",
    [
        f"{PUBLISH}.keep_files",
        f"{TRACKING}.register",
        f"{TRACKING}.set_alias",
        f"{PUBLISH}.follow_champion",
        "weft.consolidation.report.writing.report",
        f"{NIGHT}.settle",
    ],
)
def test_a_night_killed_anywhere_is_finished_by_the_next(
    root: Path, night: Night, monkeypatch: pytest.MonkeyPatch, killed_before: str
) -> None:
    """CON-9: killed between any two changes, the next run leaves one version, live, aliased and reported."""
    stream(root, 0, FIRST_DAY)
    with monkeypatch.context() as patch:
        patch.setattr(killed_before, killed)
        patch.setattr("weft.runtime.mlflow.tracking.TrackedRun.__exit__", lambda *_: None)  # the dead finish no run
        with pytest.raises(Killed):
            go(night)
    summary = go(night)
    assert summary["decision"] == "safe"
    assert [summary["learned"]] == night.catalog.learned.versions()
    assert night.tracking.alias(CHAMPION) == night.catalog.pointer().learned == summary["learned"]
    assert sorted({run.info.status for run in runs(night)}) == ["FINISHED", "KILLED"]
    assert go(night)["decision"] == "nothing new"


def test_the_run_holds_everything_a_reviewer_needs(root: Path, night: Night) -> None:
    """CON-10, LRN-4, OPS-7, OPS-11: pictures, tables and words; evidence as Parquet, calibration as JSON."""
    stream(root, 0, FIRST_DAY)
    counters = {"0": {"consumed": 210, "applied": 200, "duplicate": 3, "dead_lettered": 5, "late": 2}}
    summary = go(replace(night, counters=counters, improve=lambda *_: [improved("ndcg_at_10", 0.5, 0.75)]))
    client, run_id = the_ui(night), summary["run"]
    run = client.get_run(run_id)
    folder = Path(run.info.artifact_uri.removeprefix("file://"))
    for name in ("weights", "ageing", "reliability", "retrieval"):
        assert (folder / "pictures" / f"{name}.svg").read_text("utf-8").startswith("<?xml")
    tables = {path.stem: pa_csv.read_csv(path) for path in (folder / "tables").glob("*.csv")}
    assert set(tables) == {"weights", "ageing", "calibration_bands", "calibration_bins", "retrieval", "updaters"}
    assert tables["weights"].num_rows == 4 * len(Signal)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"{summary['learned']} is live" in page
    assert f"weft learned promote {PRIORS_VERSION}" in page
    assert page.count("data:image/svg+xml;base64,") == 4
    assert client.get_experiment(run.info.experiment_id).tags["mlflow.experimentKind"] == "custom_model_development"
    assert json.loads((folder / "summary.json").read_text())["learned"] == summary["learned"]
    assert run.data.metrics["calibration/ece/after"] == pytest.approx(summary["ece_after"])
    assert run.data.metrics["events/dead_lettered"] == 5
    assert run.data.metrics["ndcg_at_10/before"] == run.data.metrics["ndcg_at_10/judged/before"] == 0.5
    assert run.data.metrics["steps/merge/proposed"] == summary["steps"]["merge"]["proposed"]
    assert {f"weights/{domain}/{signal}" for domain in Domain for signal in Signal} <= run.data.metrics.keys()
    assert not [name for name in run.data.metrics if "/" not in name]
    assert run.data.params["settings"] == SETTINGS.fingerprint
    assert "5 dead letters" in run.data.tags["mlflow.note.content"]
    evidence = Evidence.from_table(pq.read_table(folder / "learned" / "evidence.parquet"))
    assert evidence == FIRST_DAY
    assert json.loads((folder / "learned" / "calibration.json").read_text())["method"] in {"beta", "isotonic"}
    assert not [path for path in folder.rglob("*") if path.suffix in {".pkl", ".pickle", ".joblib"}]
    children = [found for found in runs(night) if found.data.tags.get("mlflow.parentRunId") == run_id]
    assert {child.info.run_name for child in children} == {step.name for step in night.steps}
    version = client.get_model_version_by_alias(REGISTERED_MODEL, CHAMPION)
    assert (int(version.version), version.description[:9]) == (1, "v000001: ")
    copy = root / "copy.html"
    assert main(["learned", "report", "--out", str(copy), "--store", str(root)]) == 0
    assert copy.read_bytes() == (folder / "report.html").read_bytes()
    assert main(["learned", "report", PRIORS_VERSION, "--store", str(root)]) == 1
    assert version.source == f"{run.info.artifact_uri}/learned"
    told = [move for move in summary["moved"] if move["signal"] == Signal.LEXICAL]  # it told good from bad
    assert told
    assert all(move["after"] > move["before"] for move in told)
