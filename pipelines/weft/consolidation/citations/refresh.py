"""The step `citations` of a night: counts that are due are asked of providers, as many as a night may (CIT-1)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from weft.catalog.citations import CitationCounts
from weft.consolidation.settings import CitationSettings
from weft.domain.links import Measures, Provider, Work, WorkCounts

log = logging.getLogger(__name__)

_SECONDS_PER_HOUR = 3600.0
_MOST_FAILURES = 3  # in a row, after which a provider is left alone for the night: it is down, and each costs seconds


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


PROVIDERS = "weft.consolidation.citations.providers:providers_of"
"""What asks providers: it is loaded by this name where `consolidation.citations.providers` names one."""

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


def distinct(works: Iterable[Sequence[Work]]) -> list[Work]:
    """Every work that some document names, once, in order."""
    return sorted({work for some in works for work in some})


class ServiceUnavailableError(Exception):
    """A service does not answer, or not with JSON."""


class CitationProvider(Protocol):
    """Says how much a work is relied on; asked by the night, one work at a time, never twice within the refresh."""

    def counts(self, work: str) -> Measures | None:
        """What is known of a work, by the provider's own name of it; None where it knows no such work.

        Raises:
            ServiceUnavailableError: The service does not answer as it should.
        """
