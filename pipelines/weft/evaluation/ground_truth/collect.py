"""What is known to be right, where that is known from, and for how long (EVA-4).

Three phases: synthetic questions find the chunk that they were taken from; feedback with its full context says what was
useful; people or a model judge. A later phase overrules an earlier one about the same text and content.
"""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.errors import SourceError, StoreError
from weft.domain.ids import ContentHash
from weft.evaluation.measures.beir import UniqueLines, numbered_lines
from weft.evaluation.queries.days import day_folder, files_of
from weft.evaluation.queries.reader import LoggedOutcome, LoggedQuery
from weft.evaluation.queries.schema import table_schema
from weft.evaluation.queries.writer import write_rows
from weft.evaluation.settings import GroundTruthSettings
from weft.runtime.chat import ChatEndpoint, EndpointError
from weft.runtime.clock import SECONDS_PER_DAY, day_of

JUDGEMENTS = Path("logs") / "judgements"
"""Folder of judgements below a store."""

BEST = 3
"""The highest grade."""

SCHEMA = table_schema(
    [
        ("text", pa.string()),
        ("content_hash", pa.string()),
        ("grade", pa.int32()),
        ("source", pa.string()),
        ("by", pa.string()),
        ("made_at", pa.float64()),
        ("expires_at", pa.float64()),
    ]
)


class JudgementSource(StrEnum):
    """Where a judgement comes from; what stands later overrules what stands earlier."""

    SYNTHETIC = "synthetic"
    IMPLICIT = "implicit"
    JUDGED = "judged"


DAYS = {JudgementSource.SYNTHETIC: 365, JudgementSource.IMPLICIT: 90, JudgementSource.JUDGED: 365}
"""For which a judgement holds: use changes sooner than texts."""

_GRADES = {"inclusion": 1.0, "selection": 1.0, "reference": 2.0, "explicit": 3.0}  # that full feedback stands for


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How well a content answers a text."""

    text: str  # the query, as it is asked
    content_hash: ContentHash
    grade: int  # from 0, irrelevant, to 3
    source: JudgementSource
    by: str  # who or what said so: a kind of question, a model, a person
    made_at: float
    expires_at: float  # seconds since the epoch from which on it holds no longer

    def __post_init__(self) -> None:
        if not 0 <= self.grade <= BEST:
            raise ValueError(f"expected a grade from 0 to {BEST}, got {self.grade}")

    def holds(self, now: float) -> bool:
        """Whether it was made and has not expired."""
        return self.made_at <= now < self.expires_at


Grades = Mapping[str, Mapping[ContentHash, int]]
"""Grade by content, by text of the query."""


def from_feedback(queries: Iterable[LoggedQuery]) -> list[Judgement]:
    """The second phase: what became of results, as long as the answer that they stood in is known.

    Each principal has one say per content: the best of what it did, by `grades`, a verdict times its size; the mean
    where something spoke against it. Principals are averaged, and the mean is rounded to a grade. What was passed over
    above a selection is judged 0, where nothing else was said of it. Judgements are dated by the last outcome.
    """
    outcomes_by_pair: defaultdict[tuple[str, ContentHash], list[LoggedOutcome]] = defaultdict(list)
    passed: dict[tuple[str, ContentHash], float] = {}
    for query in queries:
        shown = [result.content_hash for result in query.results]
        for seen in query.outcomes:
            if seen.content_hash in shown and seen.kind in _GRADES:
                outcomes_by_pair[query.text, seen.content_hash].append(seen)
                if seen.kind == "selection":
                    for content in shown[: shown.index(seen.content_hash)]:
                        passed[query.text, content] = max(seen.at, passed.get((query.text, content), seen.at))
    implicit = JudgementSource.IMPLICIT
    judgements = [
        judged(*pair, _grade(outcomes), source=implicit, by="feedback", now=max(seen.at for seen in outcomes))
        for pair, outcomes in outcomes_by_pair.items()
    ]
    return judgements + [
        judged(*pair, 0, source=implicit, by="passed over", now=at)
        for pair, at in passed.items()
        if pair not in outcomes_by_pair
    ]


def judged(text: str, content: ContentHash, grade: int, *, source: JudgementSource, by: str, now: float) -> Judgement:
    """A judgement that holds for as long as those of its source do."""
    until = now + DAYS[source] * SECONDS_PER_DAY
    return Judgement(text=text, content_hash=content, grade=grade, source=source, by=by, made_at=now, expires_at=until)


def grades_of(judgements: Iterable[Judgement], *, now: float) -> Grades:
    """What holds now: of each text and content the judgement of the latest phase, and of one phase the newest."""
    order = list(JudgementSource)
    latest_last = sorted(
        (one for one in judgements if one.holds(now)), key=lambda one: (order.index(one.source), one.made_at, one.grade)
    )
    grades: dict[tuple[str, ContentHash], int] = {(one.text, one.content_hash): one.grade for one in latest_last}
    by_text: defaultdict[str, dict[ContentHash, int]] = defaultdict(dict)
    for (text, content), grade in sorted(grades.items()):
        by_text[text][content] = grade
    return dict(by_text)


def keep(root: Path, judgements: Sequence[Judgement], *, now: float) -> None:
    """Add judgements to those of a store, as one whole file."""
    if judgements:
        rows = [
            {name: getattr(one, name) for name in SCHEMA.names} | {"source": one.source.value} for one in judgements
        ]
        write_rows(day_folder(root / JUDGEMENTS, day_of(now)), rows, SCHEMA)


def stored_judgements(root: Path) -> list[Judgement]:
    """Every judgement of a store, expired ones too.

    Raises:
        StoreError: A file holds something else.
    """
    rows = [row for file in files_of(root / JUDGEMENTS) for row in pq.read_table(file).to_pylist()]
    try:
        return [
            Judgement(
                **{**row, "content_hash": ContentHash(row["content_hash"]), "source": JudgementSource(row["source"])}
            )
            for row in rows
        ]
    except (TypeError, KeyError, ValueError) as error:
        raise StoreError(f"{root / JUDGEMENTS}: expected judgements, found: {error}; remove that file") from error


def _grade(outcomes: Sequence[LoggedOutcome]) -> int:
    gains_by_principal: defaultdict[str, list[float]] = defaultdict(list)
    for seen in outcomes:
        gains_by_principal[seen.principal].append(max(0.0, seen.value) * _GRADES[seen.kind])
    means = [max(gains) if min(gains) > 0.0 else fmean(gains) for gains in gains_by_principal.values()]
    return min(BEST, round(fmean(means)))


log = logging.getLogger(__name__)

_GRADE = re.compile(rf"[0-{BEST}](?!\d)")
_HASH = re.compile(r"[0-9a-f]{64}")

FAILURES_ALLOWED = 3
"""Requests in a row without a grade after which a judge is not asked again."""

_INSTRUCTION = (
    "Grade how well the passage answers the query: 3 fully, 2 mostly, 1 partly, 0 not at all. Say the number alone."
)
_CHARACTERS = 4_000  # of the passage that the judge sees
_TIMEOUT_S = 30.0  # for one answer

Passages = Callable[[ContentHash], str | None]
"""The text of a content, None where it is gone."""


def from_file(path: Path, *, now: float) -> list[Judgement]:
    """Read judgements, one JSON object a line: `text`, `content_hash`, `grade`, and whoever gave it as `by`.

    Raises:
        SourceError: The file cannot be read, a line is no judgement, or somebody judges one pair in two ways.
    """
    judgements = []
    once = UniqueLines("judgement")
    for place, line in numbered_lines(path, "a file of judgements"):
        judgement = _of_line(line, place, now)
        if once.note(place, judgement.text, judgement.content_hash, judgement.by, says=judgement.grade):
            judgements.append(judgement)
    once.report(path)
    return judgements


class Judge:
    """A model that grades passages; one that does not answer is left alone after a few failures."""

    def __init__(self, rules: GroundTruthSettings) -> None:
        self._rules = rules
        self._failed_in_row = 0
        self.failed = 0

    def judge(self, pairs: Iterable[tuple[str, ContentHash]], passages: Passages, *, now: float) -> list[Judgement]:
        """Judgements of those pairs of a query's text and a content that the model grades; none without an endpoint."""
        judgements = []
        for text, content in pairs:
            if not self._rules.endpoint or self._failed_in_row >= FAILURES_ALLOWED:
                break
            passage = passages(content)
            grade = None if passage is None else self._grade(text, passage)
            if grade is not None:
                by = self._rules.model or self._rules.endpoint
                judgements.append(judged(text, content, grade, source=JudgementSource.JUDGED, by=by, now=now))
        return judgements

    def _grade(self, text: str, passage: str) -> int | None:
        rules = self._rules
        model = ChatEndpoint(rules.endpoint, rules.model, rules.api_key, _TIMEOUT_S)
        try:
            grade = _grade_in(model.complete(_INSTRUCTION, f"Query: {text}\n\nPassage: {passage[:_CHARACTERS]}"))
        except (EndpointError, ValueError) as error:
            log.warning("%s: expected a grade, found: %s", self._rules.endpoint, error)
            self._failed_in_row += 1
            self.failed += 1
            return None
        self._failed_in_row = 0
        return grade


def _grade_in(reply: str) -> int:
    digit = _GRADE.search(reply)
    if digit is None:
        raise ValueError(f"no grade from 0 to {BEST} in {reply[:40]!r}")
    return int(digit[0])


def _of_line(line: str, place: str, now: float) -> Judgement:
    try:
        row: Mapping[str, Any] = json.loads(line)
        content, grade, text, by = str(row["content_hash"]), row["grade"], row["text"], row.get("by") or ""
        if not _HASH.fullmatch(content) or type(grade) is not int:
            raise ValueError("content_hash or grade of another kind")
        if not isinstance(text, str) or not text.strip() or not isinstance(by, str):
            raise ValueError("text or by of another kind")
        return judged(text, ContentHash(content), grade, source=JudgementSource.JUDGED, by=by, now=now)
    except (ValueError, TypeError, KeyError) as error:
        raise SourceError(
            f"{place}: expected a JSON object with text, content_hash and a grade from 0 to {BEST}, found: {error!r}"
        ) from error
