"""Summaries of documents: extracted from them, or written by a model behind an endpoint where one is set (ING-18)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pipelines.chunking.prose.summary import summary_of, within
from pipelines.chunking.units.splitting import TokenCounter
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import ContentType, Document
from pipelines.ingestion.settings import SummarySettings
from pipelines.runtime.chat import ChatEndpoint, EndpointError

WRITTEN = "summaries_written"
"""Count of summaries that the endpoint wrote."""

FAILED = "summaries_failed"
"""Count of requests that it did not answer as it should: those documents have extracts."""

SHOWN_CHARACTERS = 12_000
"""Of a document that the model is shown, from its beginning: about 3,000 tokens, which every model reads."""

MOST_FAILURES = 3
"""In a row; then a worker asks no more, and the rest of its documents have extracts."""


_INSTRUCTION = "Say in at most three sentences what the following document is about, for somebody who searches."


class Summariser:
    """Gives documents their summaries; one per worker, since it remembers how often the endpoint failed in a row.

    Args:
        count_tokens: In the encoder's own tokens.
        timeout_s: For one answer of the model.
    """

    def __init__(self, settings: SummarySettings, count_tokens: TokenCounter, timeout_s: float = 20.0) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._count = count_tokens
        self._failed_in_row = 0
        self.counts: Counter[str] = Counter()

    def summarised(self, document: Document, chunks: Sequence[Chunk]) -> Document:
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
        model = ChatEndpoint(settings.endpoint, settings.model, settings.api_key, self._timeout_s)
        most = settings.max_tokens
        try:
            # Its own tokens may be shorter.
            text = model.complete(_INSTRUCTION, document.text[:SHOWN_CHARACTERS], max_tokens=2 * most)
            summary = within(text, most, self._count)
        except EndpointError:
            summary = ""
        self._failed_in_row = 0 if summary else self._failed_in_row + 1
        self.counts[WRITTEN if summary else FAILED] += 1
        return summary or None
