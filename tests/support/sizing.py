"""Outcomes of chunks as evidence, and documents whose chunks show every size at work."""

from __future__ import annotations

from tests.support.outcomes import outcome_evidence
from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk, MadeBy
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope
from weft.learning.evidence import Evidence, EvidenceKey
from weft.learning.observe.sizes import size_masses

_CODE = """import os


class Store:
    def open(self):
{calls}        return 1

    def small(self):
{calls}        return 1


def large(value):
""".replace("{calls}", "        self.hold(1)\n        self.hold(2)\n" * 12)


def outcomes(made: MadeBy, *, good: int = 0, bad: int = 0, domain: Domain = Domain.CODE, day: int = 100) -> Evidence:
    """Evidence of so many good and bad outcomes of chunks made alike."""

    def of(count: int, *, useful: bool) -> Evidence:
        return outcome_evidence(
            day=day,
            scope=Scope(domain),
            intent="*",
            signals={},
            score=0.5,
            content_hash=ContentHash("a" * 64),
            good=useful,
            weight=float(count),
            made=made,
        )

    return of(good, useful=True) + of(bad, useful=False)


def a_code_document(*, record: bool = False) -> Document:
    """A preamble, a class with two methods, and a function far above any small limit."""
    body = "".join(f"    value = combine(value, {number})\n" for number in range(60))
    return Document(
        uri="tree/store.py",
        content_type=ContentType.RECORD if record else ContentType.CODE,
        domain=Domain.CODE,
        language=None if record else "python",
        text=f"{_CODE}{body}    return value\n",
        trust_level=100,
    )


def chunks_of(document: Document, sizes: ChunkSizes) -> list[Chunk]:
    """Its chunks, with words for tokens."""
    return chunk_document(document, sizes, lambda text: len(text.split()))


def liked(tokens: int, times: int, *, day: int) -> Evidence:
    """So many useful chunks of one length in the general domain, which fill the target that they were cut with."""
    made = MadeBy(tokens=tokens, target=tokens)
    counts = {
        EvidenceKey(day, Domain.GENERAL.value, "*", "*", "*", parameter, bin_): times * micro
        for (parameter, bin_), micro in size_masses(made, good=True, weight=1.0).items()
    }
    return Evidence(counts=counts)
