"""OPS-10: queries of alert rules and dashboard read what weft prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.infra import ADDED, DASHBOARD, RULES, alert_rules, asked_of, documents, queries
from weft.feedback.run import metrics as of_updaters

PARTITION, NONE = {"partition"}, set[str]()
SERVICE: dict[str, set[str]] = {
    "weft_http_requests_total": {"route", "method", "status"},
    "weft_http_request_seconds_bucket": {"route", "le"},
    "weft_http_requests_in_flight": NONE,
    "weft_searches_waiting": NONE,
    "weft_searches_total": {"outcome"},
    "weft_search_stage_seconds_sum": {"stage"},
    "weft_search_stage_seconds_count": {"stage"},
    "weft_search_process_restarts_total": NONE,
    "weft_query_vectors_total": {"from"},
    "weft_refused_total": {"reason"},
    "weft_producer_events_total": {"type"},
    "weft_producer_waiting": NONE,
    "weft_producer_lost_total": NONE,
    "weft_generation_age_seconds": NONE,
    "weft_learned_age_seconds": NONE,
    "weft_night_age_seconds": NONE,
    "weft_documents": NONE,
    "weft_contents": NONE,
    "weft_store_free_bytes": NONE,
    "weft_alarm": {"name"},
}
"""What the service counts, by name, with its labels. tests/integration/test_metrics_queries.py asks a running one."""

UPDATERS = {
    f"weft_feedback_{name}": {*PARTITION, *({"reason"} if name == "dead_letters_total" else NONE)}
    for name in re.findall(r'Sample\("(\w+)"', Path(of_updaters.__file__).read_text(encoding="utf-8"))
} | {f"weft_feedback_{name}_total": PARTITION for name in of_updaters._COUNTERS}
KNOWN = SERVICE | UPDATERS | {"up": NONE}


@pytest.mark.parametrize(("where", "query"), queries().items(), ids=str)
def test_a_query_reads_what_is_printed(where: str, query: str) -> None:
    """OPS-10: every series by its name, chosen and grouped by labels that it has."""
    read, grouped = asked_of(query)
    assert read
    assert set(read) <= set(KNOWN)
    for name, labels in read.items():
        assert labels <= KNOWN[name] | ADDED
    assert grouped <= ADDED.union(*(KNOWN[name] for name in read))


def test_every_rule_says_whom_it_calls_and_what_helps() -> None:
    """OPS-10, OPS-15: at once or by day."""
    for rule in alert_rules().values():
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert set(rule["annotations"]) == {"summary", "description"}


def test_every_rule_is_shown_to_ring_and_to_be_silent() -> None:
    """OPS-10: in the tests that promtool runs."""
    (tests,) = documents(RULES.with_name("rules_test.yaml"))
    rung = {
        each["alertname"] for test in tests["tests"] for each in test.get("alert_rule_test", ()) if each["exp_alerts"]
    }
    assert rung == set(alert_rules())


def test_panels_lie_beside_each_other() -> None:
    """OPS-10: within the dashboard's 24 columns, none over another; each with a title of its own."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    for key in ("title", "id"):
        assert len({panel[key] for panel in board["panels"]}) == len(board["panels"])
