"""OPS-4, OPS-5a, OPS-5b: a running service, used by commands, by clients, by agents over MCP, and by frameworks."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client as McpClient
from mcp import MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from msgspec import structs

import weft
from tests.support.service import ADMIN, ROOT, SEARCH, Served, announced, serving, small_store
from weft import AsyncClient, Client, Query
from weft.cli.console.options import ANNOUNCEMENT, DEFAULT_ROOT
from weft.cli.main import main
from weft.client.announced import PLACE, announced_in, client_in
from weft.domain.errors import InvalidEventError, ServiceError, StoreError
from weft.domain.ranking import Answer, RankedResult
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.settings import load_settings
from weft.testing import MemoryProducer

pytestmark = pytest.mark.integration

QUESTION = "yellow fruit that grows"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_store(tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="module")
def served(store: Path) -> Iterator[Served]:
    """A service with tokens and a broker, and the updaters of its store."""
    with EmbeddedBroker() as broker:
        at = ["--bootstrap", broker.bootstrap]
        update = [sys.executable, "-m", "weft", "update", "--local", "--store", str(store), *at]
        updaters = subprocess.Popen(update, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with serving(store, *at) as running:
                yield running
        finally:
            updaters.terminate()
            updaters.wait(60)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command prints, without what is another one's each time: ids, times and what the disk has left."""
    assert main(list(arguments)) == 0
    text = capsys.readouterr().out
    text = re.sub(r"(?m)^ *a verdict on this one is asked for.*\n", "", text)  # drawn by the id of the query
    text = re.sub(r"\b[0-9a-f]{32}\b|\d+ ms|\d[\d.,]* (?:GiB|hours)", "…", text)
    return re.sub(r'"(?:token|session_token)": "[^"]*"|"(?:free_bytes|\w+_age_s)": [\d.]+', "…", text)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def eventually(holds: Any, within_s: float = 20.0) -> Any:
    """What holds at last: updaters, and searches that follow them, need a moment."""
    until = time.monotonic() + within_s
    while not (value := holds()) and time.monotonic() < until:
        time.sleep(0.2)
    return value


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", QUESTION, "-k", "3", "--explain", "--why", "1", "2"],
        ["search", QUESTION, "--context", "--domain", "general"],
        ["search", "how is a +lock released", "-k", "200", "--session", "SESSION", "--turn", "2", "--model", "m"],
        ["status"],
        ["lessons", "list"],
        ["lessons", "review"],
        ["lessons", "prompt", "--tool", "Bash", "--explain"],
    ],
    ids=" ".join,
)
def test_a_command_prints_the_same_by_a_service_and_without(
    served: Served, store: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-4: results, scores, explanations, status and lessons, for people."""
    at = ["--store", str(store)]
    by_service, without = ([each.replace("SESSION", f"{way}-1") for each in arguments] for way in ("by", "without"))
    assert printed(capsys, *by_service, *at) == printed(capsys, *without, *at, "--server", "none")


def test_a_search_prints_the_same_for_programs(
    served: Served, store: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-4: by the store's service, by the address of one without a store here, and without; to the bit."""
    monkeypatch.setenv("WEFT_TOKEN", SEARCH)
    ways = (
        ["--store", str(store)],
        ["--store", str(tmp_path / "absent"), "--server", served.url],
        ["--store", str(store), "--server", "none"],
    )
    here, there, without = (document(capsys, "search", QUESTION, *way) for way in ways)
    for each in (here, there, without):
        for name in ("query_id", "token", "timings_ms"):
            del each[name]
        for result in each["results"]:
            del result["asked"]  # drawn by the id of the query
    assert here == there == without
    assert len(here["results"]) == 4


def test_a_search_by_a_service_imports_neither_numpy_nor_settings(served: Served, store: Path) -> None:
    """OPS-4: half a second by the clock is spent on what it needs."""
    heavy = ("numpy", "pyarrow", "faiss", "duckdb", "kafka", "confluent_kafka", "yaml", "torch")
    program = (
        "import sys; from weft.cli.main import main; "
        f"main(['search', {QUESTION!r}, '--store', {str(store)!r}]); "
        f"print(sorted(set({heavy!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout
    assert "fruit/bananas.md" in done.stdout


def test_settings_are_not_asked_of_a_service(
    served: Served, store: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """OPS-4: what says something of settings is answered without the service, and refused beside its address."""
    at = ["--store", str(store)]
    assert document(capsys, "search", QUESTION, *at, "--fusion", "rrf")["fusion"] == "rrf"
    for options in (["--fusion", "rrf"], ["--set", "retrieval.depth=20"], ["--bootstrap", "127.0.0.1:1"]):
        assert main(["search", QUESTION, "--server", served.url, *options]) == 2
        assert "beside --server" in capsys.readouterr().err
    assert main(["search", QUESTION, *at, "--server", "http://127.0.0.1:9"]) == 75
    assert "expected a service at http://127.0.0.1:9" in capsys.readouterr().err
    assert str(load_settings(environment={}).storage.root) == str(Path(DEFAULT_ROOT).expanduser())
    assert ANNOUNCEMENT == PLACE


def test_what_a_dead_service_left_behind_is_passed_over(store: Path, served: Served, tmp_path: Path) -> None:
    """OPS-4: a file of a process that is gone, of one that does not answer, and one that is damaged."""
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    stated = announced(store)
    for found in ({**stated, "pid": int(ended.stdout)}, {**stated, "url": "http://127.0.0.1:9"}, {"url": 1}):
        (tmp_path / PLACE).write_text(json.dumps(found))
        assert client_in(tmp_path) is None
    assert announced_in(tmp_path) is None
    client = client_in(store, feedback=True)
    assert client is not None
    client.close()


def test_a_client_answers_as_a_searcher_does_and_does_what_people_do(served: Served, store: Path) -> None:
    """OPS-5b: search, tell, select, correct, explain, rerank, places, contents, status; with another form of errors."""
    query = Query(text=QUESTION, k=3, principal="ada")
    with weft.open_searcher(store) as searcher, Client(served.url, ADMIN) as client:
        expected = searcher.search(query)
        answer = client.search(query)
        assert unasked(answer) == unasked(expected)
        assert answer.to_dict().keys() == expected.to_dict().keys()
        best = answer.results[0]
        assert client.tell(answer, 1.0, content_hash=best.content_hash)
        assert client.select(answer.token, best.content_hash)
        assert client.correct(query, client.place("locks.md#keys"))
        assert client.explain(query.query_id)["results"][0]["content_hash"] == best.content_hash
        order = client.rerank("a lock", ["Bananas are yellow.", "A lock is released."], top_n=1)
        assert [each.index for each in order] == [1]
        assert client.content(best.content_hash)["text"] == best.text
        assert client.content(best.content_hash)["places"][0]["uri"] == best.uris[0]
        assert client.status()["contents"] == 5
        with pytest.raises(StoreError, match="found"):
            client.place("nowhere.md")
        with pytest.raises(InvalidEventError, match="unknown_type"):
            client.feedback([{"type": "praise", "session_id": "s-1"}])


def unasked(answer: Answer) -> list[RankedResult]:
    """The results, without whether a verdict is asked for: that is drawn by the id of the query."""
    return [structs.replace(each, asked=0.0) for each in answer.results]


def test_an_event_loop_has_the_same_client(served: Served) -> None:
    """OPS-5b: awaited; and a token without the scope is told so."""

    async def ask() -> None:
        async with AsyncClient(served.url, SEARCH) as client:
            until = time.monotonic() + 30.0
            while True:  # of two processes one may not have seen yet what was said last
                answer, again = await asyncio.gather(*(client.search(Query(text=QUESTION, k=2)) for _ in range(2)))
                if unasked(answer) == unasked(again) or time.monotonic() > until:
                    break
            assert unasked(answer) == unasked(again)
            assert (await client.content(answer.results[0].content_hash))["text"] == answer.results[0].text
            with pytest.raises(ServiceError, match="scope feedback"):
                await client.tell(answer, 1.0)

    asyncio.run(ask())


def test_an_unrecorded_search_leaves_no_trace(served: Served, store: Path) -> None:
    """OPS-4: who waits for what was learned asks often, and has shown nothing."""
    with Client(served.url, ADMIN) as client:
        (quiet,) = client.answers([Query(text="a question nobody saw", k=2)], record=False).answers
        loud = client.search(Query(text="a question somebody saw", k=2))

        def explained() -> dict[str, Any] | None:
            try:
                return client.explain(loud.query.query_id)
            except ServiceError:  # it is written down after it was given
                return None

        assert eventually(explained)["query"] == "a question somebody saw"
        with pytest.raises(ServiceError, match="expected the id of an answer that is kept"):
            client.explain(quiet.query.query_id)


def test_a_verdict_moves_results_where_ask_goes_through_the_service(
    served: Served, store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-4, FBK-7: `+2` reaches the broker by the service, and `=` shows what the updaters made of it."""
    repeats = ["="] * 6  # each waits for five seconds: updaters that have just begun, beside others, take some
    lines = [QUESTION, "?1", "!2", "+2", *repeats, "+ locks.md#keys", "+9"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    assert main(["ask", "--store", str(store), "-k", "3", "--principal", "cleo"]) == 0
    said = capsys.readouterr().out
    assert "told: 2 opened" in said
    assert "told: 2 right" in said
    assert re.search(r"moved: \S+ 2 → 1", said), said
    assert "locks.md#keys is right" in said
    assert "expected one of the 3 results" in said


def test_an_answer_that_is_named_is_found_though_no_search_showed_it(
    served: Served, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-4, LRN-23: `weft tell` through the service, without a broker's name."""
    at = ["--store", str(store), "--principal", "dora"]
    told = document(capsys, "tell", "what opens the garden", "--right", "locks.md#keys", *at)
    assert told["uri"] == "texts/locks.md#keys"
    asked = ["search", "what opens the garden", "-k", "2", *at]
    assert eventually(lambda: document(capsys, *asked)["results"][0]["uris"][0] == "texts/locks.md")
    assert main(["tell", "q", "--right", "nowhere.md", *at]) == 1
    assert "nowhere.md" in capsys.readouterr().err


def test_a_lesson_is_said_and_seen_through_the_service(
    served: Served, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-4, LES-10: added, listed, shown, judged; every way prints the same."""
    at = ["--store", str(store)]
    added = document(capsys, "lessons", "add", "Close a lock in a finally block.", "--section", "code", *at)
    name = added["lesson_id"]
    with Client(served.url, ADMIN) as client:
        assert eventually(lambda: name in {each["id"] for each in client.lessons(section="code")})
    ways = (at, [*at, "--server", "none"])
    for words in (["list", "--limit", "1"], ["show", name[:6]], ["review"]):
        by_service, without = (printed(capsys, "lessons", *words, *way) for way in ways)
        assert by_service == without
        assert "finally" in by_service
    judged = document(capsys, "lessons", "validate", name[:6], *at)
    assert judged["after"]["p_good"] > judged["before"]["p_good"]
    prompt = ["lessons", "prompt", "--context", "close a lock", "--explain"]

    def shown(way: list[str]) -> str:
        # What is not sure yet is drawn, and updaters need a moment: it is shown with its verdict sooner or later.
        text = printed(capsys, *prompt, *way)
        return text if "(+1/" in text else ""

    by_service, without = (eventually(partial(shown, way)) for way in ways)
    assert "finally" in by_service
    assert by_service == without


async def used_by_an_agent(server: Any) -> None:
    """Every tool, with its schema, and a content."""
    async with server as agent:
        tools = {each.name: each for each in (await agent.list_tools()).tools}
        assert tools.keys() == {"search", "explain", "tell", "lessons", "remember"}
        assert all(each.input_schema["properties"] and each.output_schema for each in tools.values())
        hits = (await agent.call_tool("search", {"query": QUESTION, "k": 2})).structured_content
        best = hits["results"][0]
        assert [each["rank"] for each in hits["results"]] == [1, 2]
        assert best["why"]
        explained = await agent.call_tool("explain", {"query_id": hits["query_id"], "rank": 1})
        (result,) = explained.structured_content["results"]
        assert sum(each["amount"] for each in result["contributions"]) == pytest.approx(best["score"])
        verdict = {"token": hits["token"], "verdict": "right", "content_hash": best["content_hash"]}
        for arguments in (verdict, {"token": hits["token"], "verdict": "right", "place": "locks.md#keys"}):
            assert (await agent.call_tool("tell", arguments)).structured_content["event_id"]
        lesson = {"content": "Ask for yellow fruit by its name.", "section": "searching"}
        assert (await agent.call_tool("remember", lesson)).structured_content["lesson_id"]
        assert (await agent.call_tool("lessons", {"context": "fruit"})).structured_content["lessons"] is not None
        whole = await agent.read_resource(f"weft://contents/{best['content_hash']}")
        assert whole.contents[0].text == best["text"]
        with pytest.raises(MCPError, match="expected the hash of a content that is live"):
            await agent.read_resource(f"weft://contents/{'0' * 64}")
        assert (await agent.call_tool("search", {"query": " "})).is_error


def over_http(served: Served, token: str | None) -> McpClient:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return McpClient(streamable_http_client(f"{served.url}/mcp", http_client=httpx2.AsyncClient(headers=headers)))


def test_an_agent_uses_the_service_over_http(served: Served) -> None:
    """OPS-5a: the reference client over streamable HTTP, with a token."""
    asyncio.run(used_by_an_agent(over_http(served, ADMIN)))


def on_stdio(store: Path, *arguments: str) -> McpClient:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "pipelines"), str(ROOT)])}
    started = ["-m", "weft", "mcp", "--store", str(store), *arguments]
    return McpClient(StdioServerParameters(command=sys.executable, args=started, env=environment))


def test_an_agent_uses_the_service_on_stdio(served: Served, store: Path) -> None:
    """OPS-5a: the reference client on stdio; the process asks the service that serves the store."""
    asyncio.run(used_by_an_agent(on_stdio(store)))


@pytest.mark.slow
def test_an_agent_uses_a_store_that_nothing_serves(store: Path) -> None:
    """OPS-5a: the process opens it, and says what a tool without a broker needs."""

    async def use() -> None:
        async with on_stdio(store, "--server", "none") as agent:
            hits = (await agent.call_tool("search", {"query": QUESTION, "k": 1})).structured_content
            assert hits["results"]
            refused = await agent.call_tool("tell", {"token": hits["token"], "verdict": "right"})
            assert refused.is_error
            assert "--bootstrap" in refused.content[0].text

    asyncio.run(use())


def test_a_tool_does_no_more_than_the_token_may(served: Served) -> None:
    """OPS-5a: scopes hold for tools as for routes, and nobody comes in without a token."""

    async def use() -> None:
        async with over_http(served, SEARCH) as agent:
            hits = (await agent.call_tool("search", {"query": QUESTION, "k": 1})).structured_content
            for name, arguments in (
                ("tell", {"token": hits["token"], "verdict": "right"}),
                ("remember", {"content": "Nobody may say this."}),
            ):
                refused = await agent.call_tool(name, arguments)
                assert refused.is_error
                assert "scope feedback" in refused.content[0].text

    asyncio.run(use())
    with served.client(None) as nobody:
        assert nobody.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).status_code == 401


def snippets(page: str, store: Path, url: str) -> dict[str, str]:
    """The Python of a page by its first heading above, with a store and a service that are there."""
    parts = re.split(r"^## (.*)$", (ROOT / "docs" / page).read_text("utf-8"), flags=re.MULTILINE)
    token = repr(ADMIN)
    return {
        heading: code.replace('"store"', repr(str(store)))
        .replace('"http://127.0.0.1:8080", token=None', f"{url!r}, token={token}")
        .replace('"http://127.0.0.1:8080"', f"{url!r}, {token}")
        for heading, text in zip(parts[1::2], parts[2::2], strict=True)
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    }


def test_the_client_of_the_documentation_runs(served: Served, store: Path) -> None:
    """OPS-5b: as it is printed."""
    exec(compile(snippets("python.md", store, served.url)["Through a service"], "docs/python.md", "exec"), {})


@pytest.mark.parametrize(
    ("heading", "module"),
    [("LangChain", "langchain_core"), ("LlamaIndex", "llama_index.core"), ("Haystack", "haystack")],
)
def test_the_adapters_of_the_documentation_run(served: Served, store: Path, heading: str, module: str) -> None:
    """OPS-5b: as they are printed, in the real framework; documents carry what feedback needs."""
    pytest.importorskip(module)
    names: dict[str, Any] = {}
    code = snippets("adapters.md", store, served.url)[heading]
    if heading == "LangChain":  # the broker of the service, which the page cannot know, is told nothing here
        code = code.replace('open_producer("127.0.0.1:9092")', "MemoryProducer()").replace(
            "from weft import open_producer, open_searcher",
            "from weft import open_searcher\nfrom weft.testing import MemoryProducer",
        )
    exec(compile(code, "docs/adapters.md", "exec"), names)
    facts = names["best"]
    assert facts["uri"] == "texts/locks.md"
    assert {"start_line", "end_line", "score", "why", "content_hash", "token", "query_id", "rank"} <= facts.keys()
    if heading == "LangChain":
        assert [type(each).__name__ for each in names["producer"].events] == ["Impression", "Explicit"]


def test_adapters_answer_the_same_with_a_searcher_and_a_client_waited_for_or_not(served: Served, store: Path) -> None:
    """OPS-5b: one small protocol under three frameworks; with a searcher the producer is told what was shown."""
    for module in ("langchain_core", "llama_index.core", "haystack"):
        pytest.importorskip(module)
    from haystack import Pipeline

    from weft.adapters.haystack import WeftDocumentRetriever
    from weft.adapters.langchain import WeftRetriever
    from weft.adapters.llamaindex import WeftNodeRetriever

    def hashes_of(source: Any, producer: Any) -> list[list[str]]:
        more = {"producer": producer, "fields": {"principal": "ada"}}
        lang = WeftRetriever(searches=source, k=3, **more)
        llama = WeftNodeRetriever(source, k=3, **more)
        pipeline = Pipeline()
        pipeline.add_component("weft", WeftDocumentRetriever(source, **more))
        component = WeftDocumentRetriever(source, **more)
        asked = {"query": QUESTION, "top_k": 3}

        async def waited_for() -> list[list[str]]:
            piped = await pipeline.run_async({"weft": asked})
            return [
                [each.metadata["content_hash"] for each in await lang.ainvoke(QUESTION)],
                [each.metadata["content_hash"] for each in await llama.aretrieve(QUESTION)],
                [each.meta["content_hash"] for each in piped["weft"]["documents"]],
            ]

        return [
            [each.metadata["content_hash"] for each in lang.invoke(QUESTION)],
            [each.node.metadata["content_hash"] for each in llama.retrieve(QUESTION)],
            [each.meta["content_hash"] for each in component.run(**asked)["documents"]],
            *asyncio.run(waited_for()),
        ]

    producer = MemoryProducer()
    with weft.open_searcher(store) as searcher:
        here = hashes_of(searcher, producer)
    with Client(served.url, ADMIN) as client:
        there = hashes_of(client, None)
    assert here == there == [here[0]] * 6
    assert len(here[0]) == 3
    assert len(producer.events) == 6
    with pytest.raises(ValueError, match=r"expected fields of weft\.Query"):
        WeftNodeRetriever(searcher, fields={"user": "ada"})
