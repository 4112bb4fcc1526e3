"""Papers among the files of a tree: which files are papers, and what a paper says of itself (ING-1, ING-7)."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from pipelines.chunking.paper.json_layouts import paper_from_json
from pipelines.chunking.paper.paper import MARKDOWN, is_paper, paper_facts
from pipelines.domain.documents import Document
from pipelines.ingestion.metadata.declared import as_text

JSON = "json"
_HINT = re.compile(r"\"(?:abstract|body_text|sections)\"\s{0,9}:")


def language_of(text: str, name: str) -> str | None:
    r"""The notation of a paper: "latex", "markdown" or "json"; None for every other file.

    Examples:
        >>> language_of('{"title": "On reeds", "abstract": "Tall."}', "a.json")
        'json'
        >>> language_of('{"name": "reeds"}', "package.json") is None
        True
    """
    if name.lower().endswith(".json"):
        return JSON if _from_json(text) else None
    return is_paper(text, name)


def with_facts(document: Document) -> Document:
    """A paper with its title, its authors and its numbers, where nothing else declared them; JSON as Markdown."""
    if document.language == JSON:
        document = replace(document, text=_from_json(document.text) or document.text, language=MARKDOWN)
    facts = paper_facts(document.text, document.language or MARKDOWN)
    return replace(
        document,
        title=document.title or facts.title,
        authors=facts.authors or document.authors,
        metadata={**facts.numbers, **document.metadata},
    )


def _from_json(text: str) -> str | None:
    if not _HINT.search(text):
        return None
    try:
        paper = paper_from_json(json.loads(text))
    except (ValueError, RecursionError):
        return None
    return None if paper is None else as_text(paper)
