"""Sessions of browsers: a cookie in place of the token that was given once (OPS-6)."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable

from weft.service.tokens import Caller

AGE_S = 12 * 3600
"""After which a browser is asked for its token again."""

MOST = 1_000
"""Sessions at a time; the oldest one ends for a further one."""


class BrowserSessions:
    """Who holds which cookie. It keeps the SHA-256 of cookies, and forgets all when the process ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: dict[bytes, tuple[float, Caller]] = {}  # oldest first

    def begin(self, caller: Caller) -> str:
        """A new cookie for a caller."""
        cookie = secrets.token_urlsafe(32)
        self._begun[_digest(cookie)] = (self._clock(), caller)
        while len(self._begun) > MOST:
            del self._begun[next(iter(self._begun))]
        return cookie

    def get(self, cookie: str) -> Caller | None:
        """Who holds a cookie; None where it is none, or too old."""
        begun, caller = self._begun.get(_digest(cookie), (0.0, None))
        if caller is not None and self._clock() - begun > AGE_S:
            self.end(cookie)
            return None
        return caller

    def end(self, cookie: str) -> None:
        """Whoever holds it is nobody from now on."""
        self._begun.pop(_digest(cookie), None)


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).digest()
