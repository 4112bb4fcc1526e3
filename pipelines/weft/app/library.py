"""The few functions that an application needs, beside indexing: search, tell what became of an answer, ask a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, closing
from os import PathLike
from pathlib import Path

from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.domain.ranking import Answer, RankedResult
from weft.evaluation.queries.writer import QueryLog
from weft.feedback.events.producer import FeedbackProducer
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.relations import named_relation
from weft.runtime.clock import system_clock
from weft.settings import load_settings, store_settings

INSTRUCTION = "Answer the question from the passages below. Name the passages that you use by their numbers."


def open_searcher(store: str | PathLike[str], *, assignments: Sequence[str] = ()) -> Searcher:
    """A searcher over what is live in a store. Open one per process and keep it; threads may share it.

    Opening loads the encoder and the indexes. New generations and new beliefs reach searches until its `close()`, or
    the end of a `with`.

    Args:
        assignments: Settings as "section.key=value".

    Raises:
        WeftError: Nothing is live in the store, or it is damaged.
    """
    undo = ExitStack()
    return undo.enter_context(opened(store_settings(store, assignments))).releasing(undo.close)


def open_query_log(store: str | PathLike[str], *, assignments: Sequence[str] = ()) -> QueryLog:
    """The query log of a store: its `emit(answer)` never waits. `weft queries` and the nightly job read it.

    What was told last is written by its `close()`, or at the end of a `with`.
    """
    return QueryLog(Path(store), store_settings(store, assignments).query_log)


def declare(store: str | PathLike[str], start: str, kind: str, end: str, *, retract: bool = False) -> None:
    """Declare that one document supersedes, contradicts, supports … another; searches know at once (GRA-1).

    Args:
        start, end: Documents by path or URI; parts of them with "#" and a heading, symbol or line.
        kind: "caused", "derived_from", "enabled", "contradicts", "supersedes" or "supports".
        retract: Take it back; what documents declare themselves stays.

    Raises:
        ValueError: The kind is none, or both ends are one.
        WeftError: Nothing is live in the store, no document is called so, or several are.
    """
    catalog = Catalog(Path(store))
    with closing(catalog.open_live()) as generation:
        relation = named_relation(generation.chunks, start, kind, end, at=system_clock())
    (catalog.retract if retract else catalog.declare)(relation)


def open_producer(bootstrap: str, *, assignments: Sequence[str] = ()) -> FeedbackProducer:
    """A producer of feedback; it starts before its broker, if need be, and `close` says how many events were lost.

    Args:
        bootstrap: The broker, as "host:port".
        assignments: Settings as "section.key=value", such as those of `kafka`.
    """
    settings = load_settings(assignments=[f"kafka.bootstrap={json.dumps(bootstrap)}", *assignments])
    return FeedbackProducer.connect(settings.kafka, settings.feedback)


def prompt(answer: Answer) -> str:
    """A prompt for a language model: the instruction, each result with its source, and the question.

    A result that came with its surroundings (`Query(context=True)`) is given whole.

    Examples:
        >>> from weft.domain.ranking import Query
        >>> print(prompt(Answer(query=Query(text="why"), results=(), generation="", learned="", fusion="rrf")))
        Answer the question from the passages below. Name the passages that you use by their numbers.
        <BLANKLINE>
        Question: why
    """
    passages = [_passage(result) for result in answer.results]
    return "\n\n".join([INSTRUCTION, *passages, f"Question: {answer.query.text}"])


def _passage(result: RankedResult) -> str:
    text = result.text if result.context is None else result.context.text
    return f"[{result.rank}] {result.uris[0]}, lines {result.start_line} to {result.end_line}\n{text}"
