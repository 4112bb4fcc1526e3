"""EVA-4: what a content says of itself asks for the rest of it."""

from __future__ import annotations

import pytest

from weft.domain.documents import ContentType
from weft.ingestion.questions import AskableText, question_in

FUNCTION = '''def due(shelf, day):
    """Books of a shelf that must come back on a day. Sorted by title."""
    return sorted(book for book in shelf.books if book.due == day and not book.returned and book.lent)
'''
SECTION = (
    "Library > Lending\n## Books that come back late\nA fee of ten cents is due from the first day on, up to ten euros."
)
TALK = (
    "Ada: Hello there, nice to see you!\nBob: Where did you put the keys of the garden shed?\n"
    "Ada: On the hook behind the kitchen door, where they have always been."
)
ASKED = {
    "docstring": AskableText(text=FUNCTION, content_type=ContentType.CODE, language="python"),
    "heading": AskableText(
        text=SECTION, content_type=ContentType.MARKDOWN, headings=["Lending", "Books that come back late"]
    ),
    "title": AskableText(
        text="Vitamin D and falls: older people who take it fall less often than those who do not take any.",
        content_type=ContentType.RECORD,
        title="Vitamin D and falls",
    ),
    "sentence": AskableText(text=TALK, content_type=ContentType.CONVERSATION),
    "trigger": AskableText(text=SECTION, content_type=ContentType.MARKDOWN, triggers=["what a late book costs"]),
}
QUESTIONS = {
    "docstring": "Books of a shelf that must come back on a day.",
    "heading": "Books that come back late",
    "title": "Vitamin D and falls",
    "sentence": "Where did you put the keys of the garden shed?",
    "trigger": "what a late book costs",
}


@pytest.mark.parametrize("kind", ASKED)
def test_every_kind_of_text_asks_for_itself(kind: str) -> None:
    """EVA-4: docstrings, headings, titles, sentences that ask and declared phrases; the rest lacks them."""
    asked = question_in(ASKED[kind])
    assert asked is not None
    assert (asked.kind, asked.text) == (kind, QUESTIONS[kind])
    assert asked.text not in asked.rest


@pytest.mark.parametrize(
    "content",
    [
        AskableText(text="def f():\n    '''Counts the books that stand on a shelf.'''", content_type=ContentType.CODE),
        AskableText(text="## Books that come back late\nA fee.", content_type=ContentType.MARKDOWN, headings=["Late"]),
        AskableText(text="books: 3\nshelves: 4\nrooms: 5\n" * 5, content_type=ContentType.CONFIGURATION),
        AskableText(
            text="Books that come back late. Books that come back *late* cost ten cents a day for each of them",
            content_type=ContentType.MARKDOWN,
            headings=["Books that come back late"],
        ),
    ],
    ids=["nothing is left", "too short", "no prose", "said again in other letters"],
)
def test_what_would_show_nothing_is_not_asked(content: AskableText) -> None:
    """EVA-4: neither where the answer says nothing else, nor where it says the question twice."""
    assert question_in(content) is None
