"""Texts that say the same in nearly the same words, and texts that say the opposite in nearly the same words."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

_SENTENCES = re.compile(r"(?<=[.!?])\s+")
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")
_VERB = re.compile(r"\b(is|are|was|were|can|will|should)\b(?! not)")
_DENYING = re.compile(
    r"\W*(?:not|no|nor|neither|none|never|always|without|cannot|except|missing|lack|lacking|unable|\w+n't)\W*", re.I
)
_NOTICE = (
    "This text is part of a collection that is published as it stands. See the accompanying licence for the terms of "
    "its use."
)


def harmless(words: Sequence[str]) -> list[str]:
    """Those of some words that do not deny."""
    return [word for word in words if not _DENYING.fullmatch(word)]


def noisy(text: str, share: float, words: Sequence[str], rng: random.Random) -> str:
    """A text with a share of its words dropped, followed by another or replaced by another, a third each.

    Words that deny are left alone: without a "not" a text says the opposite.

    Args:
        words: That come in; see `harmless`.
    """
    own = text.split()
    some = [at for at, word in enumerate(own) if not _DENYING.fullmatch(word)]
    for at in rng.sample(some, min(len(some), max(1, round(share * len(own))))):
        other = rng.choice(words)
        own[at] = rng.choice(["", other, f"{own[at]} {other}"])
    return " ".join(word for word in own if word)


def reordered(text: str, rng: random.Random) -> str | None:
    """A text with its sentences in another order; None where it has only one."""
    sentences = _SENTENCES.split(" ".join(text.split()))
    if len(set(sentences)) < 2:
        return None
    order = sentences
    while order == sentences:
        order = rng.sample(sentences, len(sentences))
    return " ".join(order)


def noticed(text: str) -> str:
    """A text with a notice before it."""
    return f"{_NOTICE} {text}"


def denied(text: str, rng: random.Random) -> str | None:
    """A text in which one verb is denied; None where there is none to deny."""
    found = list(_VERB.finditer(text))
    if not found:
        return None
    verb = rng.choice(found)
    return f"{text[: verb.end()]} not{text[verb.end() :]}"


def renumbered(text: str, rng: random.Random) -> str | None:
    """A text with another number in the place of one; None where there is none."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return None
    number = rng.choice(found)
    return f"{text[: number.start()]}{rng.randrange(2000, 9000)}{text[number.end() :]}"


def plantings(words: Sequence[str], rng: random.Random) -> Mapping[str, Callable[[str], str | None]]:
    """What makes a near-duplicate of a text, by name."""
    words = harmless(words)
    return {
        "noise 2 %": lambda text: noisy(text, 0.02, words, rng),
        "noise 5 %": lambda text: noisy(text, 0.05, words, rng),
        "noise 10 %": lambda text: noisy(text, 0.10, words, rng),
        "reordered": lambda text: reordered(text, rng),
        "notice": noticed,
    }


def opposites(rng: random.Random) -> Mapping[str, Callable[[str], str | None]]:
    """What makes an opposite of a text, by name."""
    return {"denied": lambda text: denied(text, rng), "renumbered": lambda text: renumbered(text, rng)}
