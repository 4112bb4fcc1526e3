"""RET-15 from the first day: a store that nobody has judged says when nothing in it answers a question."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.ingestion import write
from tests.support.printed import print_answer
from weft.app.indexing import plan_of, run
from weft.app.searching.engines import masking_engines, opened, searching, source_of
from weft.catalog.catalog import Catalog
from weft.consolidation.probes import probes
from weft.domain.ids import QueryId
from weft.domain.ranking import Query
from weft.indexes.manifest import ANSWERING, DESCRIBED
from weft.ingestion.questions import StoredQuestion, stored_questions
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.snapshot import OneSnapshot
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

SOURCES = [ROOT / "docs" / "kafka.md", ROOT / "docs" / "feedback.md", ROOT / "docs" / "operations.md"]
PATIENT = [
    "retrieval.budget_ms.searching=60000",
    "retrieval.budget_ms.following=60000",
]  # a busy machine loses no channel


def settings_at(root: Path, *changes: str) -> Settings:
    stated = [f"storage.root={root}", "extraction.enabled=false", *PATIENT, *changes]
    return load_settings(assignments=stated, environment={})


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    stored = settings_at(tmp_path_factory.mktemp("first-day"))
    run(plan_of(stored, SOURCES), executor=HERE)
    return stored


@pytest.fixture(scope="module")
def searcher(settings: Settings) -> Iterator[Searcher]:
    with opened(settings) as searcher:
        yield searcher


def asked(searcher: Searcher, *texts: str) -> list[bool]:
    """Whether each question has no answer, as the store says."""
    queries = [Query(text=text, query_id=QueryId(f"q{at}")) for at, text in enumerate(texts)]
    return [answer.gap is not None for answer in searcher.search_many(queries)]


def test_what_is_about_other_matters_has_no_answer_from_the_first_day(searcher: Searcher) -> None:
    """RET-15: nobody judged anything, no night has been; seven of ten are marked at least."""
    assert asked(searcher, "sourdough bread recipe", "which wine goes with grilled salmon") == [True, True]
    marked = asked(searcher, *probes("bundled"))
    assert sum(marked) >= 0.7 * len(marked)


def test_what_a_store_answers_is_hardly_ever_marked(settings: Settings) -> None:
    """RET-15: of its own questions, masked, no more than stated; most of them are found, too."""
    catalog = Catalog(Path(settings.storage.root))
    questions = own_questions(catalog)
    engines = masking_engines(questions)(settings)
    snapshot = engines.over(source_of(settings, precisions=engines.precisions).take(None))
    assert snapshot.built is not None
    with searching(settings, engines, OneSnapshot(snapshot)) as searcher:
        marked = asked(searcher, *(question.text for question in questions))
    assert len(questions) >= 20
    assert sum(marked) <= settings.consolidation.calibration.answerable_bound * len(marked)


def own_questions(catalog: Catalog) -> list[StoredQuestion]:
    live = catalog.pointer().generation
    assert live is not None
    return stored_questions(catalog.folder_of(live))


def test_the_screen_says_so(searcher: Searcher, capsys: pytest.CaptureFixture[str]) -> None:
    """RET-15: also where no verdict has calibrated anything."""
    print_answer(searcher.search(Query(text="which wine goes with grilled salmon", query_id=QueryId("q"))))
    assert "evidence gap: the best found reaches" in capsys.readouterr().out


def test_the_threshold_lies_in_the_generation_and_goes_with_it(settings: Settings) -> None:
    """RET-15, ARC-2: its manifest states it, and another generation its own; what the generation means is the same."""
    catalog = Catalog(Path(settings.storage.root))
    with closing(catalog.open_live()) as generation:
        stated = generation.manifest.facts[ANSWERING]
        catalog.verify(generation.manifest.id)
    assert 0.0 < stated["near"] < 1.0
    assert stated["marked"] == settings.consolidation.calibration.answerable_bound
    assert 0.0 <= stated["bound"] <= 0.3  # of everyday questions


@pytest.mark.slow
def test_a_small_change_asks_nothing_anew_and_a_large_one_does(tmp_path: Path) -> None:
    """RET-15, ING-25: a threshold is taken over while four in five documents are those that it was found with."""
    settings, tree = settings_at(tmp_path / "store"), tmp_path / "tree"
    text = (ROOT / "docs" / "feedback.md").read_text("utf-8")
    sections = [f"## {section}" for section in text.split("\n## ")[1:]]
    for number, section in enumerate(sections):
        write(tree / f"{number}.md", section)

    def described_after(*changed: int) -> tuple[object, float]:
        for number in changed:
            write(tree / f"{number}.md", f"{sections[number]}\nThis line about valve {number} is new.\n")
        run(plan_of(settings, [tree]), executor=HERE)
        with closing(Catalog(Path(settings.storage.root)).open_live()) as generation:
            return generation.manifest.facts[ANSWERING], generation.manifest.facts[DESCRIBED]

    first = described_after()
    assert first[1] == 1.0
    assert described_after(0) == (first[0], pytest.approx(1.0 - 1 / len(sections)))
    assert described_after(*range(1, len(sections)))[1] == 1.0


def test_a_store_with_too_few_questions_of_its_own_tells_nothing(tmp_path: Path) -> None:
    """RET-15: rather than a threshold by chance; it is indexed and searched as ever."""
    settings = settings_at(tmp_path / "store")
    write(tmp_path / "tree" / "one.md", "# Locks\n\nA lock is released when its holder is done with it.\n")
    run(plan_of(settings, [tmp_path / "tree"]), executor=HERE)
    with opened(settings) as searcher:
        assert searcher.snapshot.built is None
        assert asked(searcher, "which wine goes with grilled salmon") == [False]
