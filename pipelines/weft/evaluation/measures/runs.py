"""Runs: what a system returned for each query, as document ids, and the TREC file of it (EVA-5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from weft.domain.errors import SourceError
from weft.domain.ranking import RankedResult, ScoredResult
from weft.evaluation.measures.beir import UniqueLines, is_id, numbered_lines
from weft.runtime.storage.files import write_atomically

Ranked = Mapping[str, float]
"""Score by document id, strictly falling in the order returned."""

Run = Mapping[str, Ranked]
"""What was returned, by query id."""


def as_ranked(
    results: Iterable[RankedResult | ScoredResult], depth: int, *, document_id: Callable[[str], str] = lambda uri: uri
) -> Ranked:
    """The best `depth` documents of some results: a content found in several documents counts for each (ARC-4).

    Equal scores stand as trec_eval has them, by document id from the last to the first, so that figures compare with
    published ones: reciprocal rank fusion ties often, and another order of ties moves its nDCG by half a point.
    """
    scores: dict[str, np.float32] = {}
    for result in results:
        for uri in result.uris:
            scores.setdefault(document_id(uri), np.float32(result.score))  # trec_eval reads 32 bits
    by_id = sorted(scores.items(), key=lambda item: item[0], reverse=True)
    return _falling(sorted(by_id, key=lambda item: -item[1])[:depth])


def write_run(path: Path, run: Run, tag: str) -> None:
    """Write `query Q0 document rank score tag` lines, as trec_eval reads them."""
    lines = (
        f"{query_id} Q0 {document_id} {rank} {score!r} {tag}\n"
        for query_id, ranked in run.items()
        for rank, (document_id, score) in enumerate(ranked.items(), start=1)
    )
    write_atomically(path, "".join(lines).encode("utf-8"))


def read_run(path: Path) -> Run:
    """Read a TREC run file; as for trec_eval, the scores say the order and the column of ranks says nothing.

    Raises:
        SourceError: There is no such file, a line of it is no line of a run, or a query has a document twice.
    """
    run: dict[str, dict[str, float]] = {}
    once = UniqueLines("document of a query")
    for place, line in numbered_lines(path, "a TREC run file"):
        query_id, document_id, score = _returned(line, place)
        once.note(place, query_id, document_id)
        run.setdefault(query_id, {})[document_id] = score
    return run


def order_of(ranked: Ranked) -> list[str]:
    """Document ids, best first, in trec_eval's order: by score in 32 bits, ties by id from the last to the first."""
    by_id = sorted(ranked, reverse=True)
    with np.errstate(over="ignore"):  # scores beyond 32 bits are infinite, and tie
        scores = np.array([ranked[name] for name in by_id], dtype=np.float64).astype(np.float32)
    return [by_id[place] for place in np.argsort(-scores, kind="stable")]


def _returned(line: str, place: str) -> tuple[str, str, float]:
    fields = line.split()
    try:
        query_id, _, document_id, _, score, _ = fields
        if "_" in score or not score.isascii() or not is_id(query_id):
            raise ValueError(line)
        value = float(score)
    except ValueError as error:
        raise SourceError(f"{place}: expected `query Q0 document rank score tag`, found {line[:80]!r}") from error
    if not math.isfinite(value):
        raise SourceError(f"{place}: expected a finite score, found {score}")
    return query_id, document_id, value


def _falling(ordered: Iterable[tuple[str, np.float32]]) -> Ranked:
    """The same order with no ties, so that every reader of a run sees this one."""
    falling: dict[str, float] = {}
    bound = np.float32(np.inf)
    for document_id, score in ordered:
        bound = min(score, np.nextafter(bound, np.float32(-np.inf)))
        falling[document_id] = float(bound)
    return falling
