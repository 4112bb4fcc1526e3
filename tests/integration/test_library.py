"""OPS-8a: what an application imports: one searcher that it keeps and closes, answers in plain forms, typed."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weft import Domain, Query, Searcher, index, open_query_log, open_searcher
from weft.cli.main import main
from weft.testing import MemoryProducer

pytestmark = pytest.mark.integration

ASKED = "when is a lock released"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "notes").mkdir()
    (folder / "notes/locks.md").write_text("# Locks\n\nA lock is released when its transaction ends.\n")
    (folder / "notes/fruit.md").write_text("# Fruit\n\nBananas are yellow.\n")
    index([folder / "notes"], folder / "store", assignments=["extraction.enabled=false"])
    return folder / "store"


@pytest.fixture(scope="module")
def searcher(store: Path) -> Iterator[Searcher]:
    opened = open_searcher(store)
    gc.collect()  # held by nobody but this name: nothing closes it under one's hands
    yield opened
    opened.close()
    opened.close()
    with pytest.raises(RuntimeError, match="expected an open searcher, found one that was closed"):
        opened.search(Query(text=ASKED))


def plain(value: Any) -> bool:
    """Whether a value is of JSON's own types and of no others, not even of types made from them."""
    if type(value) is dict:
        return all(type(name) is str and plain(each) for name, each in value.items())
    return all(map(plain, value)) if type(value) is list else type(value) in {str, int, float, bool, type(None)}


def test_an_answer_is_plain_as_the_command_prints_it(
    searcher: Searcher, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """RET-18: `to_dict` is what `weft search --json` prints, in JSON's own types, and each result says why."""
    answer = searcher.search(Query(text=ASKED, context=True))
    told = answer.to_dict()
    assert plain(told), told
    assert json.loads(json.dumps(told)) == told
    assert [each["why"] for each in told["results"]] == [result.why for result in answer.results]
    assert main(["search", ASKED, "--context", "--store", str(store), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.keys() == told.keys()
    assert [each.keys() for each in printed["results"]] == [each.keys() for each in told["results"]]
    producer = MemoryProducer()
    producer.selection(told["token"], told["results"][0]["content_hash"])
    assert producer.events[0].session_id == answer.query.query_id


def test_searches_are_awaited_and_may_be_cancelled(searcher: Searcher) -> None:
    """OPS-8a: many at once over one searcher; who gives up disturbs nobody."""

    async def asked() -> list[str]:
        given_up = asyncio.create_task(searcher.asearch(Query(text=ASKED)))
        await asyncio.sleep(0)
        given_up.cancel()
        answers = await asyncio.gather(*(searcher.asearch(Query(text=ASKED)) for _ in range(4)))
        with pytest.raises(asyncio.CancelledError):
            await given_up
        return [answer.results[0].uris[0] for answer in answers]

    assert asyncio.run(asked()) == ["notes/locks.md"] * 4


def test_a_searcher_and_a_log_close_at_the_end_of_a_with(store: Path) -> None:
    """OPS-8a."""
    with open_searcher(store) as searcher, open_query_log(store) as log:
        log.emit(searcher.search(Query(text=ASKED, domain="code")))
    with pytest.raises(RuntimeError, match="closed"):
        searcher.search(Query(text=ASKED))


def test_domains_are_named_by_plain_texts() -> None:
    """LRN-5: in queries and in reports; what is none is refused with those that there are."""
    assert Query(text=ASKED, domain="code").domain is Domain.CODE
    producer = MemoryProducer()
    producer.review("s1", "code", confidence=0.5, good=True, principal="ada")
    assert producer.events[0].domain is Domain.CODE
    for wrong in (
        lambda: Query(text=ASKED, domain="cod"),
        lambda: producer.review("s1", "cod", confidence=0.5, good=True, principal="ada"),
    ):
        with pytest.raises(Exception, match=r"expected .*code, academic, history, general, found 'cod'"):
            wrong()


@pytest.mark.slow
def test_the_code_of_users_passes_strict_types(tmp_path: Path) -> None:
    """OPS-8a: the plain forms, as mypy sees them."""
    code = tmp_path / "application.py"
    code.write_text(
        "import weft\n"
        "async def asked(searcher: weft.Searcher, producer: weft.Producer, domain: str) -> str:\n"
        "    answer: weft.Answer = await searcher.asearch(weft.Query(text='why', domain=domain))\n"
        "    again = searcher.search(weft.Query(text='why', domain=weft.Domain.CODE))\n"
        "    known: weft.Domain | None = again.query.domain\n"
        "    producer.selection(answer.token, answer.results[0].content_hash)\n"
        "    producer.accuracy('s', 'code', age_hours=1.0, accurate=True, principal='ada')\n"
        "    return f'{answer.results[0].why} {known} {answer.to_dict()}'\n"
        "searcher = weft.open_searcher('store')\n"
        "searcher.search(weft.Query(text='why', domain='code'))\n"
        "searcher.close()\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(code)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
