"""Prints how many chunks of source code and configuration are below the minimum, by language, and which kinds.

    python -m tests.support.piece_sizes FOLDER … [--most FILES] [--kinds]

Files are cut with the sizes that priors state and within the window of the configured encoder, as `weft index` cuts
them first; of each language at most so many, evenly spread. A file that is below the minimum as a whole is not counted.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from weft.chunking.chunker import chunk_document
from weft.domain.documents import ContentType, Document
from weft.embedding.tokens import load_token_counter
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.sources.files import kind_of
from weft.settings import load_settings

COUNTED = {ContentType.CODE, ContentType.CONFIGURATION}
LARGEST = 200_000  # bytes of a file that is read
LEFT_OUT = {"node_modules", ".git", "__pycache__"}


def documents(folders: Iterable[Path], most: int) -> Iterator[Document]:
    """Files of source code and configuration."""
    found: defaultdict[str, list[Document]] = defaultdict(list)
    for path in sorted(path for folder in folders for path in folder.rglob("*")):
        if LEFT_OUT & set(path.parts) or not path.is_file() or path.stat().st_size > LARGEST:
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        kind = kind_of(path.name, text)
        if kind.content_type in COUNTED and text.strip():
            known = {"content_type": kind.content_type, "domain": kind.domain, "language": kind.language}
            found[kind.language or ""].append(Document(uri=str(path), text=text, trust_level=100, **known))
    for each in found.values():
        yield from each[:: -(-len(each) // most) or 1]


def main() -> None:
    """Run on arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--most", type=int, default=200, metavar="FILES", help="files of each language")
    parser.add_argument("--kinds", action="store_true", help="the kinds of chunks below the minimum as well")
    given = parser.parse_args()
    settings = load_settings()
    count = load_token_counter(settings.embedding)
    sizes = prior_sizes(settings.chunking, settings.priors, limit=count.limit).domains
    below: defaultdict[str, Counter[str]] = defaultdict(Counter)
    every: Counter[str] = Counter()
    for document in documents(given.folders, given.most):
        own = sizes[document.domain]
        chunks = chunk_document(document, own, count)
        language = document.language or ""
        if len(chunks) > 1:
            every[language] += len(chunks)
            for chunk in chunks:
                if chunk.tokens < own.min_tokens:
                    below[language][chunk.kind] += 1
    table = Table("language", "chunks", "below the minimum", "share", *(["kinds"] if given.kinds else []), box=None)
    for language, chunks_of in every.most_common():
        kinds = ", ".join(f"{kind} {times}" for kind, times in below[language].most_common(8))
        some = below[language].total()
        row = (language, str(chunks_of), str(some), f"{some / chunks_of:.3f}")
        table.add_row(*row, *([kinds] if given.kinds else []))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
