"""Summaries of documents: extracted from them, or written by a model behind an endpoint where one is set (ING-18)."""

from __future__ import annotations

import http.client
import json
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipelines.chunking.prose.summary import summary_of, within
from pipelines.chunking.units.sizes import TokenCounter
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import ContentType, Document
from pipelines.ingestion.settings import SummarySettings

WRITTEN = "summaries_written"
"""Count of summaries that the endpoint wrote."""

FAILED = "summaries_failed"
"""Count of requests that it did not answer as it should: those documents have extracts."""

MOST_FAILURES = 3
"""In a row; then a worker asks no more, and the rest of its documents have extracts."""

_ANSWER_BYTES = 1 << 20


class EndpointError(Exception):
    """The endpoint does not answer, or not with a text."""


class Summariser:
    """Gives documents their summaries; one per worker, since it remembers how often the endpoint failed in a row.

    Args:
        count_tokens: In the encoder's own tokens.
    """

    def __init__(self, settings: SummarySettings, count_tokens: TokenCounter) -> None:
        self._settings = settings
        self._count = count_tokens
        self._failed_in_row = 0
        self.counts: Counter[str] = Counter()

    def summed_up(self, document: Document, chunks: Sequence[Chunk]) -> Document:
        """The document with a summary of at most the configured length.

        One that was declared stays, cut to that length. A text that is no longer has none: it is its own summary.
        """
        limit = self._settings.max_tokens
        if document.summary is not None:
            return replace(document, summary=within(document.summary, limit, self._count) or None)
        extract = summary_of(document, chunks, limit=limit, count_tokens=self._count)
        return replace(document, summary=extract if extract is None else self._written(document) or extract)

    def _written(self, document: Document) -> str | None:
        """What the endpoint says; None where there is none or it fails, and for records: there may be millions."""
        settings = self._settings
        if not settings.endpoint or document.content_type is ContentType.RECORD:
            return None
        if self._failed_in_row >= MOST_FAILURES:
            self.counts[FAILED] += 1
            return None
        try:
            summary = within(_asked(settings, document.text[: settings.characters]), settings.max_tokens, self._count)
        except EndpointError:
            summary = ""
        self._failed_in_row = 0 if summary else self._failed_in_row + 1
        self.counts[WRITTEN if summary else FAILED] += 1
        return summary or None


def _asked(settings: SummarySettings, text: str) -> str:
    body = {
        "model": settings.model,
        "messages": [{"role": "system", "content": settings.instruction}, {"role": "user", "content": text}],
        "max_tokens": 2 * settings.max_tokens,  # of its own tokens, which may be shorter
        "temperature": 0,
    }
    headers = {"Content-Type": "application/json"}
    if key := settings.api_key.get_secret_value():
        headers["Authorization"] = f"Bearer {key}"
    data = json.dumps(body).encode()
    request = urllib.request.Request(settings.endpoint, data, headers)  # noqa: S310  settings allow http(s) alone
    try:
        with urllib.request.urlopen(request, timeout=settings.timeout_s) as answer:  # noqa: S310  as above
            return _content(json.loads(answer.read(_ANSWER_BYTES)))
    except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
        raise EndpointError(f"{settings.endpoint}: expected a chat completion, found: {error}") from error


def _content(answer: Any) -> str:
    try:
        content = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"no content, but {_shape(answer)}") from error
    if not isinstance(content, str) or not content.strip():
        raise ValueError("no text")
    return content.encode("utf-8", "replace").decode()


def _shape(answer: Any) -> str:
    return f"the keys {sorted(answer)[:5]}" if isinstance(answer, Mapping) else type(answer).__name__
