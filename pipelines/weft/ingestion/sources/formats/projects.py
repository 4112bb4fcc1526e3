"""Projects of Claude's export: what each is instructed, and the documents that it was given (ING-28)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from weft.ingestion.sources.formats.blocks import heading
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.source import Readings, Source, Written


def read(source: Source) -> Readings:
    """The projects of a file as one document, with a section for each document that one was given."""
    value = json.loads(source.file.read(source.limit + 1))
    yield Written(
        "\n\n".join(part for each in (value if isinstance(value, list) else [value]) for part in _parts(each))
    )


def _parts(project: Any) -> Iterator[str]:
    name, *instructions = (_text(project, key) for key in ("name", "description", "prompt_template"))
    yield from filter(None, (heading(name or "Project", 1), *instructions))
    docs = project.get("docs") if isinstance(project, Mapping) else None
    for each in docs if isinstance(docs, list) else ():
        if content := _text(each, "content"):
            yield heading(f"{name}: {_text(each, 'filename')}", 1)
            yield content


def _text(value: Any, key: str) -> str:
    text = value.get(key) if isinstance(value, Mapping) else None
    return plain(text) if isinstance(text, str) else ""
