"""Pairs of texts that are opposed, and pairs that only look so, made from the texts of a collection."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

from tests.support.near_duplicates import denied, harmless, noisy, noticed, renumbered, reordered

Pair = tuple[str, str]

_VERB = re.compile(r"\b(is|are|was|were|can|will|should)\b(?! not)")
_SUBJECT = re.compile(r"(?<=[a-z] )[a-z]{6,}(?= (?:is|are|was|were|can|will)\b)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def opposed(rng: random.Random) -> Mapping[str, Callable[[str], Pair | None]]:
    """What makes two opposed texts of one, by name."""
    return {
        "denied": lambda text: _beside(text, denied(text, rng)),
        "always": lambda text: _always(text, rng),
        "renumbered": lambda text: _beside(text, renumbered(text, rng)),
    }


def unopposed(texts: Sequence[str], rng: random.Random) -> Mapping[str, Callable[[str], Pair | None]]:
    """What makes two texts of one that are no opposites, by name; the last two differ by a denial nevertheless."""
    words = harmless([word for text in texts for word in text.split()])
    subjects = [word for word in words if re.fullmatch("[a-z]{6,}", word)]
    return {
        "noisy": lambda text: _beside(text, noisy(text, 0.05, words, rng)),
        "reordered": lambda text: _beside(text, reordered(text, rng)),
        "noticed": lambda text: _beside(text, noticed(text)),
        "of something else": lambda text: _beside(text, _of_something_else(text, rng.choice(subjects))),
        "on a condition": lambda text: _beside(text, _on_a_condition(text, rng)),
    }


def _beside(text: str, made: str | None) -> Pair | None:
    return None if made is None or made == text else (text, made)


def _always(text: str, rng: random.Random) -> Pair | None:
    verbs = list(_VERB.finditer(text))
    if not verbs:
        return None
    end = rng.choice(verbs).end()
    return f"{text[:end]} always{text[end:]}", f"{text[:end]} never{text[end:]}"


def _of_something_else(text: str, other: str) -> str | None:
    """One subject in the place of another, and its verb denied: both may be true."""
    subject = _SUBJECT.search(text)
    if subject is None or subject.group() == other:
        return None
    after = _VERB.sub(r"\1 not", text[subject.end() :], count=1)
    return f"{text[: subject.start()]}{other}{after}"


def _on_a_condition(text: str, rng: random.Random) -> str | None:
    """A sentence denied where a condition holds: both may be true."""
    sentences = _SENTENCE.split(" ".join(text.split()))
    some = [at for at, sentence in enumerate(sentences) if _VERB.search(sentence)]
    if not some:
        return None
    at = rng.choice(some)
    changed = _VERB.sub(r"\1 not", sentences[at], count=1)
    sentences[at] = f"In the presence of steam {changed[0].lower()}{changed[1:]}"
    return " ".join(sentences)
