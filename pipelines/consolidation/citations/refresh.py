"""The step `citations` of a night: counts that are due are asked for, as many as a night may (CIT-1)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.catalog.citations import CitationCounts
from pipelines.consolidation.citations.client import JsonClient, RequestPolicy, ServiceUnavailableError
from pipelines.consolidation.citations.providers import PROVIDERS, URLS, CitationProvider
from pipelines.consolidation.settings import CitationSettings
from pipelines.domain.links import Provider, Work, WorkCounts

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


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """What came of it.

    Attributes:
        due: Works that were to be asked for.
        counted, absent: Works that a provider knows, and does not know.
        failed: Works whose provider did not answer: their former counts stay, and they are due again.
        left: Works that were left to another night: too many, or their provider failed too often in a row.
    """

    due: int = 0
    counted: int = 0
    absent: int = 0
    failed: int = 0
    left: int = 0

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
    """Those that are on.

    Args:
        pace: At which each is asked; None for what it grants.
    """
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
