"""FBK-1, FBK-7: what users report changes what is believed: through a broker, an updater and the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from tests.support.answers import a_query, an_answer
from tests.support.candidate_tables import a_context, a_hit, a_table
from tests.support.feedback_events import HASHES
from tests.support.retrieval_fakes import a_place, settings
from weft.catalog.catalog import Catalog
from weft.cli.commands import update
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope, Signal
from weft.feedback.events.producer import FeedbackProducer
from weft.learning.beliefs import Beliefs, read_beliefs
from weft.retrieval.ranking.signals import with_quality
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.settings import Settings, load_settings

CODE, ADA = Domain.CODE, "ada"
Send = Callable[[FeedbackProducer], None]


class World:
    """A topic of its own, a store of its own, and what is believed after each round of events."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        create_topic(settings.kafka, settings.feedback.topic, partitions=4, replication=1)
        self.producer = FeedbackProducer.connect(settings.kafka, settings.feedback)

    def believed_after(self, *rounds: Send) -> Beliefs:
        """Beliefs as searches read them, once all that was sent is consumed."""
        for send in rounds:
            send(self.producer)
        self.producer.flush()
        standings = update.run(self.settings, local=True, until_caught_up=True)
        assert all(each.report.balanced and not each.report.dead_lettered for each in standings)
        evidence = Catalog(Path(self.settings.storage.root)).live.evidence()
        return read_beliefs(self.settings.priors, evidence, now=time.time())


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def world(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[World]:
    assignments = [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={tmp_path}", f"feedback.topic={tmp_path.name}"]
    # Nobody is new: what is tested is what events do, not who may say how much.
    made = World(load_settings([], [*assignments, "feedback.limits.newcomers=100000"], environment={}))
    yield made
    made.producer.close()


def reviewed(confidence: float, *, good: bool, times: int, agent: str = "coder") -> Send:
    def send(producer: FeedbackProducer) -> None:
        for number in range(times):  # by many: one alone may move parameters by some observations a day only
            reviewer = f"reviewer-{number}"
            producer.review("s1", CODE, confidence=confidence, good=good, principal=reviewer, agent=agent)

    return send


def test_reviews_move_the_threshold(world: World) -> None:
    """FBK-1 review, LRN-7: confident decisions that turn out bad raise τ* of their domain, and of others by less."""
    before = world.believed_after()
    after = world.believed_after(reviewed(0.7, good=False, times=20), reviewed(0.95, good=True, times=20))
    scope = Scope(CODE, agent="coder")
    assert after.reported.threshold(CODE).mean > before.reported.threshold(CODE).mean + 0.1
    assert after.reported.acting_threshold(scope) > before.reported.acting_threshold(scope) + 0.1
    moved = {
        domain: after.reported.threshold(domain).mean - before.reported.threshold(domain).mean
        for domain in (CODE, Domain.ACADEMIC)
    }
    assert 0.0 < moved[Domain.ACADEMIC] < moved[CODE]
    back = world.believed_after(reviewed(0.3, good=True, times=40))
    assert back.reported.threshold(CODE).mean < after.reported.threshold(CODE).mean - 0.1


def test_accuracy_moves_freshness(world: World) -> None:
    """FBK-1 accuracy, LRN-6: what was found stale at 100 hours makes items of that age less fresh in their domain.

    Others hear of it, too, by less.
    """

    def found(accurate: bool) -> Send:
        def send(producer: FeedbackProducer) -> None:
            for user in range(20):
                of = {"principal": f"user {user}", "content_hash": HASHES[1]}
                producer.accuracy("s1", CODE, age_hours=100.0, accurate=accurate, **of)

        return send

    before = world.believed_after()
    stale = world.believed_after(found(False))
    assert stale.freshness(CODE, 100.0) < before.freshness(CODE, 100.0) - 0.1
    left = {
        domain: stale.freshness(domain, 100.0) / before.freshness(domain, 100.0) for domain in (CODE, Domain.HISTORY)
    }
    assert left[CODE] < left[Domain.HISTORY] < 1.0
    held = world.believed_after(found(True), found(True))
    assert held.freshness(CODE, 100.0) > stale.freshness(CODE, 100.0) + 0.1


def test_accuracy_of_a_content_moves_that_content(world: World) -> None:
    """LRN-6: whoever looked last says whether it still holds, each once, and its age counts from then."""

    def looked(accurate: bool, *users: str) -> Send:
        def send(producer: FeedbackProducer) -> None:
            for user in users:
                of = {"principal": user, "content_hash": HASHES[1]}
                producer.accuracy("s1", CODE, age_hours=100.0, accurate=accurate, **of)

        return send

    nobody = world.believed_after().checks.of(HASHES)
    assert nobody.validated_at.max() == -np.inf
    stale = world.believed_after(looked(False, "ada", "ben", "ben")).checks.of(HASHES)
    assert stale.inaccurate.tolist() == pytest.approx([0.0, 2.0, *[0.0] * (len(HASHES) - 2)])
    held = world.believed_after(looked(True, "cyd", "cyd")).checks.of(HASHES)
    assert (held.accurate[1], held.inaccurate[1]) == pytest.approx((1.0, 2.0))
    assert np.flatnonzero(held.validated_at > 0.0).tolist() == [1]


def test_model_quality_moves_the_turn_of_hand_off(world: World) -> None:
    """FBK-1 model_quality, LRN-8: a model that was seen to tire is advised to hand over where it did."""

    def tiring(producer: FeedbackProducer) -> None:
        for turn in range(1, 41):
            producer.model_quality(
                "s1", "small", turn=turn, quality=0.9 if turn < 20 else 0.3, principal=f"user {turn}"
            )

    before, after = world.believed_after(), world.believed_after(tiring)
    assert before.reported.quality("small").hand_off(0.6, horizon=60) is None
    turn = after.reported.quality("small").hand_off(0.6, horizon=60)
    assert turn is not None
    assert 15 <= turn <= 25
    assert after.reported.quality("large").hand_off(0.6, horizon=60) is None


def test_trust_moves_the_signal_that_searches_read(world: World) -> None:
    """FBK-1 trust, LRN-10: refuted blogs are trusted less, by the model they failed most of all; papers are not."""

    def verified(producer: FeedbackProducer) -> None:
        for user in range(20):  # what one of them may say in a day is limited
            producer.trust("s1", "blog", verified=False, principal=f"user {user}", model="small")
            producer.trust("s1", "paper", verified=True, principal=f"user {user}", model="small")

    def trusted(beliefs: Beliefs, source: str, model: str = "small") -> float:
        place = a_place("a.md", "text", metadata={"source_type": source})
        context = a_context(a_query(model=model), beliefs=beliefs, now=time.time())
        found = a_table(a_hit("text", {}, places=(place,)), context=context)
        return float(with_quality(found, settings().quality).signal(Signal.TRUST)[0])

    before, after = world.believed_after(), world.believed_after(verified)
    assert trusted(before, "blog") == trusted(before, "paper") == 0.5  # the level of such a place is 50
    assert trusted(after, "blog") < 0.3
    assert trusted(after, "blog") <= trusted(after, "blog", model="large")
    assert trusted(after, "paper") > 0.5


def test_outcomes_move_the_belief_in_a_lesson(world: World) -> None:
    """FBK-1 lesson_outcome, LRN-4: success and confirmation for it, failure and contradiction against it."""

    def told(producer: FeedbackProducer) -> None:
        for outcome in ("success", "success", "confirmation", "failure"):
            producer.lesson_outcome("s1", "testing-00012", outcome, principal=ADA)
        producer.lesson_outcome("s1", "testing-00013", "contradiction", principal=ADA)

    lessons = world.believed_after(told).lessons
    good, bad = lessons.of("testing-00012"), lessons.of("testing-00013")
    assert good is not None
    assert bad is not None
    assert list(good.counts.values()) == [2, 1, 1, 0]
    assert list(bad.counts.values()) == [0, 0, 0, 1]
    assert bad.p_good < bad.prior
    assert bad.p_good < good.p_good


def test_uses_and_outcomes_of_an_answer_move_what_is_known_of_its_contents(world: World) -> None:
    """FBK-1, FBK-6: each type of feedback moves the score of the content it is about, as far as it weighs."""
    query, (kept, left_out) = a_query(), HASHES[1:3]

    def answered(producer: FeedbackProducer) -> None:
        producer.emit(an_answer(query))
        producer.retrieval(query, [left_out])
        producer.inclusion(query, [kept])

    def used(producer: FeedbackProducer) -> None:
        producer.reference(query, content_hashes=[kept], match=0.5)

    def chosen(producer: FeedbackProducer) -> None:
        producer.selection(query, kept, 1)
        producer.explicit(query, -1.0, content_hash=left_out)

    def served(producer: FeedbackProducer) -> None:
        producer.success(query)

    rules, contents = world.settings.feedback.credit, [ContentHash(kept), ContentHash(left_out)]
    shown = world.believed_after(answered).content_signals(contents)
    assert shown.positive == pytest.approx([rules.included, 0.0])
    assert shown.negative == pytest.approx([0.0, rules.retrieved])
    assert (shown.inclusion > 0.0).tolist() == [True, False]
    assert (shown.retrieval > 0.0).tolist() == [False, True]
    then = world.believed_after(used).content_signals(contents)
    assert then.positive == pytest.approx([rules.included + 0.5 * rules.referenced, 0.0])
    assert then.citations.tolist() == [0.5, 0.0]
    last = world.believed_after(chosen).content_signals(contents)
    assert last.usage[0] > then.usage[0] > shown.usage[0] > 0.5
    assert last.usage[1] < then.usage[1]
    assert (last.deviation < shown.deviation).all()
    assert np.unique(last.last_feedback).tolist() == [int(time.time() // 86_400)]
    # All of the success is the included one's; one principal counts once.
    assert rules.success > world.settings.priors.usage.principal_cap - last.positive[0] > 0.0
    assert world.believed_after(served).content_signals(contents).positive == pytest.approx([1.0, 0.0])


def test_a_selection_from_far_down_teaches_by_which_words_to_find_it(world: World) -> None:
    """RET-17: through the broker and the updater; on trial at first, and in force when two agreed for seven days."""
    answers = [
        an_answer(replace(a_query(), text="where is the checkpoint flushed", query_id=f"q-{who}", principal=who))
        for who in ("ada", "bob")
    ]
    low = [structs.replace(result, rank=result.rank + 4) for result in answers[0].results]

    def picked(producer: FeedbackProducer) -> None:
        for answer in answers:
            producer.emit(replace(answer, results=tuple(low)))
            producer.selection(answer.query, low[0].content_hash, low[0].rank)

    believed = world.believed_after(picked)
    taught = believed.triggers.of(["checkpoint", "flushed", "where"])
    assert [(each.term, each.content_hash, each.on_trial) for each in taught] == [
        ("checkpoint", low[0].content_hash, True),
        ("flushed", low[0].content_hash, True),
    ]
    evidence = Catalog(Path(world.settings.storage.root)).live.evidence()
    trial_days = world.settings.priors.triggers.trial_days
    for days, on_trial in ((trial_days - 1, True), (trial_days, False)):
        later = read_beliefs(world.settings.priors, evidence, now=time.time() + 86_400 * days)
        assert [each.on_trial for each in later.triggers.of(["checkpoint"])] == [on_trial]
