"""Fields of UBI documents, as applications write them: ids, times and positions of several spellings (FBK-2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pipelines.domain.errors import InvalidEventError
from pipelines.feedback.events.json_values import whole
from pipelines.feedback.settings import MS

_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?")
_PER_SECOND = (1, 10**3, 10**6, 10**9)
_FIRST_S, _END_S = 10**8, 10**11  # 1973 to 5138: the span in which no time has two units
_BEYOND = 10**20  # nanoseconds of the year 5138
_EXPECTED_TIME = "expected a time after 1973, in ISO 8601 or in seconds to nanoseconds since the epoch"


def id_of(value: object) -> str | None:
    """An id as text; None where there is none. UBI has texts and integers.

    Examples:
        >>> [id_of(value) for value in ("a7", 7, 7.0, 0, None, " ", True, 7.5, ["a7"])]
        ['a7', '7', '7', '0', None, None, None, None, None]
    """
    value = whole(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = str(value)
    return text if text.strip() else None


def first_id(document: Mapping[str, Any], *names: str, reason: str = "invalid") -> str | None:
    """The first of these fields that holds an id; null and the empty text are as if absent.

    Raises:
        InvalidEventError: A field before it holds what is no id, with that reason.
    """
    for name in names:
        value = document.get(name)
        if (text := id_of(value)) is not None:
            return text
        if value is not None and not isinstance(value, str):
            raise InvalidEventError(reason, f"expected `{name}`, a text or an integer, found {_shown(value)}")
    return None


def question_of_user(document: Mapping[str, Any]) -> str | None:
    """What was asked; None where the query has no text: null, absent, empty or blanks.

    Raises:
        InvalidEventError: It is no text (`no_question`).
    """
    asked = document.get("user_query")
    if asked is not None and not isinstance(asked, str):
        raise InvalidEventError("no_question", f"expected `user_query`, a text or null, found {_shown(asked)}")
    return asked if asked and asked.strip() else None


def milliseconds(timestamp: object) -> int:
    """Milliseconds since the epoch of a time.

    Args:
        timestamp: ISO 8601, in UTC where it names no zone. Or a number since the epoch, also as text: its size tells
            seconds, milli-, micro- and nanoseconds apart.

    Raises:
        InvalidEventError: It is none between the years 1973 and 5138 (`no_time`).

    Examples:
        >>> {milliseconds(time) for time in (1790000000, 1790000000000, "1790000000000000", 1.79e18)}
        {1790000000000}
        >>> milliseconds("2026-09-21T14:13:20")
        1790000000000
    """
    number = _number(timestamp)
    seconds = _iso_seconds(timestamp) if number is None else number
    units = _PER_SECOND if number is not None else (1,)
    for per_second in units:
        if seconds is not None and _FIRST_S <= seconds / per_second < _END_S:
            return round(seconds * MS / per_second)
    raise InvalidEventError("no_time", f"{_EXPECTED_TIME}, found {_shown(timestamp)}")


def rank_of(position: Mapping[str, Any]) -> int:
    """The claimed rank, from 1; 1 where there is none. The updater goes by what the impression says.

    Examples:
        >>> [rank_of({"ordinal": ordinal}) for ordinal in (3, 3.0, "3", {"index": 3}, 0, None, True, "third")]
        [3, 3, 3, 3, 1, 1, 1, 1]
    """
    ordinal = position.get("ordinal")
    number = _number(ordinal.get("index") if isinstance(ordinal, dict) else ordinal)
    return max(int(number), 1) if number is not None else 1


def _number(value: object) -> int | float | None:
    """A number, also as text; None for what is none, or is beyond any time and rank."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _BEYOND:
        return None
    return value


def _iso_seconds(text: object) -> float | None:
    try:
        parsed = datetime.fromisoformat(text.strip().upper() if isinstance(text, str) else "")
    except ValueError:
        return None
    return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)).timestamp()


def _shown(value: object) -> str:
    return f"{value!r:.64}"
