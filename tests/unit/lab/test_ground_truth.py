"""EVA-4: synthetic questions whose answer is known, and documents that do not give them away."""

import ast
import sysconfig
from pathlib import Path

from lab.ground_truth import masked, masked_corpus
from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Domain

SIZES = ChunkSizes(max_tokens=4096, target_tokens=300, min_tokens=1, overlap_tokens=50)
MODULE = '''"""The module says many words that nobody asks with."""


class Shelf:
    """Keeps many books in the order of arrival.

    More about it.
    """

    def take(self):
        r"""Take the \\first book from the left, e.g. the oldest one. Then some more."""
        return self.books.pop(0)


def short():
    """Too few words."""


def repeated():
    """These words stand in two places here."""
    return "These words stand in two places here."
'''
PAGE = (
    "# Shelves and their many books\n\nIntro.\n\nHow books are kept {#kept}\n---\n\nIn rows.\n\n## Short one\n\nText.\n"
)


def words(text: str) -> int:
    return len(text.split())


def a_document(text: str, content_type: ContentType, uri: str = "tree/file", language: str = "python") -> Document:
    return Document(
        uri=uri, content_type=content_type, domain=Domain.CODE, text=text, language=language, trust_level=100
    )


def test_the_first_sentence_of_a_docstring_asks_for_its_unit() -> None:
    """EVA-4: sentences of six words or more that stand nowhere else."""
    document, questions = masked(a_document(MODULE, ContentType.CODE), SIZES, words)
    chunks = {chunk.chunk_id: chunk for chunk in chunk_document(document, SIZES, words)}
    assert {question.text: chunks[question.chunk_id].symbol for question in questions} == {
        "Keeps many books in the order of arrival.": "Shelf",
        r"Take the \first book from the left, e.g. the oldest one.": "Shelf.take",
    }
    assert all(chunks[question.chunk_id].content_hash == question.content_hash for question in questions)


def test_the_masked_module_still_parses_and_keeps_the_rest() -> None:
    """EVA-4: only the sentence itself is gone."""
    document, _ = masked(a_document(MODULE, ContentType.CODE), SIZES, words)
    shelf = ast.parse(document.text).body[1]
    assert isinstance(shelf, ast.ClassDef)
    assert ast.get_docstring(shelf) == "More about it."
    assert ast.get_docstring(shelf.body[1]) == "Then some more."


def test_a_masked_heading_leaves_its_section_in_place() -> None:
    """EVA-4: the heading becomes an ordinal; rank, anchor and text stay."""
    document, questions = masked(a_document(PAGE, ContentType.MARKDOWN), SIZES, words)
    assert [question.text for question in questions] == ["Shelves and their many books", "How books are kept"]
    before = chunk_document(a_document(PAGE, ContentType.MARKDOWN), SIZES, words)
    after = chunk_document(document, SIZES, words)
    assert [chunk.level for chunk in after] == [chunk.level for chunk in before]
    assert [chunk.anchor for chunk in after[1:]] == [chunk.anchor for chunk in before[1:]] == ["kept", "short-one"]
    assert [chunk.heading_path[-1] for chunk in after] == ["Section 1", "Section 2", "Short one"]
    assert questions[1].chunk_id == after[1].chunk_id
    assert "In rows." in after[1].text


def test_what_two_documents_say_is_not_asked() -> None:
    """EVA-4: a question with two answers, or one that another document gives away, judges nothing."""
    first = (
        'def f():\n    """Count the books on every shelf."""\n\n\ndef g():\n    """Sort the books on every shelf."""\n'
    )
    second = 'def h():\n    """Count the books on every shelf."""\n'
    third = "He said: Sort the books on every shelf. And left.\n"
    documents = [
        a_document(first, ContentType.CODE, "a"),
        a_document(second, ContentType.CODE, "b"),
        a_document(third, ContentType.TEXT, "c"),
    ]
    remaining, questions = masked_corpus(documents, lambda _: SIZES, words)
    assert questions == []
    assert [document.uri for document in remaining] == ["a", "b", "c"]


def test_masked_modules_of_the_library_parse_and_hold_no_question() -> None:
    """EVA-4: on real files, every question finds a chunk that does not hold it."""
    paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("[c-h]*.py"))[::5]
    documents = [a_document(path.read_text(encoding="utf-8"), ContentType.CODE, path.name) for path in paths]
    remaining, questions = masked_corpus(documents, lambda _: SIZES, words)
    assert len(questions) > 20
    held = {chunk.chunk_id: chunk for document in remaining for chunk in chunk_document(document, SIZES, words)}
    for document in remaining:
        ast.parse(document.text)
    flat = [" ".join(document.text.split()) for document in remaining]
    for question in questions:
        assert held[question.chunk_id].content_hash == question.content_hash
        assert not any(question.text in text for text in flat)
