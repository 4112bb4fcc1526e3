"""Facts that weft assigns to documents: when they were changed, and how far they are trusted (ING-2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pipelines.domain.documents import ContentType, Document, Domain
from pipelines.ingestion.settings import TrustSettings

_MOST_SECONDS = 1e11  # a number above it counts milliseconds: in seconds it would be the year 5138
_FIRST = datetime.min.replace(tzinfo=UTC).timestamp()
_LAST = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()
_DAY_S = 86_400.0


def epoch_seconds(value: float) -> float | None:
    """A number of seconds or milliseconds as seconds; None where it is no time from year 1 to 9999.

    Examples:
        >>> epoch_seconds(1683554160), epoch_seconds(1683554160000), epoch_seconds(float("nan")), epoch_seconds(10**400)
        (1683554160.0, 1683554160.0, None, None)
    """
    try:
        seconds = float(value)
    except OverflowError:
        return None
    return calendar_seconds(seconds / 1000 if abs(seconds) > _MOST_SECONDS else seconds)


def moment_seconds(moment: datetime) -> float | None:
    """A moment as seconds, in UTC where it does not say; None where UTC's calendar has no such moment.

    Examples:
        >>> [moment_seconds(datetime.fromisoformat(text)) for text in ("2023-05-08T13:56", "0001-01-01T00:00+14:00")]
        [1683554160.0, None]
    """
    return calendar_seconds((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def calendar_seconds(seconds: float) -> float | None:
    """Seconds from year 1 to 9999 as they are; None for any other number: no calendar here has a day for it."""
    return seconds if _FIRST <= seconds <= _LAST else None


def trust_of(document: Document, folders: Sequence[str], *, as_of: float | None, settings: TrustSettings) -> int:
    """Trust level, 0 to 100, of a document for which nobody declared one.

    The first of these that holds decides: its head says that it was generated; it lies in a folder of blog posts; it
    is a paper; it is code or configuration; it is old history; it is recent; else it is standard.

    Args:
        folders: Names of the folders that it lies in.
        as_of: Seconds since the epoch that ages are measured from.
    """
    head = document.text[: settings.generated_within].lower()
    if any(marker.lower() in head for marker in settings.generated_markers):
        return settings.generated
    if any(folder.lower() in settings.blog_folders for folder in folders):
        return settings.blog
    if document.content_type is ContentType.PAPER or document.domain is Domain.ACADEMIC:
        return settings.academic
    if document.domain is Domain.CODE:
        return settings.local_code
    return _trust_by_age(document, as_of, settings)


def _trust_by_age(document: Document, as_of: float | None, settings: TrustSettings) -> int:
    if as_of is None or document.modified_at is None:
        return settings.standard
    days = (as_of - document.modified_at) / _DAY_S
    if document.domain is Domain.HISTORY and days > settings.old_after_days:
        return settings.old_history
    return settings.recent if days <= settings.recent_within_days else settings.standard
