"""OPS-10: every query of alert rules and dashboard against what a running service prints, read by a real Prometheus."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaProducer

from tests.support.infra import ADDED, DASHBOARD, INFRA, alert_rules, asked_of, exposed, queries
from tests.support.ports import free_ports
from weft.evaluation.log.alarms import Alarm
from weft.runtime.clock import system_clock
from weft.runtime.kafka.broker import EmbeddedBroker

pytestmark = [pytest.mark.slow, pytest.mark.integration]

service = pytest.importorskip("tests.support.service", reason="there is no weft serve yet")


def weft(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "weft", *words], check=True, capture_output=True, cwd=service.ROOT)


def until(read: Any, what: str, *, seconds: float = 120.0) -> Any:
    ends = time.monotonic() + seconds
    while not (found := read()):
        assert time.monotonic() < ends, what
        time.sleep(0.5)
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A service with updaters, to which everything has happened that it counts."""
    from weft.app.views.status import note_night

    store = service.small_store(tmp_path_factory.mktemp("metrics"))
    with EmbeddedBroker() as broker:
        update = [sys.executable, "-m", "weft", "update", "--local", "--store", str(store)]
        updaters = subprocess.Popen(
            [*update, "--bootstrap", broker.bootstrap], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            with service.serving(store, "--bootstrap", broker.bootstrap) as running:
                happen(running, broker)
                weft("consolidate", "--store", str(store), "--set", "consolidation.calibration.probes=''")
                rung = Alarm(
                    "keyword blindness", 0.5, 0.4, 0.6, bound=0.1, n=100, ringing=True, says="words are passed over"
                )
                note_night(store, {}, [rung], at=system_clock())
                yield running
        finally:
            updaters.terminate()
            updaters.wait(60)


def happen(running: Any, broker: EmbeddedBroker) -> None:
    """A search and an outcome, a record that is no event, and a request without a token."""
    answer = running.ask("yellow fruit that grows")
    with running.client() as client:
        verdict = {"type": "explicit", "answer": answer["token"], "signal": 1.0}
        assert client.post("/v1/feedback", json=verdict).status_code == 202
    with running.client(token=None) as client:
        assert client.post("/v1/search", json={"text": "?"}).status_code == 401
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    producer.send("weft.feedback", key=b"s", value=b"no event")
    producer.close()
    until(lambda: 'weft_feedback_applied_total{partition="0"}' in printed(running), "updaters")
    until(lambda: "weft_feedback_dead_letters_total" in printed(running), "a dead letter")
    until(lambda: "weft_feedback_evidence_bytes" in printed(running), "what updaters publish")


def printed(running: Any) -> str:
    with running.client() as client:
        answered = client.get("/metrics")
    assert answered.status_code == 200
    return str(answered.text)


def test_every_series_and_label_of_a_query_is_printed(served: Any) -> None:
    """OPS-10: by its name."""
    known = exposed(printed(served)) | {"up": set()}
    for where, query in queries().items():
        read, grouped = asked_of(query)
        assert set(read) <= set(known), where
        for name, labels in read.items():
            assert labels <= known[name] | ADDED, where
        assert grouped <= ADDED.union(*(known[name] for name in read)), where


@pytest.fixture
def prometheus(served: Any, tmp_path: Path) -> Iterator[str]:
    """The URL of a Prometheus that reads the service as infra/prometheus/prometheus.yaml says."""
    if shutil.which("prometheus") is None:
        pytest.skip("Prometheus is missing: apt-get install prometheus")
    config = yaml.safe_load((INFRA / "prometheus/prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (scrape,) = config["scrape_configs"]
    (tmp_path / "token").write_text(service.SEARCH)
    scrape["authorization"]["credentials_file"] = str(tmp_path / "token")
    scrape["static_configs"] = [{"targets": [urllib.parse.urlsplit(served.url).netloc]}]
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(config))
    shutil.copy(INFRA / "prometheus/rules.yaml", tmp_path)
    (port,) = free_ports(1)
    command = [f"--config.file={tmp_path}/prometheus.yaml", f"--storage.tsdb.path={tmp_path}/data"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", *command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}"
        until(lambda: values(url, 'count_over_time(up{job="weft"}[1m]) > 5'), (tmp_path / "log").read_text()[-2000:])
        yield url
    finally:
        process.terminate()
        process.wait(60)


def values(url: str, query: str) -> list[Any]:
    """What Prometheus makes of a query now; nothing while it starts."""
    try:
        asked = f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(asked, timeout=30) as answered:
            return list(json.load(answered)["data"]["result"])
    except OSError:
        return []


def test_prometheus_reads_the_service_and_every_panel_shows_something(served: Any, prometheus: str) -> None:
    """OPS-10: with a token that is good for searches alone; every rule is evaluated without an error."""
    assert values(prometheus, 'up{job="weft"}')[0]["value"][1] == "1"
    panels = {where: query for where, query in queries().items() if where not in alert_rules()}
    assert len(panels) >= len(json.loads(DASHBOARD.read_text())["panels"]) - 5
    assert [where for where, query in panels.items() if not values(prometheus, query)] == []
    with urllib.request.urlopen(f"{prometheus}/api/v1/rules", timeout=30) as answered:
        rules = [rule for group in json.load(answered)["data"]["groups"] for rule in group["rules"]]
    assert {rule["name"]: rule["health"] for rule in rules} == dict.fromkeys(alert_rules(), "ok")
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == ["WeftAlarm"]
