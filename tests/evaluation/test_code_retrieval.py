"""ING-5, EVA-4: chunks of source code beside a plain splitter's, by what stays whole and by what is found."""

from __future__ import annotations

import gzip
import json
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer

from lab.ground_truth import masked_corpus
from tests.support.code_units import kept_whole, plain_windows, python_files, python_functions
from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Domain
from weft.embedding.encoders.encoder import Encoder, load_encoder
from weft.embedding.models import locate
from weft.embedding.tokens import load_token_counter, read_tokenizer
from weft.evaluation.measures.beir import read_dataset
from weft.indexes.text.build import LexicalDocument, code_terms, merge_shards, symbol_terms, write_shard
from weft.indexes.text.lexical import open_lexical
from weft.ingestion.sizing import prior_sizes
from weft.settings import load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(7200)]

SETTINGS = load_settings()
DEPTH = 10
FOUND = 100  # chunks looked at for ten files
BUDGET = 1024  # tokens that a reader of results takes in
Figures = tuple[float, float]
STEP = 4  # every n-th file of the standard library is asked about: encoding all would take most of an hour
INSTALLED = "sklearn"


@dataclass(frozen=True)
class Piece:
    """A chunk of any chunker: where it stands, and what is indexed of it."""

    uri: str
    start: int
    end: int
    text: str
    symbols: str = ""


@dataclass(frozen=True)
class Asked:
    """A question, and the place that a chunk must hold to answer it; any place where that is None."""

    text: str
    uri: str
    place: int | None = None

    def answered_by(self, piece: Piece) -> bool:
        return piece.uri == self.uri and (self.place is None or piece.start <= self.place < piece.end)


class Chunkers:
    """The chunker, and plain windows of the encoder's tokens."""

    def __init__(self) -> None:
        self.tokenizer: Tokenizer = read_tokenizer(locate(SETTINGS.embedding))
        self.count = load_token_counter(SETTINGS.embedding)
        self.window = self.count.limit
        self.sizes = self.within(self.window)

    @staticmethod
    def within(limit: int) -> ChunkSizes:
        return prior_sizes(SETTINGS.chunking, SETTINGS.priors, limit=limit).domains[Domain.CODE]

    def syntax(self, document: Document) -> list[Piece]:
        chunks = chunk_document(document, self.sizes, self.count)
        return [
            Piece(
                document.uri,
                chunk.start_byte,
                chunk.end_byte,
                chunk.text,
                " ".join(symbol_terms(filter(None, [chunk.symbol, *chunk.defines]))),
            )
            for chunk in chunks
        ]

    def plain(self, document: Document, size: int, overlap: int) -> list[Piece]:
        source = document.text.encode()
        spans = plain_windows(source, self.tokenizer, size, overlap)
        return [Piece(document.uri, start, end, source[start:end].decode()) for start, end in spans]

    def all(self, documents: Sequence[Document]) -> Mapping[str, list[Piece]]:
        return {
            "by syntax": [piece for document in documents for piece in self.syntax(document)],
            "512 tokens": [piece for document in documents for piece in self.plain(document, 512, 64)],
            f"{self.window} tokens": [
                piece for document in documents for piece in self.plain(document, self.window, 32)
            ],
        }


def a_document(uri: str, text: str) -> Document:
    return Document(
        uri=uri, content_type=ContentType.CODE, domain=Domain.CODE, text=text, language="python", trust_level=100
    )


def gain(asked: Asked, ranked: Sequence[Piece]) -> float:
    """nDCG@10 over files: 1 / log2(1 + rank) of the right one, each file ranked by its best chunk."""
    files = list(dict.fromkeys(piece.uri for piece in ranked))[:DEPTH]
    return 1 / log2(files.index(asked.uri) + 2) if asked.uri in files else 0.0


def read(asked: Asked, ranked: Sequence[Piece], count: Callable[[str], int]) -> float:
    """Whether the answer is in the first `BUDGET` tokens of what was found: long chunks leave room for few."""
    left = BUDGET
    for piece in ranked:
        left -= count(piece.text)
        if left < 0:
            return 0.0
        if asked.answered_by(piece):
            return 1.0
    return 0.0


def figures(questions: Sequence[Asked], found: Iterable[Sequence[Piece]], count: Callable[[str], int]) -> Figures:
    """nDCG@10 over files, and the share of questions answered within the budget."""
    pairs = [(gain(asked, ranked), read(asked, ranked, count)) for asked, ranked in zip(questions, found, strict=True)]
    ndcg, answered = np.mean(pairs, axis=0)
    return float(ndcg), float(answered)


def dense(pieces: Sequence[Piece], questions: Sequence[Asked], encoder: Encoder) -> Figures:
    vectors = encoder.encode([piece.text for piece in pieces])
    asked = encoder.encode([question.text for question in questions])
    ranked = (np.argsort(-(vectors @ vector), kind="stable")[:FOUND] for vector in asked)
    return figures(questions, ([pieces[row] for row in rows] for rows in ranked), encoder.count_tokens)


def lexical(pieces: Sequence[Piece], questions: Sequence[Asked], folder: Path, count: Callable[[str], int]) -> Figures:
    settings = SETTINGS.index.lexical
    documents = (
        (row, LexicalDocument(" ".join([piece.text, *code_terms(piece.text)]), "", piece.symbols))
        for row, piece in enumerate(pieces)
    )
    write_shard(folder / "shard", documents, settings)
    merge_shards([folder / "shard"], folder / "merged", settings)
    index = open_lexical([folder / "merged"], settings, rows=len(pieces))
    found = [[pieces[row] for row, _ in index.search(question.text, FOUND)] for question in questions]
    index.close()
    return figures(questions, found, count)


@dataclass
class Report:
    """Rows of the table that is shown when all is measured."""

    table: Table

    def add(self, label: str, chunker: str, *figures: float) -> None:
        self.table.add_row(label, chunker, *(f"{figure:.3f}" if figure < 10 else f"{figure:.0f}" for figure in figures))


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    table = Table(
        *("collection", "chunker", "chunks", "dense", "in budget", "lexical", "in budget"),
        box=None,
        title=f"nDCG@10 over files, and answers within {BUDGET} tokens",
    )
    yield Report(table)
    Console(width=120).print(table)


@pytest.fixture(scope="module")
def chunkers() -> Chunkers:
    return Chunkers()


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load_encoder(SETTINGS.embedding)


def measured(
    *,
    label: str,
    documents: Sequence[Document],
    questions: Sequence[Asked],
    chunkers: Chunkers,
    encoder: Encoder,
    report: Report,
    folder: Path,
) -> Mapping[str, tuple[Figures, Figures]]:
    rows = {}
    for number, (name, pieces) in enumerate(chunkers.all(documents).items()):
        place = folder / str(number)
        place.mkdir()
        rows[name] = (dense(pieces, questions, encoder), lexical(pieces, questions, place, chunkers.count))
        report.add(f"{label} ({len(questions)} questions)", name, len(pieces), *rows[name][0], *rows[name][1])
    return rows


def test_functions_that_people_searched_for_are_found_no_worse(
    data_root: Path, chunkers: Chunkers, encoder: Encoder, report: Report, tmp_path: Path
) -> None:
    """ING-5: CoSQA, whose documents are functions: little is cut by any chunker, and nothing is lost by this one."""
    with gzip.open(data_root / "cosqa" / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        documents = [a_document(record["_id"], record["text"]) for record in map(json.loads, file)]
    questions: list[Asked] = []
    for split in ("dev", "test"):
        dataset = read_dataset(data_root / "cosqa", split)
        questions += [Asked(query.text, next(iter(dataset.qrels[query.query_id]))) for query in dataset.queries]
    rows = measured(
        label="CoSQA",
        documents=documents,
        questions=questions,
        chunkers=chunkers,
        encoder=encoder,
        report=report,
        folder=tmp_path,
    )
    ours, *plain = rows.values()
    for channel in (0, 1):
        assert ours[channel][0] >= max(row[channel][0] for row in plain) - 0.01


def test_a_docstring_finds_its_own_function(
    chunkers: Chunkers, encoder: Encoder, report: Report, tmp_path: Path
) -> None:
    """ING-5, EVA-4: first sentences of docstrings of the standard library, taken out of what is indexed."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = [path for path in python_files(root)[::STEP] if path.stat().st_size < 200_000]
    documents = [a_document(str(path.relative_to(root)), path.read_text(encoding="utf-8")) for path in files]
    remaining, found = masked_corpus(documents, lambda _: chunkers.sizes, chunkers.count)
    questions = [Asked(question.text, question.uri, question.place) for question in found]
    rows = measured(
        label="docstrings",
        documents=remaining,
        questions=questions,
        chunkers=chunkers,
        encoder=encoder,
        report=report,
        folder=tmp_path,
    )
    ours, *plain = rows.values()
    for channel in (0, 1):
        assert ours[channel][0] >= max(row[channel][0] for row in plain) - 0.02


@pytest.mark.parametrize("limit", [254, 512])
@pytest.mark.parametrize("tree", ["stdlib", INSTALLED])
def test_functions_that_fit_are_whole(tree: str, limit: int, chunkers: Chunkers) -> None:
    """ING-5: at least 99 in 100, whatever the window; a plain splitter cuts many."""
    paths = sysconfig.get_paths()
    root = Path(paths["stdlib"]) if tree == "stdlib" else Path(paths["purelib"]) / tree
    fitting = syntax = plain = overlapping = 0
    sizes = chunkers.within(limit)
    for path in python_files(root):
        text = path.read_text(encoding="utf-8", errors="ignore")
        if {"\x0c", "\r", "\ufeff"} & set(text):
            continue  # lines end differently for the two parsers
        source = text.encode()
        spans = [span for span in python_functions(text) if chunkers.count(source[slice(*span)].decode()) <= limit]
        chunks = chunk_document(a_document(path.name, text), sizes, chunkers.count)
        fitting += len(spans)
        syntax += kept_whole(spans, [(chunk.start_byte, chunk.end_byte) for chunk in chunks])
        plain += kept_whole(spans, plain_windows(source, chunkers.tokenizer, limit, 0))
        overlapping += kept_whole(spans, plain_windows(source, chunkers.tokenizer, limit, 64))
    table = Table("tree", "window", "functions", "by syntax", "plain", "plain, 64 shared", box=None, title="kept whole")
    shares = [f"{whole / fitting:.4f}" for whole in (syntax, plain, overlapping)]
    table.add_row(tree, str(limit), str(fitting), *shares)
    Console(width=120).print(table)
    assert syntax / fitting >= 0.99
    assert syntax > overlapping > plain
