"""OPS-5, OPS-13a: answers are kept for explanations, the newest of them, and taken out with whoever was given them."""

from __future__ import annotations

import stat
from contextlib import closing
from pathlib import Path

from tests.support.answers import a_query, an_answer
from weft.domain.ids import QueryId
from weft.domain.ranking import Answer
from weft.runtime.storage.stored_answers import PLACE, StoredAnswers, forget_answers


def answered(number: int, principal: str = "") -> Answer:
    return an_answer(a_query(query_id=QueryId(f"q{number}"), principal=principal))


def test_an_answer_comes_back_as_it_was_given(tmp_path: Path) -> None:
    """To the bit, with every contribution; from another process's view of the file as well."""
    answer = answered(1)
    with closing(StoredAnswers(tmp_path)) as kept, closing(StoredAnswers(tmp_path)) as other:
        kept.keep([answer])
        found = other.of("q1")
    assert found is not None
    assert found.to_dict() == answer.to_dict()
    assert stat.S_IMODE((tmp_path / PLACE).stat().st_mode) == 0o600


def test_the_newest_are_kept(tmp_path: Path) -> None:
    """Older ones go, a few hundred at a time."""
    now = iter(range(10_000))
    with closing(StoredAnswers(tmp_path, most=100, clock=lambda: float(next(now)))) as kept:
        for number in range(1_000):
            kept.keep([answered(number)])
        assert kept.of("q999") is not None
        assert kept.of("q900") is not None
        assert kept.of("q0") is None


def test_what_somebody_was_given_is_taken_out(tmp_path: Path) -> None:
    """OPS-13a: nothing of it is left in the file, and others keep theirs."""
    with closing(StoredAnswers(tmp_path)) as kept:
        kept.keep([answered(1, "ada"), answered(2, "bob")])
        assert forget_answers(tmp_path, "ada") == 1
        assert kept.of("q1") is None
        assert kept.of("q2") is not None
    assert forget_answers(tmp_path, "ada") == 0
    assert forget_answers(tmp_path / "nowhere", "ada") == 0
