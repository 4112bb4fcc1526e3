"""The step `citations` of a night: counts that are due are asked of providers, as many as a night may (CIT-1)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import quote

from weft.catalog.citations import CitationCounts
from weft.consolidation.citations.client import JsonClient, RequestPolicy, ServiceUnavailableError
from weft.consolidation.settings import CitationSettings
from weft.domain.links import Measure, Measures, Provider, Work, WorkCounts

log = logging.getLogger(__name__)

_SECONDS_PER_HOUR = 3600.0
_MOST_FAILURES = 3  # in a row, after which a provider is left alone for the night: it is down, and each costs seconds
# Seconds between two requests: what each grants those without a key, and with one.
_INTERVALS_S = {
    Provider.SEMANTIC_SCHOLAR: (3.0, 1.0),
    Provider.PYPI: (2.0, 2.0),
    Provider.NPM: (0.5, 0.5),
    Provider.GITHUB: (60.0, 0.72),
}

_REVIEWED = frozenset({"JournalArticle", "Conference", "Review"})
_DAYS_PER_YEAR = 365.25
_FIELDS = "citationCount,year,publicationDate,venue,publicationTypes,authors.hIndex"


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """What came of it."""

    due: int = 0  # works that were to be asked for
    counted: int = 0  # Works that a provider knows, and does not know
    absent: int = 0
    failed: int = 0  # works whose provider did not answer: their former counts stay, and they are due again
    left: int = 0  # works that were left to another night: too many, or their provider failed too often in a row

    def as_step(self) -> dict[str, float]:
        """As the night tells it."""
        return {
            "proposed": self.due,
            "applied": self.counted + self.absent,
            "counted": self.counted,
            "absent": self.absent,
            "failed": self.failed,
            "left": self.left,
        }


RefreshCitations = Callable[[bool], RefreshResult]
"""Refreshes what is due; told whether it is a rehearsal, which asks nobody and changes nothing."""


def due(works: Iterable[Work], stored: CitationCounts, settings: CitationSettings, now: float) -> list[Work]:
    """Works of providers that are on whose counts are missing or old, those asked longest ago first."""
    oldest = now - settings.refresh_hours * _SECONDS_PER_HOUR
    asked = {work: stored[str(work)].at if str(work) in stored else -1.0 for work in works}
    some = (work for work, at in asked.items() if work.provider in settings.providers and at <= oldest)
    return sorted(some, key=lambda work: (asked[work], str(work)))


def refreshed(
    works: Iterable[Work],
    stored: CitationCounts,
    providers: Mapping[Provider, CitationProvider],
    settings: CitationSettings,
    now: float,
) -> tuple[dict[str, WorkCounts], RefreshResult]:
    """What is known after asking, and what came of it; one failure is never another's."""
    wanted, held = due(works, stored, settings, now), dict(stored)
    some = wanted[: settings.most_works]
    counted = absent = failed = 0
    in_row: dict[Provider, int] = dict.fromkeys(providers, 0)
    for work in some:
        if in_row[work.provider] >= _MOST_FAILURES:
            continue
        try:
            counts = providers[work.provider].counts(work.name)
        except (ServiceUnavailableError, ValueError) as error:
            failed += 1
            in_row[work.provider] += 1
            log.warning("no counts of %s: %s", work, error)
            continue
        in_row[work.provider] = 0
        held[str(work)] = WorkCounts(now, {} if counts is None else dict(counts))
        counted, absent = counted + (counts is not None), absent + (counts is None)
    left = len(wanted) - counted - absent - failed
    return held, RefreshResult(len(wanted), counted, absent, failed, left)


def providers_of(
    settings: CitationSettings, now: float, pace: RequestPolicy | None = None
) -> dict[Provider, CitationProvider]:
    """Those that are on."""
    clients = {name: _client(settings, name, pace) for name in settings.providers}
    return {name: PROVIDERS[name](settings.urls.get(name, URLS[name]), each, now) for name, each in clients.items()}


def _client(settings: CitationSettings, name: Provider, pace: RequestPolicy | None) -> JsonClient:
    key = _key(settings, name)
    return JsonClient(pace or RequestPolicy(interval_s=_INTERVALS_S[name][bool(key)]), {"User-Agent": "weft", **key})


def _key(settings: CitationSettings, name: Provider) -> Mapping[str, str]:
    """The header that says whose requests they are; empty without a key."""
    if name is Provider.SEMANTIC_SCHOLAR and (key := settings.semantic_scholar_key.get_secret_value()):
        return {"x-api-key": key}
    if name is Provider.GITHUB and (key := settings.github_token.get_secret_value()):
        return {"Authorization": f"Bearer {key}"}
    return {}


def distinct(works: Iterable[Sequence[Work]]) -> list[Work]:
    """Every work that some document names, once, in order."""
    return sorted({work for some in works for work in some})


class CitationProvider(Protocol):
    """Says how much a work is relied on; asked by the night, one work at a time, never twice within the refresh."""

    def counts(self, work: str) -> Measures | None:
        """What is known of a work, by the provider's own name of it; None where it knows no such work.

        Raises:
            NoAnswerError: The service does not answer as it should.
        """


class HttpProvider:
    """A service that answers with JSON.

    Args:
        path: Of a work, below the service's URL.
        read: Measures of its answer; ValueError where the answer has another shape.
    """

    def __init__(self, url: str, client: JsonClient, path: str, read: Callable[[Any], Measures]) -> None:
        self._url = url.rstrip("/")
        self._client = client
        self._path = path
        self._read = read

    def counts(self, work: str) -> Measures | None:
        """See `CitationProvider`."""
        answer = self._client.get(self._url + self._path.format(quote(work, safe="/:@")))
        return None if answer is None else self._read(answer)


def semantic_scholar(url: str, client: JsonClient, now: float) -> CitationProvider:
    """Papers by DOI, arXiv or corpus id: citations, citations a year, the best h-index, whether it was reviewed."""
    return HttpProvider(url, client, f"/graph/v1/paper/{{}}?fields={_FIELDS}", lambda answer: _of_paper(answer, now))


def pypi(url: str, client: JsonClient, _now: float) -> CitationProvider:
    """Python packages by name: downloads in the last month, as pypistats.org counts them."""
    return HttpProvider(
        url,
        client,
        "/api/packages/{}/recent",
        lambda answer: {Measure.DOWNLOADS: _count(_object(_object(answer).get("data")), "last_month")},
    )


def npm(url: str, client: JsonClient, _now: float) -> CitationProvider:
    """JavaScript packages by name: downloads in the last month."""
    path = "/downloads/point/last-month/{}"
    return HttpProvider(url, client, path, lambda answer: {Measure.DOWNLOADS: _count(_object(answer), "downloads")})


def github(url: str, client: JsonClient, _now: float) -> CitationProvider:
    """Repositories by owner/name: stars."""
    return HttpProvider(
        url, client, "/repos/{}", lambda answer: {Measure.STARS: _count(_object(answer), "stargazers_count")}
    )


URLS: Mapping[Provider, str] = {
    Provider.SEMANTIC_SCHOLAR: "https://api.semanticscholar.org",
    Provider.PYPI: "https://pypistats.org",
    Provider.NPM: "https://api.npmjs.org",
    Provider.GITHUB: "https://api.github.com",
}
"""Their public addresses."""

PROVIDERS: Mapping[Provider, Callable[[str, JsonClient, float], CitationProvider]] = {
    Provider.SEMANTIC_SCHOLAR: semantic_scholar,
    Provider.PYPI: pypi,
    Provider.NPM: npm,
    Provider.GITHUB: github,
}


def _of_paper(answer: Any, now: float) -> Measures:
    paper = _object(answer)
    citations = _count(paper, "citationCount")
    measures = {Measure.CITATIONS: citations}
    if (years := _years_since(paper, now)) is not None:
        measures[Measure.CITATIONS_A_YEAR] = citations / max(1.0, years)
    authors = paper.get("authors")
    people = [each for each in authors if isinstance(each, Mapping)] if isinstance(authors, Sequence) else []
    indices = [_count(each, "hIndex") for each in people if each.get("hIndex") is not None]
    if indices:
        measures[Measure.H_INDEX] = max(indices)
    kinds = paper.get("publicationTypes")
    if isinstance(kinds, list) and kinds:
        reviewed = bool(paper.get("venue")) and not _REVIEWED.isdisjoint(map(str, kinds))
        measures[Measure.PEER_REVIEWED] = float(reviewed)
    return measures


def _years_since(paper: Mapping[str, Any], now: float) -> float | None:
    date, year = paper.get("publicationDate"), paper.get("year")
    try:
        at = datetime.fromisoformat(date if isinstance(date, str) else f"{int(year):04d}-07-01")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return (now - at.replace(tzinfo=UTC).timestamp()) / 86400.0 / _DAYS_PER_YEAR


def _object(answer: Any) -> Mapping[str, Any]:
    if not isinstance(answer, Mapping):
        raise ValueError(f"expected an object, found {type(answer).__name__}")
    return answer


def _count(answer: Mapping[str, Any], name: str) -> float:
    count = answer.get(name)
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count < math.inf:
        raise ValueError(f"expected a count >= 0 as {name}, found {count!r}")
    return float(count)
