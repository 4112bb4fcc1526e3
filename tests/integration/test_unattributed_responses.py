"""FBK-9: responses that come over the log without an attribution, from any client, with the real encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from kafka import KafkaProducer

from tests.support.feedback_events import RULES, impression, inclusion, records, reference, rules, shown, success
from tests.support.feedback_source import FakeLog, FakeSource, Killed
from tests.support.parts import a_document
from tests.support.small_store import published_store
from weft.catalog.catalog import Catalog
from weft.cli.commands import update
from weft.domain.events import AnyEvent, Attribution
from weft.domain.ids import ContentHash, content_hash
from weft.feedback.events.codec import encode
from weft.feedback.fold.credit import Attribute
from weft.feedback.log import FeedbackSource
from weft.feedback.run.actors import LiveAttribution
from weft.feedback.run.updater import Updater
from weft.feedback.settings import MS
from weft.feedback.store.tables import evidence_in
from weft.learning.evidence import MICRO, Evidence
from weft.learning.parameters import POSITIVE, REFERENCE
from weft.runtime.clock import system_clock
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
TEXTS = (
    "The updater writes evidence and the next offset in one transaction, so that a crash loses nothing.",
    "Freshness is the posterior mean of the survival of a document at its age.",
    "Bread dough rises for an hour in a warm place before it is baked.",
)
USED, RELATED, STRANGE = (content_hash(text) for text in TEXTS)
RESPONSE = "A crash loses nothing. Evidence and offset are written together, in a single transaction."
PAGE = [shown(rank, content_hash=digest) for rank, digest in enumerate((USED, RELATED, STRANGE), start=1)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which the texts are live; each test takes its own partition's log."""
    root = tmp_path_factory.mktemp("store")
    published_store(root, [a_document("a.md", *TEXTS)])
    return root


@pytest.fixture(scope="module")
def attribute(store: Path) -> LiveAttribution:
    """Loads the encoder once for all tests."""
    return LiveAttribution(store, RULES.attribution, SETTINGS.embedding)


def read(folder: Path, source: FeedbackSource, attribute: Attribute | None, poll_records: int = 100) -> Evidence:
    """One life of an updater: it ends with the log, or with its death."""
    updater = Updater.open(source, folder, [0], rules(poll_records=poll_records), attribute=attribute)
    try:
        while updater.step(0.0):
            pass
        return updater._states[0].read(evidence_in)
    finally:
        updater.close()


def earned(evidence: Evidence, bin_: str = POSITIVE) -> dict[str, float]:
    return {key.content_hash: mass / MICRO for key, mass in evidence.usage.items() if key.bin == bin_}


def log_of(*events: AnyEvent) -> FakeLog:
    return FakeLog.of(records(events))


def test_updaters_attribute_by_default() -> None:
    """FBK-9: wherever a response is seen."""
    assert RULES.attribution.encoder


@pytest.mark.parametrize("early", [False, True], ids=["after its impression", "before"])
def test_a_raw_success_is_shared_by_what_its_response_rests_on(
    tmp_path: Path, attribute: LiveAttribution, early: bool
) -> None:
    """FBK-9, FBK-1: nobody but the updater had both texts."""
    answer, served = impression("q1", PAGE), success(response=RESPONSE)
    found = earned(read(tmp_path, FakeSource(log_of(*([served, answer] if early else [answer, served]))), attribute))
    assert found[USED] > 2.0 * found.get(RELATED, 0.0)
    expected = attribute([USED, RELATED, STRANGE], RESPONSE)
    assert expected is not None
    weight = RULES.credit.success * RULES.attribution.confidence[expected.method]
    shares = {name: weight * share for name, share in expected.shares.items() if share > 0.0}
    assert found == pytest.approx(shares, abs=1.0 / MICRO)


def test_a_raw_reference_that_names_nothing_is_attributed_too(tmp_path: Path, attribute: LiveAttribution) -> None:
    """FBK-9: one that names contents says itself what was used."""
    named = reference(response=RESPONSE, content_hashes=(STRANGE,), query_id="q2", event_id="named")
    events = [impression("q1", PAGE), reference(response=RESPONSE), impression("q2", PAGE), named]
    found = earned(read(tmp_path, FakeSource(log_of(*events)), attribute), REFERENCE)
    assert found[USED] > 2.0 * found.get(RELATED, 0.0)
    assert found[STRANGE] == pytest.approx(1.0, abs=0.1)


def test_only_what_was_included_is_compared(tmp_path: Path, attribute: LiveAttribution) -> None:
    """FBK-1, FBK-9: the response cannot rest on what it was not given."""
    given = inclusion(content_hashes=(RELATED, STRANGE))
    events = [impression("q1", PAGE), given, success(response=RESPONSE)]
    found = earned(read(tmp_path, FakeSource(log_of(*events)), attribute))
    assert USED not in found
    alone = attribute([RELATED, STRANGE], RESPONSE)
    assert alone is not None
    assert found[RELATED] > RULES.credit.included


def test_what_a_producer_found_stands(tmp_path: Path, attribute: LiveAttribution) -> None:
    """FBK-9: it may have held texts that the store does not."""
    own = Attribution(method="attention", shares={STRANGE: 0.5})
    events = [impression("q1", PAGE), success(response=RESPONSE, attribution=own)]
    weight = RULES.credit.success * RULES.attribution.confidence["attention"]
    assert earned(read(tmp_path, FakeSource(log_of(*events)), attribute)) == {STRANGE: pytest.approx(0.5 * weight)}


def test_without_texts_or_a_generation_all_share_alike(tmp_path: Path, attribute: LiveAttribution) -> None:
    """FBK-9: no encoder is loaded for it."""
    unknown = [shown(1), shown(2)]
    log = log_of(impression("q1", unknown), success(response=RESPONSE))
    nothing_live = LiveAttribution(tmp_path / "empty", RULES.attribution, SETTINGS.embedding)
    for name, each in (("texts", attribute), ("generation", nothing_live)):
        found = read(tmp_path / name, FakeSource(log), each)
        assert earned(found) == {one.content_hash: pytest.approx(RULES.credit.success / 2) for one in unknown}
    assert nothing_live._attributor is None


def conversation(answers: int) -> list[AnyEvent]:
    return [
        event
        for number in range(answers)
        for event in (
            impression(f"q{number}", PAGE, session_id=f"s{number % 3}"),
            success(
                response=f"{RESPONSE} {TEXTS[number % 3]}",
                query_id=f"q{number}",
                event_id=f"served {number}",
                session_id=f"s{number % 3}",
            ),
        )
    ]


def test_kills_leave_the_same_bits(tmp_path: Path, attribute: LiveAttribution) -> None:
    """ARC-3, FBK-5: killed at every record in turn, with an encoder whose memory is its own life's."""
    log = log_of(*conversation(4))
    whole = read(tmp_path / "whole", FakeSource(log), attribute)
    for kill_at in range(9):
        with pytest.raises(Killed):
            read(tmp_path / "killed", FakeSource(log, kill_at=kill_at), attribute, poll_records=3)
    attribute._attributor = None
    assert read(tmp_path / "killed", FakeSource(log), attribute, poll_records=3) == whole


def test_a_backlog_of_responses_is_committed_in_portions(tmp_path: Path) -> None:
    """ARC-3: comparing takes long: what is done is not lost with what is not, and comes to the same."""
    log = log_of(*conversation(120))
    compared: list[str] = []

    def compare(contents: Sequence[ContentHash], response: str) -> Attribution | None:
        compared.append(response)
        if len(compared) == 110:
            raise Killed
        return Attribution(method="semantic", shares=dict.fromkeys(contents[:1], 0.5))

    with pytest.raises(Killed):
        read(tmp_path / "portions", FakeSource(log), compare, poll_records=1000)
    found = read(tmp_path / "portions", FakeSource(log), compare, poll_records=1000)
    assert len(compared) == 110 + 20
    assert found == read(tmp_path / "one by one", FakeSource(log), compare, poll_records=1)


def test_the_job_attributes_what_any_client_sends(store: Path) -> None:
    """FBK-9: by way of Kafka, with nothing switched on."""
    with EmbeddedBroker() as broker:
        settings = load_settings([], [f"storage.root={store}", f"kafka.bootstrap={broker.bootstrap}"], environment={})
        create_topic(settings.kafka, RULES.topic, partitions=1, replication=None, operation="Write")
        client = KafkaProducer(bootstrap_servers=broker.bootstrap)
        ts = round(system_clock() * MS)
        for event in (impression("q1", PAGE, ts=ts), success(response=RESPONSE, ts=ts)):
            client.send(RULES.topic, key=b"s1", value=encode(event))
        client.close()
        (standing,) = update.run(settings, local=True, until_caught_up=True)
    assert standing.report.applied == 2
    found = earned(Catalog(store).live.evidence())
    assert found[USED] > 2.0 * found.get(RELATED, 0.0)
