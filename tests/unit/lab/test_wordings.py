"""LRN-19: questions in other words, and such that look alike, made by rule for studies."""

from __future__ import annotations

import random

import pytest

from lab.simulation.users import near_miss, paraphrase
from tests.support.words_spoken import PRIORS
from weft.retrieval.query.near import Factors
from weft.retrieval.query.wording import Lexicon, Wording

PRIOR = PRIORS.near
QUESTIONS = [
    "how do I remove a virtual environment from the disk?",
    "what is the default timeout of a request",
    "does vitamin C lower the risk of a cold",
    "list the installed packages of python 3.11",
]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("text", QUESTIONS)
def test_a_paraphrase_asks_the_same(text: str, seed: int) -> None:
    """LRN-19: another text with the same content words, up to the list of synonyms; the same from the same seed."""
    made, again = (paraphrase(text, PRIOR, random.Random(seed)) for _ in range(2))
    assert made == again
    assert made.casefold().rstrip("?") != text.casefold().rstrip("?")
    lexicon = Lexicon(PRIOR)
    assert not Wording(text, lexicon).contradicts(Wording(made, lexicon))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("text", QUESTIONS)
def test_a_near_miss_differs_in_one_word(text: str, seed: int) -> None:
    """LRN-19: a number, where there is one, else a content word of another question."""
    made = near_miss(text, QUESTIONS, PRIOR, random.Random(seed))
    assert made is not None
    differing = [pair for pair in zip(text.split(), made.split(), strict=True) if pair[0] != pair[1]]
    assert len(differing) == 1
    if any(letter.isdigit() for letter in text):
        assert differing == [("3.11", "4.11")]
        lexicon = Lexicon(PRIOR)
        assert Factors.of(PRIOR).factor(Wording(text, lexicon), Wording(made, lexicon), 0.99) == 0.0


def test_where_no_word_can_be_exchanged_there_is_no_near_miss() -> None:
    """LRN-19: a question of idle words, or no other questions."""
    assert near_miss("what is it", QUESTIONS, PRIOR, random.Random(1)) is None
    assert near_miss(QUESTIONS[0], [], PRIOR, random.Random(1)) is None
