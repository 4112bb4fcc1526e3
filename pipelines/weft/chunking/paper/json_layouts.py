"""Papers in JSON, written out as Markdown (ING-7): whatever their layout, they are then read as papers in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

_TITLES = ("title", "paper_title", "article_title")
_HEADINGS = ("heading", "title", "section_title", "section", "name", "header", "section_name")
_TEXTS = ("text", "content", "body", "paragraphs", "sentences")
_SECTIONS = ("sections", "body_text", "full_text", "body", "paragraphs", "content", "sec")
_INNER = ("sections", "subsections", "children")
_REFERENCES = ("references", "bib_entries", "bibliography", "bibliography_entries", "citations")
_NESTED = ("pdf_parse", "latex_parse", "metadata", "paper", "article", "content")
_KEYS = ("key", "id", "ref_id", "index", "citation_key", "label")
_VENUES = ("venue", "journal", "booktitle", "publisher")
_IDENTIFIERS = {"doi": "doi:{}", "DOI": "doi:{}", "arxiv": "arXiv:{}", "arXiv": "arXiv:{}", "arxiv_id": "arXiv:{}"}
_DEEPEST = 6  # ranks of headings in Markdown; what is nested deeper is left out
_MARK = re.compile(r"\W{0,2}(\d{1,4})\W{0,2}")
_BLOCK_SIGN = re.compile(r"^(?=#{1,6}[ \t])", re.MULTILINE)


def paper_from_json(value: object) -> str | None:
    """A paper as Markdown; None where the value is none: it has a title or an abstract, and an abstract or sections.

    Layouts: {title, authors, abstract, sections: [{heading, text or paragraphs, sections}], references}, and S2ORC's.
    """
    if not isinstance(value, Mapping):
        return None
    layers = [value, *(value[name] for name in _NESTED if isinstance(value.get(name), Mapping))]
    title = next((text for layer in layers if (text := _text(_first(layer, _TITLES)))), "")
    abstract = next((texts for layer in layers if (texts := _paragraphs(layer.get("abstract")))), [])
    sections = next((each for layer in layers if isinstance(each := _first(layer, _SECTIONS), (list, str))), None)
    if not (title or abstract) or not (abstract or _is_sectioned(sections)):
        return None
    authors = "; ".join(_names(next((layer["authors"] for layer in layers if layer.get("authors")), None)))
    labels = dict(_labels(sections))
    parts = [f"# {_line(title)}" if title else "", authors and f"Authors: {authors}"]
    parts += dict.fromkeys(number for layer in layers for number in _identifiers(layer))
    parts += ["## Abstract", *abstract] if abstract else []
    parts += _sections(sections)
    references = next((each for layer in layers if (each := _first(layer, _REFERENCES))), None)
    listed = list(_references(references, labels))
    parts += ["## References", "\n".join(listed)] if listed else []
    return "\n\n".join(part for part in parts if part) + "\n"


def _first(layer: Mapping[str, object], names: Sequence[str]) -> object:
    return next((layer[name] for name in names if layer.get(name)), None)


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _line(value: str) -> str:
    return " ".join(value.split())


def _is_sectioned(sections: object) -> bool:
    """Whether sections are named or are blocks of text, as no other list is."""
    return isinstance(sections, list) and any(
        isinstance(section, Mapping) and _first(section, _TEXTS) and _first(section, _HEADINGS) for section in sections
    )


def _paragraphs(value: object, depth: int = 0) -> list[str]:
    """Paragraphs of a text, of a list of texts, or of a list of blocks with texts."""
    if isinstance(value, str):
        return [_BLOCK_SIGN.sub("\\\\", value.strip())]
    if depth > _DEEPEST:
        return []
    if isinstance(value, Mapping):
        return _paragraphs(_first(value, _TEXTS), depth + 1)
    parts = value if isinstance(value, list) else ()
    return [paragraph for part in parts for paragraph in _paragraphs(part, depth + 1) if paragraph]


def _sections(sections: object, rank: int = 2) -> Iterator[str]:
    """Headings and paragraphs; neighbouring blocks under one heading are one section."""
    if isinstance(sections, str):
        yield from _paragraphs(sections)
    latest = None
    for section in sections if isinstance(sections, list) and rank <= _DEEPEST else ():
        heading = _line(_text(_first(section, _HEADINGS))) if isinstance(section, Mapping) else ""
        if heading and heading != latest:
            yield f"{'#' * rank} {heading}"
        latest = heading or latest
        yield from _paragraphs(section)
        yield from _sections(_first(section, _INNER) if isinstance(section, Mapping) else None, rank + 1)


def _names(authors: object) -> Iterator[str]:
    if isinstance(authors, str):
        yield _line(authors)
    for author in authors if isinstance(authors, list) else ():
        if isinstance(author, str):
            yield _line(author)
        elif isinstance(author, Mapping):
            middle = author.get("middle")
            parts = (
                author.get("first") or author.get("given"),
                *(middle if isinstance(middle, list) else [middle]),
                author.get("last") or author.get("family"),
            )
            name = _text(author.get("name")) or " ".join(filter(None, map(_text, parts)))
            if name:
                yield _line(name)


def _labels(sections: object) -> Iterator[tuple[str, str]]:
    """What the text calls each reference that a span of it points to: "[12]" makes BIBREF11 the twelfth."""
    for section in sections if isinstance(sections, list) else ():
        spans = section.get("cite_spans") if isinstance(section, Mapping) else None
        for span in spans if isinstance(spans, list) else ():
            if isinstance(span, Mapping) and isinstance(span.get("ref_id"), str):
                mark = _MARK.fullmatch(_text(span.get("text")))
                if mark:
                    yield span["ref_id"], mark.group(1)


def _references(references: object, labels: Mapping[str, str]) -> Iterator[str]:
    entries: Sequence[tuple[object, object]] = ()
    if isinstance(references, Mapping):
        entries = list(references.items())
    elif isinstance(references, list):
        entries = [(None, entry) for entry in references]
    for ordinal, (name, entry) in enumerate(entries, start=1):
        text = _line(entry) if isinstance(entry, str) else _reference(entry)
        own = _first(entry, _KEYS) if isinstance(entry, Mapping) and name is None else name
        key = labels.get(str(own), str(own)) if own is not None else str(ordinal)
        if text:
            yield f"- {text}" if text.startswith("[") else f"- [{key}] {text}"


def _reference(entry: object) -> str:
    """Authors (year). Title. Venue. Identifiers."""
    if not isinstance(entry, Mapping):
        return ""
    authors = "; ".join(_names(entry.get("authors")))
    year = entry.get("year")
    dated = f"{authors} ({year})".strip() if year else authors
    parts = [dated, _text(entry.get("title")), _text(_first(entry, _VENUES)), *_identifiers(entry)]
    text = ". ".join(_line(part).rstrip(".") for part in parts if part)
    return text or _line(_text(_first(entry, ("text", "raw_text"))))


def _identifiers(entry: Mapping[str, object]) -> Iterator[str]:
    others = entry.get("other_ids")
    for layer in (entry, others if isinstance(others, Mapping) else {}):
        for name, form in _IDENTIFIERS.items():
            value = layer.get(name)
            first = value[0] if isinstance(value, list) and value else value
            if isinstance(first, str) and first:
                yield form.format(first.removeprefix("https://doi.org/").removeprefix("arXiv:"))
