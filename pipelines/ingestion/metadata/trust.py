"""How far a document is trusted by what kind of source it is, from 0 to 100 (ING-2)."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.domain.documents import ContentType, Document, Domain
from pipelines.ingestion.settings import TrustSettings

_DAY_S = 86_400.0


def trust_of(document: Document, folders: Sequence[str], *, as_of: float | None, settings: TrustSettings) -> int:
    """Trust level of a document for which nobody declared one.

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
    return _by_age(document, as_of, settings)


def _by_age(document: Document, as_of: float | None, settings: TrustSettings) -> int:
    if as_of is None or document.modified_at is None:
        return settings.standard
    days = (as_of - document.modified_at) / _DAY_S
    if document.domain is Domain.HISTORY and days > settings.old_after_days:
        return settings.old_history
    return settings.recent if days <= settings.recent_within_days else settings.standard
