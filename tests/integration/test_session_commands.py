"""LRN-17: sessions are looked at and unlearned by command, with a real broker and a real updater."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.session_store import judged, phase
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.cli.commands.update import run
from weft.cli.main import main
from weft.domain.events import AnyEvent
from weft.domain.ids import VersionName
from weft.feedback.events.codec import encode
from weft.learning.evidence import Evidence
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.settings import Settings, load_settings

OTHERS = "other"


class Loop:
    """A broker, a producer, and an updater that is run until it has read everything."""

    def __init__(self, broker: EmbeddedBroker, store: Path) -> None:
        self.broker, self.store = broker, store
        places = [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={store}"]
        self.settings: Settings = load_settings([], places, environment={})
        self.catalog = Catalog(store)
        feedback = self.settings.feedback
        create_topic(self.settings.kafka, feedback.topic, partitions=2, replication=1)
        create_topic(self.settings.kafka, feedback.dead_letter_topic, partitions=1, replication=1)

    def tell(self, events: list[AnyEvent]) -> None:
        publisher = KafkaPublisher(self.settings.kafka, self.settings.feedback.topic)
        for event in events:
            publisher.send(event.session_id.encode(), encode(event))
        publisher.close()
        self.catch_up()

    def catch_up(self) -> None:
        assert all(one.report.balanced for one in run(self.settings, local=True, until_caught_up=True))

    def weft(self, *arguments: str) -> int:
        return main(["sessions", *arguments, "--store", str(self.store)])

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
def loop(tmp_path: Path) -> Iterator[Loop]:
    with EmbeddedBroker() as broker:
        yield Loop(broker, tmp_path)


def spoken(session_id: str, signal: float) -> list[AnyEvent]:
    return judged(session_id, signal, ts=round(time.time() * 1000))


def turned(name: str, session_id: str) -> AnyEvent:
    return phase(name, session_id, ts=round(time.time() * 1000))


def test_a_poisoned_session_is_found_and_unlearned(loop: Loop, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-17, FBK-11: exactly what it brought in leaves, from the learned version that holds it, too."""
    loop.tell(spoken(OTHERS, -1.0))
    clean = loop.catalog.live.evidence()
    first = loop.night(None)
    loop.tell([turned("start", "poison"), *spoken("poison", 1.0), turned("complete", "poison")])
    poisoned = loop.catalog.live.evidence()
    second = loop.night(first)
    assert loop.weft("list", "--json", "--phase", "completed", "--version", second) == 0
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["session"], row["principal"], row["settled"]) == ("poison", "ada", 2)
    assert loop.weft("show", "poison") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["learned_versions"], shown["observations_settled"]) == ([second], 1.0)
    assert loop.catalog.live.evidence() == poisoned != clean
    assert loop.weft("unlearn", "poison", "--bootstrap", loop.broker.bootstrap) == 0
    loop.catch_up()
    assert loop.catalog.live.evidence() == clean
    capsys.readouterr()
    assert loop.weft("list", "--json", "--phase", "completed") == 0
    assert capsys.readouterr().out == ""


def test_what_a_rolled_back_night_took_out_is_not_taken_out_twice(
    loop: Loop, capsys: pytest.CaptureFixture[str]
) -> None:
    """LRN-17: its sessions left with it."""
    loop.tell(spoken(OTHERS, -1.0))
    clean = loop.catalog.live.evidence()
    first = loop.night(None)
    loop.tell([turned("start", "poison"), *spoken("poison", 1.0), turned("complete", "poison")])
    loop.night(first)
    loop.catalog.make_live(first)
    assert loop.catalog.live.evidence() == clean
    assert loop.weft("unlearn", "poison", "--bootstrap", loop.broker.bootstrap) == 1
    assert "rolled back" in capsys.readouterr().err


def test_a_session_that_nobody_started_is_refused(loop: Loop, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-17: what it said cannot be told apart."""
    loop.tell(spoken(OTHERS, -1.0))
    assert loop.catalog.live.evidence() != Evidence()
    assert loop.weft("unlearn", OTHERS, "--bootstrap", loop.broker.bootstrap) == 1
    assert loop.weft("show", OTHERS) == 1
    assert "found no 'other'" in capsys.readouterr().err
