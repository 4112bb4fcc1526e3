"""Times as sources state them, in seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime

_MOST_SECONDS = 1e11  # a number above it counts milliseconds: in seconds it would be the year 5138
_FIRST = datetime.min.replace(tzinfo=UTC).timestamp()
_LAST = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()


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
    return known_seconds(seconds / 1000 if abs(seconds) > _MOST_SECONDS else seconds)


def moment_seconds(moment: datetime) -> float | None:
    """A moment as seconds, in UTC where it does not say; None where UTC's calendar has no such moment.

    Examples:
        >>> [moment_seconds(datetime.fromisoformat(text)) for text in ("2023-05-08T13:56", "0001-01-01T00:00+14:00")]
        [1683554160.0, None]
    """
    return known_seconds((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def known_seconds(seconds: float) -> float | None:
    """Seconds from year 1 to 9999 as they are; None for any other number: no calendar here has a day for it."""
    return seconds if _FIRST <= seconds <= _LAST else None
