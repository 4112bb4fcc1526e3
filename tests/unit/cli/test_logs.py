"""OPS-11, FBK-5: what jobs log is readable in a file, and a broker that is away does not fill the disk with it."""

from __future__ import annotations

import logging

from weft.cli.console.logs import LogLines, LogThrottle


def a_record(name: str, message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "", 0, message, arguments, None)


def test_what_a_kafka_client_repeats_is_logged_once_a_minute() -> None:
    """FBK-5: ports and waits differ from attempt to attempt; what else is said stays."""
    now = [1000.0]
    sparing = LogThrottle(clock=lambda: now[0])
    refused = [a_record("kafka.conn", "port %d: refused after %.2f s", port, port / 7) for port in (1, 22, 333)]
    assert [sparing.filter(each) for each in refused] == [True, False, False]
    assert sparing.filter(a_record("kafka.conn", "certificate verify failed"))
    now[0] += 59.0
    assert not sparing.filter(refused[0])
    now[0] += 1.0
    assert sparing.filter(refused[0])


def test_what_weft_says_is_logged_each_time() -> None:
    """FBK-5."""
    sparing = LogThrottle(clock=lambda: 0.0)
    assert [sparing.filter(a_record("weft.feedback.run.updater", "so")) for _ in range(3)] == [True] * 3


def test_a_message_looks_like_one_and_steers_no_terminal() -> None:
    """OPS-11: what goes on in further lines cannot be taken for further messages."""
    line = LogLines("%(levelname)s %(message)s").format(a_record("weft", "a\nb %s", "\x1b]0;owned\x07"))
    assert line == "ERROR a\n    b \ufffd]0;owned\ufffd"
