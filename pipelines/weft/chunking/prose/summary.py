"""Short extractive summaries: what a document says about itself first, then its most telling sentences (ING-18).

Prose is summarised by its first sentence and the sentences that SumBasic takes of its beginning. Code is summarised by
its leading comment or docstring and the names that it defines, configuration by its leading comment and top keys, a
conversation by its speakers and first turns. Only the beginning of a document is looked at, so the cost does not grow
with its length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from weft.chunking.prose.front import front_of
from weft.chunking.prose.reader import outline_of
from weft.chunking.units.splitting import TokenCounter, TokenMeter, decoded, digest, encoded
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document

_LINE_END = re.compile(r"\r\n?|\n")
_LOOK = 16_000  # characters of a document that are looked at
_PROSE = 6_000  # characters of prose among them that sentences are taken from
_COMMENT = 2_000  # characters of a leading comment
_FENCED = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_ABSTRACT = re.compile(r"\\begin\{abstract\}(.*?)\\end\{abstract\}", re.DOTALL)
_MARKUP = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,500}\)|<!--.{0,500}?-->|<[^>\n]{1,200}>|[*_`]{1,3}", re.DOTALL)
_SENTENCE = re.compile(r".*?[.!?](?=\s|$)", re.DOTALL)
_NO_PROSE = ("#", "|", "..", "::", "\\", "{", "}", "$", "@", "<", "=", "---", "+-", ">>>", "%")
_FEWEST_WORDS = 5  # of a paragraph that says something
_WORDY = re.compile(r"[^\W\d_]{2,}")
_LEGAL = re.compile(r"copyright|licen[sc]e|spdx|all rights reserved", re.IGNORECASE)
_DOCSTRING = re.compile(r"\A(?:\s|#[^\n]*\n)*[rRuU]?(\"\"\"|''')(.*?)\1", re.DOTALL)
_BLOCK_COMMENT = re.compile(r"\A(?:#![^\n]*\n\s*)?(/\*.*?\*/|<!--.*?-->|\(\*.*?\*\)|\{-.*?-\})", re.DOTALL)
_LINE_COMMENTS = re.compile(r"\A(?:\s*(?://|#|--|;|%|')[^\n]*(?:\n|\Z))+")
_COMMENT_SIGNS = re.compile(
    r"^[ \t]{0,40}(?:/\*+!?|\*+/|\*|//+!?|#+!?|--+|;+|%+|<!--|-->)?[ \t]?|[ \t]{0,40}(?:\*/|-->)[ \t]{0,40}$",
    re.MULTILINE,
)
_KEYS: Mapping[str, str] = {
    "json": r"^(?P<indent>[ \t]*)\"(?P<key>[^\"\n]{1,80})\"[ \t]*:",
    "ini": r"^(?P<indent>)\[(?P<key>[^\]\n]{1,80})\]",
    "toml": r"^(?P<indent>)\[+(?P<key>[^\]\n]{1,80})\]",
    "dockerfile": r"^(?P<indent>)(?P<key>FROM[ \t]+\S{1,80})",
    "make": r"^(?P<indent>)(?P<key>[A-Za-z0-9][\w./%-]{0,80})[ \t]*:(?!=)",
}
_ANY_KEY = r"^(?P<indent>)(?P<key>[A-Za-z_][\w. -]{0,80}?)[ \t]*[:=]"
_TURNS = 4


@dataclass(frozen=True, slots=True)
class _Task:
    """What to sum up, and in how many tokens."""

    document: Document
    chunks: Sequence[Chunk]
    limit: int
    count_tokens: TokenCounter

    @property
    def head(self) -> str:
        """The beginning of the text, which is looked at."""
        return self.document.text[:_LOOK]


def summary_of(document: Document, chunks: Sequence[Chunk], *, limit: int, count_tokens: TokenCounter) -> str | None:
    """At most `limit` tokens on what a document says; None where its text is no longer, or says nothing in words."""
    if len(document.text) <= limit or (len(document.text) < _LOOK and count_tokens(document.text) <= limit):
        return None
    summarise = _SUMMARIES.get(document.content_type, _of_prose)
    return within(summarise(_Task(document, chunks, limit, count_tokens)), limit, count_tokens) or None


def within(text: str, limit: int, count_tokens: TokenCounter) -> str:
    """The beginning of a text that has at most `limit` tokens, up to the end of a sentence or else of a word."""
    text = " ".join(text.split())[: limit * _CHARACTERS_PER_TOKEN]
    if count_tokens(text) <= limit:
        return text
    sentences = _longest(text, [match.end() for match in _SENTENCE.finditer(text)], limit, count_tokens)
    return sentences or _longest(text, [match.start() for match in re.finditer(r"\s", text)], limit, count_tokens)


_CHARACTERS_PER_TOKEN = 12  # at most, in a summary: longer words than that are no prose


def _longest(text: str, ends: Sequence[int], limit: int, count_tokens: TokenCounter) -> str:
    whole = bisect_right(ends, limit, key=lambda end: count_tokens(text[:end]))
    return text[: ends[whole - 1]].strip() if whole else ""


def _of_prose(task: _Task) -> str:
    text = task.head
    outline = outline_of(text, task.document.content_type, task.document.language)
    if outline is not None:
        source = encoded(text)
        text = decoded(outline.facts.shown(source, 0, len(source)))
    return _extract(task, text)


def _of_paper(task: _Task) -> str:
    if (stated := _ABSTRACT.search(task.head)) is not None:
        return stated.group(1)
    abstract = (each.text for each in task.chunks if [name.lower() for name in each.heading_path[-1:]] == ["abstract"])
    first = (chunk.text for chunk in task.chunks if chunk.level == 0)
    texts = (*islice(abstract, 1), *islice(first, 1), task.document.text)
    return next((extract for text in texts if (extract := _extract(task, text))), "")


def _of_code(task: _Task) -> str:
    names = list(dict.fromkeys(name for chunk in task.chunks if chunk.level <= 2 for name in chunk.symbols))
    outer = [name for name in names if name.rpartition(".")[0] not in names]
    return _comment_and_names(task, "Defines", outer)


def _of_configuration(task: _Task) -> str:
    pattern = _KEYS.get(task.document.language or "", _ANY_KEY)
    matches = [(len(match["indent"]), match["key"].strip()) for match in re.finditer(pattern, task.head, re.MULTILINE)]
    outermost = min((indent for indent, _ in matches), default=0)
    keys = dict.fromkeys(key for indent, key in matches if indent == outermost)
    return _comment_and_names(task, "Sets", list(keys))


def _of_conversation(task: _Task) -> str:
    turns = [line for line in _LINE_END.split(task.head) if line.strip()][:_TURNS]
    speakers = task.document.metadata.get("speakers")
    about = task.document.title or (f"Conversation of {speakers}" if speakers else "Conversation")
    return " ".join((f"{about.rstrip('.')}.", *turns))


_SUMMARIES: Mapping[ContentType, Callable[[_Task], str]] = {
    ContentType.CODE: _of_code,
    ContentType.PAPER: _of_paper,
    ContentType.CONVERSATION: _of_conversation,
    ContentType.CONFIGURATION: _of_configuration,
}


def _extract(task: _Task, text: str) -> str:
    """The first sentence of a text's prose, and what SumBasic takes of the rest of its beginning."""
    prose = "\n".join(_paragraphs(text))[:_PROSE]
    lead = _SENTENCE.match(prose)
    if lead is None:
        return prose
    budget = task.limit - task.count_tokens(lead.group())
    if budget <= 0 or not prose[lead.end() :].strip():
        return lead.group()
    source = encoded(prose)
    rest = digest(TokenMeter(source, task.count_tokens), len(encoded(lead.group())), len(source), budget)
    return f"{lead.group()} {rest}"


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of prose, each on one line: no headings, fences, tables or markup."""
    front = front_of(text)
    plain = _FENCED.sub("\n", text[front.after if front else 0 : _LOOK])
    for paragraph in re.split(r"\n[ \t\r]*\n", plain):
        body = "\n".join(line for line in _LINE_END.split(paragraph) if not line.lstrip().startswith(_NO_PROSE))
        words = " ".join(_MARKUP.sub(r"\1", body).split())
        if len(_WORDY.findall(words)) >= _FEWEST_WORDS:
            yield words


def _leading_comment(text: str) -> str:
    """What the head of a source file says in words, but for its licence."""
    text = text.lstrip()
    docstring = _DOCSTRING.match(text)
    if docstring is not None:
        return docstring.group(2)[:_COMMENT]
    for pattern in (_BLOCK_COMMENT, _LINE_COMMENTS):
        while (match := pattern.match(text)) is not None:
            comment = _COMMENT_SIGNS.sub("", match.group(match.lastindex or 0))
            if parts := [part for part in re.split(r"\n\s*\n", comment) if part.strip() and not _LEGAL.search(part)]:
                return " ".join(parts)[:_COMMENT]
            text = text[match.end() :].lstrip()
    return ""


def _comment_and_names(task: _Task, verb: str, names: Sequence[str]) -> str:
    comment = within(_leading_comment(task.head), task.limit // 2, task.count_tokens)
    return " ".join(filter(None, (comment, f"{verb}: {', '.join(names)}." if names else "")))
