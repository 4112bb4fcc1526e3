"""What tunes the craft of lessons; the values stand in `conf/base/lessons.yaml`."""

from __future__ import annotations

import re

from pydantic import Field, SecretStr, field_validator

from weft.domain.sections import Count, Section, Share

Phrases = tuple[str, ...]
Patterns = tuple[str, ...]


class LessonWordSettings(Section):
    """Words by what they do.

    Attributes:
        idle: Say nothing about a subject.
        negations: Deny what they stand with.
        synonyms: Groups of one meaning.
        opposites: Pairs of which one excludes the other.
        numerals: Numbers in letters.
        units: What stands behind a number and is part of it.
        deciding: Small ones that change what is said: two lessons are one only where both or neither have them.
    """

    idle: Phrases
    negations: Phrases
    synonyms: tuple[Phrases, ...]
    opposites: tuple[tuple[str, str], ...]
    numerals: Phrases
    units: Phrases
    deciding: Phrases


class AtomicitySettings(Section):
    """How whole and how exact a lesson is, in [0, 1].

    Attributes:
        least: A lesson below it is rejected.
        further: What each further instruction costs.
        enough_words: Words above which each one costs `long`.
        long: As said.
        vague: What a directive costs that names nothing to do.
        directives: Phrases of such: "be careful".
        general: Words that name nothing to do it with: "code", "everything".
        verbs: Verbs that instructions begin with, so that two are told from one with two objects.
    """

    least: Share
    further: Share
    enough_words: Count
    long: Share
    vague: Share
    directives: Phrases
    general: Phrases
    verbs: Phrases


class PromptSettings(Section):
    """The prompt form: tokens it has at most, where nobody says how many."""

    budget: Count


class DuplicateSettings(Section):
    """When two lessons may be one.

    Attributes:
        near: Cosine of static vectors from which on two are compared.
        proposed: Share of their words that both name, below which they are about other things.
        bound: Share of pairs of neighbouring words that both have, below which a person is asked.
    """

    near: Share
    proposed: Share
    bound: Share


class DetectionSettings(Section):
    """What people say of a lesson (LES-5): regular expressions over one sentence in lower case.

    Attributes:
        contradiction, confirmation, failure: Phrases of each.
        prohibitions: Phrases of a contradiction that only remind of a lesson which forbids the same.
        excluded: A sentence that matches is about something else: a question, a condition, what others did.
        done: Phrases that say that something was done: a failure of a lesson that forbids it.
        anaphora: Phrases that stand for the lesson which the agent named last.
        least: Share of what a lesson is about that a sentence must name.
        margin: By which the share of the second lesson must lie behind.
        hint: Share that praise must name where the agent's words before it name the lesson.
    """

    contradiction: Patterns
    confirmation: Patterns
    failure: Patterns
    prohibitions: Patterns
    excluded: Patterns
    done: Patterns
    anaphora: Patterns
    least: Share
    margin: Share
    hint: Share

    @field_validator("contradiction", "confirmation", "failure", "prohibitions", "excluded", "done", "anaphora")
    @classmethod
    def _readable(cls, patterns: Patterns) -> Patterns:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"expected a regular expression, found {pattern!r}: {error}") from error
        return patterns


class ReflectionSettings(Section):
    """What the rule-based reflector goes by (LES-6): regular expressions over one sentence, whatever the case.

    Attributes:
        corrections: Of what a user says holds, the telling first. The group `rule` is the lesson; `deny` turns it
            round, `always` goes before it, `past` says that it was missed, perhaps in another form of the verb, and
            `when` goes behind it.
        knowledge: Of blocks that state a rule, over the whole text; the group `rule`.
        excluded: A sentence that matches holds once, or is no rule: a question, a condition, of somebody else.
        sections: Words that speak for each section.
    """

    corrections: Patterns
    knowledge: Patterns
    excluded: Patterns
    sections: dict[str, Phrases]


class ReflectorSettings(Section):
    """The model that reflects in the place of the rules (LES-6).

    Attributes:
        endpoint: URL of an OpenAI-compatible chat completion; empty for the rules.
    """

    endpoint: str = Field(pattern=r"^(https?://\S+)?$")
    model: str
    api_key: SecretStr


class LessonSettings(Section):
    """Everything in `conf/base/lessons.yaml`."""

    words: LessonWordSettings
    atomicity: AtomicitySettings
    prompt: PromptSettings
    duplicates: DuplicateSettings
    detection: DetectionSettings
    reflection: ReflectionSettings
    reflector: ReflectorSettings
