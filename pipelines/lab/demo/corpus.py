"""What the demonstration indexes: weft's own files, and modules of the standard library less what it asks with."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft.chunking.ground_truth import SyntheticQuestion, masked_corpus, verbatim
from weft.domain.documents import Document
from weft.domain.errors import StoreError
from weft.domain.ids import content_hash
from weft.embedding.tokens import load_token_counter
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.sources.sources import read_source
from weft.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
OWN = ("pipelines", "jobs", "conf", "docs", "infra", "README.md", "CHANGELOG.md", "Makefile", "pyproject.toml")
_TEXTS = frozenset({".py", ".md", ".yaml", ".toml", ".sql", ".json", ""})
_OWN_BYTES = 100_000  # above it are vocabularies and the like, not texts that somebody wrote
_MODULE_BYTES = range(2_000, 40_000)  # large enough to say something, small enough that a hundred are quickly read
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

    Modules of the standard library are asked about: their docstrings lose the first sentence, which is the question.
    Nothing that is asked stands verbatim in what is written.
    """
    shutil.rmtree(folder, ignore_errors=True)
    count_tokens = load_token_counter(settings.embedding)
    own = list(_documents("weft", [ROOT / name for name in OWN if (ROOT / name).exists()], settings))
    sizes = prior_sizes(settings.chunking, settings.priors)
    library, questions = masked_corpus(
        _documents("python", _standard_library(modules), settings), sizes.sizes_of, count_tokens
    )
    elsewhere = verbatim((question.text for question in questions), (document.text for document in own))
    documents = [*own, *library]
    for document in documents:
        path = folder / document.uri
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(document.text.encode("utf-8", "surrogateescape"))
        if document.modified_at is not None:
            os.utime(path, (document.modified_at, document.modified_at))
    asked = tuple(question for question in questions if question.text not in elsewhere)
    return DemoCorpus((folder / "weft", folder / "python"), len(documents), asked)


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


def _standard_library(modules: int) -> list[Path]:
    """The first modules of a fitting size, by name, so that every run on one interpreter takes the same."""
    top = Path(sysconfig.get_paths()["stdlib"])
    fitting = (path for path in sorted(top.glob("*.py")) if path.stat().st_size in _MODULE_BYTES)
    return [path for path, _ in zip(fitting, range(modules), strict=False)]


def _documents(name: str, paths: Iterable[Path], settings: Settings) -> Iterator[Document]:
    for path in paths:
        for item in read_source(path, settings.ingest, domain=None):
            if not isinstance(item, Document):
                continue
            if Path(item.uri).suffix in _TEXTS and len(item.text) <= _OWN_BYTES:
                # The URI of a file starts with its folder's name, which for a module is the interpreter's, not ours.
                yield replace(item, uri=f"{name}/{item.uri if path.is_dir() else path.name}")
