"""Rules written as in `.gitignore`, where git is not asked: of settings, and of trees on hosts without git (ING-40)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from pathlib import Path

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from weft.ingestion.git.safe_files import UnreadableError, read_bytes

IGNORE_FILE = ".gitignore"
_IGNORE_FILE_BYTES = 1 << 20  # longer files are not obeyed
_MOST_RULES = 2_000  # of one file: every path is compared with all of them
_RULE_CHARACTERS = 1_000
_MOST_STARS = 3  # of one rule: the time that a path takes grows with its length to this power
_STARS = re.compile(r"\*+")
_CLASS = re.compile(r"\[[!^]?\[:")  # such as [[:alpha:]], which Python's expressions have not
_FOLDER_MARK = "ps_d"


class PathRules:
    """What some rules say about paths from one folder: the last one that matches counts."""

    def __init__(self, lines: Iterable[str]) -> None:
        rules = [rule for line in lines if (rule := _rule(line)) is not None]
        self._rules = rules[::-1]

    def verdict(self, path: str, *, is_folder: bool = False) -> bool | None:
        """Whether an entry itself is matched (True), taken back (False), or not spoken of (None)."""
        entry = f"{path}/" if is_folder else path
        return next((matches for regex, matches in self._rules if _matches(regex, entry)), None)


def _rule(line: str) -> tuple[re.Pattern[str], bool] | None:
    """The expression of a rule and whether it excludes; None of what says nothing or cannot be read."""
    if len(line) > _RULE_CHARACTERS or len(_STARS.findall(line)) > _MOST_STARS or _CLASS.search(line):
        return None
    try:
        # Git takes two stars before the last slash for the folders below, pathspec for all that is below.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of brackets that Python may read otherwise one day
            pattern = GitIgnoreSpecPattern(re.sub(r"/\*\*/$", "/**/*/", line))
    except (ValueError, re.error):
        return None
    return None if pattern.regex is None or pattern.include is None else (pattern.regex, pattern.include)


def _matches(regex: re.Pattern[str], entry: str) -> bool:
    """Whether an expression matches an entry itself: it also finds all that lies below a folder that it matches."""
    for matched in regex.finditer(entry):
        marked = matched.groupdict().get(_FOLDER_MARK)
        # `a/**` is about what is in a folder: it has no mark, and ends with the folder's slash.
        if matched.end() == len(entry) if marked else not (entry.endswith("/") and matched.end() == len(entry)):
            return True
    return False


class TreeRules:
    """What the ignore files of a tree say, from its root on."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._rules: dict[tuple[str, ...], PathRules | None] = {}

    def leaves_out(self, path: tuple[str, ...], *, is_folder: bool) -> bool:
        """Whether the last rule that speaks of an entry excludes it; folders above it are taken for included."""
        for depth in range(len(path) - 1, -1, -1):
            rules = self._of(path[:depth])
            verdict = None if rules is None else rules.verdict("/".join(path[depth:]), is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False

    def _of(self, folder: tuple[str, ...]) -> PathRules | None:
        if folder not in self._rules:
            self._rules[folder] = self._read(folder)
        return self._rules[folder]

    def _read(self, folder: tuple[str, ...]) -> PathRules | None:
        try:
            data, _ = read_bytes(self._root, (*folder, IGNORE_FILE), limit=_IGNORE_FILE_BYTES)
        except (OSError, UnreadableError):
            return None
        lines = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
        return PathRules(line.removesuffix("\r") for line in lines[:_MOST_RULES])
