"""OPS-5: `weft serve`, asked over HTTP as an application would."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import weft
from tests.support.service import ADMIN, FEEDBACK, ROOT, SEARCH, Served, announced, serving, small_store
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.service.bodies import AnswerPage, Explained
from weft.service.gate import BODY_BYTES

pytestmark = pytest.mark.integration

QUESTION = "yellow fruit that grows"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_store(tmp_path_factory.mktemp("service"))


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture(scope="module")
def served(store: Path, broker: EmbeddedBroker) -> Iterator[Served]:
    """A service with tokens and a broker, and the updaters of its store."""
    at = ["--bootstrap", broker.bootstrap]
    update = [sys.executable, "-m", "weft", "update", "--local", "--store", str(store), *at]
    updaters = subprocess.Popen(update, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with serving(store, *at) as running:
            yield running
    finally:
        updaters.terminate()
        updaters.wait(60)


def test_a_search_answers_as_a_searcher_does(served: Served, store: Path) -> None:
    """OPS-5: the page, the whole answer and a batch have the results and the scores of a searcher, to the bit."""
    with weft.open_searcher(store) as searcher:
        expected = searcher.search(weft.Query(text=QUESTION, k=3))
    page = served.ask(QUESTION, k=3)
    whole = served.ask(QUESTION, k=3, explain=True)
    with served.client() as client:
        batch = client.post("/v1/search", json={"queries": [{"text": QUESTION, "k": 3}, {"text": "locks"}]}).json()
    wanted = [(each.content_hash, each.score) for each in expected.results]
    for answer in (page, whole, batch["answers"][0]):
        assert [(each["content_hash"], each["score"]) for each in answer["results"]] == wanted
    assert whole["results"][0]["contributions"]
    assert AnswerPage.model_validate(page).results[0].why == expected.results[0].why
    assert Explained.model_validate(whole).generation == expected.generation
    assert len(batch["answers"]) == 2


def test_an_answer_is_explained_later_without_what_lets_others_speak(served: Served) -> None:
    """OPS-5: `GET /v1/answers/{query_id}` says what every score was made of; its token stays with whoever asked."""
    page = served.ask(QUESTION, k=2)
    with served.client(SEARCH) as client:
        for _ in range(50):  # it is written down after it was sent
            if (told := client.get(f"/v1/answers/{page['query_id']}")).status_code == 200:
                break
            time.sleep(0.1)
        missing = client.get("/v1/answers/nobody-asked")
    explained = told.json()
    assert [each["score"] for each in explained["results"]] == [each["score"] for each in page["results"]]
    for result in explained["results"]:
        assert sum(each["amount"] for each in result["contributions"]) == pytest.approx(result["score"], abs=1e-12)
    assert "token" not in explained
    assert missing.status_code == 404
    assert missing.headers["content-type"] == "application/problem+json"
    assert "expected the id of an answer" in missing.json()["detail"]


def test_one_verdict_over_http_moves_the_order(served: Served) -> None:
    """OPS-5, FBK-7: an event that states only the answer's token and the verdict is enough; searches follow."""
    before = served.ask("which fruit is yellow", k=3)
    last = before["results"][-1]
    event = {"type": "explicit", "answer": before["token"], "signal": 1.0, "content_hash": last["content_hash"]}
    with served.client(FEEDBACK) as client:
        taken = client.post("/v1/feedback", json=event)
    assert taken.status_code == 202
    assert len(taken.json()["event_ids"]) == 1
    until = time.monotonic() + 60.0
    while (now := served.ask("which fruit is yellow", k=3))["results"][0]["content_hash"] != last["content_hash"]:
        assert time.monotonic() < until, now["results"]
        time.sleep(0.2)
    assert now["results"][0]["past"]


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"type": "explicit"}, "event 0"),
        ({"type": "nothing"}, "unknown_type"),
        ([], "expected an event"),
        ("praise", "expected an event"),
        ({"type": "explicit", "answer": "no token", "signal": 1.0}, "expected the token of an answer"),
        ({"type": "explicit", "answer": 7, "signal": 1.0}, "expected the token of an answer"),
    ],
)
def test_what_is_no_event_is_refused_with_what_is_wrong(served: Served, stated: Any, says: str) -> None:
    """OPS-5, OPS-15: nothing of it reaches the topic, and the answer says what was expected and found."""
    with served.client(FEEDBACK) as client:
        refused = client.post("/v1/feedback", json=stated)
    assert refused.status_code == 422, refused.text
    assert says in refused.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "needs"),
    [
        ("POST", "/v1/search", "search"),
        ("POST", "/v1/rerank", "search"),
        ("GET", "/v1/answers/q", "search"),
        ("GET", "/v1/lessons", "search"),
        ("POST", "/v1/lessons/prompt", "search"),
        ("GET", "/v1/generations", "search"),
        ("GET", "/v1/learned", "search"),
        ("GET", "/v1/status", "search"),
        ("GET", "/metrics", "search"),
        ("GET", "/openapi.json", "search"),
        ("POST", "/v1/feedback", "feedback"),
        ("POST", "/v1/lessons", "feedback"),
        ("POST", "/v1/generations/g/rollback", "admin"),
        ("POST", "/v1/learned/v000001/promote", "admin"),
        ("POST", "/v1/learned/v000001/refuse", "admin"),
    ],
)
def test_a_token_is_good_for_its_scopes_alone(served: Served, method: str, path: str, needs: str) -> None:
    """OPS-5, OPS-11: without a token 401, with one of another scope 403, before a body is looked at."""
    holds = {"search": SEARCH, "feedback": FEEDBACK, "admin": ADMIN}
    scopes = ["search", "feedback", "admin"]
    with served.client(None) as nobody:
        assert nobody.request(method, path).status_code == 401
        wrong = {"Authorization": "Bearer " + "x" * 30}
        assert nobody.request(method, path, headers=wrong).status_code == 401
    for scope in scopes:
        with served.client(holds[scope]) as client:
            status = client.request(method, path).status_code
        assert (status == 403) == (scopes.index(scope) < scopes.index(needs)), (scope, status)


def test_health_needs_no_token_and_says_nothing_of_the_store(served: Served) -> None:
    """OPS-5: probes are open."""
    with served.client(None) as nobody:
        assert nobody.get("/healthz").json() == {"status": "ok"}
        assert nobody.get("/readyz").json()["status"] == "ready"


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "body.text"),
        ({"text": ""}, "body.text"),
        ({"text": "  "}, "body.text"),
        ({"text": "x", "k": 0}, "body.k"),
        ({"text": "x", "k": 1001}, "body.k"),
        ({"text": "x", "unknown": 1}, "body.unknown"),
        ({"queries": []}, "body.queries"),
        ({"queries": [{"text": "x"}] * 101}, "body.queries"),
        ({"text": "x" * 20_001}, "body.text"),
        ({"text": "x", "domain": "cooking"}, "body.domain"),
        ([], "body"),
    ],
)
def test_what_is_wrong_with_a_question_is_said_one_by_one(served: Served, body: Any, where: str) -> None:
    """OPS-5: problem+json names the place, what was expected there, and what was found."""
    with served.client() as client:
        refused = client.post("/v1/search", json=body)
    assert refused.status_code == 422, refused.text
    assert refused.headers["content-type"] == "application/problem+json"
    problem = refused.json()
    assert where in [each["where"] for each in problem["mistakes"]]
    assert "expected" in problem["detail"]
    assert "found" in problem["detail"]


def test_a_filter_that_is_none_is_told(served: Served) -> None:
    """OPS-5: what only a searcher can see is refused as well, and costs others nothing."""
    with served.client() as client, ThreadPoolExecutor(4) as several:
        bodies = [{"text": "locks", "filters": {"since": "no date"}}, *[{"text": "locks"}] * 3]
        answers = list(several.map(lambda body: client.post("/v1/search", json=body).status_code, bodies))
    assert answers == [422, 200, 200, 200]


def test_bodies_are_bounded(served: Served) -> None:
    """OPS-5, OPS-11: a large body is refused by its length, or as soon as it is longer than is read."""
    with served.client() as client:
        stated = client.post("/v1/search", content=b"x" * (BODY_BYTES + 1))
        parts = client.post("/v1/search", content=(b" " * 65_536 for _ in range(20)))
        broken = client.post("/v1/search", content=b"{", headers={"Content-Type": "application/json"})
    assert (stated.status_code, parts.status_code, broken.status_code) == (413, 413, 422)


def test_another_site_cannot_ask_through_a_browser(served: Served) -> None:
    """OPS-11: a request that another origin's page sends is refused."""
    with served.client() as client:
        refused = client.post("/v1/search", json={"text": "locks"}, headers={"Origin": "https://elsewhere.example"})
        own = client.post("/v1/search", json={"text": "locks"}, headers={"Origin": served.url})
    assert (refused.status_code, own.status_code) == (403, 200)


def test_texts_are_reranked_in_the_shape_of_others(served: Served) -> None:
    """OPS-5: the request and the response of Cohere's clients."""
    documents = ["Bananas are yellow.", {"text": "A key opens a lock."}]
    asked = {"model": "rerank-v3.5", "query": "what opens a lock", "documents": documents, "top_n": 2}
    with served.client() as client:
        order = client.post("/v1/rerank", json={**asked, "return_documents": True}).json()
    assert [each["index"] for each in order["results"]] == [1, 0]
    assert order["results"][0]["document"]["text"] == "A key opens a lock."
    assert 0.0 <= order["results"][1]["relevance_score"] < order["results"][0]["relevance_score"] <= 1.0


def test_metrics_count_what_was_asked(served: Served) -> None:
    """OPS-10: counters by route and outcome, stages, ages, and what updaters say of themselves."""
    with served.client() as client:
        before = values(client.get("/metrics").text)
        served.ask("locks")
        client.post("/v1/search", json={"k": 0})
        after = values(client.get("/metrics").text)
    answered = 'weft_searches_total{outcome="answered"}'
    assert after[answered] == before[answered] + 1
    refused = 'weft_http_requests_total{method="POST",route="/v1/search",status="422"}'
    assert after[refused] == before.get(refused, 0.0) + 1
    assert after["weft_generation_age_seconds{}"] > 0.0
    assert any(name.startswith("weft_search_stage_seconds_count") for name in after)
    assert any(name.startswith("weft_feedback_consumed_total") for name in after)


def values(text: str) -> dict[str, float]:
    """Values of metrics, by name and labels as the text has them."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def test_the_store_says_where_it_is_served_to_its_owner_alone(served: Served, store: Path) -> None:
    """OPS-4, OPS-11a: a private file names the address and a token for commands."""
    stated = announced(store)
    assert stat.S_IMODE((store / "serving.json").stat().st_mode) == 0o600
    with httpx.Client(headers={"Authorization": f"Bearer {stated['token']}"}) as client:
        assert client.get(f"{stated['url']}/v1/status").json()["store"] == str(store.resolve())


def test_a_search_process_that_is_killed_is_replaced(served: Served) -> None:
    """OPS-5: whoever was asked there is told to ask again; the next process answers."""
    (process,) = served.search_processes()
    os.kill(process, signal.SIGKILL)
    until = time.monotonic() + 120.0
    with served.client() as client:
        while (answer := client.post("/v1/search", json={"text": "locks"})).status_code != 200:
            assert answer.status_code == 503
            assert answer.headers["retry-after"]
            assert time.monotonic() < until
            time.sleep(0.2)
        text = client.get("/metrics").text
    assert values(text)["weft_search_process_restarts_total{}"] >= 1.0


def test_idle_connections_keep_nobody_out(served: Served) -> None:
    """OPS-5, OPS-11: a thousand connections that say nothing, or half of something, and a search is answered."""
    address = urlsplit(served.url)
    idle = [socket.create_connection((address.hostname, address.port)) for _ in range(1000)]
    try:
        for connection in idle[::2]:
            connection.sendall(b"POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        assert served.ask("locks")["results"]
    finally:
        for connection in idle:
            connection.close()


def test_what_waits_is_bounded(store: Path) -> None:
    """OPS-5: beyond the queue 503 with Retry-After, beyond a token's rate 429; those that are let in are answered."""
    with (
        serving(store, "--set", "serve.waiting=2", "--set", "serve.requests_per_s=20") as running,
        running.client() as client,
        ThreadPoolExecutor(32) as several,
    ):
        asked = [f"locks number {number}" for number in range(60)]
        answers = list(several.map(lambda text: client.post("/v1/search", json={"text": text}), asked))
    statuses = {answer.status_code for answer in answers}
    assert {200, 429} <= statuses <= {200, 429, 503}
    assert all(answer.headers["retry-after"] for answer in answers if answer.status_code != 200)


def test_requests_under_way_are_answered_before_it_ends(store: Path) -> None:
    """OPS-5: at SIGTERM it takes no more, answers what it has, and ends with 0; the store says nothing of it then."""
    with serving(store) as running:
        seen: list[int] = []
        begun = threading.Barrier(9)

        def ask(number: int) -> None:
            with running.client() as client:
                client.get("/healthz")
                begun.wait()
                try:
                    seen.append(client.post("/v1/search", json={"text": f"locks {number}"}).status_code)
                except httpx.HTTPError:
                    seen.append(0)  # not let in any more

        with ThreadPoolExecutor(8) as several:
            several.map(ask, range(8))
            begun.wait()
            code = running.end()
    assert code == 0
    assert set(seen) <= {200, 503, 0}
    assert not (store / "serving.json").exists()


def test_without_tokens_it_serves_this_machine_alone(store: Path) -> None:
    """OPS-5, OPS-11: no other address is listened on, and a name that resolves here is no way in."""
    command = [sys.executable, "-m", "weft", "serve", "--store", str(store), "--host", "0.0.0.0", "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "WEFT_TOKENS"}
    refused = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 78
    assert "expected tokens for a service that listens on 0.0.0.0" in refused.stderr
    with serving(store, tokens="") as running, running.client(None) as client:
        assert client.post("/v1/search", json={"text": "locks"}).status_code == 200
        elsewhere = client.post("/v1/search", json={"text": "locks"}, headers={"Host": "evil.example"})
    assert elsewhere.status_code == 403


def test_the_schema_describes_every_route(served: Served) -> None:
    """OPS-5: OpenAPI with examples, the token, and its scope."""
    with served.client() as client:
        schema = client.get("/openapi.json").json()
    assert schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert {"/v1/search", "/v1/feedback", "/v1/answers/{query_id}", "/v1/rerank", "/v1/lessons"} <= set(schema["paths"])
    assert "examples" in json.dumps(schema["components"]["schemas"]["OneSearch"])
    assert schema["paths"]["/v1/search"]["post"]["security"] == [{"token": []}]
    assert "security" not in schema["paths"]["/healthz"]["get"]
