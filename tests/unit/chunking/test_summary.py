from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.chunking.chunker import chunk_document
from weft.chunking.prose.summary import summary_of, within
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Domain

SIZES = ChunkSizes(max_tokens=200, target_tokens=60, min_tokens=4, overlap_tokens=5)
LIMIT = 40


def words(text: str) -> int:
    return len(text.split())


def a_document(text: str, kind: ContentType, **facts: object) -> Document:
    facts = {"domain": Domain.GENERAL, "trust_level": 50, **facts}
    return Document(uri="a", content_type=kind, text=text, **facts)


def summary(document: Document) -> str | None:
    chunks = chunk_document(document, SIZES, words) if document.text.strip() else []
    return summary_of(document, chunks, limit=LIMIT, count_tokens=words)


PROSE = "Locks guard shared state against writers. " + "A queue passes values between threads. " * 3
FILLER = " ".join(f"Sentence number {number} says nothing of note." for number in range(30))


def test_a_short_text_is_its_own_summary() -> None:
    """ING-18: nothing is stored twice."""
    assert summary(a_document(PROSE, ContentType.TEXT)) is None
    assert summary(a_document(PROSE, ContentType.RECORD)) is None


def test_prose_begins_with_its_first_sentence_without_its_markup() -> None:
    """ING-18: headings, fences, tables, comments and front matter are no sentences; links keep their words."""
    parts = [
        "---\ntitle: x\n---\n# Title",
        "<!-- a hidden remark of many words in here -->",
        "```sh\nrm the whole disk at once now\n```",
        "| a | table | of | many | words |",
        f"*Locks* guard [shared state](http://x) against its `writers`. {FILLER}\n",
    ]
    markdown = "\n\n".join(parts)
    found = summary(a_document(markdown, ContentType.MARKDOWN))
    assert found is not None
    assert found.startswith("Locks guard shared state against its writers. Sentence")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            ContentType.MARKDOWN,
            '# T {#t}\n\n!!! note "Locks"\n\n    See [guards of state](a.md){: .x } at any time.\n\n',
        ),
        (
            ContentType.RST,
            "T\n=\n\n.. admonition:: Locks\n   :class: x\n\n   See :ref:`guards of state <a>` at any time.\n\n",
        ),
    ],
)
def test_marks_are_in_no_summary(kind: ContentType, text: str) -> None:
    """ING-18, ING-40: as they are not in the text of a chunk."""
    made = summary(a_document(text + FILLER, kind))
    assert made is not None
    assert made.startswith("See guards of state at any time. Sentence number 0")


def test_code_says_its_docstring_and_its_names() -> None:
    """ING-18: a licence says nothing about a file; methods stand behind their class."""
    body = "".join(f"    def method_{number}(self):\n        return [{number}, {number}]\n\n" for number in range(12))
    head = '# Copyright 2020 Ann.\n# All rights reserved.\n"""Locks for threads."""\n\n'
    python = f"{head}class Lock:\n{body}\ndef held():\n    pass\n"
    code = {"domain": Domain.CODE, "language": "python"}
    assert summary(a_document(python, ContentType.CODE, **code)) == "Locks for threads. Defines: Lock, held."
    head = "// Licensed under X.\n\n// Package lock holds locks.\npackage lock\n\n"
    go = f"{head}func Held() int {{ return {'1 + ' * 60}1 }}\n"
    found = summary(a_document(go, ContentType.CODE, domain=Domain.CODE, language="go"))
    assert found == "Package lock holds locks. Defines: Held."


YAML = "# Where things are.\nroot: /a\nkeys:\n  inner: 1\n" + "  more: 2\n" * 40
JSON = '{\n  "name": "x",\n  "scripts": {\n' + '    "a": "b c d",\n' * 40 + '    "z": 1\n  }\n}\n'
TOML = "[project]\nname = 'a'\n" + "x = 'a b c'\n" * 20 + "[tool.ruff]\n" + "y = 1\n" * 20


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("yaml", YAML, "Where things are. Sets: root, keys."),
        ("json", JSON, "Sets: name, scripts."),
        ("toml", TOML, "Sets: project, tool.ruff."),
        ("dockerfile", "FROM python:3.11 AS build\n" + "RUN do this and that\n" * 20, "Sets: FROM python:3.11."),
    ],
)
def test_configuration_says_what_it_sets(language: str, text: str, expected: str) -> None:
    """ING-18: the keys on top, in order."""
    assert summary(a_document(text, ContentType.CONFIGURATION, domain=Domain.CODE, language=language)) == expected


def test_a_paper_is_summed_up_by_its_abstract() -> None:
    """ING-18: its authors did the work."""
    latex = f"\\title{{X}}\n\\begin{{abstract}}\nWe lock. It works.\n\\end{{abstract}}\n\\section{{One}}\n{FILLER}\n"
    found = summary(a_document(latex, ContentType.PAPER, domain=Domain.ACADEMIC, language="latex"))
    assert found == "We lock. It works."


def test_a_conversation_is_named_and_begun() -> None:
    """ING-18: who spoke, and how it began."""
    turns = "Ann: Shall we lock?\n\nBob: Yes, at once.\n\n" + "Ann: And then what?\n\nBob: We wait.\n\n" * 20
    document = a_document(turns, ContentType.CONVERSATION, domain=Domain.HISTORY, metadata={"speakers": "Ann, Bob"})
    found = summary(document)
    assert found is not None
    assert found.startswith("Conversation of Ann, Bob. Ann: Shall we lock? Bob: Yes, at once.")


@given(st.text(st.sampled_from("ab .#`*[(\n-"), max_size=600), st.sampled_from(list(ContentType)))
def test_no_summary_is_longer_than_it_may_be(text: str, kind: ContentType) -> None:
    """ING-18: at most the limit in tokens, the same each time, and never an error."""
    document = a_document(text, kind)
    found = summary_of(document, [], limit=LIMIT, count_tokens=words)
    assert found == summary_of(document, [], limit=LIMIT, count_tokens=words)
    assert found is None or 0 < words(found) <= LIMIT


@given(st.text(st.sampled_from("ab. \n"), max_size=80), st.integers(1, 12))
def test_a_text_is_cut_within_its_limit(text: str, limit: int) -> None:
    """ING-18: what is kept is a beginning of the text, blanks apart."""
    kept = within(text, limit, words)
    assert words(kept) <= limit
    assert " ".join(text.split()).startswith(kept)


HOSTILE = [
    *(sign * 100_000 for sign in ("[", "*", "a")),
    *(sign * 40_000 for sign in ("<!--", "/*", "x\n", "```\n~~~\n")),
    " " * 99_999 + "x",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("kind", list(ContentType))
def test_a_summary_of_hostile_text_reads_its_beginning_alone(text: str, kind: ContentType) -> None:
    """ING-3: what follows changes nothing, however long it is."""
    short, whole = (
        summary_of(a_document(some, kind), [], limit=200, count_tokens=words) for some in (text, text + text)
    )
    assert short == whole
