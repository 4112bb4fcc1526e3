"""Code of installed packages as a corpus to search: docstrings lose their first sentence, which becomes a question."""

from __future__ import annotations

import hashlib
import json
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lab.ground_truth import SyntheticQuestion, masked_corpus
from weft.chunking.chunker import chunk_or_fallback
from weft.domain.documents import Document
from weft.embedding.tokens import load_token_counter
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.sources.sources import read_source
from weft.settings import Settings

BYTES = range(2_000, 60_000)  # of a module: not empty, and not generated


@dataclass(frozen=True)
class Question:
    """What a docstring says first, and the module that it was taken from."""

    text: str
    uri: str


def kept_corpus(folder: Path, settings: Settings, *, chunks: int) -> list[Question]:
    """The questions of a corpus below `folder / "code"`, written now unless it was before."""
    kept = folder / "questions.json"
    if not kept.exists():
        asked = write_corpus(folder / "code", settings, chunks=chunks)
        kept.write_text(json.dumps([[one.text, one.uri] for one in asked]))
    return [Question(*one) for one in json.loads(kept.read_text())]


def write_corpus(folder: Path, settings: Settings, *, chunks: int) -> list[SyntheticQuestion]:
    """Write modules below a folder until they make so many chunks, in an order that says nothing about their place."""
    count_tokens = load_token_counter(settings.embedding)
    sizes_of = prior_sizes(settings.chunking, settings.priors, limit=count_tokens.limit).sizes_of
    made, questions = 0, []
    for batch in _batches(settings):
        masked, asked = masked_corpus(batch, sizes_of, count_tokens)
        for document in masked:
            path = folder / document.uri
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(document.text.encode("utf-8", "surrogateescape"))
            made += len(chunk_or_fallback(document, sizes_of(document), count_tokens)[0])
        questions += asked
        if made >= chunks:
            break
    return questions


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
