"""A generation's own questions: made as it is built, so that the first night has something to measure (EVA-4).

Contents are in the order of their hashes, so the first of them are a fair sample. The choice depends only on the
contents, and most questions stay the same if most contents do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.chunking.ground_truth import verbatim
from pipelines.chunking.questions import AskableText, question_in
from pipelines.domain.documents import ContentType
from pipelines.domain.ids import ContentHash
from pipelines.indexes.manifest import CHUNKS_FOLDER
from pipelines.indexes.schemas import QUESTIONS

MOST = 300
"""Questions of a generation: enough for what is called strong evidence, few enough to be asked every night."""

_LOOKED_AT = 20 * MOST  # contents: bounds what is read of a store in which few say anything to ask with
_BATCH = 1_024
_FILE = "questions.parquet"
_OF_CHUNKS = ("content_hash", "uri", "text", "kind", "sequence", "heading_path", "completeness")
_OF_DOCUMENTS = ("uri", "title", "content_type", "language", "triggers")


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """A question that one content of a generation answers.

    Attributes:
        kind: What it was in that content, see `ContentQuestion`.
        rest: The content's text without the question.
    """

    text: str
    content_hash: ContentHash
    kind: str
    rest: str


def write_questions(generation: Path) -> int:
    """Make the questions of a generation whose tables are written, and keep them beside these; how many there are."""
    questions = _made(generation / CHUNKS_FOLDER)
    rows = [asdict(question) for question in questions]
    pq.write_table(pa.Table.from_pylist(rows, QUESTIONS), generation / CHUNKS_FOLDER / _FILE, write_page_checksum=True)
    return len(rows)


def stored_questions(generation: Path) -> list[StoredQuestion]:
    """The questions of a generation by its folder; one that was built before there were any has them made now."""
    path = generation / CHUNKS_FOLDER / _FILE
    if not path.is_file():
        return _made(generation / CHUNKS_FOLDER)
    rows = pq.read_table(path).to_pylist()
    return [StoredQuestion(**{**row, "content_hash": ContentHash(row["content_hash"])}) for row in rows]


def _made(tables: Path) -> list[StoredQuestion]:
    """Questions that have one answer: asked once, and word for word in no content."""
    some = list(islice(_asked(tables), MOST))
    times = Counter(question.text for question in some)
    rests = {question.content_hash: question.rest for question in some}
    elsewhere = verbatim(times, _texts(tables, rests))
    return [each for each in some if times[each.text] == 1 and each.text not in elsewhere]


def _asked(tables: Path) -> Iterator[StoredQuestion]:
    """A question of each content that has one, in the order of their hashes; none of what stands in several places."""
    for content, places in islice(groupby(_chunks(tables), key=lambda row: row["content_hash"]), _LOOKED_AT):
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
            yield StoredQuestion(question.text, ContentHash(content), question.kind, question.rest)


def _chunks(tables: Path) -> Iterator[Mapping[str, Any]]:
    """Chunks with what is known of their documents, read as they are asked for."""
    documents = pq.read_table(tables / "documents.parquet", columns=list(_OF_DOCUMENTS))
    uris = documents["uri"].combine_chunks()
    chunks = pq.ParquetFile(tables / "chunks.parquet")
    for batch in chunks.iter_batches(batch_size=_BATCH, columns=list(_OF_CHUNKS)):
        facts = documents.take(pc.index_in(batch["uri"], value_set=uris))
        for row, fact in zip(batch.to_pylist(), facts.to_pylist(), strict=True):
            yield {**fact, **row}


def _texts(tables: Path, rests: Mapping[ContentHash, str]) -> Iterator[str]:
    """What every content says, less the question of those that have one."""
    chunks = pq.ParquetFile(tables / "chunks.parquet")
    for batch in chunks.iter_batches(batch_size=_BATCH, columns=["content_hash", "text"]):
        for row in batch.to_pylist():
            yield rests.get(ContentHash(row["content_hash"]), row["text"])
