"""When the same was asked again: what tells questions apart without keeping their text."""

from __future__ import annotations

import hashlib

_DIGITS = 16  # of a fingerprint: among a billion questions, two share one with a probability of 3 %


def question_hash(text: str) -> str:
    """SHA-256 of a question, 64 hex digits; case, and how many blanks stand between words, make no difference.

    Examples:
        >>> question_hash("How to retry?") == question_hash(" how  to retry? ")
        True
    """
    return hashlib.sha256(" ".join(text.casefold().split()).encode("utf-8", "replace")).hexdigest()


def question_fingerprint(query_hash: str) -> str:
    """What outcomes under a question are kept by.

    Args:
        query_hash: As `question_hash` makes it.
    """
    return query_hash[:_DIGITS]


def question_of(text: str) -> str:
    """The fingerprint of a question's text."""
    return question_fingerprint(question_hash(text))
