"""A generation's own questions: made as it is built, so that the first night has something to measure (EVA-4).

What a content says of itself, asked, should find the rest of it: the inverse cloze task (Lee, Chang and Toutanova, ACL
2019). Contents come in the order of their hashes, so the first of them are a fair sample.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.chunking.ground_truth import verbatim, without_docstring
from weft.domain.documents import ContentType
from weft.domain.ids import ContentHash
from weft.indexes.manifest import CHUNKS_FOLDER
from weft.indexes.schemas import QUESTIONS
from weft.indexes.shards import MapTasks
from weft.runtime.storage.run_files import Brought

MOST = 300
"""Questions of a generation: enough for what is called strong evidence, few enough to be asked every night."""

_LOOKED_AT = 20 * MOST  # contents: bounds what is read of a store in which few say anything to ask with
_BATCH = 1_024
_FILE = "questions.parquet"
_OF_CHUNKS = ("content_hash", "uri", "text", "kind", "sequence", "heading_path", "completeness")
_OF_DOCUMENTS = ("uri", "title", "content_type", "language", "triggers")

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_IS_SENTENCE = re.compile(r"[\"'(]?[^\W_].*[.!?]$")  # neither a row of a table nor a line of a list
_SPEAKER = re.compile(r"^[^\W\d][\w .-]{0,30}: ")
_NAME_WORDS = 3  # of a heading, a title or a phrase: fewer name many things
_SENTENCE_WORDS = range(6, 31)  # fewer say little, more are no question that anybody types
_REMAINING_WORDS = 10  # without which nothing is left to be found


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """A question that one content of a generation answers."""

    text: str
    content_hash: ContentHash
    kind: str  # what it was in that content, see `ContentQuestion`
    rest: str  # the content's text without the question


def write_questions(generation: Path, shards: Sequence[Path], run: MapTasks = map) -> int:
    """Make the questions of a generation whose tables are written, and keep them beside these; how many there are."""
    questions = _made(shards, run)
    rows = [asdict(question) for question in questions]
    pq.write_table(pa.Table.from_pylist(rows, QUESTIONS), generation / CHUNKS_FOLDER / _FILE, write_page_checksum=True)
    return len(rows)


def stored_questions(generation: Path) -> list[StoredQuestion]:
    """The questions of a generation by its folder; one that answers by words first has none."""
    file = generation / CHUNKS_FOLDER / _FILE
    rows = pq.read_table(file).to_pylist() if file.exists() else []
    return [StoredQuestion(**{**row, "content_hash": ContentHash(row["content_hash"])}) for row in rows]


@dataclass(frozen=True, slots=True)
class _Asking:
    """A shard whose first contents may have questions."""

    number: int
    tables: Path
    documents: tuple[Path, ...]  # the tables of all shards

    @property
    def reads(self) -> list[Brought]:
        """What is known of documents."""
        return [Brought(file.parent, (file.name,)) for file in self.documents]


@dataclass(frozen=True, slots=True)
class _Finding:
    """Questions that may stand in the texts of a shard."""

    number: int
    tables: Path
    asked: Sequence[str]
    rests: Mapping[ContentHash, str]  # what contents with a question say besides it


def _made(shards: Sequence[Path], run: MapTasks) -> list[StoredQuestion]:
    """Questions that have one answer: asked once, and word for word in no content."""
    tables = [shard / CHUNKS_FOLDER for shard in shards]
    documents = tuple(folder / "documents.parquet" for folder in tables)
    some: list[StoredQuestion] = []
    passed = 0  # contents of the shards before
    for asked, contents in run(_asked, [_Asking(number, each, documents) for number, each in enumerate(tables)]):
        some += [question for place, question in asked if passed + place < _LOOKED_AT]
        passed += contents
    some = some[:MOST]
    times = Counter(question.text for question in some)
    rests = {question.content_hash: question.rest for question in some}
    finding = [_Finding(number, each, list(times), rests) for number, each in enumerate(tables)]
    elsewhere = set[str]().union(*run(_verbatim_in, finding))
    return [each for each in some if times[each.text] == 1 and each.text not in elsewhere]


def _asked(task: _Asking) -> tuple[list[tuple[int, StoredQuestion]], int]:
    """Questions of the first contents, each with the content's place in the shard, and how many contents it has."""
    asked = list(islice(_questions(task), MOST))
    return asked, pq.read_metadata(task.tables / "contents.parquet").num_rows


def _questions(task: _Asking) -> Iterator[tuple[int, StoredQuestion]]:
    """A question of each content that has one, in the order of their hashes; none of what stands in several places."""
    contents = islice(groupby(_chunks(task), key=lambda row: row["content_hash"]), _LOOKED_AT)
    for place, (content, places) in enumerate(contents):
        row, *others = places
        whole = row["kind"] == "section" and row["completeness"] == 1.0
        question = question_in(
            AskableText(
                text=row["text"],
                content_type=ContentType(row["content_type"]),
                language=row["language"],
                title=row["title"],
                headings=row["heading_path"] if whole else (),
                triggers=row["triggers"] if row["sequence"] == 0 else (),
            )
        )
        if question is not None and not others:
            yield place, StoredQuestion(question.text, ContentHash(content), question.kind, question.rest)


def _chunks(task: _Asking) -> Iterator[Mapping[str, Any]]:
    """Chunks with what is known of their documents, read as they are asked for."""
    some = pq.read_table(task.tables / "contents.parquet", columns=["occurrences"]).slice(0, _LOOKED_AT)
    rows = pc.sum(some["occurrences"]).as_py() or 0
    wanted = pq.read_table(task.tables / "chunks.parquet", columns=["uri"])["uri"].slice(0, rows).unique()
    tables = (pq.read_table(file, columns=list(_OF_DOCUMENTS)) for file in task.documents)
    documents = pa.concat_tables([table.filter(pc.is_in(table["uri"], value_set=wanted)) for table in tables])
    uris = documents["uri"].combine_chunks()
    for batch in _batches(task.tables, _OF_CHUNKS):
        facts = documents.take(pc.index_in(batch["uri"], value_set=uris))
        for row, fact in zip(batch.to_pylist(), facts.to_pylist(), strict=True):
            yield {**fact, **row}


def _verbatim_in(task: _Finding) -> set[str]:
    """Which questions stand word for word in a text, less the question of a content that has one."""
    texts = (
        task.rests.get(ContentHash(row["content_hash"]), row["text"])
        for batch in _batches(task.tables, ("content_hash", "text"))
        for row in batch.to_pylist()
    )
    return verbatim(task.asked, texts)


def _batches(tables: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Chunks of a shard, some at a time."""
    yield from pq.ParquetFile(tables / "chunks.parquet").iter_batches(batch_size=_BATCH, columns=list(columns))


@dataclass(frozen=True, slots=True)
class ContentQuestion:
    """A question that one content answers."""

    text: str
    kind: str  # "trigger", "docstring", "heading", "title" or "sentence": what it was
    rest: str  # the content's text without it


@dataclass(frozen=True, slots=True, kw_only=True)
class AskableText:
    """A content's text, and what else is said of it that may ask for it."""

    text: str
    content_type: ContentType
    language: str | None = None
    title: str | None = None  # of its document
    headings: Sequence[str] = ()  # those above it that belong to nothing else, outermost first
    triggers: Sequence[str] = ()  # phrases that are declared for it


def question_in(content: AskableText) -> ContentQuestion | None:
    """The first question of a content: a declared phrase, a docstring, a heading, a title, or a sentence."""
    for kind, question, rest in _candidates(content):
        words, left = _words(question), _words(rest)
        least = _SENTENCE_WORDS.start if kind in ("docstring", "sentence") else _NAME_WORDS
        if len(words) >= least and len(left) >= _REMAINING_WORDS and " ".join(words) not in " ".join(left):
            return ContentQuestion(question, kind, rest)
    return None


def _candidates(content: AskableText) -> Iterator[tuple[str, str, str]]:
    text, title, headings = content.text, content.title, content.headings
    for phrase in content.triggers:
        yield "trigger", phrase, text.replace(phrase, "")
    if content.content_type is ContentType.CODE:
        if (taken := without_docstring(text, content.language)) is not None:
            yield "docstring", *taken
    elif content.content_type is not ContentType.CONFIGURATION:
        if headings and headings[-1] in text:
            yield "heading", headings[-1], text.replace(headings[-1], "")
        if content.content_type is ContentType.RECORD and title and text.startswith(title):
            yield "title", title, text.removeprefix(title)
        for sentence in _sentences(text):
            yield "sentence", sentence, text.replace(sentence, "")


def _sentences(text: str) -> list[str]:
    """Sentences of a usual length, those that ask first."""
    sentences = [_SPEAKER.sub("", each.strip()) for each in _SENTENCE.split(text)]
    usual = [each for each in sentences if _IS_SENTENCE.match(each) and len(_words(each)) in _SENTENCE_WORDS]
    return sorted(usual, key=lambda each: not each.endswith("?"))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
