"""Events of a producer, to a service instead of a broker."""

from __future__ import annotations

import logging

import msgspec

from weft.client.http import Client
from weft.domain.errors import WeftError

log = logging.getLogger(__name__)

_TOGETHER = 500  # events of one request


class HttpPublisher:
    """Posts encoded events to `/v1/feedback`, when it is flushed. The service gives them their keys."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._values: list[bytes] = []
        self._lost = 0

    @property
    def waiting(self) -> int:
        """Events that were not sent yet."""
        return len(self._values)

    @property
    def lost(self) -> int:
        """Events that were given up."""
        return self._lost

    def send(self, key: bytes, value: bytes) -> None:  # noqa: ARG002  it is in the event
        """Keep an event until the flush."""
        self._values.append(value)

    def flush(self) -> None:
        """Send what waits; what cannot be sent raises, and waits on."""
        while self._values:
            some = self._values[:_TOGETHER]
            self._client.feedback([msgspec.json.decode(each) for each in some])
            del self._values[: len(some)]

    def close(self) -> int:
        """Send what waits; how many are lost over all."""
        try:
            self.flush()
        except WeftError as error:
            self._lost, self._values = self._lost + len(self._values), []
            log.warning("%d events lost: %s", self._lost, error)
        return self._lost
