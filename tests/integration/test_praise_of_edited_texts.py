"""ARC-4, LRN-18: praise goes on counting for what a praised text became, through a real broker and real reindexing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.ingestion import a_plan
from tests.support.retrieval_fakes import a_query
from tests.support.small_store import DirectionEncoder
from weft.catalog.catalog import Catalog
from weft.cli.commands import update
from weft.cli.main import main
from weft.domain.ranking import RankedResult
from weft.domain.reasons import reason
from weft.feedback.events.producer import FeedbackProducer
from weft.ingestion.pipeline import ingest
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.runtime.clock import system_clock
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

pytestmark = pytest.mark.integration

QUESTION = "locks are released when"
PRAISED = (
    "Whoever waits for locks is told within a second that they are released. A queue holds the names of all who wait, "
    "in the order in which they came. It is kept in memory, and is gone when the process ends."
)
PAGES = {
    "waiting.md": f"# Waiting\n\n{PRAISED}\n",
    **{f"case-{n}.md": f"# Case {n}\n\nWhen locks are released, case {n} is closed by {n} people.\n" for n in range(4)},
}


class Folder:
    """Pages that a person edits and indexes, a broker, and people who ask and praise."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self.pages, self.settings, self.catalog = root / "pages", settings, Catalog(root / "store")
        self.pages.mkdir()

    def index(self, **pages: str) -> None:
        for name, text in pages.items():
            (self.pages / f"{name}.md").write_text(text)
        plan = a_plan(self.pages, self.catalog.root)
        assert ingest(plan, self.catalog, HERE, lambda _: None, clock=time.monotonic).published

    def results(self, who: str = "zoe") -> Sequence[RankedResult]:
        """What somebody is shown once the updaters have caught up."""
        update.run(self.settings, local=True, until_caught_up=True)
        source, encoder = CatalogSource(self.catalog, self.settings.priors, clock=system_clock), DirectionEncoder()
        encoder.name = "model"
        with Searcher(source, encoder, self.settings.retrieval, clock=system_clock) as searcher:
            return searcher.search(a_query(QUESTION, principal=who)).results

    def praise(self, *people: str) -> None:
        """Each says that the praised passage is right, wherever it stands."""
        with closing(FeedbackProducer.connect(self.settings.kafka, self.settings.feedback)) as producer:
            for who in people:
                (named,) = (each for each in self.results(who) if "A queue holds the names" in each.text)
                query = a_query(QUESTION, principal=who, session_id=f"s-{who}")
                producer.correction(query, right=True, content_hash=named.content_hash)
            producer.flush()

    def point(self, place: str, *people: str) -> None:
        """Each says that what stands at a place is right."""
        uri = next(each.uris[0] for each in self.results() if each.uris[0].endswith("waiting.md"))
        with closing(FeedbackProducer.connect(self.settings.kafka, self.settings.feedback)) as producer:
            for who in people:
                query = a_query(QUESTION, principal=who, session_id=f"s-{who}")
                producer.correction(query, right=True, uri=uri + place)
            producer.flush()


@pytest.fixture
def unpraised(tmp_path: Path) -> Iterator[Folder]:
    with EmbeddedBroker() as broker:
        chosen = [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={tmp_path / 'store'}"]
        settings = load_settings([], chosen, environment={})
        create_topic(settings.kafka, settings.feedback.topic, partitions=2, replication=1)
        folder = Folder(tmp_path, settings)
        folder.index(**{Path(name).stem: text for name, text in PAGES.items()})
        assert not is_first(folder)
        yield folder


@pytest.fixture
def folder(unpraised: Folder) -> Folder:
    unpraised.praise("ada", "bob", "cleo")
    assert is_first(unpraised)
    return unpraised


def is_first(folder: Folder, who: str = "zoe") -> bool:
    return "names of all who wait" in folder.results(who)[0].text


def test_what_was_praised_stays_first_when_its_text_is_edited(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """ARC-4, LRN-18: right after indexing, for everybody, and it says so; whoever takes the word back is heard."""
    folder.index(waiting=PAGES["waiting.md"].replace("within a second", "at once, by mail"))
    first = folder.results()[0]
    assert "by mail" in first.text
    assert first.past is not None
    assert (first.past.right, first.past.edited) == (3, 3)
    assert reason(first).startswith("three people called this right for this question (before its text was edited);")
    folder.praise("dora")
    assert "(three of them before its text was edited)" in reason(folder.results()[0])
    assert folder.results("ada")[0].past.own  # type: ignore[union-attr]
    store = str(folder.catalog.root)
    assert main(["principals", "show", "bob", "--store", store]) == 0
    assert "waiting.md:" in capsys.readouterr().out, "named by where it stands now, not by a hash"
    for who in ("ada", "bob", "cleo", "dora"):
        broker = ["--bootstrap", folder.settings.kafka.bootstrap]
        assert main(["principals", "unlearn", who, "--store", store, *broker]) == 0, capsys.readouterr().err
    assert not is_first(folder)
    assert all(each.past is None for each in folder.results())


def renamed(folder: Folder) -> None:
    (folder.pages / "waiting.md").rename(folder.pages / "queues.md")


def moved(folder: Folder) -> None:
    (folder.pages / "waiting.md").unlink()
    (folder.pages / "reference.md").write_text(f"# Reference\n\nAll that there is.\n\n## Queues\n\n{PRAISED}\n")


def cut_otherwise(folder: Folder) -> None:
    above = "Read this first, it tells why anybody would wait at all. " * 12
    (folder.pages / "waiting.md").write_text(f"# Waiting\n\n{above}\n\n{PRAISED}\n")


@pytest.mark.parametrize(
    "change",
    [moved, pytest.param(renamed, marks=pytest.mark.slow), pytest.param(cut_otherwise, marks=pytest.mark.slow)],
)
def test_praise_follows_a_text_to_where_it_stands_now(folder: Folder, change: Callable[[Folder], None]) -> None:
    """ARC-4, LRN-18: another name of the file, another page and heading, more text above it."""
    change(folder)
    folder.index()
    assert is_first(folder)


def reworded(folder: Folder) -> None:
    (folder.pages / "waiting.md").write_text(f"# How to queue\n\n{PRAISED}\n")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        pytest.param(renamed, "#waiting", marks=pytest.mark.slow, id="renamed"),
        pytest.param(moved, "", marks=pytest.mark.slow, id="moved"),
        pytest.param(reworded, "#waiting", id="reworded"),
    ],
)
def test_a_place_that_was_pointed_at_holds_where_its_page_or_heading_is_renamed(
    unpraised: Folder, change: Callable[[Folder], None], place: str
) -> None:
    """LRN-23, ARC-4: what stood there is what was meant, also two generations later; the place itself comes first."""
    unpraised.point(place, "ada", "bob", "cleo")
    assert is_first(unpraised)
    change(unpraised)
    unpraised.index()
    assert is_first(unpraised)
    unpraised.index(other="# Other\n\nSomething else is told here, of which nobody asked.\n")
    assert is_first(unpraised)
    unpraised.index(waiting="# Waiting\n\nNobody waits here: when locks are released, whoever asks first has them.\n")
    assert not is_first(unpraised)


def test_praise_is_not_for_what_was_written_anew(folder: Folder) -> None:
    """ARC-4: a text that says something else in the same place starts without praise; the old one brings it back."""
    folder.index(waiting="# Waiting\n\nNobody waits here: when locks are released, whoever asks first has them.\n")
    assert all(each.past is None for each in folder.results())
    folder.index(waiting=PAGES["waiting.md"])
    assert is_first(folder)


@pytest.mark.slow
def test_praise_follows_edit_after_edit_and_a_whole_new_index(folder: Folder) -> None:
    """ARC-4: through several generations, and one in which everything is made anew; the same rows each time."""
    text = PAGES["waiting.md"]
    for old, new in (
        ("a second", "two seconds"),
        ("names", "real names"),
        ("real names", "names"),
        ("It is", "It was"),
    ):
        text = text.replace(old, new)
        folder.index(waiting=text)
        assert is_first(folder)
    plan = a_plan(folder.pages, folder.catalog.root, full=True)
    assert ingest(plan, folder.catalog, HERE, lambda _: None, clock=time.monotonic).published
    assert is_first(folder)
