"""Code of installed packages as a corpus to search: docstrings lose their first sentence, which becomes a question."""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.chunking.chunker import chunk_or_fallback
from pipelines.chunking.ground_truth import SyntheticQuestion, masked_corpus
from pipelines.domain.documents import Document
from pipelines.embedding.tokens import load_token_counter
from pipelines.ingestion.sizing import prior_sizes
from pipelines.ingestion.sources import read_source
from pipelines.settings import Settings

BYTES = range(2_000, 60_000)  # of a module: not empty, and not generated


@dataclass(frozen=True)
class SearchCorpus:
    documents: int
    questions: Sequence[SyntheticQuestion]


def write_corpus(folder: Path, settings: Settings, *, chunks: int) -> SearchCorpus:
    """Write modules below a folder until they make so many chunks, in an order that says nothing about their place."""
    count_tokens = load_token_counter(settings.embedding)
    sizes_of = prior_sizes(settings.chunking, settings.priors).sizes_of
    made, documents, questions = 0, 0, []
    for batch in _batches(settings):
        masked, asked = masked_corpus(batch, sizes_of, count_tokens)
        for document in masked:
            path = folder / document.uri
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(document.text.encode("utf-8", "surrogateescape"))
            made += len(chunk_or_fallback(document, sizes_of(document), count_tokens)[0])
        documents += len(masked)
        questions += asked
        if made >= chunks:
            break
    return SearchCorpus(documents, questions)


def _batches(settings: Settings, size: int = 200) -> Iterator[list[Document]]:
    top = Path(sysconfig.get_paths()["purelib"]).resolve()
    paths = sorted(top.rglob("*.py"), key=lambda path: hashlib.sha256(str(path.relative_to(top)).encode()).digest())
    fitting = [path for path in paths if path.stat().st_size in BYTES]
    for start in range(0, len(fitting), size):
        yield [document for path in fitting[start : start + size] for document in _read(path, top, settings)]


def _read(path: Path, top: Path, settings: Settings) -> Iterator[Document]:
    for item in read_source(path, settings.ingest, domain=None):
        if isinstance(item, Document):
            yield replace(item, uri=str(path.relative_to(top)))
