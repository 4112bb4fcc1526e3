"""Words without their endings, so that forms of one word agree."""

from __future__ import annotations

_ENDINGS = ("ings", "ing", "ies", "ed", "es", "s", "ly")
STEM = 3
"""Letters that stay of a word at least."""


def stem_of(word: str) -> str:
    """A word, in lower case, without its ending.

    Examples:
        >>> [stem_of(word) for word in ("enables", "enabled", "retries", "red")]
        ['enabl', 'enabl', 'retry', 'red']
    """
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= STEM:
            root = word[: -len(ending)] + ("y" if ending == "ies" else "")
            return root.rstrip("e") if len(root) > STEM else root
    return word.rstrip("e") if len(word) > STEM else word
