"""EVA-4: ground truth in phases, each judgement with source and expiry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from lab.ground_truth import SyntheticQuestion, from_questions
from tests.support.feedback_events import HASHES
from tests.support.judging_model import a_model
from tests.support.logged_queries import a_logged, a_result, an_outcome
from weft.domain.errors import SourceError, StoreError
from weft.domain.ids import ChunkId, ContentHash
from weft.evaluation.ground_truth.collect import (
    DAYS,
    FAILURES_ALLOWED,
    JUDGEMENTS,
    Judge,
    JudgementSource,
    from_feedback,
    from_file,
    grades_of,
    judged,
    keep,
    stored_judgements,
)
from weft.settings import load_settings

RULES = load_settings(environment={}).evaluation.ground_truth
DAY = 86_400.0
NOW = 20_000 * DAY
A, B, C = (ContentHash(name) for name in HASHES[:3])


def test_a_question_is_answered_by_the_chunk_that_it_was_taken_from() -> None:
    """EVA-4: the first phase, with its kind as the origin, and an end."""
    question = SyntheticQuestion(
        text="what is a lock", uri="a.py", chunk_id=ChunkId("c"), content_hash=A, kind="docstring", place=0
    )
    (found,) = from_questions([question], now=NOW)
    assert (found.source, found.by, found.grade) == (JudgementSource.SYNTHETIC, "docstring", 3)
    assert found.expires_at == NOW + DAYS[JudgementSource.SYNTHETIC] * DAY


def feedback(*outcomes, shown=(A, B, C)):
    results = [a_result(content, rank=rank) for rank, content in enumerate(shown, start=1)]
    found = from_feedback([a_logged(1, results, text="t", outcomes=outcomes)])
    return {one.content_hash: (one.grade, one.by) for one in found}


def test_feedback_becomes_grades() -> None:
    """EVA-4: the second phase: a click 1, a reference 2, a thumb up 3, a thumb down 0; passed over 0."""
    assert feedback(an_outcome(A)) == {A: (1, "feedback")}
    assert feedback(an_outcome(A, "reference")) == {A: (2, "feedback")}
    assert feedback(an_outcome(A, "explicit", 1.0)) == {A: (3, "feedback")}
    assert feedback(an_outcome(A, "explicit", -1.0)) == {A: (0, "feedback")}
    assert feedback(an_outcome(C)) == {C: (1, "feedback"), A: (0, "passed over"), B: (0, "passed over")}


def test_every_principal_has_one_say() -> None:
    """EVA-4: a thousand clicks of one are not worth more than one; two who disagree meet in the middle."""
    assert feedback(*[an_outcome(A)] * 50, an_outcome(A, "explicit", 1.0)) == {A: (3, "feedback")}
    both = [an_outcome(A, "explicit", 1.0), an_outcome(A, "explicit", -1.0, principal="bob")]
    assert feedback(*both)[A][0] == 2  # 1.5, rounded to even


def test_what_was_passed_over_again_is_dated_by_the_last_time() -> None:
    """EVA-4: a judgement expires so long after the last outcome, in whatever order the log is read."""
    shown = [a_result(A), a_result(B, rank=2)]
    log = [a_logged(day, shown, text="t", outcomes=[an_outcome(B, at=NOW + day * DAY)]) for day in (0, 80)]
    for queries in (log, log[::-1]):
        found = {one.content_hash: one.made_at for one in from_feedback(queries)}
        assert found == {A: NOW + 80 * DAY, B: NOW + 80 * DAY}


def test_feedback_without_its_context_is_no_ground_truth() -> None:
    """EVA-4: about something that was not shown, about the answer as a whole, or of a kind without a grade."""
    assert feedback(an_outcome(C), shown=(A, B)) == {}
    assert feedback(an_outcome(None, "success")) == {}
    assert feedback(an_outcome(A, "retrieval")) == {}


def test_a_later_phase_overrules_an_earlier_one_until_it_expires() -> None:
    """EVA-4: then the earlier holds again, as long as it lives; of one phase the newest holds."""
    of = lambda grade, source, at: judged("t", A, grade, source=source, by="", now=at)  # noqa: E731
    phases = [
        of(3, JudgementSource.SYNTHETIC, NOW),
        of(1, JudgementSource.IMPLICIT, NOW),
        of(2, JudgementSource.JUDGED, NOW - 300 * DAY),
    ]
    assert grades_of(phases, now=NOW + DAY) == {"t": {A: 2}}
    assert grades_of(phases, now=NOW + 70 * DAY) == {"t": {A: 1}}
    assert grades_of(phases, now=NOW + 100 * DAY) == {"t": {A: 3}}
    assert grades_of(phases, now=NOW + 400 * DAY) == {}
    assert grades_of([*phases, of(0, JudgementSource.JUDGED, NOW)], now=NOW + DAY) == {"t": {A: 0}}
    assert grades_of(phases, now=NOW - DAY) == {"t": {A: 2}}


def test_judgements_are_kept_in_the_store(tmp_path: Path) -> None:
    """EVA-4: with everything that is known of them."""
    first = [judged("t", A, 2, source=JudgementSource.JUDGED, by="ada", now=NOW)]
    second = [judged("u", B, 0, source=JudgementSource.IMPLICIT, by="feedback", now=NOW + DAY)]
    for some in (first, second, []):
        keep(tmp_path, some, now=NOW)
    assert sorted(stored_judgements(tmp_path), key=lambda one: one.text) == [*first, *second]
    (tmp_path / JUDGEMENTS / "date=2024-10-05").mkdir(exist_ok=True)
    file = next((tmp_path / JUDGEMENTS).glob("*/*.parquet"))
    (file.parent / "x.parquet").write_bytes(file.read_bytes()[:-9])
    assert len(stored_judgements(tmp_path)) == 2


def test_people_judge_by_file(tmp_path: Path) -> None:
    """EVA-4: one JSON object a line; a line that is none is refused with its place."""
    path = tmp_path / "judgements.jsonl"
    path.write_text(json.dumps({"text": "t", "content_hash": A, "grade": 2, "by": "ada"}) + "\n\n")
    (found,) = from_file(path, now=NOW)
    assert (found.text, found.content_hash, found.grade, found.by, found.source) == (
        "t",
        A,
        2,
        "ada",
        JudgementSource.JUDGED,
    )
    path.write_text(json.dumps({"text": "t", "content_hash": A, "grade": 2, "by": None}))
    assert [each.by for each in from_file(path, now=NOW)] == [""]
    told = [json.dumps({"text": "one\u2028two", "content_hash": on, "grade": 2}, ensure_ascii=False) for on in (A, B)]
    path.write_bytes("\r\n".join(told).encode("utf-8-sig"))
    assert [each.text for each in from_file(path, now=NOW)] == ["one\u2028two"] * 2
    for line in (
        '{"text": "t"}',
        "[]",
        '{"text": "t", "content_hash": "x", "grade": 1}',
        "{",
        json.dumps({"text": "t", "content_hash": A, "grade": 4}),
        json.dumps({"text": "t", "content_hash": A, "grade": True}),
        json.dumps({"text": None, "content_hash": A, "grade": 2}),
        json.dumps({"text": " ", "content_hash": A, "grade": 2}),
        json.dumps({"text": "t", "content_hash": A, "grade": 2, "by": ["ada"]}),
    ):
        path.write_text(line)
        with pytest.raises(SourceError, match=r"judgements\.jsonl:1: expected"):
            from_file(path, now=NOW)
    with pytest.raises(SourceError):
        from_file(tmp_path / "absent", now=NOW)


def test_who_judges_a_pair_in_two_ways_is_refused(tmp_path: Path) -> None:
    """EVA-4: both lines are named; another person may grade the same pair, and what is said twice counts once."""
    path = tmp_path / "judgements.jsonl"
    lines = [{"text": "t", "content_hash": A, "grade": 2, "by": "ada"}, {"text": "t", "content_hash": A, "grade": 1}]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert len(from_file(path, now=NOW)) == 2
    path.write_text("\n".join(map(json.dumps, [*lines, lines[0]])))
    assert len(from_file(path, now=NOW)) == 2
    path.write_text("\n".join(map(json.dumps, [*lines, lines[0] | {"grade": 0}])))
    with pytest.raises(SourceError, match=r"judgements\.jsonl:3: expected every judgement once.* as in line 1"):
        from_file(path, now=NOW)


def test_a_store_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    """EVA-4."""
    keep(tmp_path, [judged("t", A, 2, source=JudgementSource.JUDGED, by="ada", now=NOW)], now=NOW)
    import pyarrow as pa
    import pyarrow.parquet as pq

    (file,) = (tmp_path / JUDGEMENTS).glob("*/*.parquet")
    pq.write_table(pa.table({"other": [1]}), file)
    with pytest.raises(StoreError, match="expected judgements"):
        stored_judgements(tmp_path)


def test_a_model_judges_by_endpoint() -> None:
    """EVA-4: the third phase, optional: grades are read from what it says, what it cannot say is counted."""
    with a_model("2", "Grade: 3", "no idea") as (url, seen):
        rules = RULES.model_copy(update={"endpoint": url, "model": "m", "api_key": SecretStr("k")})
        judge = Judge(rules)
        found = judge.judge([("t", A), ("t", B), ("t", C)], lambda content: f"text of {content[:4]}", now=NOW)
    assert [(one.content_hash, one.grade, one.by) for one in found] == [(A, 2, "m"), (B, 3, "m")]
    assert judge.failed == 1
    assert seen[0]["authorization"] == "Bearer k"
    assert f"text of {A[:4]}" in seen[0]["messages"][1]["content"]


def test_a_model_that_does_not_answer_is_left_alone() -> None:
    """EVA-4: after a few failures in a row; and without an endpoint nobody is asked."""
    gone = RULES.model_copy(update={"endpoint": "http://127.0.0.1:9/v1"})
    judge = Judge(gone)
    assert judge.judge([("t", A)] * 50, lambda _: "text", now=NOW) == []
    assert judge.failed == FAILURES_ALLOWED
    assert Judge(RULES).judge([("t", A)], lambda _: "text", now=NOW) == []
    assert Judge(gone).judge([("t", A)], lambda _: None, now=NOW) == []
