"""Dead letters on their way to a topic of their own, where others can watch them (FBK-3)."""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from weft.domain.errors import BrokerUnavailableError, ConfigurationError, InvalidEventError, WeftError
from weft.feedback.events.codec import decode
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.state import PartitionState
from weft.feedback.store.tables import StoredDeadLetter, dead_letters_in, write_republished

_log = logging.getLogger(__name__)

_HELP: Mapping[type[WeftError], str] = {
    InvalidEventError: "raise max.message.bytes of the topic",
    ConfigurationError: "grant Describe and Write on the topic, and Create where it is missing",
    BrokerUnavailableError: "look whether the topic has a leader",
}

Aside = Callable[[Callable[[], None]], None]
"""Runs work beside its caller, which does not wait for it."""


class DeadLetterSink(Protocol):
    """A topic that takes records; one thread at a time calls it."""

    def deliver(self, records: Sequence[tuple[bytes, bytes]]) -> Sequence[WeftError | None]:
        """Send keys and values and wait for each: None where it was acknowledged, or else why it was not."""

    def close(self) -> int:
        """Give the connection back; how many records were not acknowledged."""


@dataclass(slots=True)
class _Attempt:
    """Dead letters by partition, and what became of them once `ended` is set."""

    letters: Mapping[int, tuple[str, Sequence[StoredDeadLetter]]]
    published: dict[int, int] = field(default_factory=dict)  # before which offset all are
    refusal: WeftError | None = None
    ended: threading.Event = field(default_factory=threading.Event)


def in_a_thread(work: Callable[[], None]) -> None:
    """Run work in a thread that does not outlive the process."""
    threading.Thread(target=work, name="dead letters", daemon=True).start()


class Republisher:
    """Publishes what waits in the stores of one updater, one attempt at a time."""

    def __init__(
        self,
        connect: Callable[[], DeadLetterSink],
        rules: FeedbackSettings,
        *,
        most_bytes: int,
        aside: Aside = in_a_thread,
    ) -> None:
        self._connect = connect
        self._rules = rules
        self._most_bytes = most_bytes
        self._aside = aside
        self._outlet: DeadLetterSink | None = None  # of the attempt under way, where there is one
        self._attempt: _Attempt | None = None
        self._pause_s = 0.0
        self._try_at = float("-inf")
        self._closed = False
        self.refusal: WeftError | None = None

    def check(self, states: Mapping[int, PartitionState], now: float) -> None:
        """Note what the last attempt came to, and begin another one where dead letters wait; never waits itself."""
        if self._attempt is not None and self._attempt.ended.is_set():
            attempt, self._attempt = self._attempt, None
            for partition, offset in attempt.published.items():
                states[partition].write(write_republished, offset)
            self._judge(attempt.refusal, now)
        if self._attempt is None and now >= self._try_at:
            self._begin(states)

    def close(self) -> None:
        """Give the connection back; an attempt under way does so at its end."""
        self._closed = True
        if self._attempt is None or self._attempt.ended.is_set():
            self._disconnect()

    def _begin(self, states: Mapping[int, PartitionState]) -> None:
        letters: dict[int, tuple[str, Sequence[StoredDeadLetter]]] = {}
        for partition, state in states.items():
            report = state.report()
            if report.dead_letters_waiting:
                most = self._rules.poll_records
                some = state.read(
                    dead_letters_in, from_offset=report.republished, at_most=most, most_bytes=self._most_bytes
                )
                letters[partition] = (report.topic, some)
        if letters:
            attempt = self._attempt = _Attempt(letters)
            self._aside(lambda: self._run(attempt))

    def _run(self, attempt: _Attempt) -> None:
        try:
            self._outlet = self._outlet or self._connect()
            for partition, (topic, letters) in attempt.letters.items():
                for letter, error in zip(letters, _delivered(self._outlet, topic, partition, letters), strict=True):
                    if error is not None:
                        raise error
                    attempt.published[partition] = letter.offset + 1
        except WeftError as error:
            attempt.refusal = error
        except Exception as error:  # noqa: BLE001  a thread that dies tells nobody
            attempt.refusal = BrokerUnavailableError(f"{error!r}")
        if attempt.refusal is not None:
            self._disconnect()
        attempt.ended.set()
        if self._closed:  # asked last: whoever closes looks whether this attempt has ended
            self._disconnect()

    def _disconnect(self) -> None:
        outlet, self._outlet = self._outlet, None
        if outlet is not None:
            try:
                outlet.close()
            except WeftError as error:
                _log.debug("%s", error)

    def _judge(self, refusal: WeftError | None, now: float) -> None:
        before, self.refusal = self.refusal, refusal
        topic = self._rules.dead_letter_topic
        if refusal is None:
            self._pause_s = 0.0
            if before is not None:
                _log.info("%s takes dead letters again", topic)
            return
        if type(refusal) is not type(before):
            _log.warning("dead letters wait for %s: %s; to help, %s", topic, refusal, _help(refusal))
        self._pause_s = min(max(self._rules.retry_s, 2 * self._pause_s), self._rules.unreachable_s)
        self._try_at = now + self._pause_s


def _help(refusal: WeftError) -> str:
    return next((text for kind, text in _HELP.items() if isinstance(refusal, kind)), "look at the broker's log")


def _delivered(
    outlet: DeadLetterSink, topic: str, partition: int, letters: Sequence[StoredDeadLetter]
) -> Sequence[WeftError | None]:
    """Publish dead letters; those that are too large for the topic go without their original."""
    keys = [f"{partition}:{letter.offset}".encode() for letter in letters]
    values = [envelope(letter, topic, partition) for letter in letters]
    errors = list(outlet.deliver(list(zip(keys, values, strict=True))))
    large = [place for place, error in enumerate(errors) if isinstance(error, InvalidEventError)]
    for place in large:
        # A batch is refused as a whole: so each is sent once more, alone.
        (errors[place],) = outlet.deliver([(keys[place], values[place])]) if len(letters) > 1 else (errors[place],)
        if isinstance(errors[place], InvalidEventError):
            bare = envelope(letters[place], topic, partition, original=False)
            (errors[place],) = outlet.deliver([(keys[place], bare)])
    return errors


def envelope(letter: StoredDeadLetter, topic: str, partition: int, *, original: bool = True) -> bytes:
    """A dead letter as JSON: where it came from, why it is one, and its bytes in base64, as far as they are kept."""
    facts = letter._asdict() | {"topic": topic, "partition": partition}
    if original:
        facts["original"] = base64.b64encode(letter.original).decode()
    else:
        facts |= {"original": None, "left_out": "original: larger than the dead-letter topic takes"}
    return json.dumps(facts, sort_keys=True).encode()


def replayed(letter: StoredDeadLetter, *, max_bytes: int) -> tuple[bytes, bytes] | None:
    """Key and value to send a dead letter again with; None where it is no event still, or was kept in part only."""
    if letter.size != len(letter.original):
        return None
    try:
        event = decode(letter.original, max_bytes=max_bytes)
    except InvalidEventError:
        return None
    return event.session_id.encode(), letter.original
