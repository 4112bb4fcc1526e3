"""A question in other words, and a near miss that asks for something else: made by rule (LRN-19).

Nobody has judged them. A paraphrase keeps every content word, up to synonyms of the priors' own list, so that it asks
the same by construction, and is nearer than what people make up. A near miss puts a content word of another question
in the place of one of its own, or exchanges a number: most ask for something else, a few for nothing sensible.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from pipelines.learning.priors import NearPrior
from pipelines.retrieval.query.wording import Lexicon

_NUMBER = re.compile(r"\d+")
_FRAMES = ("{}", "please help: {}", "i would like to know, {}", "question about this: {}", "{} - does anybody know")
_SHORT = 3  # content words from which on a text keeps its sense without the others


def paraphrase(text: str, prior: NearPrior, rng: random.Random) -> str:
    """The same question in other words: synonyms, without idle words, or within another sentence."""
    idle, words = Lexicon(prior).idle, [_exchanged(word, prior, rng) for word in text.split()]
    content = [word for word in words if _bare(word) not in idle]
    if len(content) >= _SHORT and rng.random() < 0.5:
        words = content
    plain = " ".join(words).strip()
    frame = rng.choice(_FRAMES[1:] if plain.casefold() == text.casefold() else _FRAMES)
    return frame.format(plain.rstrip("?.!"))


def near_miss(text: str, others: Sequence[str], prior: NearPrior, rng: random.Random) -> str | None:
    """A question that differs in what it asks for; None of a text without a word to exchange.

    Args:
        others: Other questions, whose words stand in for one of its own.
    """
    words, lexicon = text.split(), Lexicon(prior)
    places = [at for at, word in enumerate(words) if _is_content(word, lexicon)]
    own = {lexicon.stem(_bare(word)) for word in words}
    strange = (word for other in others for word in other.split() if lexicon.stem(_bare(word)) not in own)
    foreign = [word for word in strange if _is_content(word, lexicon)]
    if numbered := [at for at, word in enumerate(words) if _NUMBER.search(word)]:
        at = rng.choice(numbered)
        words[at] = _NUMBER.sub(lambda number: str(int(number[0]) + 1), words[at], count=1)
    elif places and foreign:
        words[rng.choice(places)] = rng.choice(foreign)
    else:
        return None
    return " ".join(words)


def _exchanged(word: str, prior: NearPrior, rng: random.Random) -> str:
    groups = [group for group in prior.synonyms if _bare(word) in group]
    return rng.choice([each for each in groups[0] if each != _bare(word)] or [word]) if groups else word


def _is_content(word: str, lexicon: Lexicon) -> bool:
    bare = _bare(word)
    return len(bare) > _SHORT and bare.isalpha() and bare not in lexicon.idle | lexicon.negations


def _bare(word: str) -> str:
    return word.strip("?.,;:!()\"'").casefold()
