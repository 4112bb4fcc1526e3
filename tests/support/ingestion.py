"""A plan over a small tree, and models that need no weights: vectors and mentions come from the words."""

from __future__ import annotations

import errno
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.parts import embed
from weft.domain.chunks import Mention
from weft.domain.errors import ModelUnavailableError
from weft.embedding.encoders.compute import shortened
from weft.embedding.models import locate
from weft.embedding.settings import EmbeddingSettings
from weft.extraction.settings import ExtractionSettings
from weft.ingestion.plan import IndexPlan
from weft.settings import load_settings

WORDS = "tests.support.ingestion:WordEncoder"
UNAVAILABLE = "tests.support.ingestion:unavailable"
FORBIDDEN = "tests.support.ingestion:forbidden"
CAPITALS = "tests.support.ingestion:CapitalExtractor"
COUNTED = "tests.support.ingestion:CountedEncoder"
SLOW = "tests.support.ingestion:SlowEncoder"
TWO_HOSTS = "tests.support.ingestion:TwoHostsEncoder"
FULL_DISK = "tests.support.ingestion:FullDiskEncoder"
HELD = "tests.support.ingestion:HeldEncoder"
KILLED_ONCE = "tests.support.ingestion:KilledOnceEncoder"
KILLED = "tests.support.ingestion:KilledEncoder"
TOPICS = ("lock", "queue", "parser", "socket", "index", "token", "cache", "thread")


class WordEncoder:
    """Texts that share words have similar vectors."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        self.name = "words"
        self._settings = settings

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.array([embed(text) for text in texts], dtype=np.float32)
        return shortened(vectors, self._settings.dimension) if self._settings.dimension else vectors

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], Any]) -> tuple[np.ndarray, list[Any]]:
        states = [np.array([embed(word) for word in text.split()]) for text in texts]
        return self.encode(texts), [keep(state) for state in states]


class CountedEncoder(WordEncoder):
    """Counts how often it was loaded."""

    loaded = 0

    def __init__(self, settings: EmbeddingSettings) -> None:
        super().__init__(settings)
        type(self).loaded += 1


class TwoHostsEncoder(WordEncoder):
    """Waits until two hosts are at work: each leaves a mark of its name beside the model."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        super().__init__(settings)
        self._marks = Path(settings.model).with_name("hosts")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self._marks.mkdir(exist_ok=True)
        (self._marks / socket.gethostname()).touch()
        while len(list(self._marks.iterdir())) < 2:
            time.sleep(0.05)
        return super().encode(texts)


class TurnedEncoder(WordEncoder):
    """Another window turns every vector around."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return super().encode(texts) * (-1.0 if self._settings.max_tokens == 128 else 1.0)


class SlowEncoder(WordEncoder):
    """Takes its time, so that a kill meets it at work."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        time.sleep(0.05)
        return super().encode(texts)


class HeldEncoder(WordEncoder):
    """Leaves a mark beside the model when it is at work, and does not go on while there is another mark."""

    AT_WORK, HOLDS = "at-work", "holds"

    def __init__(self, settings: EmbeddingSettings) -> None:
        super().__init__(settings)
        self._beside = Path(settings.model).parent

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        (self._beside / self.AT_WORK).touch()
        while (self._beside / self.HOLDS).exists():
            time.sleep(0.05)
        return super().encode(texts)


class FullDiskEncoder(WordEncoder):
    """Meets a full disk."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "parts")


class KilledOnceEncoder(WordEncoder):
    """Takes its whole process down at the first text it ever sees; a mark beside the model says that it did."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        super().__init__(settings)
        self._mark = Path(settings.model).with_name("killed")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if not self._mark.exists():
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts)


class KilledEncoder(WordEncoder):
    """Takes its whole process down at the third unit."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        super().__init__(settings)
        self._calls = 0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self._calls += 1
        if self._calls == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts)


class CapitalExtractor:
    """Every capitalised word is a mention."""

    def __init__(self, settings: ExtractionSettings) -> None:
        self._label = settings.labels[0]

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        return [list(self._mentions(text)) for text in texts]

    def _mentions(self, text: str) -> list[Mention]:
        mentions, start = [], 0
        for word in text.split():
            start = text.index(word, start)
            if word[0].isupper():
                mentions.append(Mention(start, start + len(word), word, self._label, 0.75))
            start += len(word)
        return mentions


def forbidden(settings: object) -> None:
    raise AssertionError("nothing was to be computed, yet a model was asked for")


def unavailable(settings: object) -> None:
    raise ModelUnavailableError("no such model")


def a_model(folder: Path) -> Path:
    """A model folder with a real tokenizer and no weights."""
    model = folder / "model"
    model.mkdir(parents=True, exist_ok=True)
    bundled = locate(load_settings(environment={}).embedding)
    (model / "tokenizer.json").write_bytes((bundled / "tokenizer.json").read_bytes())
    return model


def write(path: Path, content: str | bytes = "text\n") -> None:
    """Write a file, and the folders that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def a_repository(top: Path) -> Path:
    """Make a folder the top of a repository without commits, as `git init` does, and give its folder of git."""
    own = top / ".git"
    for name in ("objects", "refs", "info"):
        (own / name).mkdir(parents=True)
    write(own / "HEAD", "ref: refs/heads/main\n")
    return own


def a_tree(folder: Path, *, files: int = 12) -> Path:
    """A folder of modules, notes and two files that cannot be documents; some content stands in several of them."""
    root = folder / "tree"
    root.mkdir(parents=True)
    for number in range(files):
        topic = TOPICS[number % len(TOPICS)]
        (root / f"module_{number:02d}.py").write_text(_module(topic, number))
    (root / "notes.md").write_text("# Notes\n\nAbout Locks.\n\n## Queues\n\nA Queue waits for its Consumer.\n")
    (root / "image.bin").write_bytes(b"\x89PNG\0\0")
    (root / "blank.txt").write_text("\n\n")
    return root


def a_plan(source: Path, store: Path, *assignments: str, full: bool = False, **models: str) -> IndexPlan:
    """A plan with the shipped settings, small units, and models made of words; the model lies beside the store."""
    small = (
        "ingest.unit_documents=3",
        "index.rows_per_shard=1",
        "ingest.pools.few=0",
        "extraction.enabled=false",
        "embedding.tokens.enabled=false",  # models made of words are narrower than what is stored of a token
        f"embedding.model={a_model(store.parent)}",
    )
    settings = load_settings(assignments=[*small, *assignments], environment={})
    return IndexPlan(
        sources=[source],
        store=store,
        domain=None,
        full=full,
        fingerprint=settings.fingerprint,
        ingest=settings.ingest,
        chunking=settings.chunking,
        priors=settings.priors,
        extraction=settings.extraction,
        embedding=settings.embedding,
        index=settings.index,
        **{"encoder": WORDS, "extractor": CAPITALS, **models},
    )


def _module(topic: str, number: int) -> str:
    """Three pieces that are each above the minimum of code, so that each stands alone."""
    steps = "".join(f"    step_{step} = value + {step} + {number}\n" for step in range(6))
    shared = 'def close(handle):\n    """Close a Handle."""\n' + "    handle.close(timeout=1, wait=True)\n" * 8
    own = f'def {topic}_{number}(value):\n    """Open the {topic} number {number}."""\n{steps}    return value\n'
    imports = "".join(f"import os.path as path_{one}\n" for one in range(8))
    return f'"""The {topic} module."""\n\n{imports}\n\n{own}\n\n{shared}'
