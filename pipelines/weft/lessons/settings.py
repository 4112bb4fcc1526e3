"""What tunes the craft of lessons; the values stand in `conf/base/lessons.yaml`."""

from __future__ import annotations

from pydantic import Field, SecretStr

from weft.domain.sections import Count, Section, Share

Phrases = tuple[str, ...]


class AtomicitySettings(Section):
    """How whole and how exact a lesson is, in [0, 1]."""

    least: Share  # A lesson below it is rejected
    further: Share  # what each further instruction costs
    enough_words: Count  # words above which each one costs `long`
    long: Share  # as said
    vague: Share  # what a directive costs that names nothing to do
    directives: Phrases  # phrases of such: "be careful"
    general: Phrases  # words that name nothing to do it with: "code", "everything"
    verbs: Phrases  # verbs that instructions begin with, so that two are told from one with two objects


class PromptSettings(Section):
    """The prompt form: tokens it has at most, where nobody says how many."""

    budget: Count


class DuplicateSettings(Section):
    """When two lessons may be one."""

    meaning: Share  # cosine of the bundled encoder's vectors from which on a person is asked whatever the words are
    proposed: Share  # share of their words that both name, below which they are about other things
    bound: Share  # share of pairs of neighbouring words that both have, below which a person is asked


class HearingSettings(Section):
    """How sure what is heard must be (LES-5, LES-6)."""

    least: Share  # that an outcome was good, or bad
    near: Share  # cosine of a lesson with what is said, or with what that answers, below which it is about another
    restated: Share  # cosine of a lesson with what is said from which on it is stated once more
    teaches: Share  # that a turn teaches something
    again: Share  # cosine of what two turns say from which on the second one corrects the same once more


class ReflectorSettings(Section):
    """The model that reflects in the place of the heads (LES-6)."""

    # URL of an OpenAI-compatible chat completion; empty for the heads
    endpoint: str = Field(pattern=r"^(https?://\S+)?$")
    model: str
    api_key: SecretStr


class LessonSettings(Section):
    """Everything in `conf/base/lessons.yaml`."""

    atomicity: AtomicitySettings
    prompt: PromptSettings
    duplicates: DuplicateSettings
    hearing: HearingSettings
    reflector: ReflectorSettings
