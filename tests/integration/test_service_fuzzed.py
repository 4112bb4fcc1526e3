"""OPS-5: requests made from the service's own schema, right ones and wrong ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.service import ADMIN, serving, small_store
from weft.runtime.kafka.broker import EmbeddedBroker

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(3600)]

REQUESTS = 5000
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_no_request_of_five_thousand_is_an_error_of_the_server(tmp_path: Path) -> None:
    """OPS-5: each has a status, a content type and a body that the schema tells of; it serves on after them."""
    store = small_store(tmp_path)
    report = tmp_path / "report.ndjson"
    with EmbeddedBroker() as broker:
        limits = ["--set", "serve.requests_per_s=100000"]
        with serving(store, "--bootstrap", broker.bootstrap, *limits) as served:
            command = [Path(sys.executable).with_name("schemathesis"), "run", f"{served.url}/openapi.json"]
            command += ["-H", f"Authorization: Bearer {ADMIN}", "--checks", CHECKS, "--max-examples", "250"]
            command += ["--phases", "examples,coverage,fuzzing", "--continue-on-failure", "--no-color", "--seed", "1"]
            command += ["--report-ndjson-path", str(report)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
            assert served.process.poll() is None
            assert served.ask("yellow fruit that grows")["results"]
    assert done.returncode == 0, done.stdout[-6000:]
    statuses = [int(status) for status in re.findall(r'"status_code": ?(\d+)', report.read_text())]
    assert len(statuses) >= REQUESTS
    assert max(statuses) < httpx.codes.INTERNAL_SERVER_ERROR
