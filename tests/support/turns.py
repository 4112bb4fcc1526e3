"""The turns of a session's text."""

from __future__ import annotations

from collections.abc import Iterator

from weft.chunking.conversation.dialogue import Line, Turn, places, unindented


def turns_of(text: str) -> Iterator[Line]:
    """The turns and topics that `written` wrote; ids are not in the text."""
    source = text.encode("utf-8", "surrogatepass")
    for place in places(source):
        if place.topic is not None:
            yield place.topic
        else:
            yield Turn(place.speaker, unindented(source[place.body : place.end].decode("utf-8", "replace")), place.time)
