"""OPS-11: what jobs log is readable in a file."""

from __future__ import annotations

import logging

from weft.cli.console.logs import LogLines


def a_record(name: str, message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "", 0, message, arguments, None)


def test_a_message_looks_like_one_and_steers_no_terminal() -> None:
    """OPS-11: what goes on in further lines cannot be taken for further messages."""
    line = LogLines("%(levelname)s %(message)s").format(a_record("weft", "a\nb %s", "\x1b]0;owned\x07"))
    assert line == "ERROR a\n    b \ufffd]0;owned\ufffd"
