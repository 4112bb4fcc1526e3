"""A digest of a text by its own sentences, for what is too long to be kept whole (ING-11)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from pipelines.chunking.units.splitting import Cuts, Meter, decoded, lines, sentences, strides

_WORD = re.compile(r"[^\W\d_]{3,}")


def digest(source: bytes, start: int, end: int, budget: int, meter: Meter) -> str:
    """Sentences of a span, in their order, that say most about it within `budget` tokens; lines where there are none.

    SumBasic (Vanderwende et al., Information Processing & Management 2007): the sentence whose words are the most
    probable on average is taken, then its words count squared, so that what was said is not said again.
    """
    cuts = Cuts.between(start, end, sentences(source, start, end)).refined(source, lines, budget, meter)
    spans = list(pairwise(cuts.refined(source, strides(max(4, budget)), budget, meter).positions))
    words = [_WORD.findall(decoded(source[first:last]).lower()) for first, last in spans]
    chosen = _most_telling(words, [meter.tokens(*span) + 1 for span in spans], budget)  # 1: the line end after it
    said = (decoded(source[slice(*spans[place])]).strip() for place in chosen)
    return "\n".join(said) or _beginning(source, start, end, budget)


def _most_telling(words: Sequence[Sequence[str]], costs: Sequence[int], budget: int) -> list[int]:
    """Places of the chosen sentences, in order."""
    counts = Counter(word for each in words for word in each)
    probability = {word: count / counts.total() for word, count in counts.items()}
    waiting = {place for place, each in enumerate(words) if each}
    chosen: list[int] = []
    while waiting:
        best = max(waiting, key=lambda place: (fmean(probability[word] for word in words[place]), -place))
        waiting.remove(best)
        budget -= costs[best]
        if budget < 0:
            break
        chosen.append(best)
        for word in set(words[best]):
            probability[word] **= 2
    return sorted(chosen)


def _beginning(source: bytes, start: int, end: int, budget: int) -> str:
    """The first bytes, of a text without any words: each is at most one token."""
    return source[start:end].strip()[: max(1, budget)].decode("utf-8", "ignore")
