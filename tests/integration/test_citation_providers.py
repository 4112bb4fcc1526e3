"""CIT-1: providers behind a service on this machine that misbehaves, and the step of the night that asks them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.support.citation_server import Asked, Reply, a_service
from weft.app.indexing import plan_of
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.catalog.citations import CITATIONS_FILE
from weft.cli.commands.consolidate import consolidate
from weft.cli.console.options import run_job
from weft.consolidation.settings import CitationSettings
from weft.consolidation.steps.citations import RefreshResult, ServiceUnavailableError, due, refresh, refreshed
from weft.consolidation.steps.providers import JsonClient, RequestPolicy, providers_of
from weft.domain.errors import ConfigurationError
from weft.domain.links import Measure, Provider, Quadrant, Work, WorkCounts
from weft.domain.ranking import Query
from weft.ingestion.pipeline import ingest
from weft.runtime.stages import HERE
from weft.settings import load_settings

pytestmark = pytest.mark.integration

NOW = 1_800_000_000.0
HOUR = 3600.0
PAPER = {
    "citationCount": 40,
    "year": 2020,
    "venue": "EMNLP",
    "publicationTypes": ["Conference"],
    "authors": [{"hIndex": 9}, {"hIndex": 31}, {"hIndex": None}],
}
GOOD = {
    "/graph/v1/paper/DOI:10.1/x": [Reply(body=PAPER)],
    "/api/packages/numpy/recent": [Reply(body={"data": {"last_month": 300_000_000}})],
    "/downloads/point/last-month/left-pad": [Reply(body={"downloads": 5})],
    "/repos/ray-project/ray": [Reply(body={"stargazers_count": 30_000})],
}
QUICK = RequestPolicy(interval_s=0.0, timeout_s=5.0, attempts=1, backoff_s=0.0)
WORKS = [
    Work(Provider.SEMANTIC_SCHOLAR, "DOI:10.1/x"),
    Work(Provider.PYPI, "numpy"),
    Work(Provider.NPM, "left-pad"),
    Work(Provider.GITHUB, "ray-project/ray"),
]


def settings(service: Asked, **changes: Any) -> CitationSettings:
    usual = load_settings(environment={}).consolidation.citations.model_dump()
    here = {"providers": tuple(Provider), "urls": dict.fromkeys(Provider, service.url)}
    return CitationSettings.model_validate({**usual, **here, **changes})


class Waits:
    """A clock that moves when somebody sleeps, and remembers for how long."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def monotonic(self) -> float:
        return sum(self.slept)


def a_client(waits: Waits, **changes: Any) -> JsonClient:
    usual = {"interval_s": 0.0, "timeout_s": 5.0, "attempts": 3, "backoff_s": 1.0, "most_wait_s": 60.0}
    return JsonClient(
        RequestPolicy(**{**usual, **changes}), now=lambda: NOW, sleep=waits.sleep, monotonic=waits.monotonic
    )


def asked_once(replies: list[Reply], **changes: Any) -> tuple[Any, list[float], int]:
    """What comes of one request, the waits, and how often the service was asked."""
    waits = Waits()
    with a_service({"/it": replies}) as service:
        try:
            found = a_client(waits, **changes).get(f"{service.url}/it")
        except ServiceUnavailableError as error:
            found = error
        return found, waits.slept, len(service.paths)


def test_each_provider_says_what_its_service_counts() -> None:
    """CIT-1: citations and their velocity, the h-index, peer review; downloads; stars."""
    with a_service(GOOD) as service:
        rules = settings(service, github_token="t0ken", semantic_scholar_key="k3y")
        counted, outcome = refreshed(WORKS, {}, providers_of(rules, NOW, QUICK), rules, NOW)
    by_work = {str(work): counted[str(work)].measures for work in WORKS}
    years = (NOW - datetime(2020, 7, 1, tzinfo=UTC).timestamp()) / 86400 / 365.25
    assert by_work["semantic_scholar:DOI:10.1/x"] == {
        Measure.CITATIONS: 40.0,
        Measure.CITATIONS_A_YEAR: pytest.approx(40 / years),
        Measure.H_INDEX: 31.0,
        Measure.PEER_REVIEWED: 1.0,
    }
    assert by_work["pypi:numpy"] == {Measure.DOWNLOADS: 300_000_000.0}
    assert by_work["npm:left-pad"] == {Measure.DOWNLOADS: 5.0}
    assert by_work["github:ray-project/ray"] == {Measure.STARS: 30_000.0}
    assert (outcome.due, outcome.counted, outcome.failed) == (4, 4, 0)
    told = {path.partition("?")[0]: headers for path, headers in zip(service.paths, service.headers, strict=True)}
    assert told["/repos/ray-project/ray"]["Authorization"] == "Bearer t0ken"
    assert "Authorization" not in told["/api/packages/numpy/recent"]
    assert {name.casefold() for name in told["/graph/v1/paper/DOI:10.1/x"]} >= {"x-api-key"}


@pytest.mark.parametrize(
    ("told", "wait"),
    [("7", 7.0), (format_datetime(datetime.fromtimestamp(NOW + 9, UTC), usegmt=True), 9.0), ("soon", 1.0)],
)
def test_a_service_that_is_asked_too_often_names_the_wait(told: str, wait: float) -> None:
    """CIT-1: seconds or a date; what is neither counts as nothing said."""
    found, slept, asked = asked_once([Reply(429, None, {"Retry-After": told}), Reply(body={"a": 1})])
    assert (found, slept, asked) == ({"a": 1}, [wait], 2)


def test_a_longer_wait_than_is_granted_ends_it() -> None:
    """CIT-1: a night does not wait for an hour."""
    found, slept, asked = asked_once([Reply(429, None, {"Retry-After": "3600"}), Reply(body=1)])
    assert isinstance(found, ServiceUnavailableError)
    assert (slept, asked) == ([], 1)


def test_failures_are_tried_again_after_ever_longer_waits() -> None:
    """CIT-1: back-off doubles; the last attempt is the last."""
    assert asked_once([Reply(500), Reply(503), Reply(body=[])]) == ([], [1.0, 2.0], 3)
    found, slept, asked = asked_once([Reply(500)])
    assert isinstance(found, ServiceUnavailableError)
    assert (slept, asked) == ([1.0, 2.0], 3)


def test_what_is_refused_or_absent_is_not_tried_again() -> None:
    """CIT-1: no such work is an answer; no permission is none."""
    assert asked_once([Reply(404, {"error": "no such paper"})]) == (None, [], 1)
    found, slept, asked = asked_once([Reply(403)])
    assert isinstance(found, ServiceUnavailableError)
    assert (slept, asked) == ([], 1)


@pytest.mark.parametrize("garbage", [b"<html>busy</html>", b"\xff\xfe\x00", b"", b"[" * 100_000, b"7" * 2_000_000])
def test_what_is_no_json_is_no_answer(garbage: bytes) -> None:
    """CIT-1: nor what is nested too deep or does not end."""
    found, slept, asked = asked_once([Reply(body=garbage)])
    assert isinstance(found, ServiceUnavailableError)
    assert (slept, asked) == ([], 1)


def test_a_service_that_sends_a_byte_now_and_then_is_left_alone() -> None:
    """CIT-1: the whole answer has a deadline, not each byte."""
    with a_service({"/it": [Reply(body={"long": "x" * 10_000}, dribble_s=0.05)]}) as service:
        client = JsonClient(RequestPolicy(interval_s=0.0, timeout_s=0.3, attempts=1, backoff_s=0.0, most_wait_s=0.0))
        with pytest.raises(ServiceUnavailableError, match="no whole answer within"):
            client.get(f"{service.url}/it")


def test_redirects_are_followed_within_the_service_alone() -> None:
    """CIT-1: a key in the headers is nobody else's; a circle ends."""
    with a_service({"/other": [Reply(body={"taken": True})]}) as other:
        away = {"Location": f"{other.url}/other"}
        found, _, _ = asked_once([Reply(302, None, away)])
        assert isinstance(found, ServiceUnavailableError)
        assert other.paths == []
    moved = {"/it": [Reply(301, None, {"Location": "/there"})], "/there": [Reply(body=3)]}
    with a_service(moved) as service:
        assert a_client(Waits()).get(f"{service.url}/it") == 3
    circle, _, _ = asked_once([Reply(302, None, {"Location": "/it"})])
    assert isinstance(circle, ServiceUnavailableError)


def test_requests_keep_their_distance() -> None:
    """CIT-1: the rate limit of a service."""
    waits = Waits()
    with a_service({"/it": [Reply(body=1)]}) as service:
        client = a_client(waits, interval_s=3.0)
        assert [client.get(f"{service.url}/it") for _ in range(3)] == [1, 1, 1]
    assert waits.slept == [3.0, 3.0]


def test_a_service_that_is_not_there_costs_nothing_but_its_counts() -> None:
    """CIT-1: without network former counts stay, and another provider is asked nevertheless."""
    with a_service({}) as gone:
        pass
    known = {"pypi:numpy": WorkCounts(0.0, {Measure.DOWNLOADS: 1.0})}
    with a_service(GOOD) as service:
        rules = settings(service, urls={**dict.fromkeys(Provider, service.url), Provider.PYPI: gone.url})
        counted, outcome = refreshed(WORKS, known, providers_of(rules, NOW, QUICK), rules, NOW)
    assert counted["pypi:numpy"] == known["pypi:numpy"]
    assert (outcome.counted, outcome.failed, outcome.left) == (3, 1, 0)


@pytest.mark.parametrize("body", [{"data": None}, {"data": {"last_month": "many"}}, [1], {"data": {"last_month": -1}}])
def test_an_answer_of_another_shape_is_a_failure_that_is_counted(body: object) -> None:
    """CIT-1: counts are never made up."""
    with a_service({"/api/packages/numpy/recent": [Reply(body=body)]}) as service:
        rules = settings(service)
        counted, outcome = refreshed(WORKS[1:2], {}, providers_of(rules, NOW, QUICK), rules, NOW)
    assert (counted, outcome.failed) == ({}, 1)


def test_counts_are_asked_for_again_after_days_and_no_sooner() -> None:
    """CIT-1: what was asked longest ago comes first, absence is remembered, and the rest waits for another night."""
    with a_service(GOOD) as service:
        rules = settings(service, refresh_hours=48.0)
        ages = {"semantic_scholar:DOI:10.1/x": 47.0, "pypi:numpy": 49.0, "npm:left-pad": 70.0}
        known = {name: WorkCounts(NOW - age * HOUR, {}) for name, age in ages.items()}
        assert [str(work) for work in due(WORKS, known, rules, NOW)] == [
            "github:ray-project/ray",
            "npm:left-pad",
            "pypi:numpy",
        ]
        some = settings(service, most_works=2)
        _, outcome = refreshed(WORKS, known, providers_of(some, NOW, QUICK), some, NOW)
    assert (outcome.due, outcome.counted, outcome.left) == (3, 2, 1)


def test_a_provider_that_keeps_failing_is_left_alone_for_the_night() -> None:
    """CIT-1."""
    works = [Work(Provider.NPM, f"package-{number}") for number in range(9)]
    with a_service({f"/downloads/point/last-month/{work.name}": [Reply(500)] for work in works}) as service:
        rules = settings(service)
        _, outcome = refreshed(works, {}, providers_of(rules, NOW, QUICK), rules, NOW)
        assert len(service.paths) == 3
    assert (outcome.failed, outcome.left) == (3, 6)


def test_a_key_quickens_the_pace_of_those_that_grant_it() -> None:
    """CIT-1: of each provider what it allows, with a key and without."""
    plain = load_settings(environment={}).consolidation.citations.model_copy(update={"providers": tuple(Provider)})
    keyed = plain.model_copy(update={"github_token": SecretStr("t"), "semantic_scholar_key": SecretStr("k")})
    slow, quick = (
        {name: each._client.pace.interval_s for name, each in providers_of(rules, NOW).items()}  # type: ignore[attr-defined]
        for rules in (plain, keyed)
    )
    faster = {name for name in Provider if quick[name] < slow[name]}
    assert faster == {Provider.GITHUB, Provider.SEMANTIC_SCHOLAR}
    assert all(quick[name] == slow[name] > 0.0 for name in set(Provider) - faster)


@pytest.mark.parametrize("hours", [23.0, 73.0])
def test_counts_are_refreshed_every_one_to_three_days(hours: float) -> None:
    """CIT-1."""
    with pytest.raises(ConfigurationError, match="refresh_hours"):
        load_settings(assignments=[f"consolidation.citations.refresh_hours={hours}"], environment={})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of a paper that says what it is, and of a note that does not."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "paper.md").write_text("---\ndoi: 10.1/x\n---\n\n# Leases\n\nA lease ends when its holder is gone.\n")
    (files / "note.md").write_text("# Locks\n\nA lock is released when its lease ends.\n")
    root = tmp_path / "store"
    here = load_settings(assignments=[f"storage.root={root}", "extraction.enabled=false"], environment={})
    ingest(plan_of(here, [files]), Catalog(root), HERE, lambda _: None, clock=time.monotonic)
    return root


@pytest.fixture
def night(store: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """What the job says of the step `citations` of a night."""

    def asked(*more: str) -> dict[str, Any]:
        options = ["--set", "consolidation.calibration.probes=''", "--set", "extraction.enabled=false"]
        assert run_job(consolidate, ["--store", str(store), *options, "--json", *more]) == 0
        steps: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])["steps"]
        return {name: count for name, count in steps["citations"].items() if name != "seconds"}

    return asked


def test_counts_are_the_stores_and_searches_see_them(store: Path) -> None:
    """CIT-1, CIT-3: a rehearsal asks nobody, a refresh asks once, and searches name the quadrant from then on."""
    here = load_settings(assignments=[f"storage.root={store}", "extraction.enabled=false"], environment={})
    catalog = Catalog(store)
    assert refresh(catalog, here.consolidation.citations, NOW, dry_run=False) == RefreshResult()
    with a_service({"/graph/v1/paper/DOI:10.1/x": [Reply(body={**PAPER, "citationCount": 5_000})]}) as service:
        rules = settings(service)
        with opened(here) as searcher:
            before = searcher.search(Query(text="when does a lease end"))
        assert refresh(catalog, rules, NOW, dry_run=True) == RefreshResult(due=1)
        assert (service.paths, (store / CITATIONS_FILE).exists()) == ([], False)
        assert refresh(catalog, rules, NOW, dry_run=False) == RefreshResult(due=1, counted=1)
        assert refresh(catalog, rules, NOW, dry_run=False) == RefreshResult()
        assert len(service.paths) == 1
    with opened(here) as searcher:
        after = searcher.search(Query(text="when does a lease end"))
    assert [each.authority for each in before.results] == [None, None]
    authorities = {Path(each.uris[0]).name: each.authority for each in after.results}
    paper, note = authorities["paper.md"], authorities["note.md"]
    assert paper is not None
    assert note is not None
    assert (paper.quadrant, paper.external, note.quadrant) == (Quadrant.EXTERNAL, 1.0, Quadrant.NEITHER)


@pytest.mark.slow
def test_a_night_tells_what_its_providers_answered(store: Path, night: Callable[..., dict[str, Any]]) -> None:
    """CIT-1: off it asks nobody, a rehearsal neither; on it asks once within the refresh."""
    nothing = {"proposed": 0, "applied": 0, "counted": 0, "absent": 0, "failed": 0, "left": 0}
    with a_service({"/graph/v1/paper/DOI:10.1/x": [Reply(body=PAPER)]}) as service:
        on = ["--set", "consolidation.citations.providers=[semantic_scholar]"]
        on += ["--set", f"consolidation.citations.urls.semantic_scholar={service.url}"]
        assert night() == nothing
        assert night("--dry-run", *on) == {**nothing, "proposed": 1}
        assert (service.paths, (store / CITATIONS_FILE).exists()) == ([], False)
        assert night(*on) == {**nothing, "proposed": 1, "applied": 1, "counted": 1}
        assert night(*on) == nothing
        assert len(service.paths) == 1
