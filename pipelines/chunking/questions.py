"""Questions of a store's own: what a content says of itself, asked, should find the rest of it (EVA-4).

The text that is asked with is no part of what is to be found, or finding it would show nothing. Taking one sentence out
of a passage and asking for the passage is the inverse cloze task (Lee, Chang and Toutanova, ACL 2019).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.chunking.ground_truth import without_docstring
from pipelines.domain.documents import ContentType

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_IS_SENTENCE = re.compile(r"[\"'(]?[^\W_].*[.!?]$")  # neither a row of a table nor a line of a list
_SPEAKER = re.compile(r"^[^\W\d][\w .-]{0,30}: ")
_NAME_WORDS = 3  # of a heading, a title or a phrase: fewer name many things
_SENTENCE_WORDS = range(6, 31)  # fewer say little, more are no question that anybody types
_REMAINING_WORDS = 10  # without which nothing is left to be found


@dataclass(frozen=True, slots=True)
class ContentQuestion:
    """A question that one content answers.

    Attributes:
        kind: "trigger", "docstring", "heading", "title" or "sentence": what it was.
        rest: The content's text without it.
    """

    text: str
    kind: str
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskableText:
    """A content's text, and what else is said of it that may ask for it.

    Attributes:
        title: Of its document.
        headings: Those above it that belong to nothing else, outermost first.
        triggers: Phrases that are declared for it.
    """

    text: str
    content_type: ContentType
    language: str | None = None
    title: str | None = None
    headings: Sequence[str] = ()
    triggers: Sequence[str] = ()


def question_in(content: AskableText) -> ContentQuestion | None:
    """The first question of a content: a declared phrase, a docstring, a heading, a title, or a sentence.

    Returns:
        None where nothing can be asked, or too little is left to be found.

    Examples:
        >>> said = "Boxes of many sizes: they hold what is sold, and stand by the door until a cart takes them away."
        >>> asked = question_in(
        ...     AskableText(text=said, content_type=ContentType.MARKDOWN, headings=["Boxes of many sizes"])
        ... )
        >>> asked.kind, asked.text, asked.rest[:12]
        ('heading', 'Boxes of many sizes', ': they hold ')
    """
    for kind, question, rest in _candidates(content):
        words, left = _words(question), _words(rest)
        least = _SENTENCE_WORDS.start if kind in ("docstring", "sentence") else _NAME_WORDS
        if len(words) >= least and len(left) >= _REMAINING_WORDS and " ".join(words) not in " ".join(left):
            return ContentQuestion(question, kind, rest)
    return None


def _candidates(content: AskableText) -> Iterator[tuple[str, str, str]]:
    text, title, headings = content.text, content.title, content.headings
    for phrase in content.triggers:
        yield "trigger", phrase, text.replace(phrase, "")
    if content.content_type is ContentType.CODE:
        if (taken := without_docstring(text, content.language)) is not None:
            yield "docstring", *taken
    elif content.content_type is not ContentType.CONFIGURATION:
        if headings and headings[-1] in text:
            yield "heading", headings[-1], text.replace(headings[-1], "")
        if content.content_type is ContentType.RECORD and title and text.startswith(title):
            yield "title", title, text.removeprefix(title)
        for sentence in _sentences(text):
            yield "sentence", sentence, text.replace(sentence, "")


def _sentences(text: str) -> list[str]:
    """Sentences of a usual length, those that ask first."""
    sentences = [_SPEAKER.sub("", each.strip()) for each in _SENTENCE.split(text)]
    usual = [each for each in sentences if _IS_SENTENCE.match(each) and len(_words(each)) in _SENTENCE_WORDS]
    return sorted(usual, key=lambda each: not each.endswith("?"))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
