"""LRN-17a, FBK-13: by command, with a real broker and a real updater: who said what, taken out, and by whom."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.feedback_events import correction, explicit, impression, unlearned
from tests.support.session_store import judged, phase
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.cli.commands.update import run
from weft.cli.main import main
from weft.domain.events import AnyEvent
from weft.domain.ids import VersionName
from weft.domain.signatures import SigningKey
from weft.evaluation.queries.days import QUERY_LOG, day_folder
from weft.evaluation.queries.reader import read_queries
from weft.evaluation.queries.schema import QUERIES
from weft.evaluation.queries.writer import write_rows
from weft.feedback.events.authenticity import signed, token_of
from weft.feedback.events.codec import encode
from weft.feedback.fold.names import principal_fingerprint
from weft.feedback.run.partitions import states_in
from weft.feedback.settings import DAY_MS
from weft.learning.evidence import Evidence
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.settings import Settings, load_settings

SECRET = "a key that only services and updaters share"


class Loop:
    """A broker, a producer, and an updater that is run until it has read everything."""

    def __init__(self, broker: EmbeddedBroker, store: Path, *places: str) -> None:
        self.broker, self.store = broker, store
        places = (f"kafka.bootstrap={broker.bootstrap}", f"storage.root={store}", *places)
        self.settings: Settings = load_settings([], places, environment={})
        self.catalog = Catalog(store)
        create_topic(self.settings.kafka, self.settings.feedback.topic, partitions=3, replication=1)

    def send(self, values: list[tuple[str, bytes]]) -> None:
        publisher = KafkaPublisher(self.settings.kafka, self.settings.feedback.topic)
        for session_id, value in values:
            publisher.send(session_id.encode(), value)
        publisher.close()
        self.catch_up()

    def tell(self, events: list[AnyEvent]) -> None:
        self.send([(event.session_id, encode(event)) for event in events])

    def catch_up(self) -> dict[str, int]:
        """Read everything; dead letters by reason."""
        standings = run(self.settings, local=True, until_caught_up=True)
        assert all(one.report.balanced for one in standings)
        reasons: dict[str, int] = {}
        for one in standings:
            for reason, count in one.report.reasons.items():
                reasons[reason] = reasons.get(reason, 0) + count
        return reasons

    def weft(self, *arguments: str) -> int:
        return main([*arguments, "--store", str(self.store)])

    def night(self, parent: VersionName | None) -> VersionName:
        """What a consolidation publishes, without its gate."""
        streamed, reach = self.catalog.live.streamed_reach()
        state = LearnedState(
            parent=parent, evidence=self.catalog.live.evidence(), cut=streamed, provenance={"reach": reach}
        )
        version = self.catalog.learned.publish(state, expected_newest=parent)
        self.catalog.make_live(version)
        return version


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def loop(broker: EmbeddedBroker, tmp_path: Path) -> Loop:
    return Loop(broker, tmp_path)


def spoken(who: str, session_id: str, signal: float = 1.0) -> list[AnyEvent]:
    return judged(session_id, signal, principal=who, ts=round(time.time() * 1000))


def now_ms() -> int:
    return round(time.time() * 1000)


def merged(who: str, session_id: str) -> list[AnyEvent]:
    facts: dict[str, Any] = {"principal": who, "ts": round(time.time() * 1000)}
    return [phase("start", session_id, **facts), *spoken(who, session_id), phase("complete", session_id, **facts)]


def words_of(evidence: Evidence, who: str) -> dict[object, int]:
    return {
        key: micro for key, micro in evidence.usage.items() if micro and key.principal == principal_fingerprint(who)
    }


def test_what_somebody_said_is_shown_and_taken_out(loop: Loop, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-17a: over all partitions, and out of the learned version that holds it, too."""
    loop.tell([event for number in range(6) for who in ("ada", "bob") for event in spoken(who, f"{who} {number}")])
    first = loop.night(None)
    loop.tell(merged("bob", "started"))
    loop.night(first)
    before = loop.catalog.live.evidence()
    assert loop.weft("principals", "show", "bob", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["events"] == {"impression": 7, "praise": 7, "session": 2}
    (content,) = {row["content_hash"] for row in shown["contents"]}
    assert sum(row["observations"] for row in shown["contents"]) == 7.0
    assert [row["session"] for row in shown["sessions"]] == ["started"]
    assert shown["lasting"] == 6 * 2  # six answers, and a verdict on each, outside of sessions that started
    assert loop.weft("principals", "show", "bob") == 0
    text = capsys.readouterr().out
    assert content[:12] in text
    assert " right " in text
    assert "verdict:" not in text
    assert "moved of weights cannot" in text
    assert loop.weft("principals", "unlearn", "bob", "--bootstrap", loop.broker.bootstrap) == 0
    assert "moved of weights cannot" in capsys.readouterr().err
    loop.catch_up()
    after = loop.catalog.live.evidence()
    assert words_of(after, "bob") == {}
    assert words_of(after, "ada") == words_of(before, "ada") != {}


def test_nothing_of_a_person_is_left_where_the_command_does_not_say_so(
    loop: Loop, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-13a: neither name nor question in a state, a log or a snapshot; what remains is named, and until when."""
    page = impression("private", principal="bob", question="bob's secret", ts=now_ms())
    loop.tell([*merged("bob", "started"), *merged("ada", "other"), page])
    lists = {name: [] for name in ("filters", "failed_channels", "timings_ms", "weights", "heads", "results")}
    logged = {"asked_at": now_ms(), "query_id": "private", "principal": "bob", "text": "bob's secret", **lists}
    write_rows(day_folder(loop.store / QUERY_LOG, now_ms() // DAY_MS), [logged], QUERIES)
    assert loop.weft("principals", "unlearn", "bob", "--bootstrap", loop.broker.bootstrap) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["erased"] == {"queries": 1, "outcomes": 0, "judgements": 0, "answers": 0}
    assert "the topics weft.feedback and weft.feedback.dlq" in told["remains"]
    assert told["remains"].keys() >= {"backups", "checkpoints", "the evidence"}
    assert "remains in backups: until you remove or overwrite them" in printed.err
    loop.catch_up()
    assert read_queries(loop.store, limit=9) == []
    for state in states_in(loop.store, loop.settings.feedback):
        for table in ("shown", "waiting", "sessions", "usage", "heard"):
            rows = state.read(lambda connection, table=table: connection.execute(f"select * from {table}").fetchall())
            assert not any(word in str(value) for row in rows for value in row for word in ("bob", "secret")), table
    assert loop.weft("principals", "list", "--json") == 0
    names = [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]
    assert sorted(names) == ["", "ada"]
    assert loop.weft("principals", "show", "bob", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["events"].keys(), shown["contents"], shown["sessions"]) == ({"session"}, [], [])


def test_who_only_searched_is_erased_as_well(loop: Loop, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-13a: no broker is needed where no event came."""
    lists = {name: [] for name in ("filters", "failed_channels", "timings_ms", "weights", "heads", "results")}
    logged = {"asked_at": now_ms(), "query_id": "q", "principal": "eve", "text": "how?", **lists}
    write_rows(day_folder(loop.store / QUERY_LOG, now_ms() // DAY_MS), [logged], QUERIES)
    assert loop.weft("principals", "unlearn", "eve") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["event_ids"], told["erased"]["queries"], list(told["remains"])) == ([], 1, ["backups"])
    assert loop.weft("principals", "unlearn", "eve") == 1


def test_everybody_is_listed_and_the_last_word_is_told(loop: Loop, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-17a: names as far as sessions give them, and which of two words holds; a correction moves no weights."""
    facts = {"question": "how?", "principal": "cyd"}
    pointed = [
        correction(right=right, event_id=f"{right}", ts=now_ms() + (not right), **facts) for right in (True, False)
    ]
    loop.tell([*merged("bob", "started"), *spoken("ada", "s1"), *pointed])
    assert loop.weft("principals", "list", "--json") == 0
    listed = {row["name"] or row["fingerprint"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert listed.keys() == {"bob", principal_fingerprint("ada"), principal_fingerprint("cyd")}
    assert {name: (row["right"], row["wrong"], row["new"]) for name, row in listed.items()} == {
        "bob": (1, 0, True),
        principal_fingerprint("ada"): (1, 0, True),
        principal_fingerprint("cyd"): (0, 1, True),
    }
    assert loop.weft("principals", "list", "--limit", "1") == 0
    printed = capsys.readouterr().out
    assert "3 principals" in printed
    assert "of one day" in printed
    assert loop.weft("principals", "show", "cyd") == 0
    printed = capsys.readouterr().out
    assert "right, until it said otherwise" in printed
    assert "all of it can be taken out again" in printed


def test_somebody_who_said_nothing_is_refused(loop: Loop, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-17a."""
    loop.tell(spoken("ada", "s1"))
    assert loop.weft("principals", "show", "bob") == 1
    assert "found no 'bob'" in capsys.readouterr().err


def test_nothing_is_taken_out_twice_after_a_rollback(loop: Loop, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-17a: what the night had folded in left with it."""
    loop.tell(spoken("ada", "s1"))
    first = loop.night(None)
    loop.tell(spoken("bob", "s2"))
    loop.night(first)
    loop.catalog.make_live(first)
    assert loop.weft("principals", "unlearn", "bob", "--bootstrap", loop.broker.bootstrap) == 1
    assert "rolled back" in capsys.readouterr().err


def test_with_a_key_attackers_teach_and_unlearn_nothing(
    broker: EmbeddedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """FBK-13: forged impressions, verdicts on another's query, a captured session, and unlearning in another's name."""
    loop, key = Loop(broker, tmp_path, f"feedback.signing_key={SECRET}"), SigningKey(SECRET)
    now = round(time.time() * 1000)
    shown = impression("q1", principal="ada", ts=now)
    praise = explicit(query_id="q1", principal="ada", ts=now)
    token = token_of(praise, key)
    genuine = [signed(encode(shown), key), encode(explicit(query_id="q1", principal="ada", ts=now, token=token))]
    loop.send([("s1", value) for value in genuine])
    before = loop.catalog.live.evidence()
    assert words_of(before, "ada")
    forged = [event for number in range(20) for event in spoken(f"invented {number}", f"s{number}")]
    foreign = explicit(-1.0, query_id="q1", principal="mallory", ts=now, event_id="foreign", token=token)
    captured = phase("start", "s1", principal="mallory", ts=now)
    stated = [phase("unlearn", "s1", principal="ada", ts=now), unlearned("ada", ts=now)]
    loop.tell([*forged, foreign, captured, *stated])
    assert loop.catch_up() == {"forged": 20, "unauthorised": 20 + 4}
    assert loop.catalog.live.evidence() == before
    monkeypatch.setenv("WEFT__FEEDBACK__SIGNING_KEY", SECRET)
    assert loop.weft("principals", "unlearn", "ada", "--bootstrap", broker.bootstrap) == 0
    loop.catch_up()
    assert not words_of(loop.catalog.live.evidence(), "ada")
    capsys.readouterr()
    assert loop.weft("status", "--json") == 0
    assert "signed" in json.loads(capsys.readouterr().out)["authenticity"]
    assert SECRET not in "".join(path.read_text("latin-1") for path in tmp_path.rglob("*") if path.is_file())


def test_without_a_key_the_store_says_who_can_teach(loop: Loop, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-13: in `weft status`, and once when updaters start."""
    loop.tell(spoken("ada", "s1"))
    assert loop.weft("status", "--json") == 0
    assert "anybody who can write to the topic can teach" in json.loads(capsys.readouterr().out)["authenticity"]
