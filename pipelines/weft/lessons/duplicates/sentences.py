"""What the text of a lesson denies, which way it points, and what it says comes first: read from its clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from weft.lessons.wording import LessonWords, words_of

CLAUSES = re.compile(r"[,;:.!?](?:\s+|$)|\s+[-–—]\s+|\s+but\s+", re.IGNORECASE)
_CONTRAST = re.compile(r"\b(?:instead of|rather than|without|except(?: for)?|as opposed to)\b", re.IGNORECASE)
_ENDS_CONTRAST = frozenset(
    {"in", "for", "on", "when", "at", "during", "while", "and", "as", "to", "with", "before", "after", "if"}
)
# "Tokens without an expiry must be rejected": what must be is said of the tokens.
_AUXILIARIES = frozenset({"must", "should", "shall", "may", "can", "will", "is", "are", "has", "have", "need", "needs"})
_PREFERS = frozenset({"prefer", "prefers", "preferred"})
_ORDER = re.compile(r"\b(before|prior to|ahead of|after|following|once|until)\b", re.IGNORECASE)
_THEN = re.compile(r"[,;]?\s+(?:and\s+)?then\s+|;\s+afterwards\s+", re.IGNORECASE)
_DIRECTIONS = frozenset({"to", "into"})
_LEFT_OUT = re.compile(r"\b(?:keep|kept|leave|left)\b[^,;]*\b(?:out|free) of\b", re.IGNORECASE)  # denies what it says
_NOT_WITHOUT = re.compile(
    r"\b(?:(?P<never>never)|do not|don['’]t)\s+(?P<deed>\w[^,;:.!?]*?)\s+without\b", re.IGNORECASE
)


def affirmed(text: str) -> str:
    """A text in which a denial of "without" says what it comes to.

    Examples:
        >>> affirmed("Never deploy without a plan"), affirmed("Do not delete a branch without asking")
        ('always deploy with a plan', 'delete a branch with asking')
    """
    return _NOT_WITHOUT.sub(lambda match: f"{'always ' if match['never'] else ''}{match['deed']} with", text)


def denials(text: str, words: LessonWords) -> tuple[bool, frozenset[str]]:
    """Whether a text denies what it says, and the stems that it denies by contrast."""
    whole = False
    denied: set[str] = set()
    for at, clause in enumerate(part for part in CLAUSES.split(text) if part.strip()):
        parts = _CONTRAST.split(clause)
        for part in parts[1:]:
            denied.update(_contrasted(part, words))
        tokens = words_of(parts[0])
        if (prefers := next((at for at, word in enumerate(tokens) if word in _PREFERS), None)) is not None:
            for sign in ("over", "to"):
                if sign in tokens[prefers + 1 :]:
                    place = tokens.index(sign, prefers + 1)
                    denied.update(_contrasted(" ".join(tokens[place + 1 :]), words))
                    break
        places = [place for place, word in enumerate(tokens) if words.denying(word)]
        if not places:
            whole = whole or _LEFT_OUT.search(parts[0]) is not None
            continue
        # "Store UTC, never local time" says what to do, and denies what stands behind the comma alone.
        if (
            at
            and places[0] == 0
            and tokens[0] in {"not", "never", "no"}
            and len(words.subject(text)) > len(words.subject(clause))
        ):
            if _imperative(tokens):
                whole = True
            else:
                denied.update(words.subject(clause))
        else:
            whole = whole or len(places) % 2 == 1
    return whole, frozenset(denied)


def _imperative(tokens: Sequence[str]) -> bool:
    """Whether a clause that begins with a denial denies a deed: "in Python, never catch …"."""
    prepositions = {"in", "on", "at", "for", "with", "from", "by", "to", "the", "a", "an"}
    return len(tokens) > 1 and tokens[0] == "never" and tokens[1] not in prepositions


def _contrasted(part: str, words: LessonWords) -> Iterator[str]:
    for at, word in enumerate(words_of(part)):
        if at and word in _ENDS_CONTRAST | _AUXILIARIES:
            return
        if word not in words.idle:
            yield words.stem(word)


def stated_order(text: str, words: LessonWords) -> tuple[frozenset[str], frozenset[str]]:
    """Stems of what comes first, and of what comes second; empty where no order is stated."""
    nothing: frozenset[str] = frozenset()
    if (sign := _ORDER.search(text)) is None:
        first, *rest = _THEN.split(text, maxsplit=1)
        return (frozenset(words.subject(first)), frozenset(words.subject(rest[0]))) if rest else (nothing, nothing)
    front, back = text[: sign.start()], text[sign.end() :]
    if not words.subject(front):  # "Before starting the API, run the migrations"
        comma = re.search(r"[,:]\s", back)
        back, front = (back[: comma.start()], back[comma.end() :]) if comma else _split_at_verb(back, words)
    earlier, later = frozenset(words.subject(front)), frozenset(words.subject(back))
    if sign.group().lower() in {"after", "following", "once"}:
        earlier, later = later, earlier
    both = earlier & later
    return earlier - both, later - both


def _split_at_verb(text: str, words: LessonWords) -> tuple[str, str]:
    """Without a comma, what is done begins at a bare verb behind a thing; where there is none, nothing is told."""
    tokens = words_of(text)
    for at in range(2, len(tokens)):
        if tokens[at] in _BARE and words.subject(" ".join(tokens[:at])):
            return " ".join(tokens[:at]), " ".join(tokens[at:])
    return "", ""


_BARE = frozenset(
    [
        "always",
        "invalidate",
        "run",
        "check",
        "verify",
        "use",
        "call",
        "update",
        "add",
        "remove",
        "restart",
        "set",
        "write",
    ]
)


def scopes(tokens: Sequence[str], words: LessonWords) -> Iterator[str]:
    """What "only" is said of: "only admins may delete" is not "admins may only delete"."""
    for at, word in enumerate(tokens):
        if word == "only" and (named := words.naming(tokens[at + 1 :])):
            yield f"{word} {named[0]}"


def directions(tokens: Sequence[str], words: LessonWords) -> Iterator[tuple[str, str]]:
    """Pairs of stems with "to" or "into" between them."""
    places = [(at, words.stem(word)) for at, word in enumerate(tokens) if word not in words.idle]
    for (at, left), (then, right) in pairwise(places):
        between = tokens[at + 1 : then]
        if _DIRECTIONS.intersection(between) and "be" not in between:  # "is to be done"
            yield left, right
