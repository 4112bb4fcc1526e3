"""FBK-13: a thousand invented names move what others are shown no more than three known people, like for like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from tests.support.feedback_events import NOON, RULES, rules
from tests.support.learner import Learner, learned
from tests.support.parts import a_document
from tests.support.retrieval_fakes import a_query
from tests.support.small_store import DirectionEncoder, published_store
from weft.domain.events import AnyEvent, Correction, Explicit
from weft.domain.ids import QueryId, content_hash
from weft.domain.ranking import Answer, RankedResult
from weft.domain.reasons import reason
from weft.domain.signatures import SigningKey
from weft.feedback.events.authenticity import signed, token_of
from weft.feedback.events.codec import encode
from weft.feedback.events.producer import impression_of
from weft.feedback.settings import FeedbackSettings
from weft.learning.evidence import Evidence
from weft.retrieval.searcher import Searcher
from weft.settings import load_settings

DAY = 86_400_000
QUESTION, SPAM = "locks are released when", "buy.md"
KNOWN, NAMES = ("ada", "bob", "cyd"), [f"invented {number}" for number in range(1_000)]
WORDS = "locks are released at once when the writer of the queue has left"
DOCUMENTS = [
    *(a_document(f"guide-{size}.md", f"{' '.join(WORDS.split()[:size])}, says guide {size}") for size in range(3, 13)),
    a_document(SPAM, "when you buy here, all is good", "buy here now", "here you buy"),
]
IDLE = ("please", "so", "also", "just", "then", "the", "a", "this", "that", "those")
SECRET = "a key that only services and updaters share"
SIGNED = rules(signing_key=SECRET)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searches]:
    folder = tmp_path_factory.mktemp("store")
    settings = load_settings([], [f"storage.root={folder}", 'retrieval.channels=["dense", "lexical"]'], environment={})
    learner = Learner(settings, published_store(folder, DOCUMENTS), now=NOON / 1000)
    with Searcher(learner, DirectionEncoder(), settings.retrieval, clock=lambda: NOON / 1000) as searcher:
        yield Searches(searcher, learner, tmp_path_factory)


class Searches:
    """What a stranger is shown after events were learned from."""

    def __init__(self, searcher: Searcher, learner: Learner, folders: pytest.TempPathFactory) -> None:
        self._searcher, self._learner, self._folders = searcher, learner, folders

    def learn(self, events: Sequence[AnyEvent], settings: FeedbackSettings = RULES) -> None:
        """Everything is said today, but for a word of each known one, of the day before."""
        before = [pointing(who, f"what was {who} asking", "guide-5.md", ts=NOON - DAY) for who in KNOWN]
        values = [wire(event, settings.key) for event in (*before, *events)]
        self.evidence(learned(self._folders.mktemp("updater"), values, settings))

    def evidence(self, evidence: Evidence) -> None:
        self._learner.evidence = evidence
        self._searcher.refresh()

    def answer(self, question: str = QUESTION) -> Answer:
        return self._searcher.search(a_query(question, k=len(DOCUMENTS), principal="stranger"))

    def spam(self, question: str = QUESTION) -> RankedResult | None:
        return next((each for each in self.answer(question).results if each.uris[0] == SPAM), None)


def score(found: RankedResult | None) -> float:
    return 0.0 if found is None else found.score


def wire(event: AnyEvent, key: SigningKey | None) -> bytes:
    """An event as the service that has the key sends it for its user."""
    if key is None:
        return encode(event)
    if event.__struct_config__.tag == "impression":
        return signed(encode(event), key)
    values = {name: getattr(event, name) for name in event.__struct_fields__}
    return encode(type(event)(**{**values, "token": token_of(event, key)}))


def facts(who: str, what: str, ts: int) -> Mapping[str, object]:
    return {"event_id": content_hash(f"{who}: {what}"), "ts": ts, "session_id": f"session of {who}", "principal": who}


def pointing(who: str, question: str, uri: str, *, right: bool = True, ts: int = NOON) -> Correction:
    of = facts(who, f"{question} {uri} {right}", ts)
    return Correction(**of, query_id=None, question=question, content_hash=None, uri=uri, right=right)  # type: ignore[arg-type]


def verdicts(names: Sequence[str], shown: Answer, signal: float) -> Iterator[AnyEvent]:
    """Whoever is shown the page calls its last result right, or its first one wrong."""
    judged = shown.results[-1 if signal > 0.0 else 0]
    for who in names:
        query = replace(shown.query, query_id=QueryId(f"query of {who}"), principal=who, session_id=None)
        of = {**facts(who, "shown", NOON), "session_id": query.query_id}
        yield impression_of(replace(shown, query=query), **of)  # type: ignore[arg-type]
        said = {**of, "event_id": f"{who}: said"}
        yield Explicit(**said, query_id=query.query_id, content_hash=judged.content_hash, signal=signal)  # type: ignore[arg-type]


def asked(number: int) -> str:
    """The question in other words: only idle ones differ."""
    return " ".join([QUESTION, *(IDLE[number // len(IDLE) ** place % len(IDLE)] for place in range(3))])


@pytest.mark.parametrize("settings", [RULES, SIGNED], ids=["unsigned", "signed"])
@pytest.mark.parametrize(
    ("place", "counted"),
    [
        (lambda number: (QUESTION, SPAM), "counted as three people at most"),
        (lambda number: (QUESTION, f"{SPAM}#L1-L{2 + number}"), "which hardly counts"),
        (lambda number: (asked(number), SPAM), "which hardly counts"),
        (lambda number: (asked(number % 25), SPAM), "counted as three people at most"),
        (lambda number: (asked(number % 40), f"{SPAM}#L1-L{2 + number % 7}"), "counted as one person at most"),
    ],
    ids=["at its page", "each at other lines", "each in other words", "in some other words", "in both"],
)
def test_invented_names_that_point_lift_a_page_no_higher(people: Searches, place, counted, settings) -> None:  # type: ignore[no-untyped-def]
    """FBK-13: they had reached 1.39 where three known ones reached .92, by naming other lines of the same page."""
    said = dict.fromkeys(place(number) for number in range(len(NAMES)))
    people.learn([pointing(who, *each) for who in KNOWN for each in said], settings)
    three = people.spam()
    people.learn([pointing(who, *place(number)) for number, who in enumerate(NAMES)], settings)
    crowd = people.spam()
    assert three is not None
    assert crowd is not None
    assert 0.0 < crowd.score <= three.score + 1e-9
    assert reason(three).startswith("three people called this right for")
    assert "1,000 new names called this right" in reason(crowd)
    assert f", {counted}; before that" in reason(crowd)


@pytest.mark.parametrize("settings", [RULES, SIGNED], ids=["unsigned", "signed"])
@pytest.mark.parametrize("signal", [1.0, -1.0])
def test_verdicts_of_invented_names_move_a_result_no_further(
    people: Searches, signal: float, settings: FeedbackSettings
) -> None:
    """FBK-13: praise of the last result, and blame of the first."""
    people.evidence(Evidence())
    shown = people.answer()
    moved = []
    for names in (KNOWN, NAMES):
        people.learn(list(verdicts(names, shown, signal)), settings)
        of = shown.results[-1 if signal > 0.0 else 0].content_hash
        parts = next(each for each in people.answer().results if each.content_hash == of).contributions
        moved.append(next(part.amount for part in parts if part.name == "question"))
    three, crowd = moved
    assert three * signal > 0.0
    assert 0.0 <= crowd * signal <= three * signal + 1e-9


@pytest.mark.parametrize("settings", [RULES, SIGNED], ids=["unsigned", "signed"])
def test_a_name_for_each_of_a_thousand_questions_is_heard_like_three_who_share_them(
    people: Searches, settings: FeedbackSettings
) -> None:
    """FBK-13: a crowd has what three known ones may say a day, and the page is lifted under none of the questions."""
    questions = [f"{QUESTION} in chapter {number}" for number in range(len(NAMES))]
    shared = [pointing(KNOWN[number % len(KNOWN)], each, SPAM) for number, each in enumerate(questions)]
    people.learn(shared, settings)
    three = [score(people.spam(each)) for each in questions[:5]]
    people.learn([pointing(who, each, SPAM) for who, each in zip(NAMES, questions, strict=True)], settings)
    crowd = [score(people.spam(each)) for each in questions[:5]]
    assert crowd == pytest.approx(three, rel=1e-3)
    assert {people.answer(each).results[0].uris[0] == SPAM for each in questions[:5]} == {False}


def test_invented_names_take_nothing_from_known_ones(people: Searches) -> None:
    """FBK-13: a crowd that calls wrong what three people call right takes at most three words from it."""
    praise = [pointing(who, QUESTION, SPAM) for who in KNOWN]
    people.learn([*praise, *(pointing(who, QUESTION, SPAM, right=False) for who in ("dan", "eve", "fay"))])
    three = people.spam()
    people.learn([*praise, *(pointing(who, QUESTION, SPAM, right=False) for who in NAMES)])
    crowd = people.spam()
    assert score(crowd) >= score(three) - 1e-9
    if crowd is not None:
        assert reason(crowd).startswith("three people called this right for this question; 1,000 new names called")
