"""Prints how the files of trees are cut: chunks of a megabyte, the share below the minimum, and time, by tree.

    python -m tests.support.tree_figures FOLDER … [--most FILES]

Of each tree at most so many files are read, evenly spread, as `weft index` cuts them first; floods and what is no UTF-8
are left out. A megabyte is of source; a file that is one chunk is never below the minimum. Time is the processor's,
for a kilobyte of what the chunks say, so that fewer chunks of the same text do not pass for speed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from weft.chunking.chunker import chunk_or_fallback
from weft.domain.documents import ContentType, Document
from weft.embedding.tokens import load_token_counter
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.sources.files import expanded, kind_of
from weft.ingestion.sources.floods import flood_of
from weft.settings import load_settings

SMALLEST, LARGEST = 200, 200_000  # bytes of a file that is read
LEFT_OUT = {"node_modules", ".git", "__pycache__"}
BINARY = {".gz", ".pyc", ".so", ".png", ".jpg", ".woff", ".woff2", ".a", ".o"}


def documents(folder: Path, most: int) -> Iterator[Document]:
    """Documents of a tree."""
    paths = sorted(
        path
        for path in folder.rglob("*")
        if not LEFT_OUT & set(path.relative_to(folder).parts) and path.suffix not in BINARY and path.is_file()
    )
    for path in paths[:: -(-len(paths) // most) or 1]:
        if path.is_symlink() or not SMALLEST <= path.stat().st_size <= LARGEST:
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        kind = kind_of(path.name, text)
        known = {"content_type": kind.content_type, "domain": kind.domain, "language": kind.language}
        flood = flood_of(path.name, text, kind.content_type, kind.language)
        if text.strip() and not flood and kind.content_type is not ContentType.CONVERSATION:
            read = expanded(Document(uri=str(path), text=text, trust_level=70, **known))
            yield from (one for one in read if isinstance(one, Document))


def main() -> None:
    """Run on arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--most", type=int, default=200, metavar="FILES", help="files of each tree")
    given = parser.parse_args()
    settings = load_settings()
    count = load_token_counter(settings.embedding)
    sizes = prior_sizes(settings.chunking, settings.priors, limit=count.limit).domains
    columns = (
        "tree",
        "files",
        "MB",
        "chunks",
        "chunks/MB",
        "below the minimum",
        "tokens a chunk",
        "ms/kB shown",
        "crashed",
    )
    table = Table(*columns, box=None)
    for folder in given.folders:
        files = chunks = below = source = shown = tokens = crashed = 0
        spent = 0.0
        for document in documents(folder, given.most):
            own = sizes[document.domain]
            begun = time.process_time()
            cut, note = chunk_or_fallback(document, own, count)
            spent += time.process_time() - begun
            files, source, crashed = files + 1, source + len(document.text), crashed + (note is not None)
            chunks, shown = chunks + len(cut), shown + sum(chunk.characters for chunk in cut)
            tokens += sum(chunk.tokens for chunk in cut)
            below += sum(chunk.tokens < own.min_tokens for chunk in cut) if len(cut) > 1 else 0
        figures = (
            f"{source / 1e6:.2f}",
            str(chunks),
            f"{1e6 * chunks / max(1, source):.0f}",
            f"{below / max(1, chunks):.3f}",
        )
        more = (f"{tokens / max(1, chunks):.0f}", f"{1e6 * spent / max(1, shown):.2f}", str(crashed))
        table.add_row(str(folder)[-40:], str(files), *figures, *more)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
