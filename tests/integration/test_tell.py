"""LRN-23: `weft tell` names the right answer, through a real broker and updaters, to searches of a real store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.parts import a_document
from tests.support.retrieval_fakes import a_query
from tests.support.small_store import DirectionEncoder, published_store
from weft.catalog.catalog import Catalog
from weft.cli.commands import update
from weft.cli.main import main
from weft.domain.ranking import RankedResult
from weft.domain.reasons import reason
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.runtime.clock import system_clock
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.settings import Settings, load_settings

QUESTION = "locks are released when"
DEEP = "zebras graze"
DOCUMENTS = [
    *(a_document(f"guide-{number}.md", f"locks are released at once, case {number}") for number in range(4)),
    a_document("docs/animals.md", DEEP),
    a_document("more/animals.md", "lions hunt"),
]


@dataclass
class Store:
    """A store, a broker, and people who ask and point."""

    settings: Settings
    catalog: Catalog
    arguments: Sequence[str] = field(default_factory=tuple)

    def tell(self, *arguments: str, who: str, question: str = QUESTION) -> int:
        return main(["tell", question, *arguments, "--principal", who, *self.arguments])

    def results(self, who: str, question: str = QUESTION) -> Sequence[RankedResult]:
        """What somebody is shown once the updaters have caught up."""
        update.run(self.settings, local=True, until_caught_up=True)
        source = CatalogSource(self.catalog, self.settings.priors, clock=system_clock)
        with Searcher(source, DirectionEncoder(), self.settings.retrieval, clock=system_clock) as searcher:
            return searcher.search(a_query(question, principal=who)).results

    def first(self, who: str, question: str = QUESTION) -> str:
        return self.results(who, question)[0].text


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with EmbeddedBroker() as broker:
        # By words alone: what shares none with a question is nowhere.
        chosen = [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={tmp_path}", 'retrieval.channels=["lexical"]']
        settings = load_settings([], chosen, environment={})
        create_topic(settings.kafka, settings.feedback.topic, partitions=2, replication=1)
        arguments = ("--store", str(tmp_path), "--bootstrap", broker.bootstrap)
        yield Store(settings, published_store(tmp_path, DOCUMENTS), arguments)


def test_what_is_pointed_at_from_nowhere_is_first(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-23: for that person at once, for everybody after three; and it says whose word did that."""
    assert DEEP not in {each.text for each in store.results("ada")}
    assert store.tell("--right", "docs/animals.md", who="ada") == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["question"], printed["uri"], printed["right"]) == (QUESTION, "docs/animals.md", True)
    assert store.first("ada") == DEEP
    for who in ("bob", "cleo"):
        assert store.tell("--right", "docs/animals.md#L1", who=who) == 0
    (first, *_) = store.results("zoe")
    assert first.text == DEEP
    assert reason(first).startswith("three people called this right for this question")
    assert store.first("zoe", "what do lions hunt") != DEEP


def test_whoever_pointed_may_take_it_back(store: Store) -> None:
    """LRN-23: a contrary word is the last one, and holds."""
    assert store.tell("--right", "docs/animals.md", who="ada") == 0
    assert store.first("ada") == DEEP
    assert store.tell("--wrong", "docs/animals.md", who="ada") == 0
    assert store.first("ada") != DEEP
    assert store.first("zoe") != DEEP


@pytest.mark.parametrize(
    ("arguments", "expected", "code"),
    [
        (["--right", "animals.md"], "expected one document of this name, found 2", 1),
        (["--right", "none.md"], "expected one document of this name, found none", 1),
        (["--right", "docs/animals.md#nowhere"], "expected a heading, symbol or line", 1),
        (["--right", "docs/animals.md#L900"], "expected a heading, symbol or line", 1),
        ([], "expected --right PATH or --wrong PATH, found neither", 2),
    ],
)
def test_what_is_nowhere_is_not_told(
    tmp_path: Path, arguments: list[str], expected: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """LRN-23: a name that means no place, or several, is named before anything is sent."""
    published_store(tmp_path, DOCUMENTS)
    nobody = ["--store", str(tmp_path), "--bootstrap", "127.0.0.1:1"]
    assert main(["tell", QUESTION, *arguments, *nobody]) == code
    assert expected in " ".join(capsys.readouterr().err.split())
