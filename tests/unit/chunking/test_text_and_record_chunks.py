"""ING-10: plain text in sentence-aligned windows. ING-1: records of a corpus stay whole."""

from dataclasses import replace
from itertools import pairwise

import pytest

from weft.chunking.chunker import CHUNKERS, chunk_document, chunk_or_fallback
from weft.chunking.units.splitting import ChunkSizes, TokenCounter
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.ingestion.sizing import prior_sizes
from weft.settings import load_settings

SIZES = ChunkSizes(max_tokens=50, target_tokens=20, min_tokens=5, overlap_tokens=6)


def words(text: str) -> int:
    return len(text.split())


def a_document(
    text: str, content_type: ContentType = ContentType.TEXT, title: str | None = None, language: str | None = None
) -> Document:
    return Document(
        uri="a",
        content_type=content_type,
        domain=Domain.GENERAL,
        text=text,
        title=title,
        language=language or ("python" if content_type is ContentType.CODE else None),
        trust_level=60,
    )


def chunks_of(document: Document, count: TokenCounter = words) -> list[Chunk]:
    return chunk_document(document, SIZES, count)


def test_every_content_type_has_a_chunker() -> None:
    """ING-5, ING-6, ING-10."""
    assert set(CHUNKERS) == set(ContentType)


def test_windows_are_of_whole_sentences_and_overlap() -> None:
    """ING-10: sentence-aligned, up to the target, sharing up to the overlap."""
    sentences = [f"Number {n} is a sentence." for n in range(12)]  # five words each
    chunks = chunks_of(a_document(" ".join(sentences)))
    # Four sentences fill 20 words; the next window repeats one, since two would be 10 > 6.
    assert [chunk.text for chunk in chunks] == [" ".join(sentences[first : first + 4]) for first in (0, 3, 6)] + [
        " ".join(sentences[9:])
    ]
    assert {(chunk.kind, chunk.level) for chunk in chunks} == {("window", 3)}


def test_a_short_text_is_one_chunk_on_level_0() -> None:
    """ING-10: below the minimum only where the text itself is."""
    (chunk,) = chunks_of(a_document("One. Two."))
    assert (chunk.level, chunk.text, chunk.tokens) == (0, "One. Two.", 2)


def test_a_last_window_below_the_minimum_joins_the_one_before() -> None:
    """ING-10: 20 words and 3 more are one window of 23, below the maximum of 50."""
    (chunk,) = chunks_of(a_document("Four words are here. " * 5 + "Three words more."))
    assert chunk.tokens == 23


def test_a_formal_language_is_cut_at_lines() -> None:
    """ING-10: sentences mean nothing in configuration."""
    chunks = chunks_of(a_document("key: a. b. c\n" * 20, language="yaml"))
    assert all(chunk.text.endswith("c") and chunk.text.startswith("key") for chunk in chunks)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_is_cut_between_its_records(separator: str) -> None:
    """ING-36: a cell may run over lines, and hold other separators; each piece begins with the names of columns."""
    rows = [f'Town {n}|"line one\nline; two, {n}"|{n}' for n in range(40)]
    text = "\n".join(["Town|Note|Sum", *rows, ""]).replace("|", separator)
    chunks = chunks_of(a_document(text, language="csv"))
    assert len(chunks) > 8
    for chunk in chunks:
        assert chunk.text.startswith(f"Town{separator}Note{separator}Sum\n")
        assert chunk.text.count('"') % 2 == 0
        assert not chunk.text.partition("\n")[2].startswith("line")


@pytest.mark.parametrize(
    "above", ["Sales by region\nMade: 2024-01-02\n\n", "Sales by region,,,\n", "# Sales, 2024\n", ""]
)
@pytest.mark.parametrize("head", ["Region,Month,Units,Note", ",Month,Units,Note", '"Region",Month,Units,Note,'])
def test_the_columns_of_csv_are_named_below_its_title(above: str, head: str) -> None:
    """ING-36: by the first record that has as many cells as most."""
    rows = "".join(f"North {n},2024-01,{n},some more words\n" for n in range(40))
    first, *others = chunks_of(a_document(f"{above}{head}\n{rows}", language="csv"))
    assert first.text.startswith(f"{above}{head}\n")
    assert len(others) > 5
    assert all(chunk.text.startswith(f"{head}\nNorth") for chunk in others)


def test_a_quotation_mark_that_nothing_closes_swallows_no_table() -> None:
    """ING-36, ING-3: then lines are records; without rows that are alike, the first names the columns."""
    rows = "".join(f'Pipe {n},"{n} inch,some more words\n' for n in range(1, 6_000, 2))
    chunks = chunks_of(a_document(f"Part,Size,Note\n{rows}", language="csv"))
    assert all(chunk.text.startswith("Part,Size,Note\nPipe") for chunk in chunks)
    assert chunks_of(a_document("", language="csv")) == []
    lone = chunks_of(a_document("Name\n" + "one two three\n" * 40, language="csv"))
    assert all(chunk.text.startswith("Name\none two three") for chunk in lone)


def test_a_word_longer_than_a_chunk_may_be_is_cut_between_characters() -> None:
    """ING-12: the limit holds; no character is torn."""
    text = "漢" * 300
    chunks = chunk_document(a_document(text), SIZES, len)
    assert all(set(chunk.text) == {"漢"} and chunk.tokens <= 50 for chunk in chunks)


def test_a_record_stays_whole_with_its_title() -> None:
    """ING-1: `title`, line end, `text`."""
    (chunk,) = chunks_of(a_document("word " * 45, ContentType.RECORD, title="A title"))
    assert (chunk.level, chunk.kind, chunk.text) == (0, "record", "A title\n" + ("word " * 45).rstrip())


def test_a_record_above_its_limit_is_cut_under_its_title() -> None:
    """ING-12: parts carry the title."""
    chunks = chunks_of(a_document("Some more words here. " * 40, ContentType.RECORD, title="A title"))
    assert len(chunks) > 5
    assert all(chunk.text.startswith("A title\nSome") and chunk.tokens <= 20 for chunk in chunks)


def test_what_of_a_record_is_not_read_whole_is_in_windows_besides() -> None:
    """ING-36: the record stays as it is; windows are its children, under its title, none of what is read already."""
    text = " ".join(f"Number {n} is a sentence." for n in range(9))  # 45 words, and 2 of the title
    record = a_document(text, ContentType.RECORD, title="A title")
    (alone,) = chunks_of(record)
    whole, *windows = chunk_document(record, replace(SIZES, read_tokens=25), words)
    assert (whole.chunk_id, whole.content_hash, whole.text) == (alone.chunk_id, alone.content_hash, alone.text)
    assert {(each.kind, each.level, each.parent_id) for each in windows} == {("window", 3, whole.chunk_id)}
    assert all(each.text.startswith("A title\nNumber") and each.tokens <= 25 for each in windows)
    assert windows[-1].text.endswith("Number 8 is a sentence.")
    # 23 words are read beside the title: four sentences of five words each, and not the end of the fifth.
    assert windows[0].text.startswith("A title\nNumber 4")
    assert chunk_document(record, replace(SIZES, read_tokens=47), words) == [alone]


def test_a_record_of_a_title_alone_is_still_found() -> None:
    """ING-1: half of some collections are titles without a text."""
    (chunk,) = chunks_of(a_document("", ContentType.RECORD, title="A title"))
    assert (chunk.text, chunk.start_byte, chunk.end_byte) == ("A title", 0, 0)


def test_a_crash_of_the_parser_leaves_windows_and_a_note() -> None:
    """ING-3: a document that its chunker cannot handle never stops a run and never disappears."""
    calls = []

    def refuses_once(text: str) -> int:
        calls.append(text)
        if len(calls) == 1:
            raise RecursionError("too deep")
        return words(text)

    document = a_document("x = 1\n", ContentType.CODE)
    chunks, note = chunk_or_fallback(document, SIZES, refuses_once)
    assert [chunk.kind for chunk in chunks] == ["window"]
    assert note is not None
    assert (note.uri, note.reason, note.detail) == ("a", "parser_crashed", "RecursionError: too deep")


def test_sizes_come_from_the_domain_and_records_have_their_own_limit() -> None:
    """ING-11: every size is a setting, and every chunk keeps those that made it."""
    settings = load_settings([], ["priors.sizing.domains.code.target=77"], environment={})
    sizes = prior_sizes(settings.chunking, settings.priors, limit=254)
    code = Document(
        uri="a", content_type=ContentType.CODE, domain=Domain.CODE, text="x = 1", language="python", trust_level=100
    )
    assert sizes.sizes_of(code).target_tokens == 77
    record = a_document("x", ContentType.RECORD)
    assert sizes.sizes_of(record).max_tokens == settings.chunking.record_max_tokens
    (chunk,) = chunk_document(code, sizes.sizes_of(code), words)
    assert "target=77" in chunk.sizing


@pytest.mark.parametrize("wrong", [(10, 20, 1, 1), (20, 10, 1, 10), (20, 10, -1, 1)])
def test_sizes_that_contradict_each_other_are_refused(wrong: tuple[int, int, int, int]) -> None:
    """ING-11: overlap < target <= max, min >= 0."""
    with pytest.raises(ValueError, match="expected 0 <= overlap"):
        ChunkSizes(*wrong)


@pytest.mark.parametrize(
    ("text", "content_type"),
    [
        ("[" * 20_000, ContentType.CODE),
        ("(" * 20_000, ContentType.CODE),
        ("x = " + "(" * 20_000 + "1" + ")" * 20_000, ContentType.CODE),
        ("x" + ".a()" * 10_000, ContentType.CODE),
        ("".join(" " * n + "if a:\n" for n in range(1500)) + " " * 1500 + "b\n", ContentType.CODE),
        ("[a](" * 20_000, ContentType.MARKDOWN),
        ("> " * 5_000 + "a", ContentType.MARKDOWN),
        ("a" * 200_000, ContentType.TEXT),
        ("\n" * 200_000 + "a", ContentType.TEXT),
    ],
)
def test_a_hostile_document_costs_seconds_and_loses_nothing(text: str, content_type: ContentType) -> None:
    """ING-3: at most 10 s, and every byte is in a chunk, whether its own chunker or the windows cut it."""
    chunks, _ = chunk_or_fallback(a_document(text, content_type), SIZES, len)
    assert chunks[0].start_byte == 0
    assert all(right.start_byte <= left.end_byte for left, right in pairwise(chunks))
    assert chunks[-1].end_byte == len(text)
