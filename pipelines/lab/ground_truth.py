"""Synthetic ground truth: a docstring's first sentence, or a heading, should find its own chunk (EVA-4).

The text that is asked with is taken out of the document first, so that no index holds it verbatim.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from weft.chunking.chunker import chunk_or_fallback
from weft.chunking.ground_truth import Mask, docstring_masks, flattened, verbatim, without
from weft.chunking.prose.markdown import markdown_outline
from weft.chunking.prose.outline import Block, Heading
from weft.chunking.units.splitting import ChunkSizes, TokenCounter, encoded
from weft.domain.documents import ContentType, Document
from weft.domain.ids import ChunkId, ContentHash
from weft.evaluation.ground_truth.collect import BEST, Judgement, JudgementSource, judged

_WORD = re.compile(r"\w+")
_HEADING_WORDS = 3


@dataclass(frozen=True, slots=True)
class SyntheticQuestion:
    """A question whose answer is known from where it was taken."""

    text: str
    uri: str
    chunk_id: ChunkId  # The chunk that it was taken out of, as chunking the masked document gives it
    content_hash: ContentHash
    kind: str  # "docstring" or "heading"
    place: int  # byte offset in the masked document at which it was taken out


def masked(
    document: Document, sizes: ChunkSizes, count_tokens: TokenCounter
) -> tuple[Document, list[SyntheticQuestion]]:
    """The document without the texts that are asked with, and the questions.

    Python: the first sentence of a function's or class's docstring, of six words or more. Markdown: a heading of
    three words or more. A text that still stands elsewhere in the document is masked but not asked.
    """
    masks = _masks(document)
    if not masks:
        return document, []
    text, places = without(document.text, masks)
    titles = {mask.question for mask in masks}
    remaining = replace(document, text=text, title=None if document.title in titles else document.title)
    chunks, _ = chunk_or_fallback(remaining, sizes, count_tokens)
    flat = flattened(text)
    kind = "heading" if document.content_type is ContentType.MARKDOWN else "docstring"
    questions = []
    for mask, place in zip(masks, places, strict=True):
        chunk = next((chunk for chunk in chunks if chunk.start_byte <= place < chunk.end_byte), None)
        if mask.question not in flat and chunk is not None:
            questions.append(
                SyntheticQuestion(mask.question, document.uri, chunk.chunk_id, chunk.content_hash, kind, place)
            )
    return remaining, questions


def masked_corpus(
    documents: Iterable[Document], sizes_of: Callable[[Document], ChunkSizes], count_tokens: TokenCounter
) -> tuple[list[Document], list[SyntheticQuestion]]:
    """Every document masked, and the questions that have one answer: asked once, verbatim in no document."""
    pairs = [masked(document, sizes_of(document), count_tokens) for document in documents]
    remaining = [document for document, _ in pairs]
    questions = [question for _, asked in pairs for question in asked]
    times = Counter(question.text for question in questions)
    elsewhere = verbatim(times, (document.text for document in remaining))
    return remaining, [each for each in questions if times[each.text] == 1 and each.text not in elsewhere]


def _masks(document: Document) -> list[Mask]:
    source = encoded(document.text)
    if document.content_type is ContentType.CODE:
        return list(docstring_masks(source, document.language))
    if document.content_type is ContentType.MARKDOWN:
        blocks = markdown_outline(document.text, source).blocks
        headings = [(block, block.heading) for block in blocks if block.heading is not None]
        return [
            _heading_mask(block, heading, ordinal, source)
            for ordinal, (block, heading) in enumerate(headings, start=1)
            if len(_WORD.findall(heading.title)) >= _HEADING_WORDS
        ]
    return []


def _heading_mask(block: Block, heading: Heading, ordinal: int, source: bytes) -> Mask:
    # The section must stay a section, so its heading becomes an ordinal, which says nothing about what is under it.
    line = source[block.start : block.end]
    line_end = line[len(line.rstrip(b"\r\n")) :]
    anchor = f" {{#{heading.anchor}}}" if heading.anchor else ""
    neutral = encoded(f"{'#' * heading.rank} Section {ordinal}{anchor}")
    return Mask(block.start, block.end, neutral + line_end, flattened(heading.title))


def from_questions(questions: Iterable[SyntheticQuestion], *, now: float) -> list[Judgement]:
    """The first phase: each question's own chunk is right."""
    return [
        judged(question.text, question.content_hash, BEST, source=JudgementSource.SYNTHETIC, by=question.kind, now=now)
        for question in questions
    ]
