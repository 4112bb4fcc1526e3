"""What is said of contents under questions, in the independent reading of a feedback log: none of weft's code."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.support.folded_evidence import Overlay

MICRO = 1_000_000
DAY_MS = 86_400_000


def is_verdict(event: dict[str, Any]) -> bool:
    """Whether somebody says outright of one result that it is good or bad."""
    return event["type"] == "explicit" and event.get("content_hash") is not None


def last_word(event: dict[str, Any], impression: dict[str, Any], result: dict[str, Any], good: bool) -> int:
    """Since when the speaker holds so of a result."""
    of, at = (event["principal"], result["content_hash"]), event["at"]
    before = impression["words"].get(of)
    if before is None:
        impression["words"][of] = good, at
    elif before[0] != good or at // DAY_MS > before[1] // DAY_MS:
        impression["words"][of] = good, max(at, before[1] + 1)
    since: int = impression["words"][of][1]
    return since


def spoken(
    place: Overlay, event: dict[str, Any], said: tuple[str, str, int, str], mass: int, asked: tuple[str, str]
) -> None:
    """A word on a content: what of which, since when, and at what score."""
    verdict, content, at, percent = said
    bin_ = f"{verdict}:{at % DAY_MS:08d}:{percent}"
    place.usage[at // DAY_MS, content, bin_, fingerprint(event["principal"]), asked[0][:16]] += mass
    ask(place, at // DAY_MS, asked)


def ask(place: Overlay, day: int, asked: tuple[str, str]) -> None:
    hash_, text = asked
    if text:
        place.usage[day, "", f"question:{text}", "", hash_[:16]] += MICRO


def hash_of(text: str) -> str:
    """Of a question: in lower case, with one space between words."""
    return hashlib.sha256(" ".join(text.split()).lower().encode()).hexdigest()


def fingerprint(principal: str) -> str:
    return hashlib.blake2b(principal.encode(), digest_size=8).hexdigest()
