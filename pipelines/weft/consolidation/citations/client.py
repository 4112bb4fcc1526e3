"""JSON over HTTP from a service that limits, fails and stalls: a pace, back-off, a deadline, no surprises (CIT-1)."""

from __future__ import annotations

import email.utils
import http.client
import json
import math
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

_MOST_BYTES = 1 << 20
_PIECE = 1 << 14
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_ABSENT = frozenset({404, 410})


class ServiceUnavailableError(Exception):
    """A service does not answer, or not with JSON."""


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
            NoAnswerError: It failed at every attempt, refused, redirected elsewhere, was too slow or too long, or sent
                what is no JSON.
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
