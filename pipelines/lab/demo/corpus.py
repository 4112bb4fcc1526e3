"""What the demonstration indexes: Python's standard library, less what it asks with, and settings of two packages.

All of it is installed with what `make setup` pins, so that the corpus stays the same from commit to commit.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from pydoc_data import topics

from lab.ground_truth import SyntheticQuestion, masked_corpus
from weft.domain.documents import Document
from weft.domain.errors import StoreError
from weft.domain.ids import content_hash
from weft.embedding.tokens import load_token_counter
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.sources.sources import read_source
from weft.settings import Settings

MODULES = 55
"""Of the standard library: with them the whole loop takes some minutes on two cores."""

_MODULE_BYTES = range(2_000, 40_000)  # large enough to say something, small enough that a hundred are quickly read
_CHAPTER_CHARACTERS = 30_000  # at most: larger chapters repeat others
_CONFIGURED = ("ray/autoscaler/*/defaults.yaml", "mlflow/**/*.ini", "mlflow/server/*.yaml")
_CACHE = "cache"
_SIGN = "demo"  # the texts of the corpus: whatever store has them is a demonstration's
_PARTS = (_CACHE, _SIGN, "evaluation", "generations", "learned", "lessons", "logs", "mlflow", "sessions", "updaters")
_FILES = (".catalog.lock", ".gitignore", "current.json", "learned.html", "settings.json", "store.json")


@dataclass(frozen=True, slots=True)
class DemoCorpus:
    """Masked files, ready to be indexed, and the questions whose answers they hold."""

    sources: tuple[Path, ...]
    documents: int
    questions: tuple[SyntheticQuestion, ...]


def prepare(folder: Path, settings: Settings, *, modules: int) -> DemoCorpus:
    """Write the corpus below a folder, replacing what an earlier run wrote there.

    Modules are asked about: their docstrings lose the first sentence, which is the question. Nothing that is asked
    stands verbatim in what is written.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for kind in (_modules(modules), _chapters(), _configuration()):
        for name, content, origin in kind:
            _write(folder / name, content, origin.stat().st_mtime)
    sources = tuple(sorted(folder.iterdir()))
    read = (item for source in sources for item in read_source(source, settings.ingest, domain=None))
    sizes = prior_sizes(settings.chunking, settings.priors)
    documents, questions = masked_corpus(
        (item for item in read if isinstance(item, Document)), sizes.sizes_of, load_token_counter(settings.embedding)
    )
    for document in documents:
        path = folder / document.uri
        _write(path, document.text.encode("utf-8", "surrogateescape"), path.stat().st_mtime)
    return DemoCorpus(sources, len(documents), tuple(questions))


def _write(path: Path, content: bytes, modified_at: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (modified_at, modified_at))


_Files = Iterator[tuple[str, bytes, Path]]
"""Names, contents, and the files that they are from."""


def _modules(most: int) -> _Files:
    """The first modules of the standard library of a fitting size, by name."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    fitting = (path for path in files if path.stat().st_size in _MODULE_BYTES)
    return ((f"python/{path.name}", path.read_bytes(), path) for path in islice(fitting, most))


def _chapters() -> _Files:
    """The chapters of the language reference that `help()` shows."""
    origin = Path(topics.__file__)
    chapters = ((name, text) for name, text in sorted(topics.topics.items()) if len(text) <= _CHAPTER_CHARACTERS)
    return ((f"language/{name}.rst", text.encode(), origin) for name, text in chapters)


def _configuration() -> _Files:
    """Settings that two of weft's own packages come with."""
    top = Path(sysconfig.get_paths()["purelib"])
    paths = (path for pattern in _CONFIGURED for path in sorted(top.glob(pattern)))
    return ((f"settings/{path.relative_to(top)}", path.read_bytes(), path) for path in paths)


def split(
    questions: Sequence[SyntheticQuestion], limit: int
) -> tuple[list[SyntheticQuestion], list[SyntheticQuestion]]:
    """Questions to learn from and held-out ones, drawn by the hash of their text: the same on every machine."""
    drawn = sorted(questions, key=lambda question: content_hash(question.text))[:limit]
    return drawn[::2], drawn[1::2]


def remove_previous(root: Path) -> None:
    """Empty a demonstration's store, but for its caches: its log of feedback ended with the broker that held it.

    Raises:
        StoreError: It is no demonstration's, or holds something that none wrote; nothing was removed.
    """
    held = {path.name for path in root.iterdir()} if root.is_dir() else set()
    strange = {name for name in held if not _is_ours(name)} if _SIGN in held else held - {_CACHE}
    if strange:
        raise StoreError(
            f"{root}: expected an empty folder or a demonstration's store, which is emptied, found {sorted(strange)}; "
            "give another folder as --store"
        )
    for name in sorted(held - {_CACHE}, key=lambda name: (name == _SIGN, name)):  # a killed run is known by its sign
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_ours(name: str) -> bool:
    """Whether a demonstration writes under such a name, or leaves such a one behind when it is killed."""
    leftover = name.startswith((".staging-", *(f".{file}." for file in _FILES)))
    return leftover or name in _PARTS or name in _FILES
