"""Where front matter stands at the head of a Markdown text: YAML between dashes, TOML between plus signs (ING-6)."""

from __future__ import annotations

import re

FRONT_MATTER = re.compile(
    r"\A\ufeff?(?:---[ \t]*\r?\n(?:.*?\r?\n)??(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n(?:.*?\r?\n)??\+\+\+)[ \t]*(?:\r?\n|\Z)",
    re.DOTALL,
)
