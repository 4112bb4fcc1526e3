"""What four services say of a work, each behind the same port (CIT-1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import quote

from pipelines.consolidation.citations.client import JsonClient
from pipelines.domain.links import Measure, Measures, Provider

_REVIEWED = frozenset({"JournalArticle", "Conference", "Review"})
_DAYS_PER_YEAR = 365.25
_FIELDS = "citationCount,year,publicationDate,venue,publicationTypes,authors.hIndex"


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
