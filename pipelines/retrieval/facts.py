"""What the documents of a generation declare, read once when it is opened: which facts a query may ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pipelines.retrieval.filters import TIMES, is_time
from pipelines.retrieval.understanding.prefilter import FOLDER


@dataclass(frozen=True, slots=True)
class GenerationFacts:
    """Values by name of every fact that documents share; what tells single documents apart is left out."""

    values: Mapping[str, frozenset[str]]

    def known(self, name: str, value: str) -> bool:
        """Whether any document has that value under that name, or lies in that folder; of times, whether it is one."""
        return is_time(value) if name in TIMES else value in self.values.get(name, ())


def facts_of(declared: Iterable[tuple[str, str]], *, most: int) -> GenerationFacts:
    """The facts that documents share.

    Args:
        declared: Name and value of every fact of every document.
        most: Values of a name above which it is none that one filters by.

    Examples:
        >>> facts = facts_of([("folder", "a/b"), ("team", "core"), ("id", "1"), ("id", "2")], most=1)
        >>> facts.known("folder", "a"), facts.known("team", "core"), facts.known("id", "1")
        (True, True, False)
    """
    values: dict[str, set[str]] = {}
    for name, value in declared:
        held = values.setdefault(name, set())
        if name == FOLDER:
            held.update(_ancestors(value))
        elif len(held) <= most:
            held.add(value)
    kept = {name: frozenset(held) for name, held in values.items() if name == FOLDER or len(held) <= most}
    return GenerationFacts(kept)


def _ancestors(folder: str) -> Iterator[str]:
    parts = folder.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
