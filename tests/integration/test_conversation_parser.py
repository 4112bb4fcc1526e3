"""ING-8: the parser's child finds topics by word vectors; ING-1: a transcript in a tree goes through it."""

import json
from pathlib import Path

from weft.chunking.chunker import chunk_document
from weft.domain.documents import Document, Domain
from weft.ingestion.parser.parser import Parser
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.sources.sources import read_source
from weft.settings import load_settings

FRUIT = ["Are pears sweet fruit?", "Pears are sweet fruit.", "Are apples sweet fruit?", "Apples are sweet fruit too."]
STEEL = [
    "Is the compiler slow?",
    "The compiler is slow.",
    "Is the linker slow too?",
    "The compiler and linker are slow.",
]


def test_the_child_cuts_topics_by_similarity(tmp_path: Path) -> None:
    """ING-8: two matters without any marker between them are two topics; without vectors they are not."""
    settings = load_settings(environment={})
    turns = [{"speaker": "Ann" if n % 2 == 0 else "Bob", "text": text} for n, text in enumerate([*FRUIT, *STEEL])]
    (tmp_path / "chat.json").write_text(json.dumps({"sessions": [{"id": "s", "turns": turns}]}))
    (document,) = read_source(tmp_path, settings.ingest, domain=None)
    assert isinstance(document, Document)
    sizes = prior_sizes(settings.chunking, settings.priors, limit=254).domains[Domain.HISTORY]
    parser = Parser(settings.ingest.parser, settings.embedding)
    try:
        chunks, note = parser.cut(document, sizes)
    finally:
        parser.close()
    assert note is None
    topics = [chunk.text.splitlines()[0] for chunk in chunks if chunk.level == 1]
    assert topics == [f"Ann: {FRUIT[0]}", f"Ann: {STEEL[0]}"]
    assert sum(chunk.level == 1 for chunk in chunk_document(document, sizes, len)) == 1
