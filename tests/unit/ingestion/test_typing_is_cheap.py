"""ING-3: telling the kind of a file, and reading a transcript, cost what the size costs, whatever the file holds."""

import pytest

from weft.ingestion.sources.files import kind_of
from weft.ingestion.sources.transcripts import sessions

SIZE = 1_000_000
CHAT = "Ann: a\nBob: b\n" * 4
TEXTS = {
    "lines of one turn": CHAT + "x\n" * (SIZE // 2),
    "blanks after a heading": CHAT + "#" + " " * SIZE,
    "blank lines": "\n" * SIZE,
    "open brackets": '{"role":' + "[" * SIZE,
    "empty objects": '{"role":[' + "{}," * (SIZE // 3) + "{}]}",
    "one word": "w" * SIZE,
    "names": "Ann Ann " * (SIZE // 8),
    "times": "10:31 " * (SIZE // 6),
    "keys": '"role"' * (SIZE // 6),
    "a title": '{"abstract":' + '"a",' * (SIZE // 4),
    "backslashes": "\\section{" * (SIZE // 9),
    "headings": "# a\n" * (SIZE // 4),
}


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.txt", "a.h", "a.m", "a", "a.tex", "a.md"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_is_expensive_to_tell(name: str, text: str) -> None:
    """ING-3: a megabyte that was read again for each of its parts would not end within the life of a test."""
    assert kind_of(name, text)
    assert all(session for session in sessions(text, "f"))
