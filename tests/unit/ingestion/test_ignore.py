"""ING-40: rules of one ignore file, each verdict as git gives it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.ingestion.git.ignore import IgnoreRules

TAKEN, LEFT, SILENT = False, True, None


def verdict(rules: bytes, path: bytes, *, ignore_case: bool = False) -> bool | None:
    """The verdict on a path, which a slash at its end marks as a folder's."""
    return IgnoreRules(rules, ignore_case=ignore_case).verdict(path.rstrip(b"/"), is_folder=path.endswith(b"/"))


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        (b"*\n!*/\n!*.h", b"sub/", TAKEN),
        (b"*\n!*/\n!*.h", b"sub/deep/z.h", TAKEN),
        (b"*\n!*/\n!*.h", b"sub/y.c", LEFT),
        (b"logs/**\n!logs/**/\n!logs/**/*.keep.md", b"logs/x/", TAKEN),
        (b"logs/**\n!logs/**/\n!logs/**/*.keep.md", b"logs/x/y.keep.md", TAKEN),
        (b"logs/**\n!logs/**/\n!logs/**/*.keep.md", b"logs/x/y.md", LEFT),
        (b"foo/", b"foo", SILENT),
        (b"foo/", b"a/foo/", LEFT),
        (b"/foo", b"a/foo", SILENT),
        (b"a/b", b"c/a/b", SILENT),
        (b"a/**/b", b"a/b", LEFT),
        (b"a/**/b", b"a/x/y/b", LEFT),
        (b"a/**/b", b"ab", SILENT),
        (b"**/b", b"b", LEFT),
        (b"b/**", b"b/", SILENT),
        (b"b/**", b"b/c", LEFT),
        (b"a/*", b"a/b/c", SILENT),
        (b"a/**\\/c", b"a/c", SILENT),
        (b"a/x**/c", b"a/x/c", LEFT),  # git takes two stars behind plain text for any folders
        (b"a/[x]**/c", b"a/xy/z/c", SILENT),
        (b"*.log\n!keep.log\nkeep.*", b"keep.log", LEFT),
        (b"!", b"a", SILENT),
        (b"/\n//", b"a/", SILENT),
    ],
)
def test_the_last_rule_that_matches_decides(rules: bytes, path: bytes, expected: bool | None) -> None:
    """ING-40: allow-lists, anchors, folders, and two stars between, before and behind slashes."""
    assert verdict(rules, path) is expected


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        (b"[!a]", b"b", LEFT),
        (b"[^a]", b"a", SILENT),
        (b"[a-c]x", b"bx", LEFT),
        (b"[c-a]", b"b", SILENT),
        (b"[]a]", b"]", LEFT),
        (b"[a-]", b"-", LEFT),
        (b"[\\]]", b"]", LEFT),
        (b"[[:alpha:]]", b"x", LEFT),
        (b"[[:alpha:][:digit:]]", b"7", LEFT),
        (b"[[:nothing:]]", b"n", SILENT),
        (b"[[:]", b":", LEFT),
        (b"[a", b"[a", SILENT),
        (b"a[/]b", b"a/b", SILENT),
        (b"a\\", b"a\\", SILENT),
        (b"\\#a", b"#a", LEFT),
        (b"\\!a", b"!a", LEFT),
        (b"\\*", b"x", SILENT),
        (b"?", b"\xc3\xa9", SILENT),
        (b"??", b"\xc3\xa9", LEFT),
        (b"[\xff]", b"\xff", LEFT),
    ],
)
def test_brackets_and_escapes_stand_for_bytes(rules: bytes, path: bytes, expected: bool | None) -> None:
    """ING-40: character classes, ranges, escapes, and rules that git cannot read, which match nothing."""
    assert verdict(rules, path) is expected


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        (b"a \n", b"a", LEFT),
        (b"a\\ \n", b"a ", LEFT),
        (b"a\\  \n", b"a ", LEFT),
        (b"a\\\\ \n", b"a\\", LEFT),
        (b"a\t\n", b"a\t", LEFT),
        (b" a\n", b"a", SILENT),
        (b"#a\n", b"#a", SILENT),
        (b"a\r\nb/\r\n", b"a", LEFT),
        (b"a\r\nb/\r\n", b"b/", LEFT),
        (b"a\r\r\n", b"a\r", LEFT),
        (b"\xef\xbb\xbfa\n", b"a", LEFT),
        (b"b\n\xef\xbb\xbfa\n", b"a", SILENT),
        (b"a\0b\n", b"a", LEFT),
        (b"x\x0cy\n", b"y", SILENT),
        ("x\u2028y\n".encode(), b"y", SILENT),
        ("x\u0085y\n".encode(), b"y", SILENT),
        (b"x\x0bz\rb\n", b"z", SILENT),
        (b"a", b"a", LEFT),
    ],
)
def test_lines_end_at_a_line_feed_alone(rules: bytes, path: bytes, expected: bool | None) -> None:
    """ING-40: blanks at an end, zero bytes, a byte order mark, and what editors but not git take for line ends."""
    assert verdict(rules, path) is expected


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        (b"Build/", b"bUILD/", LEFT),
        (b"*.LOG", b"a.log", LEFT),
        (b"docs/A*.md", b"Docs/abc.MD", LEFT),
        (b"[A-C]x", b"bx", LEFT),
        (b"[[:upper:]]", b"b", LEFT),
        ("É".encode(), "é".encode(), SILENT),
    ],
)
def test_case_is_ignored_where_the_repository_says_so(rules: bytes, path: bytes, expected: bool | None) -> None:
    """ING-40: `core.ignoreCase`, for letters of ASCII."""
    assert verdict(rules, path, ignore_case=True) is expected
    assert verdict(rules, path) is SILENT


@pytest.mark.parametrize(
    "data",
    [
        b"*" + b"a*" * 60 + b"b",
        b"*" + b"?*" * 60 + b"b",
        b"*" + b"[ab]*" * 60 + b"b",
        b"a/" + b"**/a/" * 30 + b"b",
        b"a/" + b"**/a*a/" * 30 + b"b",
        b"/" + b"**\\/" * 200 + b"b",
        b"*" * 1_000_000,
        b"[" * 1_000_000,
        b"\n".join(b"x%d" % number for number in range(100_000)),
        b"\n".join(b"*x%d" % number for number in range(100_000)),
    ],
)
def test_hostile_rules_come_to_an_end(data: bytes) -> None:
    """ING-3: with stars that tried again, some of these would take longer than the universe has lasted."""
    rules = IgnoreRules(data)
    for path in (b"a/" * 30 + b"a" * 250 + b"c", b"a/" * 2_000 + b"a" * 95):
        rules.verdict(path, is_folder=False)


GLOBS = st.text(st.sampled_from("ab*?"), min_size=1, max_size=10)


@given(GLOBS, st.text(st.sampled_from("abc"), min_size=1, max_size=12))
def test_stars_that_never_try_again_miss_nothing(rule: str, name: str) -> None:
    """ING-40: the same verdicts as an expression that tries every place."""
    plain = re.fullmatch(rule.replace("?", ".").replace("*", ".*"), name) is not None
    assert (verdict(rule.encode(), name.encode()) is LEFT) is plain
