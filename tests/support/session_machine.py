"""Sessions under crashes: a log, a store that reads it, searches beside them, and a model of plain dicts."""

from __future__ import annotations

import contextlib
import copy
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.feedback_events import HASHES, NOON, explicit, impression, rules, session, shown
from tests.support.feedback_source import Killed
from tests.support.session_model import OPEN, Drawn, Masses, Model, ModelEvent
from tests.support.session_store import FACTS, Partition
from weft.domain.events import AnyEvent
from weft.domain.ids import SessionId
from weft.feedback.events.codec import encode
from weft.feedback.fold.batch import arrived
from weft.feedback.fold.updates import fold
from weft.feedback.pipeline import consume
from weft.feedback.publish.snapshot import Forks
from weft.feedback.settings import milliseconds
from weft.feedback.store.overlays import PENDING, SETTLED, overlay_in, sessions_in
from weft.feedback.store.tables import evidence_in
from weft.learning.evidence import Evidence
from weft.learning.observe.verdicts import is_good
from weft.learning.parameters import SURPLUS
from weft.runtime.kafka.log import Record

SETTINGS = rules(
    time__clock_step_s=10.0**9,
    time__window_s=10.0**9,
    time__session_idle_s=600.0,
    time__session_suspended_s=1_200.0,
    time__session_remembered_s=10.0**9,
    limits__principal_daily=2.0,  # one principal says everything: soon more than it may
)
PHASES = ("start", "suspend", "resume", "complete", "complete", "complete", "abandon", "unlearn")
THEN = st.sampled_from(("nothing", "commit", "publish", "publish"))
names = st.sampled_from(("ada", "bob", "cyd"))


def masses(evidence: Evidence) -> Masses:
    """Evidence of use by content and kind, all days together; what the model speaks about."""
    found: Masses = Counter()
    for key, micro in evidence.usage.items():
        found[key.content_hash, "positive" if is_good(key.bin) else "negative"] += micro
    assert sum(drawn(evidence).values()) == sum(found.values())  # what was learned of scores is of the same outcomes
    return found


def drawn(evidence: Evidence) -> Drawn:
    """Evidence of scores by whether it counts and what was said, all days together."""
    found: Drawn = Counter()
    for key, micro in evidence.counts.items():
        if key.parameter.removeprefix(SURPLUS) == "relevance":
            found[not key.parameter.startswith(SURPLUS), key.bin.rpartition(".")[2]] += micro
    return found


class SessionMachine(RuleBasedStateMachine):
    """Producers write to `log`; an updater reads it into a store, dies, and is started again; searches read files."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="weft-sessions-"))
        self.partition = Partition(self.folder, SETTINGS)
        self.log: list[tuple[AnyEvent, ModelEvent]] = []
        time, limits = SETTINGS.time, SETTINGS.limits
        self.model = Model(
            milliseconds(time.session_idle_s),
            milliseconds(time.session_suspended_s),
            daily=limits.daily_micro,
        )
        self.now = NOON
        self.queries = 0
        self.published: tuple[Masses, dict[str, tuple[Masses, Masses]]] = (Counter(), {})
        self.bases: dict[tuple[str, int, int], Masses] = {}

    @initialize()
    def publish_first(self) -> None:
        self.publish()

    # Producers; what they sent is read at once more often than not, since a search can tell nothing before.

    @rule(
        name=names, signal=st.sampled_from([1.0, -1.0, 0.3]), content=st.integers(1, 3), early=st.booleans(), then=THEN
    )
    def speak(self, name: str, signal: float, content: int, early: bool, then: str) -> None:
        """An answer and a verdict on it, in either order."""
        self.queries += 1
        query = f"q{self.queries}"
        answer = impression(query, [shown(content)], **self.stamp(name))
        asked = ModelEvent("impression", answer.event_id, name, self.now, query)
        verdict = explicit(signal, content, query_id=query, **self.stamp(name))
        judged = ModelEvent("explicit", verdict.event_id, name, self.now, query, HASHES[content], signal)
        pair: list[tuple[AnyEvent, ModelEvent]] = [(answer, asked), (verdict, judged)]
        self.log += reversed(pair) if early else pair
        self.read_on(then)

    @rule(name=names, phase=st.sampled_from(PHASES), then=THEN)
    def turn(self, name: str, phase: str, then: str) -> None:
        event = session(phase, **self.stamp(name))
        self.log.append((event, ModelEvent(phase, event.event_id, name, self.now)))
        self.read_on(then)

    @rule(name=names, signal=st.sampled_from([1.0, -1.0]), content=st.integers(1, 3), then=THEN)
    def begin(self, name: str, signal: float, content: int, then: str) -> None:
        """A session starts, and learns something."""
        self.turn(name, "start", "nothing")
        self.speak(name, signal, content, False, then)

    @rule(name=names, phases=st.lists(st.sampled_from(("start", *PHASES)), min_size=2, max_size=5), then=THEN)
    def burst(self, name: str, phases: list[str], then: str) -> None:
        """Several lives of a session in one batch, and something learned in each."""
        for phase in phases:
            self.turn(name, phase, "nothing")
            self.speak(name, 1.0, 1, False, "nothing")
        self.read_on(then)

    @rule(back=st.integers(1, 8), then=THEN)
    def retry(self, back: int, then: str) -> None:
        """A producer that was not answered sends an event once more."""
        if len(self.log) >= back:
            self.log.append(self.log[-back])
        self.read_on(then)

    @rule(seconds=st.sampled_from([1, 300, 601, 1_201]), name=names)
    def wait(self, seconds: int, name: str) -> None:
        """Silence, until somebody says something."""
        self.now += seconds * 1_000
        self.turn(name, "suspend", "commit")

    # The updater.

    @rule(size=st.integers(1, 12))
    def commit(self, size: int) -> None:
        batch = self.batch(size)
        if batch:
            consume(batch, FACTS, self.partition.state, SETTINGS)
            self.follow(len(batch))

    @rule(size=st.integers(1, 12))
    def crash_inside_a_commit(self, size: int) -> None:
        batch = self.batch(size)
        if batch:
            with contextlib.suppress(Killed):
                self.die_inside(batch)
        self.recover()

    @rule()
    def recover(self) -> None:
        """The process ends here, and another one takes the partition over."""
        self.partition.state.close()
        self.partition.open()

    @rule()
    def publish(self) -> None:
        self.fork()
        self.partition.publish()
        open_sessions = {
            name: (self.bases[name, one.started, one.settled_events], copy.copy(one.pending))
            for name, one in self.model.sessions.items()
            if one.phase in OPEN
        }
        self.published = (copy.copy(self.model.shared), open_sessions)
        self.query()

    @rule()
    def crash_inside_a_publish(self) -> None:
        """After the sessions got what they fork from, before anybody was told."""
        with self.partition.catalog.bases.writing(self.partition.state.rules.patience):
            Forks(self.partition.catalog, self.partition.state).follow()
        self.fork()
        self.recover()

    # Searches, and what must hold.

    @rule()
    def query(self) -> None:
        """A search of a session reads base at its fork + its overlay; every other one reads what all share."""
        catalog = self.partition.catalog
        shared, open_sessions = self.published
        assert masses(catalog.live.evidence()) == +shared
        listing = catalog.live.listing()
        assert set(listing) == set(open_sessions)
        for name, (base, pending) in open_sessions.items():
            found = listing.find(SessionId(name))
            assert found is not None
            assert masses(catalog.bases.read(found.base).evidence) == +base
            assert masses(found.overlay) == pending

    @invariant()
    def state_equals_model(self) -> None:
        state, model, report = self.partition.state, self.model, self.partition.report
        assert masses(state.read(evidence_in)) == +model.shared
        assert drawn(state.read(evidence_in)) == +model.drawn()
        assert {life.session: life.phase.value for life in state.read(sessions_in)} == {
            name: one.phase for name, one in model.sessions.items()
        }
        for name, one in model.sessions.items():
            assert masses(state.read(overlay_in, name, PENDING)) == one.pending
            assert masses(state.read(overlay_in, name, SETTLED)) == one.settled
            assert drawn(state.read(overlay_in, name, PENDING)) == +one.drawn()
        assert report.balanced
        assert (report.version, report.dropped, report.duplicate) == (model.version, model.dropped, model.duplicates)

    def teardown(self) -> None:
        """What is left of the log comes to the same as the whole of it read at once by somebody else."""
        self.commit(len(self.log))
        self.state_equals_model()
        once = Partition(self.folder / "once", SETTINGS)
        once.feed([event for event, _ in self.log], cuts=False) if self.log else None
        assert once.shared == self.partition.shared
        assert once.state.read(sessions_in) == self.partition.state.read(sessions_in)
        once.state.close()
        self.partition.state.close()
        shutil.rmtree(self.folder)

    def read_on(self, then: str) -> None:
        if then != "nothing":
            self.commit(len(self.log))
        if then == "publish":
            self.publish()

    def stamp(self, name: str) -> dict[str, object]:
        self.now += 1
        return {"event_id": f"e{self.now}", "session_id": name, "ts": self.now}

    def batch(self, size: int) -> list[Record]:
        first = self.partition.report.next_offset
        return [
            Record(0, first + index, event.ts, b"key", encode(event))
            for index, (event, _) in enumerate(self.log[first : first + size])
        ]

    def follow(self, size: int) -> None:
        end = self.partition.report.next_offset
        for _, event in self.log[end - size : end]:
            self.model.apply(event)
        self.model.settle_clock()

    def fork(self) -> None:
        for name, one in self.model.sessions.items():
            if one.phase in OPEN:
                self.bases.setdefault((name, one.started, one.settled_events), self.published[0])

    def die_inside(self, batch: list[Record]) -> None:
        arrivals = arrived(batch, max_bytes=SETTINGS.limits.event_bytes)
        with self.partition.state.batch(FACTS, batch[0].offset, arrivals) as transaction:
            transaction.commit(fold(transaction.stored, arrivals, SETTINGS))
            raise Killed
