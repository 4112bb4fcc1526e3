"""How long to wait before something is tried again."""

from __future__ import annotations

import random


class Backoff:
    """Doubles the wait each time, up to a limit, with jitter so that failures do not come back together."""

    def __init__(self, first_s: float = 1.0, most_s: float = 300.0, attempts: int = 5) -> None:
        self.first_s = first_s
        self.most_s = most_s
        self.attempts = attempts

    def delay(self, attempt: int) -> float | None:
        """Seconds to wait before this attempt; None where it was the last one."""
        if attempt >= self.attempts:
            return None
        whole = min(self.most_s, self.first_s * 2 ** (attempt - 1))
        return random.uniform(whole / 2, whole)
