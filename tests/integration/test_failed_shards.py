"""SCL-12: what a command, HTTP and the console tell of a shard that does not reply, from a service on Ray Serve."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import httpx
import pytest
from ray import serve

from tests.support.browser import Visitor, chromium
from tests.support.ports import free_ports
from tests.support.served import process_of
from tests.support.service import SEARCH, TEXTS, TOKENS, small_store
from weft.catalog.catalog import Catalog
from weft.cli.main import main
from weft.service.on_ray import run
from weft.service.shards import ServedShards
from weft.service.tokens import TokenSet
from weft.settings import load_settings

pytestmark = pytest.mark.slow
QUESTION = "yellow fruit that grows"
NO_REPLY = "no reply within 2000 ms"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, cluster: None) -> Iterator[tuple[str, Catalog]]:
    """The URL of a service, and its store, which is searched in two shares."""
    store, (port,) = small_store(tmp_path_factory.mktemp("failed"), TEXTS, "index.shard_contents=3"), free_ports(1)
    stated = [f"storage.root={store}", "retrieval.budget_ms.searching=6000"]
    settings, tokens = load_settings(assignments=stated, environment={}), TokenSet.configured(None, TOKENS)
    serve.shutdown()  # what other tests have started listens to nobody
    run(settings, host="127.0.0.1", port=port, replicas=1, tokens=tokens, reports=False, shards=2)
    yield f"http://127.0.0.1:{port}", Catalog(store)
    serve.shutdown()


@pytest.fixture
def url(served: tuple[str, Catalog]) -> Iterator[str]:
    """The URL while the process of the second share is stopped."""
    at, catalog = served
    (manifest,) = catalog.generations()
    process = ServedShards(2, 60.0).parts(manifest)[1].begin(process_of)()
    os.kill(process, signal.SIGSTOP)
    yield at
    os.kill(process, signal.SIGCONT)


def test_http_names_a_shard_that_does_not_reply(url: str) -> None:
    """SCL-12: beside what the others found."""
    asking = {"Authorization": f"Bearer {SEARCH}"}
    answered = httpx.post(f"{url}/v1/search", json={"text": QUESTION}, headers=asking, timeout=60.0)
    assert answered.status_code == 200, answered.text
    answer = answered.json()
    assert list(answer["failed_shards"]) == ["shard-1"]
    assert NO_REPLY in answer["failed_shards"]["shard-1"]
    assert answer["results"]


def test_a_command_names_a_shard_that_does_not_reply(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCL-12: on stderr, beside what the others found."""
    monkeypatch.setenv("WEFT_TOKEN", SEARCH)
    assert main(["search", QUESTION, "--server", url]) == 0
    out, err = capsys.readouterr()
    assert f"without shard-1: {NO_REPLY}" in err
    assert ".md" in out


def test_the_console_names_a_shard_that_does_not_reply(url: str) -> None:
    """SCL-12: above what the others found."""
    with chromium() as browser:
        visitor = Visitor(browser, url)
        visitor.log_in(SEARCH)
        page = visitor.ask(QUESTION)
        assert f"shard-1 could not be asked: {NO_REPLY}" in page.locator("p.problem").inner_text()
        visitor.close()
