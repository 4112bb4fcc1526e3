"""What is heard in a conversation: what came of a lesson, and what teaches one (LES-5, LES-6).

The bundled sentence encoder, frozen, reads three texts: the lesson (or what was asked for), what was said before, and
what is said. A head looks at the states x of their tokens, and at a few facts about the texts:

    z = tanh(W x̂ + b)                         of each token, x̂ = x less its mean, by its deviation
    h = Σ softmax(3 z·q) z                     over the tokens of a text, for each question q of that text
    p = softmax((V relu(U [h, facts] + c) + d) / t)

The laboratory trains the two heads, of three such networks each, and their temperature t, on labelled turns
(`lab.hearing`). What they are worth, by manner of speaking, stands in docs/measurements.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log1p
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weft.domain.lesson import Lesson, LessonId, LessonResult, LessonSource
from weft.domain.texts import ReadText, TextReader
from weft.wording.text import named

if TYPE_CHECKING:
    from weft.lessons.settings import HearingSettings

_QUOTED = re.compile(
    r"```.*?(?:```|\Z)"  # code
    r"|^(?: {4}|\t)\S.*$"
    r"|^\s*>.*?(?:  |$)"  # a mail that is answered
    r"|<(?P<tag>quote|blockquote|q|cite|code|pre|log|output|example)\b[^>]*>.*?(?:</(?P=tag)>|\Z)"
    r"|«[^»]*»|“[^”]*”|„[^“”]*[“”]|「[^」]*」|‘[^’]*’|\"[^\"\n]*\""
    r"|(?<![\w])'[^'\n]*\s[^'\n]*\s[^'\n]*'(?!\w)"
    r"|`[^`\n]*\s[^`\n]*\s[^`\n]*`",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:[.](?=\w)[^.!?。！？\n]*)*(?:[.!?]+(?=\s|$)|[。！？]+|\n|$|[.!?])")
_LESSON_TOKENS, _BEFORE_TOKENS, _SPOKEN_TOKENS = 40, 60, 90  # read of each text
# Words by which a person states a rule for good; whether a turn teaches at all is for the head to say.
_FOR_GOOD = re.compile(
    r"\b(?:from now on|going forward|(?:in|for) (?:the )?future|as a rule|always|never|whenever|(?:each|every) time"
    r"|remember|in (?:this|our) (?:project|repo|repository|team|code ?base))\b",
    re.IGNORECASE,
)
_RIVALS = 2  # lessons beside one, from which on more make no difference
_SHARP = np.float32(3.0)  # by which attention is sharper than its questions are long

OUTCOMES: Sequence[LessonResult | None] = (
    None,
    LessonResult.CONFIRMATION,
    LessonResult.CONTRADICTION,
    LessonResult.FAILURE,
    LessonResult.SUCCESS,
)
"""What a head says of a lesson, in the order of its probabilities."""
TEACHINGS: Sequence[LessonSource | None] = (
    None,
    LessonSource.USER_CORRECTION,
    LessonSource.AGENT_INFERENCE,
    LessonSource.AGENT_INFERENCE,
)
"""What a head says of a turn: nothing, a rule for good, a correction of one piece of work, what an agent found out."""
_GOOD = frozenset({LessonResult.CONFIRMATION, LessonResult.SUCCESS})


@dataclass(frozen=True, slots=True)
class Injection:
    """A lesson that was shown to the agent."""

    injection_id: str
    lesson: Lesson
    turn: int = 0  # of the conversation, before which it was shown


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one side said at once."""

    text: str
    speaker: str = "user"  # "user", "agent" or "tool"


@dataclass(frozen=True, slots=True)
class DetectedOutcome:
    """An outcome of one lesson, and the words that say so."""

    result: LessonResult
    injection: Injection
    turn: int  # of the conversation
    start: int  # Of the span in that turn's text, in characters
    end: int
    span: str  # the text between them
    sure: float  # probability that it was good, or that it was bad, as `result` is

    @property
    def outcome_id(self) -> str:
        """As the event has it: a conversation may be heard twice, and counts once (LES-7)."""
        return outcome_id(self.injection.injection_id, self.injection.lesson.id, f"detected:{self.result}")


@dataclass(frozen=True, slots=True)
class Taught:
    """A turn that teaches something."""

    turn: int  # of the conversation
    source: LessonSource
    words: str  # the sentences that teach it
    sure: float  # probability that it teaches anything


@dataclass(frozen=True, slots=True)
class EarlierTurns:
    """What was heard of a session before; its turns are not heard again."""

    turns: int = 0
    taught: tuple[str, ...] = ()  # what was said in them that taught something


NO_EARLIER_TURNS = EarlierTurns()


def outcome_id(injection_id: str, lesson_id: str, rule: str) -> str:
    """32 hex digits of an injection, a lesson and the rule by which an outcome was told.

    Examples:
        >>> outcome_id("i-1", "0ccf9adef0b78896", "detected:failure")
        'd6e9c8f19785cdc745626967b02a260e'
    """
    named_parts = "\n".join(f"{len(part)}:{part}" for part in (injection_id, lesson_id, rule))
    return hashlib.sha256(named_parts.encode()).hexdigest()[:32]


class ClassifierHead:
    """A few networks that were trained alike from different beginnings: the mean of what they say is surer than each.

    Its weights by name, `w`, `b`, `q` (texts, questions, width), `u`, `c`, `v` and `d`, have an axis of the networks in
    front; `facts_mean`, `facts_scale` and `t` are of all.
    """

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self._of = {name: np.asarray(values, dtype=np.float32) for name, values in weights.items()}

    def __call__(self, texts: Sequence[ReadText], facts: Sequence[float]) -> np.ndarray:
        """Probabilities, in the order of what the head tells apart."""
        of = self._of
        states = [normalised(text.states) for text in texts]
        scaled = (np.asarray(facts, dtype=np.float32) - of["facts_mean"]) / of["facts_scale"]
        spoken = []
        for at in range(len(of["w"])):
            parts = [self._summary(at, each, questions) for each, questions in zip(states, of["q"][at], strict=True)]
            hidden = np.maximum(0.0, np.concatenate([*parts, scaled]) @ of["u"][at].T + of["c"][at])
            spoken.append(_log_shares(hidden @ of["v"][at].T + of["d"][at]))
        return np.asarray(np.exp(_log_shares(np.mean(spoken, axis=0) / of["t"])))

    def _summary(self, at: int, states: np.ndarray, questions: np.ndarray) -> np.ndarray:
        if not len(states):
            return np.zeros(questions.size, dtype=np.float32)
        read = np.tanh(states @ self._of["w"][at].T + self._of["b"][at])
        return np.asarray(np.exp(_log_shares(_SHARP * questions @ read.T)) @ read).ravel()


def normalised(states: np.ndarray) -> np.ndarray:
    """States of tokens, each less its mean and by its deviation: float32 (tokens, dimension)."""
    centred = states - states.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(states.var(axis=1, keepdims=True) + np.float32(1e-5)))


def _log_shares(values: np.ndarray) -> np.ndarray:
    shifted = values - values.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


class SpokenTurn(NamedTuple):
    """One thing that was said, with what it answers."""

    place: int  # in the conversation
    spoken: str  # with blanks in the place of what is quoted
    before: str  # what another side said last
    asked: str  # what the user said before that
    by_agent: bool


def turns_of(utterances: Sequence[Utterance]) -> Iterator[SpokenTurn]:
    """What may say something of a lesson: all that the user says, and what the agent says behind a tool's output."""
    used = False
    for place, (text, speaker) in enumerate((each.text, each.speaker) for each in utterances):
        if speaker == "tool":
            used = True
            continue
        if sentences_in(text) and (speaker == "user" or used):
            before = _last(utterances, place, {"user", "agent", "tool"} - {speaker})
            asked = _last(utterances, before, {"user"})
            answered, wanted = (_plain(utterances[at].text) if at >= 0 else "" for at in (before, asked))
            yield SpokenTurn(place, _plain(text), answered, wanted, speaker == "agent")
        if speaker == "user":
            used = False


def _last(utterances: Sequence[Utterance], before: int, speakers: Collection[str]) -> int:
    """The last place before another one where one of some said anything; −1 where there is none."""
    places = range(before - 1, -1, -1)
    return next((at for at in places if utterances[at].speaker in speakers and utterances[at].text.strip()), -1)


def _plain(text: str) -> str:
    return " ".join(unquoted(text).split())


class FeatureReader:
    """Texts and facts as heads take them."""

    def __init__(self, reader: TextReader) -> None:
        self._reader = reader

    def of_lesson(
        self, turn: SpokenTurn, spoken: str, lesson: str, others: Sequence[str]
    ) -> tuple[list[ReadText], list[float]]:
        """What is said, of a lesson that was injected beside others."""
        texts = self._texts(lesson, turn.before, spoken)
        about, _, words = texts
        rivals = [float(words.vector @ self._reader(each, _LESSON_TOKENS).vector) for each in others]
        named_rivals = [_named(spoken, each) for each in others]
        nearest, most = max(rivals, default=-1.0), max(named_rivals, default=0.0)
        own, name_own = float(words.vector @ about.vector), _named(spoken, lesson)
        facts = [nearest - own if others else 0.0, most - name_own if others else 0.0, float(min(_RIVALS, len(others)))]
        return texts, [*self._facts(turn, spoken, lesson, texts), *facts]

    def of_turn(self, turn: SpokenTurn, spoken: str) -> tuple[list[ReadText], list[float]]:
        """What is said, by itself."""
        texts = self._texts(turn.asked, turn.before, spoken)
        return texts, [*self._facts(turn, spoken, turn.asked, texts), 0.0, 0.0, 0.0]

    def vector(self, spoken: str) -> np.ndarray:
        """Of what is said."""
        return self._reader(spoken, _SPOKEN_TOKENS).vector

    def _texts(self, about: str, before: str, spoken: str) -> list[ReadText]:
        return [
            self._reader(about, _LESSON_TOKENS),
            self._reader(before, _BEFORE_TOKENS, from_end=True),
            self._reader(spoken, _SPOKEN_TOKENS),
        ]

    def _facts(self, turn: SpokenTurn, spoken: str, about: str, texts: Sequence[ReadText]) -> list[float]:
        first, before, words = (each.vector for each in texts)
        return [
            float(words @ first),
            float(before @ first),
            float(words @ before),
            _named(spoken, about),
            _named(turn.before, about),
            float(turn.by_agent),
            float("?" in spoken),
            float("!" in spoken),
            log1p(len(spoken.split())),
        ]


def _named(text: str, lesson: str) -> float:
    """The share of what a lesson names that a text names."""
    wanted = frozenset(named(lesson))
    return len(wanted & frozenset(named(text))) / (len(wanted) or 1)


class Hearing:
    """Tells what came of lessons and what teaches one; without state of its own, shared by threads."""

    def __init__(
        self, reader: TextReader, outcome: ClassifierHead, teaching: ClassifierHead, settings: HearingSettings
    ) -> None:
        self._reading = FeatureReader(reader)
        self._outcome, self._teaching, self._settings = outcome, teaching, settings

    def outcomes(
        self, utterances: Sequence[Utterance], injections: Sequence[Injection], since: int = 0
    ) -> list[DetectedOutcome]:
        """Outcomes of the injected lessons, in the order in which they were said; each once an injection and result,
        where it is said most surely.

        One turn speaks of one lesson, the surest, and says one thing of it.

        Args:
            since: The place from which on turns are new; what stands before them is what they answer.
        """
        detected: dict[str, DetectedOutcome] = {}
        for turn in turns_of(utterances):
            if turn.place < max(1, since):
                continue  # what is said first speaks of no work
            shown = {each.lesson.id: each for each in injections if each.turn <= turn.place}
            if naming := [each for name, each in shown.items() if name in turn.spoken]:
                shown = {each.lesson.id: each for each in naming}
            candidates = [each for one in shown.values() if (each := self._outcome_of(turn, utterances, one, shown))]
            if candidates:
                best = max(candidates, key=lambda each: each.sure)
                earlier = detected.pop(best.outcome_id, best)
                detected[best.outcome_id] = max(earlier, best, key=lambda each: each.sure)
        return sorted(detected.values(), key=lambda each: each.turn)

    def _outcome_of(
        self,
        turn: SpokenTurn,
        utterances: Sequence[Utterance],
        injection: Injection,
        shown: Mapping[LessonId, Injection],
    ) -> DetectedOutcome | None:
        lesson = injection.lesson.content
        others = [each.lesson.content for each in shown.values() if each.lesson != injection.lesson]
        texts, facts = self._reading.of_lesson(turn, turn.spoken, lesson, others)
        about, before, words = (each.vector for each in texts)
        if max(float(words @ about), float(before @ about)) < self._settings.near:
            return None
        if float(words @ about) >= self._settings.restated:
            return None  # who states a rule says nothing of it
        shares = self._outcome(texts, facts)
        good = sum(share for share, each in zip(shares, OUTCOMES, strict=True) if each in _GOOD)
        sure = float(max(good, 1.0 - shares[0] - good))
        if sure < self._settings.least:
            return None
        of_sign = [at for at, each in enumerate(OUTCOMES) if each is not None and (each in _GOOD) == (good == sure)]
        at = max(of_sign, key=lambda each: shares[each])
        result = OUTCOMES[at]
        assert result is not None
        if turn.by_agent and result is not LessonResult.SUCCESS:
            return None  # what it says of its own work is believed where a tool's output bears it out
        text = utterances[turn.place].text
        parts = sentences_in(text)
        spoken = [self._outcome(*self._reading.of_lesson(turn, part, lesson, others))[at] for _, _, part in parts]
        start, end, _ = parts[int(np.argmax(spoken))]
        return DetectedOutcome(result, injection, turn.place, start, end, text[start:end], sure)

    def teachings(self, utterances: Sequence[Utterance], earlier: EarlierTurns = NO_EARLIER_TURNS) -> list[Taught]:
        """New turns that teach something for good, in their order; what is said again is a mistake made again."""
        vectors = list(map(self._reading.vector, earlier.taught))
        taught: list[Taught] = []
        for turn in turns_of(utterances):
            if turn.place < earlier.turns:
                continue
            shares = self._teaching(*self._reading.of_turn(turn, turn.spoken))
            sure = 1.0 - float(shares[0])
            if sure < self._settings.teaches:
                continue
            source = TEACHINGS[1 + int(np.argmax(shares[1:]))]
            assert source is not None
            text = utterances[turn.place].text
            parts = sentences_in(text)
            spoken = [1.0 - self._teaching(*self._reading.of_turn(turn, part))[0] for _, _, part in parts]
            best = int(np.argmax(spoken))
            first = last = best  # and its neighbours that teach by themselves
            while first and spoken[first - 1] >= self._settings.teaches:
                first -= 1
            while last + 1 < len(spoken) and spoken[last + 1] >= self._settings.teaches:
                last += 1
            vector = self._reading.vector(turn.spoken)
            if any(float(vector @ each) >= self._settings.again for each in vectors):
                source = LessonSource.REPEATED_MISTAKE
            words = text[parts[first][0] : parts[last][1]]
            if not turn.by_agent and _FOR_GOOD.search(unquoted(words)):
                source = LessonSource.USER_CORRECTION
            taught.append(Taught(turn.place, source, words, sure))
            vectors.append(vector)
        return taught


def sentences_in(text: str) -> list[tuple[int, int, str]]:
    """The sentences of a text that hold a word outside of quotations: where each begins and ends, and its words.

    Examples:
        >>> sentences_in('No. He wrote "run it first." Run it last!')
        [(0, 3, 'No.'), (4, 41, 'He wrote Run it last!')]
    """
    plain, parts = unquoted(text), []
    for match in _SENTENCE.finditer(plain):
        words = " ".join(match.group().split())
        if re.search(r"\w", words):
            start = match.start() + len(match.group()) - len(match.group().lstrip())
            parts.append((start, match.start() + len(match.group().rstrip()), words))
    return parts


def unquoted(text: str) -> str:
    """A text with blanks in the place of what is quoted and of code; every other character keeps its place.

    Examples:
        >>> unquoted('He wrote "this is wrong" and left.')
        'He wrote                 and left.'
    """
    return _QUOTED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
