"""FBK-12: sources that show and never tell, and sources that only praise; and what an operator watches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.feedback_events import NOON, RULES, explicit, impression, records
from tests.support.feedback_source import FakeLog, FakeSource
from weft.catalog.catalog import Catalog
from weft.cli.commands import feedback_status
from weft.cli.main import main
from weft.domain.events import AnyEvent
from weft.feedback.events.codec import encode
from weft.feedback.run.metrics import (
    LEAST_IMPRESSIONS,
    LEAST_VERDICTS,
    EventRates,
    partition_progress,
    prometheus,
    samples,
    write_metrics,
)
from weft.feedback.run.updater import Updater
from weft.runtime.clock import SECONDS_PER_DAY, stamp

ANSWERS = LEAST_IMPRESSIONS


def source(name: str, verdicts: int, *, blame_every: int = 0) -> Iterator[AnyEvent]:
    """An agent that shows `ANSWERS` answers, and whose user judges the first few of them."""
    for number in range(ANSWERS):
        facts = {"session_id": name, "principal": f"user of {name}", "agent": name, "query_id": f"{name}-{number}"}
        yield impression(**facts, event_id=f"{name}-{number}")
        if number < verdicts:
            signal = -1.0 if blame_every and number % blame_every == 0 else 1.0
            yield explicit(signal, event_id=f"{name}-{number}-verdict", **facts)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    events = [*source("mute", 0), *source("fan", LEAST_VERDICTS), *source("fair", 30, blame_every=3)]
    log = FakeLog.of(records([*events, b"{"]))
    updater = Updater.open(FakeSource(log), tmp_path, [0], RULES)
    paces = EventRates()
    paces.of(updater.progress(), at=10.0)
    while updater.step(0.0):
        pass
    updater.publish()
    write_metrics(tmp_path, updater.progress(), now=0.0, paces=paces.of(updater.progress(), at=12.0))
    updater.close()
    return tmp_path


def test_a_source_that_never_reports_is_flagged_and_so_is_one_that_only_praises(store: Path) -> None:
    """FBK-12: the agent and the principal behind it; an ordinary source is not."""
    _, sources = partition_progress(store, RULES)
    agents = {each.name: each for each in sources if each.kind == "agent"}
    assert agents["mute"].flags == ("shows results and reports no outcome",)
    assert agents["fan"].flags == ("reports only praise",)
    assert agents["fair"].flags == ()
    assert agents["fair"].seen["praise"] == 20 / ANSWERS
    assert agents["fair"].expected["praise"] == LEAST_VERDICTS / (2 * ANSWERS)
    assert sum(bool(each.flags) for each in sources if each.kind == "principal") == 2


def test_status_says_so(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-12: `weft feedback status`."""
    assert main(["feedback", "status", "--store", str(store), "--json"]) == 0
    sources = json.loads(capsys.readouterr().out)["sources"]
    flags = {each["name"]: each["flags"] for each in sources if each["kind"] == "agent"}
    assert flags == {"mute": ["shows results and reports no outcome"], "fan": ["reports only praise"], "fair": []}
    assert main(["feedback", "status", "--store", str(store), "--prometheus"]) == 0
    assert 'weft_feedback_dead_letters_total{partition="0",reason="undecodable"} 1' in capsys.readouterr().out


def test_a_principal_is_found_by_name(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-12: stores keep fingerprints of principals, and whoever asks knows a name."""
    asked = ["feedback", "status", "--store", str(store), "--json", "--principal"]
    assert main([*asked, "user of fan"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["sources"]
    assert (found["kind"], found["flags"]) == ("principal", ["reports only praise"])
    assert main([*asked, "nobody"]) == 0
    assert json.loads(capsys.readouterr().out)["sources"] == []


def test_metrics_are_a_file_that_can_be_scraped(store: Path) -> None:
    """FBK-12: lag from the high watermark, pace, counts, reasons, age of the checkpoint, sessions, size."""
    lines = (store / "logs/feedback.prom").read_text(encoding="utf-8").splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    consumed = 3 * ANSWERS + LEAST_VERDICTS + 30 + 1
    assert values['weft_feedback_lag_records{partition="0"}'] == "0"
    assert values['weft_feedback_consumed_total{partition="0"}'] == str(consumed)
    assert float(values['weft_feedback_events_per_second{partition="0"}']) == consumed / 2
    assert values['weft_feedback_open_sessions{partition="0"}'] == "0"
    assert int(values['weft_feedback_state_bytes{partition="0"}']) > 0
    evidence = Catalog(store).live.evidence()
    assert values['weft_feedback_evidence_rows{partition="0"}'] == str(len(evidence.counts) + len(evidence.usage))
    assert values['weft_feedback_checkpoint_behind_records{partition="0"}'] == str(consumed)
    standings, _ = partition_progress(store, RULES)
    assert "lag_records" not in prometheus(samples(store, standings, now=0.0))


def test_what_waits_for_its_day_is_told(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LRN-2, OPS-15: where this machine's clock is behind, how much does not count yet, and from which day it does."""
    today = NOON / 1000
    for now, waits in ((today, False), (today - SECONDS_PER_DAY, True)):
        monkeypatch.setattr(feedback_status, "system_clock", lambda now=now: now)
        assert main(["feedback", "status", "--store", str(store), "--json"]) == 0
        ahead = json.loads(capsys.readouterr().out)["ahead"]
        assert ahead.keys() == ({stamp(today)[:10]} if waits else set())
        assert main(["feedback", "status", "--store", str(store)]) == 0
        printed = capsys.readouterr().out
        assert (f"pieces of evidence wait for {stamp(today)[:10]}" in printed) is waits


def test_feedback_without_its_session_is_counted_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-13, FBK-12: it names another session, a query that nobody showed, or none: each is told with what helps."""
    lost = [explicit(1.0, event_id=f"lost-{at}", session_id="q1") for at in range(2)]
    headless = json.loads(encode(explicit(1.0, event_id="headless")))
    del headless["session_id"]
    events = [impression(), *lost, explicit(1.0, query_id="q9", event_id="unknown"), json.dumps(headless).encode()]
    updater = Updater.open(FakeSource(FakeLog.of(records(events))), tmp_path, [0], RULES)
    while updater.step(0.0):
        pass
    updater.close()
    assert main(["feedback", "status", "--store", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["waiting"]["events"], told["waiting"]["queries"], told["unjoined"]) == (3, 2, 0)
    by_query = {each["query_id"]: each for each in told["waiting"]["named"]}
    assert {name: (each["session_id"], each["events"], each["shown_in"]) for name, each in by_query.items()} == {
        "q1": ("q1", 2, "s1"),
        "q9": ("s1", 1, None),
    }
    assert "the answer's token" in by_query["q1"]["advice"]
    assert "impressions" in by_query["q9"]["advice"]
    assert told["dead_letters"] == {"no_session": 1}
    assert main(["feedback", "status", "--store", str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "3 events on 2 queries count for nothing" in printed
    assert "dead letters: no_session 1" in printed
