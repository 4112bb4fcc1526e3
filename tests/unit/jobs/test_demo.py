"""The demonstration's own rules; the whole of it is `make run`."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs._demo_corpus import make_room, prepare, split
from pipelines.chunking.ground_truth import SyntheticQuestion
from pipelines.domain.errors import StoreError
from pipelines.domain.ids import ChunkId, content_hash
from pipelines.settings import load_settings


def a_question(text: str) -> SyntheticQuestion:
    return SyntheticQuestion(
        text=text, uri="a.py", chunk_id=ChunkId("c"), content_hash=content_hash(text), kind="docstring", place=0
    )


def test_held_out_questions_are_never_learned_from() -> None:
    """EVA-6: the two halves share no question, and the same ones are drawn whatever order they are found in."""
    questions = [a_question(f"What does number {number} of the functions do?") for number in range(50)]
    lessons, held_out = split(questions, 40)
    assert (len(lessons), len(held_out)) == (20, 20)
    assert not {one.text for one in lessons} & {one.text for one in held_out}
    assert split(questions[::-1], 40) == (lessons, held_out)


def test_a_store_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """ARC-2: the demonstration starts afresh, so it must never be pointed at a store that is in use."""
    (tmp_path / "generations").mkdir()
    with pytest.raises(StoreError, match="generations"):
        make_room(tmp_path)
    assert (tmp_path / "generations").is_dir()


def test_its_own_store_is_emptied_but_for_the_caches(tmp_path: Path) -> None:
    """OPS-1: `make run` may be run again, and is quicker then."""
    for name in ("cache", "demo", "generations", "updaters"):
        (tmp_path / name).mkdir()
    make_room(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_nothing_that_is_asked_stands_in_what_is_indexed(tmp_path: Path) -> None:
    """EVA-4: the queried text itself is masked."""
    corpus = prepare(tmp_path / "demo", load_settings(environment={}), modules=3)
    texts = [path.read_text(encoding="utf-8") for source in corpus.sources for path in source.rglob("*.py")]
    assert corpus.questions
    assert not [question.text for question in corpus.questions if any(question.text in text for text in texts)]
