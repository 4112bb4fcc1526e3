from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from pipelines.ingestion.ignore import rules

NAMES = st.text(st.sampled_from("ab.-/"), min_size=1, max_size=12).filter(lambda name: "//" not in name)
RULES = st.lists(st.text(st.sampled_from("ab*?[].-/!\\"), min_size=1, max_size=10), max_size=4)


@given(RULES, NAMES)
def test_rules_hold_as_git_reads_them(lines: list[str], name: str) -> None:
    """ING-1: bounding the time of a match changes no verdict."""
    bounded = rules("\n".join(lines).encode())
    try:
        plain = GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):  # such a line must stop nothing
        return
    if any(line.count("**") > 3 for line in lines):
        return
    assert bounded.check_file(name).include == plain.check_file(name).include


@pytest.mark.parametrize(
    ("rule", "name", "found"),
    [
        ("report.[0-9]*.[0-9]*.[0-9]*.[0-9]*.json", "report.1.22.3.4.json", True),
        ("report.[0-9]*.[0-9]*.[0-9]*.[0-9]*.json", "report.1.22.x.4.json", False),
        ("*a?b*[!c]d*", "xxaxbxxxed", True),
        ("docs/**/*.tmp", "docs/a/b/c.tmp", True),
    ],
)
def test_stars_between_texts_match_anywhere(rule: str, name: str, found: bool) -> None:
    """ING-1: patterns as real trees have them."""
    assert rules(rule.encode()).match_file(name) is found


@pytest.mark.parametrize(
    "data",
    [
        b"*" + b"a*" * 60 + b"b",
        b"*" + b"?*" * 60 + b"b",
        b"*" + b"[ab]*" * 60 + b"b",
        b"a/" + b"**/a/" * 30 + b"b",
        b"\n".join(b"x%d" % number for number in range(100_000)),
    ],
)
def test_hostile_rules_come_to_an_end(data: bytes) -> None:
    """ING-3: a matcher that goes back for each star would not end within the life of a test."""
    assert not rules(data).match_file("a/" * 30 + "a" * 250 + "c")


def test_the_first_rule_of_a_file_from_windows_is_obeyed() -> None:
    """ING-1: after a byte order mark, as git obeys it."""
    assert rules(b"\xef\xbb\xbf*.log\r\nbuild/\r\n").match_file("a.log")
