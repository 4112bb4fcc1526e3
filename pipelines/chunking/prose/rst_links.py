"""What a reStructuredText source points to: roles, references, notes and included files (ING-14)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from pipelines.chunking.units.splitting import decoded

# Lengths are bounded: each sign of a hostile page would read on to its end.
_LINK = re.compile(
    rb":(?P<role>[A-Za-z][\w.+:-]{0,60}):`(?P<named>[^`]{1,400})`"
    rb"|(?<![`\w:])`(?P<phrase>[^`]{1,400})`(?P<refers>__?)?(?!\w)"
    rb"|\[(?P<note>[#*\w.+:-]{1,80})\]_(?!\w)"
    rb"|(?<![\w`:.|-])(?P<word>\w[\w.+-]{0,80})_(?![\w`_])"
)
_TITLED = re.compile(r"^(.*?)\s*<([^<>]+)>$", re.DOTALL)
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
INCLUDED = re.compile(rb"^[ \t]*\.\.[ \t]+(?:include|literalinclude)::[ \t]+(\S{1,500})", re.MULTILINE)
_PLACES = frozenset({"ref", "numref", "term", "keyword", "option", "envvar", "token"})
_FILES = frozenset({"doc", "download"})
_SYMBOL = re.compile(
    "func|meth|class|mod|attr|exc|data|obj|const|macro|type|struct|enum|member|any|var|cmember|decorator"
)


def references_in(source: bytes, literals: Sequence[tuple[int, int]]) -> Iterator[re.Match[bytes]]:
    """Every role, reference, note and word that may refer to another place, but for those in literals, in order."""
    spans = sorted(literals)
    for match in _LINK.finditer(source):
        before = bisect_right(spans, match.start(), key=lambda span: span[0])
        if before == 0 or spans[before - 1][1] <= match.start():
            yield match


def target_of(match: re.Match[bytes], anchors: set[str]) -> str | None:
    """What one of them points to; None where it is to nothing.

    Args:
        anchors: Names of places in the same document.
    """
    if match["role"]:
        return _role_target(decoded(match["role"]).rpartition(":")[2], decoded(match["named"]))
    if match["note"]:
        return decoded(match["note"])
    if match["word"]:
        label = label_of(decoded(match["word"]))
        return f"#{label}" if label in anchors else None
    if not match["refers"]:
        return None
    phrase = decoded(match["phrase"])
    titled = _TITLED.match(phrase)
    if titled:
        return None if _ELSEWHERE.match(titled.group(2)) or titled.group(2).endswith("_") else titled.group(2)
    return f"#{label_of(phrase)}" if label_of(phrase) in anchors else None


def _role_target(role: str, text: str) -> str | None:
    """What a role points to: a label in any document, a path, or a symbol."""
    titled = _TITLED.match(text)
    target = (titled.group(2) if titled else text).strip()
    if role in _PLACES:
        return label_of(target) or None
    if role in _FILES:
        return target
    if _SYMBOL.fullmatch(role):
        return target.lstrip("~!.").removesuffix("()") or None
    return None


def label_of(text: str) -> str:
    r"""The form in which a label or a title names its place: references differ in case, blanks and signs.

    Examples:
        >>> label_of("The  `Main` Loop")
        'the-main-loop'
    """
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-")
