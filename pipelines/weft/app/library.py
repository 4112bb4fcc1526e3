"""The few functions that an application needs: index, search, tell what became of an answer, ask a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, closing
from os import PathLike
from pathlib import Path

from weft.app.indexing import plan_of, run
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.domain.ranking import Answer, RankedResult
from weft.evaluation.queries.writer import QueryLog
from weft.feedback.events.producer import FeedbackProducer
from weft.ingestion.report import IndexOutcome
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.relations import named_relation
from weft.runtime.clock import system_clock
from weft.runtime.ray.stages import HERE
from weft.settings import Settings, keep_settings, load_settings

INSTRUCTION = "Answer the question from the passages below. Name the passages that you use by their numbers."


def index(
    sources: Sequence[str | PathLike[str]], store: str | PathLike[str], *, assignments: Sequence[str] = ()
) -> IndexOutcome:
    """Index folders and files in this process, and make the result live; large corpora take `weft index` on Ray.

    Args:
        assignments: Settings as "section.key=value".

    Raises:
        WeftError: A source cannot be read, or nothing in it can be indexed.
    """
    settings = _settings(store, assignments)
    outcome = run(plan_of(settings, [Path(source) for source in sources]), executor=HERE)
    keep_settings(settings)
    return outcome


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
    return undo.enter_context(opened(_settings(store, assignments))).releasing(undo.close)


def open_query_log(store: str | PathLike[str], *, assignments: Sequence[str] = ()) -> QueryLog:
    """The query log of a store: its `emit(answer)` never waits. `weft queries` and the nightly job read it.

    What was told last is written by its `close()`, or at the end of a `with`.
    """
    return QueryLog(Path(store), _settings(store, assignments).query_log)


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


def _settings(store: str | PathLike[str], assignments: Sequence[str]) -> Settings:
    return load_settings(assignments=[*assignments, f"storage.root={json.dumps(str(Path(store)))}"])
