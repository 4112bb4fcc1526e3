"""What all stages are made of: one unit in, the same unit with more tables out. None of them knows Ray."""

from __future__ import annotations

import functools
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from pipelines.domain.ids import ContentHash
from pipelines.ingestion.units import Unit, pack, unpack


class UnitWorker(ABC):
    """A stage that works on one unit at a time."""

    def run(self, batch: pa.Table) -> pa.Table:
        """Work on a packed unit, as Ray hands it over."""
        return pack(self.work(unpack(batch)))

    @abstractmethod
    def work(self, unit: Unit) -> Unit:
        """The unit with what this stage adds to it; the same unit always gives the same."""


Step = tuple[Callable[..., UnitWorker], tuple[Any, ...]]
"""What makes a worker, and from which arguments."""


class Chained(UnitWorker):
    """Several steps, one after the other, as one stage."""

    def __init__(self, *steps: Step) -> None:
        self._workers = [worker(*arguments) for worker, arguments in steps]

    def work(self, unit: Unit) -> Unit:
        """The unit with what each step adds to it."""
        return functools.reduce(lambda done, worker: worker.work(done), self._workers, unit)


Value = TypeVar("Value")


class Lazy(Generic[Value]):
    """A model that is imported and loaded at its first use: a run that finds everything cached never loads it.

    Args:
        maker: What makes it, as "module:name", so that naming it imports nothing.
        settings: What it is made from.
    """

    def __init__(self, maker: str, settings: object) -> None:
        self._maker = maker
        self._settings = settings
        self._loaded: list[Value] = []

    def get(self) -> Value:
        """The model."""
        if not self._loaded:
            self._loaded.append(pkgutil.resolve_name(self._maker)(self._settings))
        return self._loaded[0]


class Cache(Protocol[Value]):
    """Values kept by key."""

    def get(self, keys: Sequence[str]) -> dict[str, Value]:
        """The values of those keys that have one."""
        ...

    def put(self, values: Mapping[str, Value], /) -> None:
        """Keep values."""
        ...


def completed(
    cache: Cache[Value],
    keys: Mapping[ContentHash, str],
    texts: Mapping[ContentHash, str],
    compute: Callable[[Sequence[str]], Sequence[Value]],
) -> tuple[dict[str, Value], int]:
    """What the cache has for `keys`, completed by computing and keeping the rest; and how many were computed."""
    known = cache.get(list(keys.values()))
    missing = [content for content, key in keys.items() if key not in known]
    if missing:
        found = compute([texts[content] for content in missing])
        fresh = {keys[content]: value for content, value in zip(missing, found, strict=True)}
        cache.put(fresh)
        known |= fresh
    return known, len(missing)


def texts_of(unit: Unit) -> dict[ContentHash, str]:
    """Each distinct text of a unit by its hash, in order of first appearance."""
    chunks = unit.tables["chunks"]
    texts: dict[ContentHash, str] = {}
    for row in chunks.select(["content_hash", "text"]).to_pylist():
        texts.setdefault(ContentHash(row["content_hash"]), row["text"])
    return texts
