"""Facts of a generation's documents as columns: what ranking asks of many documents at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.documents import Domain
from pipelines.retrieval.snapshot.ports import DeclaredFacts, DocumentFacts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DOMAINS = tuple(Domain)
"""Domains in the order in which columns number them."""
SOURCE_TYPE = "source_type"
"""The name under which a document declares what kind of source it is."""

Named = TypeVar("Named", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Words(Generic[Named]):
    """A column of few distinct values.

    Attributes:
        distinct: Each value once.
        code: Place in `distinct` by document, (documents,).
    """

    distinct: Sequence[Named]
    code: Ints

    @classmethod
    def of(cls, values: Iterable[Named]) -> Words[Named]:
        """A column of these values."""
        places: dict[Named, int] = {}
        code = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
        return cls(list(places), code)

    def numbers(self, documents: Ints, tell: Callable[[Named], float | None]) -> Floats:
        """A number about the value of each of some documents; NaN where there is none.

        Examples:
            >>> Words.of(["a", "bb", "a"]).numbers(np.array([0, 1, 2]), len).tolist()
            [1.0, 2.0, 1.0]
        """
        code = self.code[documents]
        if len(self.distinct) <= len(documents):
            return np.array([tell(value) for value in self.distinct], dtype=np.float64)[code]  # None becomes NaN
        known, of_document = np.unique(code, return_inverse=True)
        return np.array([tell(self.distinct[at]) for at in known.tolist()], dtype=np.float64)[of_document]


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """Every document of a generation, by its number.

    Attributes:
        facts: All that is known of each.
        domain: Place in `DOMAINS`, (documents,).
        modified_at: Seconds since the epoch, NaN where unknown, (documents,).
        trust_level: 0 to 100, (documents,).
        citations: As declared, 0 where unknown, (documents,).
        source, tier, validation, intent: As declared.
    """

    facts: Sequence[DeclaredFacts]
    domain: Ints
    modified_at: Floats
    trust_level: Ints
    citations: Ints
    source: Words[str]
    tier: Words[str | None]
    validation: Words[str | None]
    intent: Words[str | None]

    @classmethod
    def of(cls, facts: Sequence[DeclaredFacts]) -> Documents:
        """The columns of these documents."""
        places = {domain: at for at, domain in enumerate(DOMAINS)}
        return cls(
            facts,
            domain=np.array([places[each.domain] for each in facts], dtype=np.int64),
            modified_at=np.array([each.modified_at for each in facts], dtype=np.float64),
            trust_level=np.array([each.trust_level for each in facts], dtype=np.int64),
            citations=np.array([each.citations or 0 for each in facts], dtype=np.int64),
            source=Words.of(source_type(each) for each in facts),
            tier=Words.of(each.tier for each in facts),
            validation=Words.of(each.validation for each in facts),
            intent=Words.of(each.intent for each in facts),
        )

    def uri(self, number: int) -> str:
        """The document of that number."""
        return self.facts[number].uri


NO_DOCUMENTS = Documents.of(())


def source_type(facts: DocumentFacts) -> str:
    """What kind of source a document is, as trust in it is learned: declared as `source_type`, or its content type."""
    return facts.metadata.get(SOURCE_TYPE, facts.content_type.value)
