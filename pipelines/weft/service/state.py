"""What all routes of a service share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request

from weft.app.stated_events import StatedEvents
from weft.app.views.beliefs import VersionWeights
from weft.app.views.status import StoreFacts
from weft.catalog.catalog import Catalog
from weft.feedback.events.producer import FeedbackProducer
from weft.runtime.storage.stored_answers import StoredAnswers
from weft.service.metrics import Metrics
from weft.service.processes import Searches
from weft.service.sessions import BrowserSessions
from weft.service.tokens import TokenSet
from weft.settings import Settings

WITHOUT_BROKER = "start with --bootstrap HOST:PORT"
"""What helps where nobody is told."""


@dataclass
class Service:
    """What answers requests: search processes, the store, the producer of events, and who may ask."""

    settings: Settings
    searches: Searches
    answers: StoredAnswers
    events: StatedEvents | None  # none where no broker is named, nor a producer
    producer: FeedbackProducer | None
    metrics: Metrics
    tokens: TokenSet
    sessions: BrowserSessions = field(default_factory=BrowserSessions)
    draining: bool = False
    weights: VersionWeights = field(default_factory=dict)  # of learned versions, which never change

    @property
    def root(self) -> Path:
        """The folder of the store."""
        return Path(self.settings.storage.root)

    @property
    def catalog(self) -> Catalog:
        """What is live."""
        return Catalog(self.root)

    @property
    def facts(self) -> StoreFacts:
        """What is watched of the store."""
        return StoreFacts(self.root)


def service_of(request: Request) -> Service:
    """The service that a request came to."""
    service: Service = request.app.state.service
    return service
