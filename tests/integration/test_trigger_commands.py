"""RET-17: learned triggers are listed and removed by command, with a real broker and a real updater."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.cli.commands import reindex
from weft.cli.commands.update import run
from weft.cli.main import main
from weft.domain.ids import QueryId, SessionId
from weft.domain.ranking import Query, RankedResult
from weft.feedback.events.producer import FeedbackProducer
from weft.learning.beliefs import read_beliefs
from weft.runtime.clock import SECONDS_PER_DAY
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    for number in range(6):
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / f"{number}.md").write_text(f"# Part {number}\n\nWhat is written of part {number}.\n")
    with EmbeddedBroker() as broker:
        places = [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={tmp_path / 'store'}"]
        # What was picked once is found the next time: here others, too, shall have to look for it far down.
        made = load_settings([], [*places, "extraction.enabled=false", "retrieval.effects=false"], environment={})
        create_topic(made.kafka, made.feedback.topic, partitions=2, replication=1)
        create_topic(made.kafka, made.feedback.dead_letter_topic, partitions=1, replication=1)
        reindex.run(reindex.plan_of(made, [tmp_path / "docs"]), watch=lambda _: None, executor=HERE)
        yield made


def picked(settings: Settings, who: str, text: str) -> RankedResult:
    """What somebody picked from below the third rank."""
    query = Query(text=text, query_id=QueryId(f"{who}-{text}"), session_id=SessionId(f"s-{who}"), principal=who)
    with opened(settings) as searcher:
        answer = searcher.search(query)
    with closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer:
        producer.emit(answer)
        producer.selection(query, answer.results[4].content_hash, answer.results[4].rank)
        producer.flush()
    assert all(one.report.balanced for one in run(settings, local=True, until_caught_up=True))
    return answer.results[4]


def in_force(settings: Settings) -> set[tuple[str, str]]:
    """Words and contents, a week from now."""
    later = time.time() + settings.priors.triggers.trial_days * SECONDS_PER_DAY
    evidence = Catalog(Path(settings.storage.root)).live.evidence()
    believed = read_beliefs(settings.priors, evidence, now=later).triggers
    return {(each.term, each.content_hash) for each in believed.every() if not each.on_trial}


def test_a_trigger_is_listed_and_removed_for_good(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """RET-17: that word of that content alone, though others pick it again."""
    text = "written quokka wombat"
    result = picked(settings, "ada", text)
    content = result.content_hash
    assert in_force(settings) == set()
    assert picked(settings, "bob", text).content_hash == content
    assert in_force(settings) == {("quokka", content), ("wombat", content), ("written", content)}

    def listed() -> dict[str, dict[str, Any]]:
        capsys.readouterr()
        assert main(["triggers", "list", "--store", settings.storage.root, "--json"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return {row["term"]: row for row in rows}

    found = listed()["quokka"]
    assert (found["content_hash"], found["people"], found["in_force"]) == (content, 2, False)
    assert found["name"].startswith(result.uris[0])
    asked = ["--store", settings.storage.root, "--bootstrap", settings.kafka.bootstrap]
    assert main(["triggers", "remove", "emu", content[:8], *asked]) == 1
    assert main(["triggers", "remove", "quokka", content[:8], *asked]) == 0
    picked(settings, "eve", text)
    assert in_force(settings) == {("wombat", content), ("written", content)}
    assert listed().keys() == {"wombat", "written"}
