"""What tunes the craft of lessons; the values stand in `conf/base/lessons.yaml`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

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

    near: Share  # cosine of static vectors from which on two are compared
    proposed: Share  # share of their words that both name, below which they are about other things
    bound: Share  # share of pairs of neighbouring words that both have, below which a person is asked


def _readable(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"expected a regular expression, found {pattern!r}: {error}") from error
    return patterns


Patterns = Annotated[tuple[str, ...], AfterValidator(_readable)]


class DetectionSettings(Section):
    """What people say of a lesson (LES-5): regular expressions over one sentence in lower case."""

    contradiction: Patterns
    confirmation: Patterns
    failure: Patterns
    excluded: Patterns  # A sentence that matches is about something else: a question, a condition, what others did
    least: Share  # share of what a lesson is about that a sentence must name
    margin: Share  # by which the share of the second lesson must lie behind


class ReflectionSettings(Section):
    """What the rule-based reflector goes by (LES-6): regular expressions over one sentence, whatever the case."""

    # of what a user says holds, the telling first. The group `rule` is the lesson; `deny` turns it round,
    # `always` goes before it, and `past` says that it was missed, perhaps in another form of the verb. The group
    # `general` is a lesson as it was said
    corrections: Patterns
    knowledge: Patterns  # of blocks that state a rule, over the whole text; the group `rule`
    excluded: Patterns  # A sentence that matches holds once, or is no rule: a question, a condition, of somebody else


class ReflectorSettings(Section):
    """The model that reflects in the place of the rules (LES-6)."""

    # URL of an OpenAI-compatible chat completion; empty for the rules
    endpoint: str = Field(pattern=r"^(https?://\S+)?$")
    model: str
    api_key: SecretStr


class LessonSettings(Section):
    """Everything in `conf/base/lessons.yaml`."""

    atomicity: AtomicitySettings
    prompt: PromptSettings
    duplicates: DuplicateSettings
    detection: DetectionSettings
    reflection: ReflectionSettings
    reflector: ReflectorSettings
