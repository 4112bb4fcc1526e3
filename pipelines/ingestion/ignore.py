"""Rules of `.gitignore` files, whose matching takes time that grows with the length of a name alone (ING-1, ING-3)."""

from __future__ import annotations

import re
import warnings

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

IGNORE_FILE = ".gitignore"
IGNORE_FILE_BYTES = 1 << 20
"""Longer files are not obeyed."""

_MOST_RULES = 2_000  # of one file: every path is compared with all of them
_MOST_FOLDER_WILDCARDS = 3  # "**" of one rule: each of them may try every folder of a path
# A star and the fixed-length text after it, up to the next star in the same name.
_STAR_AND_MORE = re.compile(r"\[\^/\]\*((?:\[\^/\](?!\*)|\[(?:\\.|[^\]\\])+\]|\\.|[^/()\[\]*\\?|])+?)(?=\[\^/\]\*)")


class _LinearPattern(GitIgnoreSpecPattern):
    """A rule whose stars do not try again: the first place where the text after one is found is as good as any."""

    @classmethod
    def pattern_to_regex(cls, pattern: str) -> tuple[str | None, bool | None]:  # type: ignore[override]
        regex, include = super().pattern_to_regex(pattern)
        if regex is not None:
            regex = _STAR_AND_MORE.sub(r"(?>[^/]*?\1)", regex)
        return regex, include


def rules(data: bytes) -> GitIgnoreSpec:
    """The rules of one `.gitignore` file; those beyond what a person would write are not obeyed.

    Examples:
        >>> rules(b"*.py[cod]").match_file("a/b.pyc"), rules(b"*a*a*a*a*a*a*b").match_file("a" * 250 + "c")
        (True, False)
    """
    lines = data.decode("utf-8-sig", "replace").splitlines()
    kept = [line for line in lines if line.strip() and not line.startswith("#")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of brackets that a later Python may read in another way
        obeyed = [one for one in kept[:_MOST_RULES] if one.count("**") <= _MOST_FOLDER_WILDCARDS and _is_rule(one)]
        return GitIgnoreSpec.from_lines(obeyed, _LinearPattern, backend="simple")


def _is_rule(line: str) -> bool:
    """Whether a line can be obeyed; git leaves out those that it cannot read, too."""
    try:
        _LinearPattern(line)
    except (ValueError, re.error):
        return False
    return True
