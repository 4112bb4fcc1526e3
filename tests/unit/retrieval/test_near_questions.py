"""LRN-19: outcomes under one question count for another as far as it asks the same in other words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.retrieval_fakes import WordEncoder
from tests.support.words_spoken import PRIORS, a_word, precedents_of
from weft.domain.ids import question_of
from weft.learning.evidence import Evidence
from weft.retrieval.query.near import Factors, PastQuestion, QuestionIndex, QuestionSimilarity, learned_factors
from weft.wording.questions import Question

PRIOR = PRIORS.near
CLOSE = 0.9  # the cosine of all pairs here: by it alone none could be told from another
PARAPHRASES = [
    ("how do I remove a virtual environment", "delete a venv"),
    ("what is the default timeout of a request", "default request timeout"),
    ("how to install a package from a lockfile", "installing packages from a lock file"),
    ("list all installed packages", "list every installed package"),
    ("How can I turn off the cache?", "disabling the cache"),
    ("which folder holds the logs", "the directory that holds the logs"),
    ("what causes this error", "the reason of this failure"),
    ("how is an environment variable set", "specify an env var"),
    ("where do I find the settings of the server", "where are the server settings located"),
    ("does smoking raise the risk of cancer", "smoking increases cancer risk"),
    ("how do I sign in on the command line", "cli login"),
    ("how to seperate the colours of a chart", "separating chart colors"),
    ("raise the timeout of a user name lookup", "raising the time out of a username lookup"),
]
LOOK_ALIKES = [
    ("enable the cache", "disable the cache"),
    ("how to install python 3.11", "how to install python 3.12"),
    ("retry with a timeout", "retry without a timeout"),
    ("retry with a timeout", "retry w/o a timeout"),
    ("convert csv to json", "convert json to csv"),
    ("where is the cache stored", "when is the cache stored"),
    ("how long is a token valid", "how often is a token valid"),
    ("add a dependency", "remove a dependency"),
    ("is the index locked", "is the index unlocked"),
    ("set the proxy for git", "set the proxy for pip"),
    ("encode a url", "decode a url"),
    ("the highest score of a query", "the lowest score of a query"),
    ("what is allowed in a name", "what isn't allowed in a name"),
    ("steps before the merge", "steps after the merge"),
    ("upload a file to the server", "download a file from the server"),
    ("does vitamin d promote growth", "does vitamin d inhibit growth"),
    ("sum of a column", "sum of a row"),
]


def factor(one: str, other: str, cosine: float = CLOSE) -> float:
    ours, theirs = Question(one), Question(other)
    return Factors.of(PRIOR).factor(ours, theirs, QuestionSimilarity([], PRIOR.overlap).of(ours, theirs, cosine))


@pytest.mark.parametrize(("one", "other"), PARAPHRASES)
def test_other_words_for_the_same_count(one: str, other: str) -> None:
    """LRN-19."""
    assert factor(one, other) > 0.4


SPELLINGS = [
    ("how to initialise a context object", "how do I initialize the context object"),
    ("customising the help text", "how do I customize the help text"),
    ("analyse the colours of a page", "analyze the colors of a page"),
    ("cancelling a prompt", "canceling prompts"),
    ("what doesn't exit with an error code", "what does not exit with an error code"),
    ("why can’t I read from a pipe", "why can I not read from a pipe"),
    ("read a value from environment variables", "read values from an env var"),
    ("which cmd takes the ctx", "which commands take a context"),
    ("write chars to stdout", "write characters to standard output"),
    ("what's the name of the app directory", "what is the name of the application directory"),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_how_a_word_is_spelt_makes_no_other_question(one: str, other: str) -> None:
    """LRN-19: British and American, short forms with either apostrophe, and abbreviations are the same words."""
    assert factor(one, other) == PRIOR.same_words


def test_a_curved_apostrophe_denies_like_a_straight_one() -> None:
    """LRN-19: "isn’t" came apart into two words of which neither denied."""
    for short in ("isn't", "isn’t"):
        assert factor("what is allowed in a name", f"what {short} allowed in a name", cosine=0.999) == 0.0


@pytest.mark.parametrize(
    ("one", "other"), [("fill a form", "file a form"), ("set four values", "set for values"), ("rise", "rize")]
)
def test_words_that_only_end_alike_stay_apart(one: str, other: str) -> None:
    """LRN-19: endings of another spelling are not looked for in short words."""
    assert Question(one).content != Question(other).content


@pytest.mark.parametrize(("one", "other"), LOOK_ALIKES)
def test_what_looks_alike_and_asks_for_something_else_does_not(one: str, other: str) -> None:
    """LRN-19: however near their vectors lie."""
    assert factor(one, other, cosine=0.999) == 0.0


@pytest.mark.parametrize(("one", "other"), PARAPHRASES + LOOK_ALIKES)
def test_nearness_is_mutual(one: str, other: str) -> None:
    """LRN-19: whichever was asked first."""
    assert factor(one, other) == factor(other, one)


words = st.lists(
    st.sampled_from(["cache", "delete", "remove", "file", "to", "json", "csv", "not", "3.11", "when", "the", "index"]),
    min_size=1,
    max_size=7,
).map(" ".join)


@given(words, words, st.floats(-1.0, 1.0))
@example("cache delete file cache delete", "file file cache cache delete", 0.0)
def test_factors_are_shares_and_mutual(one: str, other: str, cosine: float) -> None:
    """LRN-19: in [0, 1], for whatever is typed."""
    found = factor(one, other, cosine)
    assert 0.0 <= found <= 1.0
    assert found == factor(other, one, cosine)


@given(words)
def test_a_question_does_not_contradict_itself(text: str) -> None:
    """LRN-19."""
    assert not Question(text).contradicts(Question(text.upper()))


def test_far_questions_do_not_count() -> None:
    """LRN-19: a steep prior: nothing below the least cosine, and more the nearer."""
    one, other = "what happens when the broker dies while it writes", "the broker dies while it writes"
    ours, theirs, factors = Question(one), Question(other), Factors.of(PRIOR)
    found = [factors.factor(ours, theirs, likeness) for likeness in (0.3, *PRIOR.likeness, 1.3)]
    assert found == [0.0, *PRIOR.factors, PRIOR.factors[-1]]
    assert found == sorted(found)


@given(st.lists(words, min_size=1, max_size=8), st.integers(0, 7), st.integers(0, 9))
def test_likeness_to_all_past_questions_is_that_to_each(asked: list[str], at: int, seed: int) -> None:
    """LRN-19: to the bit."""
    past = [Question(each) for each in asked]
    likeness, ours = QuestionSimilarity(past, PRIOR.overlap), past[at % len(past)]
    cosines = np.random.default_rng(seed).uniform(-1.0, 1.0, len(past)).astype(np.float32)
    one_by_one = [likeness.of(ours, theirs, float(cosine)) for theirs, cosine in zip(past, cosines, strict=True)]
    assert likeness.of_past(ours, cosines).tolist() == one_by_one


def test_words_that_all_questions_hold_make_none_alike() -> None:
    """LRN-19: where everybody asks about the same few, a name that two questions share says little."""
    past = [Question(f"what did ada {word} with her dogs") for word in ("build", "plant", "paint", "cook")]
    likeness = QuestionSimilarity(past, PRIOR.overlap)
    one, other = past[0], Question("what did ada cook with her friends")
    rare = Question("something to build")
    assert likeness.of(one, other, CLOSE) < likeness.of(one, rare, CLOSE) <= CLOSE + PRIOR.overlap
    assert likeness.of(one, one, CLOSE) == CLOSE + PRIOR.overlap
    assert QuestionSimilarity([], PRIOR.overlap).of(Question(""), Question("the"), CLOSE) == CLOSE


def test_factors_follow_what_people_hold_under_near_questions() -> None:
    """LRN-19: where one content is right under both, near questions count more; where they disagree, less."""
    pairs = [(f"big file {letter * 4}", f"{letter * 4} of a file that is big") for letter in "bcdfghjklm"]

    def same_words(*, agree: bool) -> float:
        said = [
            each
            for one, other in pairs
            for each in (a_word(one.ljust(64, "."), one, "ada"), a_word(one.ljust(64, "."), other, "bob", good=agree))
        ]
        precedents = precedents_of(*said)
        asked = [
            PastQuestion(question_of(text), Question(text), np.array([1.0], dtype=np.float32))
            for pair in pairs
            for text in pair
        ]
        likeness = QuestionSimilarity([each.wording for each in asked], PRIOR.overlap)
        return learned_factors(asked, likeness, precedents, PRIOR).same_words

    assert same_words(agree=False) < PRIOR.same_words <= same_words(agree=True) <= 1.0


def test_what_one_says_of_everything_tells_little_of_nearness() -> None:
    """LRN-20, FBK-13: pairs count what the words behind them do; a flood moved every factor to 1 or to nothing."""
    texts = [f"big file {letter}{other}" for letter in "bcdfghjklm" for other in "npqrstvwxz"]
    texts += [f"{text.split()[-1]} of a file that is big" for text in texts]
    asked = [PastQuestion(question_of(text), Question(text), np.array([1.0], dtype=np.float32)) for text in texts]
    likeness = QuestionSimilarity([each.wording for each in asked], PRIOR.overlap)

    def same_words(*said: Evidence) -> float:
        return learned_factors(asked, likeness, precedents_of(*said, *others), PRIOR).same_words

    others = [a_word("f".ljust(64, "."), f"what does {who} do", who) for who in ("bob", "cyd")]
    flood = [
        a_word(text.split()[-1].ljust(64, "."), text, "mallory", good=at < 100) for at, text in enumerate(texts[:100])
    ]
    flood += [a_word(text.split()[0].ljust(64, "."), text, "mallory", good=False) for text in texts[100:]]
    assert same_words(*flood) == pytest.approx(PRIOR.same_words, abs=0.01)


def test_near_questions_with_other_answers_count_less() -> None:
    """LRN-19: where different contents answer a question and the one nearest to it, nearness says little here."""
    texts = [
        f"what did ada {verb} with her dogs in {month}" for verb in ("build", "plant") for month in ("may", "june")
    ]
    said = [a_word(f"{at}".ljust(64, "."), text, "ada") for at, text in enumerate(texts * 5)]
    asked = [
        PastQuestion(question_of(text), Question(text), np.array([1.0, at / 10], dtype=np.float32))
        for at, text in enumerate(texts)
    ]
    factors = learned_factors(asked, QuestionSimilarity([], PRIOR.overlap), precedents_of(*said), PRIOR)
    assert sum(factors.by_similarity) < sum(PRIOR.factors)


ENCODER = WordEncoder(["delete", "remove", "cache", "file", "big", "index"])


def near(text: str, *asked: str, private: str = "", vector: bool = True) -> dict[str, float]:
    said = [a_word("a" * 64, each, "ada", text=each != private) for each in asked]
    (own,) = ENCODER.encode([text])
    index = QuestionIndex(ENCODER.encode)
    return index.near(text, own if vector else None, precedents_of(*said), PRIOR)


def test_past_questions_are_found_by_meaning() -> None:
    """LRN-19: the question itself in full, others as far as they ask the same, the rest not at all."""
    found = near("delete big file", "delete big file", "remove big file", "big index cache")
    expected = {question_of("delete big file"): 1.0, question_of("remove big file"): PRIOR.same_words}
    assert found == pytest.approx(expected, abs=0.01)  # moved a little by what people hold under both
    assert near("delete big file") == {}


def test_private_questions_count_for_themselves_alone() -> None:
    """LRN-19: without their text nobody knows what they are near to."""
    assert near("delete big file", "remove big file", private="remove big file") == {}
    own = question_of("remove big file")
    assert near("Remove  big file", "remove big file", private="remove big file") == {own: 1.0}
    assert near("remove big file", "remove big file", "delete big file", vector=False) == {own: 1.0}


def test_each_text_is_encoded_once() -> None:
    """LRN-19: what one more person says costs one more vector at most."""
    encoded: list[str] = []

    def encode(texts: list[str]) -> np.ndarray:
        encoded.extend(texts)
        return ENCODER.encode(texts)

    index = QuestionIndex(encode)  # type: ignore[arg-type]
    (vector,) = ENCODER.encode(["big file"])
    first = a_word("a" * 64, "big cache", "ada")
    for said in ((first,), (first, a_word("a" * 64, "big index", "bob"))):
        for precedents in [precedents_of(*said)] * 2:
            index.near("big file", vector, precedents, PRIOR)
    assert encoded == ["big cache", "big index"]
