"""RET-18, FBK-2: questions and verdicts from the terminal, with the real encoder, indexes, broker and updaters."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain
from pathlib import Path

import pytest

from tests.support.updater_process import PARTITIONS, whole_log
from weft.app.searching.engines import opened
from weft.cli.commands import update
from weft.cli.main import main
from weft.cli.reports import evaluate
from weft.cli.searches import ask
from weft.cli.searches.here import AskedSearcher
from weft.cli.searches.requests import new_id
from weft.domain.errors import BrokerUnavailableError
from weft.domain.events import Explicit, Impression, Selection
from weft.domain.ranking import Query, RankedResult
from weft.domain.reasons import reason
from weft.evaluation.measures.beir import read_dataset
from weft.evaluation.queries.reader import read_queries
from weft.evaluation.queries.writer import QueryLog
from weft.feedback.events.codec import decode
from weft.feedback.events.producer import FeedbackProducer
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

TEXTS = {
    "d1": "Apples are green or red and grow on trees.",
    "d2": "Bananas are yellow and grow in the tropics.",
    "d3": "Lemons are yellow and sour, and grow on trees.",
    "d4": "Locks are released\nwhen the transaction ends.",
}
QUESTION = "yellow fruit that grows"
PEOPLE = ("ada", "bob", "cleo")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store in which the texts are live."""
    folder = tmp_path_factory.mktemp("fruit")
    records = [{"_id": name, "title": "", "text": text} for name, text in TEXTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, records)))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": QUESTION}))
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\n")
    settings = load_settings([], [f"storage.root={tmp_path_factory.mktemp('store')}"], environment={})
    stored = evaluate.indexed(read_dataset(folder, "test"), evaluate.measuring(settings), executor=HERE)
    return stored.storage.root


@contextmanager
def broker_for(root: str, *assignments: str) -> Iterator[tuple[EmbeddedBroker, Settings]]:
    """A broker with an empty topic, and settings for it and a store."""
    with EmbeddedBroker() as broker:
        chosen = [f"storage.root={root}", f"kafka.bootstrap={broker.bootstrap}", *assignments]
        settings = load_settings([], chosen, environment={})
        create_topic(settings.kafka, settings.feedback.topic, partitions=PARTITIONS, replication=1)
        yield broker, settings


@contextmanager
def sitting(settings: Settings, principal: str = "ada") -> Iterator[ask.AskLoop]:
    with (
        opened(settings) as searcher,
        closing(FeedbackProducer.connect(settings.kafka, settings.feedback)) as producer,
        QueryLog(Path(settings.storage.root), settings.query_log) as log,
    ):
        who = Query(text="", query_id=new_id(), k=3, principal=principal)
        loop = ask.AskLoop(AskedSearcher(searcher, producer, log), who)
        loop.settings = settings
        yield loop


def test_what_is_typed_reaches_the_topic_as_it_was_meant(root: str) -> None:
    """FBK-1, FBK-2: what was shown, opened, praised and blamed, each about the result that stood at that rank."""
    with broker_for(root) as (broker, settings):
        with sitting(settings) as sat:
            sat.run([QUESTION, "!2", "+2", "-1"])
        values = chain.from_iterable(whole_log(broker.bootstrap, settings.feedback.topic, 4))
        shown, *printed = (decode(value, max_bytes=settings.feedback.limits.event_bytes) for value in values)
    assert isinstance(shown, Impression)
    first, second = (result.content_hash for result in shown.results[:2])
    opened_, praised, blamed = printed
    assert isinstance(opened_, Selection)
    assert isinstance(praised, Explicit)
    assert isinstance(blamed, Explicit)
    assert (opened_.content_hash, opened_.rank) == (second, 2)
    assert [(praised.content_hash, praised.signal), (blamed.content_hash, blamed.signal)] == [(second, 1), (first, -1)]
    assert {(each.query_id, each.principal) for each in (opened_, praised, blamed)} == {(shown.query_id, "ada")}
    # A verdict counts as asked for on the result alone that the answer asks about.
    marked = {result.content_hash for result in shown.results if result.asked}
    assert {each.content_hash for each in (praised, blamed) if each.asked} == marked & {first, second}


def test_praise_puts_a_result_first_and_says_whose_word_did_that(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-18, FBK-7: for who said so at once, for others as people agree; blame takes it out of the first places."""
    with broker_for(root) as (_, settings), sitting(settings) as sat:
        sat.run([QUESTION, "="])
        assert "nothing has changed" in capsys.readouterr().out
        second = results_of_one_query(sat)[1]
        sat.run(["+2"])
        printed = asked_again_meanwhile(sat, capsys)
        assert results_of_one_query(sat)[0].content_hash == second.content_hash
        assert f"moved: {second.uris[0]} 2 → 1" in printed
        assert f"{second.uris[0]} is first: you called this right; before that it was second, by" in printed
        for principal in PEOPLE[1:3]:
            with sitting(settings, principal) as other:
                other.run([QUESTION])
                other.run([f"+{rank_of(second, other)}"])
        with sitting(settings, "zoe") as stranger:
            stranger.run([QUESTION])
            learned_and_asked_again(stranger, capsys)
            first = results_of_one_query(stranger)[0]
            assert first.content_hash == second.content_hash
            assert reason(first).startswith(
                "three people called this right for this question; before that it was second"
            )
            stranger.run(["-1"])
            printed = learned_and_asked_again(stranger, capsys)
            assert "moved: " in printed
            assert second.content_hash not in {each.content_hash for each in results_of_one_query(stranger)}  # k is 3
            point_at_what_was_not_shown(stranger, "d4", capsys)
    assert main(["queries", "list", "--blamed", "--store", root, "--json"]) == 0
    blamed = [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()]
    assert set(blamed) == {QUESTION}  # at once, though no outcomes were collected


def point_at_what_was_not_shown(sat: ask.AskLoop, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-23: from the console, by its URI; asked again, it is first."""
    shown = results_of_one_query(sat)[0].uris[0]
    sat.run(["+ nowhere.md", f"+ {shown[: -len(name)]}{name}"])
    assert "is right" in capsys.readouterr().out
    assert "is first: you called this right" in learned_and_asked_again(sat, capsys)
    assert results_of_one_query(sat)[0].text == TEXTS[name]


def rank_of(result: RankedResult, sat: ask.AskLoop) -> int:
    return next(each.rank for each in results_of_one_query(sat) if each.content_hash == result.content_hash)


def learned_and_asked_again(sat: ask.AskLoop, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of the same question once the updaters have caught up."""
    update.run(sat.settings, local=True, until_caught_up=True)
    sat.asked.follow()
    sat.run(["="])
    return " ".join(capsys.readouterr().out.split())


def asked_again_meanwhile(sat: ask.AskLoop, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of the same question, which waits while updaters catch up."""
    updating = threading.Thread(target=lambda: update.run(sat.settings, local=True, until_caught_up=True))
    updating.start()
    sat.run(["="])
    updating.join()
    return " ".join(capsys.readouterr().out.split())


def results_of_one_query(sat: ask.AskLoop) -> Sequence[RankedResult]:
    assert sat.last is not None
    return sat.last.results


def test_lines_may_be_piped_in_and_a_wrong_one_ends_nothing(
    root: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """RET-18: scores are explained, texts shown whole; without a broker nobody is told, and that is said."""
    lines = ["+1", "=", QUESTION, "?1", "!1", "+1", "-9", ""]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines) + "\n"))
    asked_before = logged(root)
    assert ask.main(["--store", root, "-k", "2"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "expected a question first: nothing is shown, found +1" in out
    assert "nothing was asked yet" in out
    assert "late interaction" in out
    assert "nobody is told: start with --bootstrap HOST:PORT" in out
    assert "expected one of the 2 results of the last answer, found -9" in out
    assert out.count("+2 right · -2 wrong") == 2
    assert logged(root) == [*asked_before, QUESTION]


def test_what_is_not_heard_yet_is_told(
    root: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """FBK-7: asked again at once, where no updaters run, it names the command that says so."""
    monkeypatch.setattr(ask, "_EFFECT_S", 0.5)
    with broker_for(root) as (_, settings), sitting(settings, "dora") as sat:
        sat.run([QUESTION, "+3", "="])
        printed = " ".join(capsys.readouterr().out.split())
        assert (
            "nothing has changed; what you said is not heard yet, or moves nothing here: weft feedback status"
            in printed
        )


def test_a_text_is_opened_whole_and_line_by_line(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    """RET-18."""
    with broker_for(root) as (_, settings), sitting(settings) as sat:
        sat.run(["locks and transactions"])
        capsys.readouterr()
        sat.run(["!1"])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[:2] == ["Locks are released", "when the transaction ends."]


def test_a_user_without_a_name_is_anonymous(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """FBK-2: containers run as numbers that no file of users knows."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    monkeypatch.setattr(sys, "stdin", io.StringIO("locks\n"))
    assert ask.main(["--store", root]) == 0


def logged(root: str) -> list[str]:
    return [query.text for query in reversed(read_queries(Path(root), limit=100))]


def test_a_broker_that_dies_costs_verdicts_and_not_the_sitting(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-2: what could not be told is said, line by line, and the next question is answered."""
    short = ["kafka.connect_timeout_ms=1000", "kafka.request_timeout_ms=1250"]
    with broker_for(root, *short, "kafka.send_block_ms=1000") as (broker, settings), ExitStack() as open_:
        # Closing may say once more what could not be told: then the job ends with 1.
        open_.enter_context(suppress(BrokerUnavailableError))
        sat = open_.enter_context(sitting(settings))
        sat.run([QUESTION, "+1"])
        os.kill(broker.pid, signal.SIGKILL)
        sat.run(["+2", "locks and transactions"])
        printed = capsys.readouterr()
    assert "told: 1 right" in printed.out
    assert "told: 2 right" not in printed.out
    assert "Locks are released" in printed.out
    assert settings.kafka.bootstrap in printed.err


def test_a_person_types_until_there_is_no_more(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """RET-18: a terminal is prompted line by line, and the end of its input ends the job well."""
    lines = iter(["locks", "?1"])
    prompts: list[str] = []

    def typed(prompt: str) -> str:
        prompts.append(prompt)
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", typed)
    assert ask.main(["--store", root]) == 0
    assert len(prompts) == 3
