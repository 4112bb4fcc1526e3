"""LRN-18, LRN-23: what verdicts and corrections leave of a person's word on a content under a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec import structs

from tests.support.feedback_events import HASHES, NOON, RULES, correction, explicit, impression, selection, shown
from tests.support.learner import learned
from tests.support.session_store import Partition, phase
from tests.support.words_spoken import HALF_LIFE, PRIOR
from weft.domain.events import AnyEvent
from weft.domain.ids import principal_fingerprint, question_hash, question_of
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.precedents import read_precedents

HOW = "how do I retry?"
DAY_MS = 86_400_000
LEFT_MS = 1_000
START = (NOON // DAY_MS + 1) * DAY_MS - LEFT_MS
"""A second before midnight."""
Row = tuple[int, str, str, str]


def asked(query_id: str = "q1", **more: object) -> AnyEvent:
    """An impression whose question is known."""
    return structs.replace(impression(query_id, **{"ts": START, **more}), query_hash=question_hash(HOW), question=HOW)  # type: ignore[arg-type]


def rows(evidence: Evidence) -> Mapping[Row, float]:
    """Observations by day since the first, content, bin and who."""
    people = {principal_fingerprint(name): name for name in ("ada", "bob")}
    return {
        (key.day - START // DAY_MS, key.content_hash, key.bin, people.get(key.principal, "")): round(micro / MICRO, 3)
        for key, micro in evidence.usage.items()
        if key.question == question_of(HOW)
    }


def words(folder: Path, *events: AnyEvent) -> Mapping[Row, float]:
    return rows(learned(folder, [asked(), *events]))


def said(signal: float, at_ms: int, *, who: str = "ada") -> AnyEvent:
    return explicit(signal, 1, principal=who, ts=START + at_ms, event_id=f"{who} says {signal} at {at_ms}")


def since(at_ms: int) -> str:
    """Milliseconds since midnight, as bins have it."""
    return f"{(START + at_ms) % DAY_MS:08d}"


def a_row(word: str, at_ms: int, who: str = "ada", share: str = "100") -> Row:
    return at_ms // LEFT_MS, HASHES[1], f"verdict:{word}:{since(at_ms)}:{share}", who


def the_question(day: int = 0) -> Row:
    return day, "", f"question:{HOW}", ""


def test_a_verdict_is_a_word_since_its_time(tmp_path: Path) -> None:
    """LRN-18: with the share of its page's best score, under the question, whose text goes along once for each."""
    assert words(tmp_path, said(1.0, 7)) == {a_row("good", 7): 1, the_question(): 1}


def test_said_again_on_one_day_it_is_the_same_word(tmp_path: Path) -> None:
    """LRN-18: since when it was said first; on another day it is said anew."""
    found = words(tmp_path, said(1.0, 7), said(1.0, 900), said(1.0, LEFT_MS + 3))
    assert found == {a_row("good", 7): 2, a_row("good", LEFT_MS + 3): 1, the_question(): 2, the_question(1): 1}


@pytest.mark.parametrize("later", [9, 7, 2])
def test_a_change_of_mind_is_a_word_of_its_own_behind_the_one_before(tmp_path: Path, later: int) -> None:
    """LRN-18: what comes later in the log holds, whatever its time says: a millisecond later at least."""
    found = words(tmp_path, said(1.0, 7), said(-1.0, later))
    assert found == {a_row("good", 7): 1, a_row("bad", max(later, 8)): 1, the_question(): 2}
    back = words(tmp_path / "back", said(1.0, 7), said(-1.0, 8), said(1.0, 8))
    assert back == {a_row("good", 7): 1, a_row("bad", 8): 1, a_row("good", 9): 1, the_question(): 3}


def test_a_verdict_is_the_word_of_who_gives_it(tmp_path: Path) -> None:
    """LRN-18: not of who searched: two people who look at one page hold what each of them says."""
    found = words(tmp_path, said(1.0, 7), said(-1.0, 8, who="bob"), said(1.0, 9))
    assert found == {a_row("good", 7): 2, a_row("bad", 8, "bob"): 1, the_question(): 3}
    chosen = words(tmp_path / "chosen", selection(1, principal="bob"))
    assert chosen[0, HASHES[1], "positive", "bob"] == RULES.credit.selected


def test_a_question_that_is_private_leaves_no_text(tmp_path: Path) -> None:
    """LRN-19: its fingerprint tells outcomes under it apart, and nothing tells what was asked."""
    shown_alone = structs.replace(impression(ts=START), query_hash=question_hash(HOW))
    assert rows(learned(tmp_path, [shown_alone, said(1.0, 7)])) == {a_row("good", 7): 1}


@pytest.mark.parametrize("right", [True, False])
def test_a_correction_is_a_word_on_that_content_and_on_nothing_else(tmp_path: Path, right: bool) -> None:
    """LRN-23: shown or not; no signal is learned from it, and nobody else is blamed."""
    of = {"question": f"  {HOW.upper()} ", "right": right, "ts": START}
    evidence = learned(tmp_path, [correction("f" * 64, **of), correction(None, uri="a.md#how", event_id="c2", **of)])
    assert not evidence.counts
    bin_ = f"verdict:{'good' if right else 'bad'}:{since(0)}:-"
    text = f"question:  {HOW.upper()} "
    assert rows(evidence) == {
        (0, "f" * 64, bin_, "ada"): 1,
        (0, "a.md#how", bin_, "ada"): 1,
        (0, "", text, ""): 2,
    }


def test_a_correction_of_a_query_is_about_its_question(tmp_path: Path) -> None:
    """LRN-23: it waits for its impression, and need not name what that shows."""
    early = [correction("f" * 64, ts=START), asked()]
    late = [*reversed(early)]
    found = [rows(learned(tmp_path / str(at), each)) for at, each in enumerate((early, late))]
    expected = {(0, "f" * 64, f"verdict:good:{since(0)}:-", "ada"): 1, the_question(): 1}
    assert found == [expected, expected]


def test_where_batches_are_cut_words_are_the_same(tmp_path: Path) -> None:
    """ARC-3: since when a word holds is part of a partition's state."""
    events = [
        asked(),
        said(1.0, 7),
        said(-1.0, 7),
        said(-1.0, 30),
        correction(ts=START + 40),
        said(1.0, 5, who="bob"),
        said(1.0, 8),
    ]
    partitions = [Partition(tmp_path / name) for name in ("whole", "single")]
    partitions[0].feed(events, cuts=False)
    partitions[1].feed(events)
    one, other = (rows(each.shared) for each in partitions)
    assert one == other


def held(evidence: Evidence) -> Sequence[float]:
    precedents = read_precedents(PRIOR, evidence, START // DAY_MS, half_life_days=HALF_LIFE)
    return precedents.verdicts.take(precedents.under(question_of(HOW))).good.tolist()


def test_what_an_unlearned_session_said_gives_way_to_the_word_before(tmp_path: Path) -> None:
    """LRN-17, LRN-18: praise, blame within a session that completes, and the session taken back."""
    mine = {"session_id": "mine", "principal": "ada"}
    partition = Partition(tmp_path)
    partition.feed([asked(), said(1.0, 7)])
    partition.feed(
        [
            phase("start", "mine", ts=START + 8, event_id="start", principal="ada"),
            asked("q2", ts=START + 9, **mine),
            explicit(-1.0, 1, query_id="q2", ts=START + 10, event_id="no", **mine),
            phase("complete", "mine", ts=START + 11, event_id="complete", principal="ada"),
        ]
    )
    assert held(partition.shared) == [0.0]
    partition.feed([phase("unlearn", "mine", ts=START + 12, event_id="unlearn", principal="ada")])
    assert held(partition.shared) == [1.0]


def test_precedent_is_no_signal(tmp_path: Path) -> None:
    """LRN-4: nothing is learned of signals from a page whose order was settled by what was said before."""
    settled = [shown(1, precedent=1.0), shown(2, precedent=0.5)]
    evidence = learned(tmp_path, [structs.replace(asked(), results=settled), said(1.0, 7)])  # type: ignore[arg-type]
    assert not [key for key in evidence.counts if key.parameter.startswith(("signal.", "product."))]
    assert [key for key in evidence.counts if key.parameter == "relevance"]
