"""The rows of use that evidence about lessons is kept in (LES-7), each under the lesson's id and who says so.

| bin                               | question     | one unit is                                                  |
| --------------------------------- | ------------ | ------------------------------------------------------------ |
| `lesson.text:{…}`                 |              | somebody said the lesson in these words                      |
| `lesson.saying:<source>:<priority>` |            | somebody said it, and it came from there                     |
| `lesson.revises`                  | the parent   | it was said instead of its parent                            |
| `lesson.word:<word>:<ms>`         |              | a person's word: an outcome, `retire` or `restore`           |
| `lesson.<outcome>:<origin>`       | an injection | an outcome that an application told or detection is sure of  |
| `lesson.injected:<p>:<good>`      | an injection | it was put before an agent, with propensity and P(good) in % |
| `lesson.alias:<ms>`, `apart`      | the other    | somebody said that both mean the same, or that they do not   |
| `lesson.note:{…}`                 |              | what happened, for people: when, by whom, why                |

Sums know no order: where the last word counts, bins say the milliseconds since midnight. What is counted has few bins,
so that a hundred thousand lessons are read in columns; texts and notes are parsed for those that are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from weft.domain.lesson import Lesson, LessonPriority, LessonResult, LessonSource

PREFIX = "lesson."
TEXT, SAYING, REVISES = f"{PREFIX}text:", f"{PREFIX}saying:", f"{PREFIX}revises"
WORD, INJECTED, NOTE = f"{PREFIX}word:", f"{PREFIX}injected:", f"{PREFIX}note:"
ALIAS, APART = f"{PREFIX}alias:", f"{PREFIX}apart:"

RETIRE, RESTORE = "retire", "restore"
GOOD_WORDS = frozenset({LessonResult.SUCCESS.value, LessonResult.CONFIRMATION.value, RESTORE})
"""What a person says for a lesson; all other words speak against it."""

PERSON = "person"
NIGHT = "weft-night"
"""The principal that nights speak as."""

_PERCENT = 100
_UNKNOWN = "-"


class LessonNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened to a lesson, as `weft lessons show` tells it."""

    what: str  # the `op`, the outcome, or "injected"
    at: int  # milliseconds since the epoch
    by: str  # who said so
    session: str  # the conversation that it was said in
    event: str
    source: str = ""
    origin: str = ""
    why: str = ""
    span: str = ""
    injection: str = ""
    other: str = ""  # the parent, the representative, or the lesson kept apart from
    sure: float = 1.0  # probability that an outcome is so
    lesson: str = ""  # the one that it is about; the row names it, the bin does not


_encoder = msgspec.json.Encoder()
_notes = msgspec.json.Decoder(LessonNote)
_texts = msgspec.json.Decoder(dict)


def text_bin(lesson: Lesson) -> str:
    """The bin of a lesson's text: all that it says, but where it comes from, which is evidence.

    Examples:
        >>> text_bin(Lesson(section="api", content="Run the migrations first"))
        'lesson.text:{"section":"api","content":"Run the migrations first","kind":"pattern","priority":"medium"}'
    """
    fields = {name: value for name, value in lesson.as_fields().items() if name not in {"id", "source"}}
    return TEXT + _encoder.encode(fields).decode()


def lesson_in(bin_: str, source: LessonSource) -> Lesson:
    """The lesson in a bin of `text_bin`.

    Raises:
        InvalidLessonError: It is of a version that allowed what this one does not.
    """
    fields: Mapping[str, object] = _texts.decode(bin_.removeprefix(TEXT))
    return Lesson.from_fields({**fields, "source": source.value})


def statement_bin(source: LessonSource, priority: LessonPriority) -> str:
    """The bin of a saying."""
    return f"{SAYING}{source.value}:{priority.value}"


def verdict_bin(word: str, ms: int) -> str:
    """The bin of a person's word: an outcome, `RETIRE` or `RESTORE`.

    Examples:
        >>> verdict_bin("contradiction", 735)
        'lesson.word:contradiction:00000735'
    """
    return f"{WORD}{word}:{ms:08d}"


def outcome_bin(outcome: LessonResult, origin: str) -> str:
    """The bin of an outcome that no person typed.

    Examples:
        >>> outcome_bin(LessonResult.FAILURE, "detection")
        'lesson.failure:detection'
    """
    return f"{PREFIX}{outcome.value}:{origin}"


def injected_bin(propensity: float, p_good: float | None) -> str:
    """The bin of an injection.

    Examples:
        >>> injected_bin(1.0, 0.853), injected_bin(0.25, None)
        ('lesson.injected:100:85', 'lesson.injected:25:-')
    """
    return f"{INJECTED}{round(propensity * _PERCENT)}:{_UNKNOWN if p_good is None else round(p_good * _PERCENT)}"


def injected_of(bin_: str) -> tuple[float, float | None]:
    """Propensity and P(good) in a bin of `injected_bin`.

    Examples:
        >>> injected_of("lesson.injected:25:-")
        (0.25, None)
    """
    propensity, good = bin_.removeprefix(INJECTED).split(":")
    return int(propensity) / _PERCENT, None if good == _UNKNOWN else int(good) / _PERCENT


def link_bin(ms: int, *, same: bool) -> str:
    """The bin of a word on whether two lessons mean the same."""
    return f"{ALIAS if same else APART}{ms:08d}"


def note_bin(note: LessonNote) -> str:
    """The bin of a note."""
    return NOTE + _encoder.encode(note).decode()


def note_in(bin_: str) -> LessonNote:
    """The note in a bin of `note_bin`."""
    return _notes.decode(bin_.removeprefix(NOTE).encode())
