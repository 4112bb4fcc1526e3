"""Functions of source files as an independent parser sees them, and a plain splitter to compare chunkers with."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from tokenizers import Tokenizer

Span = tuple[int, int]


def python_functions(text: str) -> Iterator[Span]:
    """Byte spans of all functions and methods with their decorators; nothing where the text is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    # The parser counts lines at line ends alone, in bytes.
    starts = [0, *accumulate(len(line) for line in text.encode().splitlines(keepends=True))]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node, *node.decorator_list], key=lambda part: part.lineno)
            at = 1 if first is not node else 0  # the sign before a decorator
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            yield starts[first.lineno - 1] + first.col_offset - at, end


def kept_whole(functions: Iterable[Span], chunks: Sequence[Span]) -> int:
    """How many functions lie in one chunk."""
    return sum(any(start <= first and last <= end for start, end in chunks) for first, last in functions)


def plain_windows(source: bytes, tokenizer: Tokenizer, size: int, overlap: int) -> list[Span]:
    """Byte spans of windows of `size` tokens, `overlap` of them shared with the one before: no syntax, no lines."""
    text = source.decode()
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    places = [0, *accumulate(len(letter.encode()) for letter in text)]
    spans: list[Span] = []
    for first in range(0, len(offsets), size - overlap):
        last = min(first + size, len(offsets))
        start = 0 if not spans else places[offsets[first][0]]
        spans.append((start, len(source) if last == len(offsets) else places[offsets[last][0]]))
        if last == len(offsets):
            break
    return spans


def python_files(root: Path) -> list[Path]:
    """Source files below a folder, tests of the interpreter and foreign packages left out, in order."""
    return [
        path
        for path in sorted(root.rglob("*.py"))
        if not {"test", "tests", "site-packages", "lib2to3", "idle_test"} & set(path.relative_to(root).parts)
    ]
