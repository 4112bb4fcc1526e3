"""EVA-4: a store asks itself, and what it asks with is no part of what it finds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.support.ingestion import write
from weft.app.indexing import plan_of
from weft.app.searching.engines import masking_engines
from weft.app.searching.replay import StoreReplay
from weft.catalog.catalog import Catalog
from weft.domain.ids import QueryId
from weft.domain.ranking import Channel, Query, ScoredResults
from weft.indexes.text.build import LexicalDocument, write_shard
from weft.indexes.text.lexical import open_lexical
from weft.indexes.text.outside import OutsideTexts
from weft.ingestion.pipeline import ingest
from weft.ingestion.questions import StoredQuestion, stored_questions
from weft.retrieval.settings import ResultUnit
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

SOURCES = [
    ROOT / "docs" / "kafka.md",
    ROOT / "docs" / "feedback.md",
    ROOT / "pipelines" / "weft" / "learning" / "pooling",
]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A store of two pages and a package, chunk by chunk, with the bundled encoder and its token embeddings."""
    root = tmp_path_factory.mktemp("own")
    patient = ["retrieval.budget_ms.searching=60000", "retrieval.budget_ms.following=60000"]
    stored = load_settings(
        assignments=[f"storage.root={root}", "extraction.enabled=false", "retrieval.unit=chunk", *patient],
        environment={},
    )
    indexed(stored, SOURCES)
    return stored


def indexed(settings: Settings, sources: list[Path]) -> Path:
    """The folder of what is live once the sources are indexed."""
    catalog = Catalog(Path(settings.storage.root))
    ingest(plan_of(settings, sources), catalog, HERE, lambda _: None, clock=time.monotonic)
    return live(settings)


def live(settings: Settings) -> Path:
    catalog = Catalog(Path(settings.storage.root))
    generation = catalog.pointer().generation
    assert generation is not None
    return catalog.folder_of(generation)


def ranks(settings: Settings, asked: list[StoredQuestion], masks: list[StoredQuestion] | None) -> list[list[str]]:
    """What each question finds, best first."""
    return [[placed.content_hash for placed in ranking] for ranking in rankings_of(settings, asked, masks)]


def rankings_of(
    settings: Settings, asked: list[StoredQuestion], masks: list[StoredQuestion] | None
) -> Sequence[ScoredResults]:
    """The first ten of each question; nothing is masked without masks."""
    assert settings.retrieval.unit is ResultUnit.CHUNK
    queries = [Query(text=one.text, query_id=QueryId(f"q{at}"), k=10) for at, one in enumerate(asked)]
    load = None if masks is None else masking_engines(masks)
    with closing(StoreReplay(settings, times=0, load=load)) as replay:
        return replay.rankings(queries, [(settings, None)])[0]


def test_a_store_makes_its_questions_as_it_is_indexed(settings: Settings) -> None:
    """EVA-4 phase A: they lie in the generation, whose manifest names them, and follow from its contents alone."""
    folder = live(settings)
    questions = stored_questions(folder)
    assert {question.kind for question in questions} >= {"docstring", "sentence"}
    catalog = Catalog(Path(settings.storage.root))
    catalog.verify(folder.name)
    with closing(catalog.open_live()) as generation:
        assert "chunks/questions.parquet" in generation.manifest.files
        texts = {content.content_hash: content.text for content in generation.chunks}
    for question in questions:
        assert question.text.split()[0] in texts[question.content_hash]
        assert not any(question.text in text for name, text in texts.items() if name != question.content_hash)


@pytest.mark.slow
def test_masks_that_hide_nothing_change_nothing(settings: Settings) -> None:
    """EVA-4: vectors, tokens and words of masked contents take their places among all others, but for rounding."""
    questions = stored_questions(live(settings))
    with closing(Catalog(Path(settings.storage.root)).open_live()) as generation:
        texts = {content.content_hash: content.text for content in generation.chunks}
    same = [replace(question, rest=texts[question.content_hash]) for question in questions]
    masked, bare = (rankings_of(settings, questions, masks) for masks in (same, None))
    # FAISS rounds cosines in its own way: what ties but for that may change places, and hand the graph other energy.
    moved = [one for one, other in zip(masked, bare, strict=True) if one[0].content_hash != other[0].content_hash]
    assert len(moved) <= 0.01 * len(questions)
    for one, other in zip(masked, bare, strict=True):
        assert [placed.score for placed in one] == pytest.approx([placed.score for placed in other], abs=0.005)


def test_a_masked_question_is_not_found_by_its_own_words(settings: Settings) -> None:
    """EVA-4: unmasked, nearly every question finds itself first, which shows nothing; masked, it must be understood."""
    questions = stored_questions(live(settings))
    first = {
        name: np.mean([hits[0] == one.content_hash for hits, one in zip(shown, questions, strict=True)])
        for name, shown in (
            ("bare", ranks(settings, questions, None)),
            ("masked", ranks(settings, questions, questions)),
        )
    }
    assert first["bare"] > 0.9
    assert 0.0 < first["masked"] < 0.6


def test_declared_phrases_lead_nowhere_while_they_are_asked(settings: Settings, tmp_path: Path) -> None:
    """EVA-4: the trigger channel and the words of a declared phrase are masked as well."""
    write(
        tmp_path / "pages" / "late.md",
        "# Late\n\nA fee of ten cents a day is due from the first day on, up to ten euros a book.\n",
    )
    write(tmp_path / "pages" / "late.md.meta.json", '{"trigger_phrases": ["zebra quagga okapi"]}')
    write(
        tmp_path / "pages" / "other.md",
        "# Other\n\nNobody is asked for anything in here, and nothing is due by anybody.\n",
    )
    own = settings.model_copy(update={"storage": settings.storage.model_copy(update={"root": str(tmp_path / "store")})})
    questions = stored_questions(indexed(own, [tmp_path / "pages"]))
    (phrase,) = [question for question in questions if question.kind == "trigger"]
    lexical = own.model_copy(
        update={"retrieval": own.retrieval.model_copy(update={"channels": (Channel.LEXICAL, Channel.TRIGGERS)})}
    )
    assert ranks(lexical, [phrase], None) == [[phrase.content_hash]]
    assert ranks(lexical, [phrase], questions) == [[]]


WORDS = [
    *(f"term{letter}" for letter in "abcdefgh"),
    "is",
    "NULL",
    "maxTerm",
    "max_term",
    "--flag",
    "übers",
    "statuses",
]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join), min_size=1, max_size=8)


@given(texts=texts, query=st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join))
def test_texts_beside_an_index_score_as_in_it(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str
) -> None:
    """EVA-4, ING-23: BM25 by the statistics of the index, of texts of any length, whatever the query repeats."""
    rules = load_settings(environment={}).index.lexical
    documents = [LexicalDocument(text, "", "") for text in texts]
    folder = tmp_path_factory.mktemp("beside") / "index"
    write_shard(folder, enumerate(documents), rules)
    with closing(open_lexical([folder], rules, rows=len(texts))) as index:
        found = np.zeros(len(texts))
        for row, score in index.search(query, len(texts)):
            found[row] = score
        assert OutsideTexts(index, documents, rules).scores(query) == pytest.approx(found, rel=1e-5)
