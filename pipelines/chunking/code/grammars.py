"""The languages whose source code is cut by its syntax, one profile each (ING-5)."""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.chunking.code.grammar import Grammar
from pipelines.chunking.code.grammars_compiled import CPP, GO, JAVA, RUST, C
from pipelines.chunking.code.grammars_scripting import JAVASCRIPT, PYTHON, TSX, TYPESCRIPT

GRAMMARS: Mapping[str, Grammar] = {
    grammar.name: grammar for grammar in (PYTHON, GO, JAVASCRIPT, TYPESCRIPT, TSX, JAVA, RUST, C, CPP)
}
"""By `Document.language`."""
