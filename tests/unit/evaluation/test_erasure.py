"""OPS-13a: what the logs of a store hold of one person is taken out of their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.support.copies import hosts_of, memory_url
from weft.domain.ids import ContentHash
from weft.evaluation.ground_truth.collect import JudgementSource, judged, keep, stored_judgements
from weft.evaluation.log.erasure import erase_from_logs
from weft.evaluation.queries.days import OUTCOME_LOG, QUERY_LOG, day_folder, keep_days, merge_small
from weft.evaluation.queries.reader import read_queries
from weft.evaluation.queries.schema import OUTCOMES, QUERIES
from weft.evaluation.queries.writer import write_rows

NOW = 1_700_000_000.0
CONTENT = ContentHash("a" * 64)


def asked(who: str, query_id: str, text: str) -> dict[str, Any]:
    lists = {name: [] for name in ("filters", "failed_channels", "timings_ms", "weights", "heads", "results")}
    return {"asked_at": round(NOW * 1000), "query_id": query_id, "principal": who, "text": text, **lists}


def done(who: str, query_id: str) -> dict[str, Any]:
    return {"said_at": round(NOW * 1000), "event_id": f"{who} {query_id}", "query_id": query_id, "principal": who}


def test_what_one_person_asked_and_did_is_gone_and_the_rest_stays(tmp_path: Path) -> None:
    """OPS-13a: rows of their questions, of anything done about those, and judgements by them or made of those."""
    day = 19_675
    queries, outcomes = day_folder(tmp_path / QUERY_LOG, day), day_folder(tmp_path / OUTCOME_LOG, day)
    write_rows(queries, [asked("bob", "b1", "my secret"), asked("bob", "b2", "how?")], QUERIES)  # all theirs
    write_rows(queries, [asked("ada", "a1", "how?"), asked("bob", "b3", "another")], QUERIES)
    write_rows(outcomes, [done("ada", "b1"), done("bob", "a1"), done("ada", "a1")], OUTCOMES)
    judgements = [("my secret", "feedback"), ("how?", "feedback"), ("how?", "bob"), ("what?", "ada")]
    keep(
        tmp_path,
        [judged(text, CONTENT, 1, source=JudgementSource.JUDGED, by=by, now=NOW) for text, by in judgements],
        now=NOW,
    )
    assert erase_from_logs(tmp_path, "bob") == {"queries": 3, "outcomes": 2, "judgements": 2}
    assert [(each.text, each.facts["principal"]) for each in read_queries(tmp_path, limit=9)] == [("how?", "ada")]
    (left,) = outcomes.glob("*.parquet")
    assert pq.read_table(left).schema == OUTCOMES
    assert [row["event_id"] for row in pq.read_table(left).to_pylist()] == ["ada a1"]
    assert {(each.text, each.by) for each in stored_judgements(tmp_path)} == {("how?", "feedback"), ("what?", "ada")}
    assert not any(erase_from_logs(tmp_path, "bob").values())


def test_hosts_share_a_log_and_what_is_erased_is_gone_from_all(tmp_path: Path) -> None:
    """SCL-4, OPS-13a: files of an object store are read on every host, merged by one, and taken out everywhere."""
    day, host = 19_675, hosts_of(memory_url(), tmp_path)
    write_rows(day_folder(host("a") / QUERY_LOG, day), [asked("bob", "b1", "my secret")], QUERIES)
    write_rows(
        day_folder(host("b") / QUERY_LOG, day), [asked("ada", "a1", "how?"), asked("bob", "b2", "how?")], QUERIES
    )
    for name in "ab":
        assert {each.query_id for each in read_queries(host(name), limit=9)} == {"b1", "a1", "b2"}
    assert merge_small(day_folder(host("a") / QUERY_LOG, day), least=2) is not None
    assert [each.query_id for each in read_queries(host("b"), limit=9, since=NOW - 1.0)].count("b1") == 1
    assert erase_from_logs(host("b"), "bob")["queries"] == 2
    for name in "abc":
        assert [each.query_id for each in read_queries(host(name), limit=9)] == ["a1"]
        assert not any(b"my secret" in path.read_bytes() for path in host(name).rglob("*.parquet"))
    keep_days(host("c") / QUERY_LOG, 1, today=day + 9)
    assert read_queries(host("d"), limit=9) == [] == read_queries(host("a"), limit=9)
