"""The step `citations` of a night: counts that are due are asked of providers, as many as a night may (CIT-1)."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import ClassVar, Protocol

from weft.catalog.catalog import Catalog
from weft.catalog.citations import CitationCounts
from weft.consolidation.night import NightContext, StepResult, When
from weft.consolidation.settings import CitationSettings
from weft.domain.errors import CorruptionError
from weft.domain.links import Measures, Provider, Work, WorkCounts, works_of

log = logging.getLogger(__name__)

_SECONDS_PER_HOUR = 3600.0
_MOST_FAILURES = 3  # in a row, after which a provider is left alone for the night: it is down, and each costs seconds

PROVIDERS = "weft.consolidation.steps.providers:providers_of"
"""What asks providers: it is loaded by this name where `consolidation.citations.providers` names one."""


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """What came of it."""

    due: int = 0  # works that were to be asked for
    counted: int = 0  # Works that a provider knows, and does not know
    absent: int = 0
    failed: int = 0  # works whose provider did not answer: their former counts stay, and they are due again
    left: int = 0  # works that were left to another night: too many, or their provider failed too often in a row


class RefreshCitations:
    """Asks providers for counts that are due; they are the store's, and part of no learned version."""

    name: ClassVar[str] = "citations"
    says: ClassVar[str] = "asking providers how much documents are relied on"
    when: ClassVar[When] = When.ALWAYS

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`; a rehearsal asks nobody."""
        rules = context.settings.consolidation.citations
        outcome = refresh(context.catalog, rules, context.night.now, dry_run=context.dry_run)
        counts = asdict(outcome)
        proposed = counts.pop("due")
        return StepResult(counts={"proposed": proposed, "applied": outcome.counted + outcome.absent, **counts})


def refresh(catalog: Catalog, rules: CitationSettings, now: float, *, dry_run: bool) -> RefreshResult:
    """Ask the providers that are on for what is due of what live documents declare to be, and keep it."""
    if not rules.providers or catalog.pointer().generation is None:
        return RefreshResult()
    with closing(catalog.open_live()) as generation:
        works = distinct(works_of(document.metadata) for document in generation.chunks.documents())
    try:
        stored = catalog.citations.read()
    except CorruptionError:
        stored = {}
    if dry_run:
        return RefreshResult(due=len(due(works, stored, rules, now)))
    providers = pkgutil.resolve_name(PROVIDERS)(rules, now)
    counted, outcome = refreshed(works, stored, providers, rules, now)
    if outcome.due:
        catalog.citations.write(counted)
    return outcome


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


class CitationProvider(Protocol):
    """Says how much a work is relied on; asked by the night, one work at a time, never twice within the refresh."""

    def counts(self, work: str) -> Measures | None:
        """What is known of a work, by the provider's own name of it; None where it knows no such work.

        Raises:
            ServiceUnavailableError: The service does not answer as it should.
        """


class ServiceUnavailableError(Exception):
    """A service does not answer, or not with JSON."""
