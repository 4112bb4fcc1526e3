"""Who counts how much works are relied on, asked over HTTP: a pace, back-off, a deadline, no surprises (CIT-1).

Nothing imports this module: it is loaded by its name where `consolidation.citations.providers` names a provider.
"""

from __future__ import annotations

import email.utils
import http.client
import json
import math
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from weft.consolidation.settings import CitationSettings
from weft.consolidation.steps.citations import CitationProvider, ServiceUnavailableError
from weft.domain.links import Measure, Measures, Provider

_MOST_BYTES = 1 << 20
_PIECE = 1 << 14
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_ABSENT = frozenset({404, 410})
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPolicy:
    """How a service is asked."""

    interval_s: float  # between two requests, at least
    timeout_s: float = 10.0  # a service that is slower is about to fail
    attempts: int = 4  # 1 + 2 + 4 s of waiting outlast a restart
    backoff_s: float = 1.0  # before the second attempt; twice as long before each further one
    most_wait_s: float = 60.0  # GitHub asks for an hour: that is another night


@dataclass(slots=True)
class JsonClient:
    """Asks one service, one request at a time."""

    pace: RequestPolicy
    headers: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], float] = time.time  # seconds since the epoch, what a date in `Retry-After` is compared with
    sleep: Callable[[float], None] = time.sleep  # waits so many seconds
    monotonic: Callable[[], float] = time.monotonic  # seconds of a clock that never goes back
    _next: float = -math.inf

    def get(self, url: str) -> Any:
        """What is there, as JSON; None where the service says that there is nothing.

        What may pass is asked again after what `Retry-After` says, or else after the back-off. Redirects are followed
        within the same origin, since headers may hold a key.

        Raises:
            ServiceUnavailableError: It failed at every attempt, refused, redirected elsewhere, was too slow or too
                long, or sent what is no JSON.
        """
        for attempt in range(1, self.pace.attempts + 1):
            self._keep_pace()
            try:
                return self._asked(url)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code in _ABSENT:
                        return None
                    failure, wait = f"status {error.code}", self._retry_after(error.headers.get("Retry-After"))
                passes = error.code in _AGAIN
            except (OSError, http.client.HTTPException) as error:
                failure, wait, passes = str(error) or type(error).__name__, None, True
            except (ValueError, RecursionError) as error:
                raise ServiceUnavailableError(f"{url}: expected JSON from there, found: {error}") from error
            wait = self.pace.backoff_s * 2.0 ** (attempt - 1) if wait is None else wait
            if not passes or attempt == self.pace.attempts or wait > self.pace.most_wait_s:
                raise ServiceUnavailableError(f"{url}: expected an answer, found: {failure} at attempt {attempt}")
            self.sleep(wait)
        raise ServiceUnavailableError(f"{url}: no attempt was allowed")

    def _keep_pace(self) -> None:
        if (early := self._next - self.monotonic()) > 0.0:
            self.sleep(early)
        self._next = self.monotonic() + self.pace.interval_s

    def _asked(self, url: str) -> Any:
        until = self.monotonic() + self.pace.timeout_s
        request = urllib.request.Request(url, headers={"Accept": "application/json", **self.headers})  # noqa: S310  settings allow http(s) alone
        opener = urllib.request.build_opener(_SameOrigin())
        with opener.open(request, timeout=self.pace.timeout_s) as answer:
            received = bytearray()
            while piece := answer.read1(_PIECE):
                received += piece
                if self.monotonic() > until:  # each byte may come in time, and the whole never
                    raise TimeoutError(f"no whole answer within {self.pace.timeout_s:g} s")
                if len(received) > _MOST_BYTES:
                    raise ValueError(f"more than {_MOST_BYTES:,} bytes")
        return json.loads(received)

    def _retry_after(self, header: str | None) -> float | None:
        """Seconds to wait as a header says, which has seconds or a date; None where it says neither."""
        if header is None:
            return None
        try:
            seconds = float(header)
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(header).timestamp() - self.now()
            except (ValueError, OverflowError):
                return None
        return max(0.0, seconds) if math.isfinite(seconds) else None


class _SameOrigin(urllib.request.HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0917  the library's signature
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        if urlsplit(req.full_url)[:2] != urlsplit(newurl)[:2]:
            raise ValueError(f"a redirect to another origin, {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


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
