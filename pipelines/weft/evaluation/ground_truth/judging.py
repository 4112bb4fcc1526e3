"""The third phase of ground truth: judgements of people from a file, or of a model behind an endpoint (EVA-4)."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from weft.domain.errors import SourceError
from weft.domain.ids import ContentHash
from weft.evaluation.ground_truth.collect import BEST, Judgement, JudgementSource, judged
from weft.evaluation.measures.beir import UniqueLines, numbered_lines
from weft.evaluation.settings import GroundTruthSettings
from weft.runtime.chat import ChatEndpoint, EndpointError

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
        SourceError: The file cannot be read, a line is no judgement, or somebody judges one pair twice.
    """
    judgements = []
    once = UniqueLines("judgement")
    for place, line in numbered_lines(path, "a file of judgements"):
        judgement = _of_line(line, place, now)
        once.note(place, judgement.text, judgement.content_hash, judgement.by)
        judgements.append(judgement)
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
