"""References of a paper, and where its text cites them (ING-7)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from weft.domain.links import Link, LinkKind

_NOTE_CHARACTERS = 300  # of a reference are kept beside what cites it
_FIRST_NAMES = 3  # words in which the first author's surname stands, whatever the order of names
_MOST_IN_RANGE = 50  # "[3-900]" is no citation
_TITLE_WORDS = 3  # what has fewer is a name or a place
_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"<>{}]{1,200}")
_ARXIV = re.compile(
    r"\barxiv[:.\s/]{0,3}(?:org/(?:abs|pdf)/)?(\d{4}\.\d{4,5}|[a-z-]{2,12}(?:\.[A-Z]{2})?/\d{7})", re.IGNORECASE
)
_QUOTED = re.compile(r"[\"\u201c]([^\"\u201d]{8,400})[\"\u201d]|``([^`']{8,400})''")
_DATED = re.compile(r"\(?\b(?:19|20)\d{2}[a-z]?\b\)?[.,:]?\s+(.{8,400}?)(?:[.?!](?:\s|$)|$)")
_YEAR = re.compile(r"\b((?:19|20)\d{2})[a-z]?\b")
_WORD = re.compile(r"[^\W\d_]{2,}")
_NO_TITLE = re.compile(r"in |proc|doi\b|arxiv\b|https?:|pp\b|\w+://", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<!\b[A-Z])(?<!\bal)\.\s+")
_SURNAME = re.compile(r"[^\W\d_](?:[^\W\d_]|['\u2019-])+")
_NUMBERED = re.compile(r"\[(\d{1,4}(?:\s{0,2}[,;\u2013-]\s{0,2}\d{1,4}){0,40})\](?!\()")
_NAMED = re.compile(r"(?<![\w@])-?@([A-Za-z0-9_][\w:.#$%&+?~/-]{0,80})|\[\^([^\]\s]{1,80})\](?!:)")
_AUTHORED = re.compile(
    r"\b([A-Z][^\W\d_](?:[^\W\d_]|['\u2019-]){0,40})(?:\s+(?:et\s+al\.?|(?:and|&)\s+[A-Z][\w'\u2019-]{1,40}))?"
    r",?\s{1,3}\(?((?:19|20)\d{2})[a-z]?\b"
)
_KEYED = re.compile(r"^\s*\[([^\]\s@^][^\]]{0,80})\]\s*(?=\S)|^\s*\[?[@^]([\w:.-]{1,80})\]:?\s*|^\s*(\d{1,4})[.)]\s+")


@dataclass(frozen=True, slots=True)
class BibliographyEntry:
    """One entry of a bibliography."""

    key: str  # what the text cites it by
    text: str  # what the bibliography says, without mark-up
    title: str | None = None  # its title, where the mark-up says which that is

    @property
    def targets(self) -> tuple[str, ...]:
        """What a document may be found by: DOI, arXiv identifier, title; the key where it gives none of them."""
        doi, arxiv = _DOI.search(self.text), _ARXIV.search(self.text)
        targets = (
            f"doi:{doi.group().rstrip('.,;)')}" if doi else None,
            f"arxiv:{arxiv.group(1)}" if arxiv else None,
            self.title or title_in(self.text),
        )
        return tuple(target for target in targets if target) or (self.key,)

    @property
    def note(self) -> tuple[str, str]:
        """The fact that is kept beside a text that cites it."""
        return f"cite:{self.key}", self.text[:_NOTE_CHARACTERS]


def title_in(text: str) -> str | None:
    """The title in a reference: what stands in quotes, or after the year, or after the authors."""
    quoted = _QUOTED.search(text)
    if quoted:
        return (quoted.group(1) or quoted.group(2)).strip(" .,")
    dated = _DATED.search(text)
    parts = _SENTENCE.split(text)
    for part in (dated.group(1) if dated else "", *parts[1:2]):
        title = part.strip(" .,*_")
        if len(_WORD.findall(title)) >= _TITLE_WORDS and not _NO_TITLE.match(title):
            return title
    return None


def entry(text: str, ordinal: int) -> BibliographyEntry:
    """A reference from a line of a bibliography: by the key it begins with, else by its place in the list."""
    keyed = _KEYED.match(text)
    if keyed is None:
        return BibliographyEntry(str(ordinal), " ".join(text.split()))
    key = keyed.group(1) or keyed.group(2) or keyed.group(3)
    return BibliographyEntry(key.rstrip("."), " ".join(text[keyed.end() :].split()))


class Bibliography:
    """The references of one paper, found by what its text cites them by."""

    def __init__(self, references: Iterable[BibliographyEntry]) -> None:
        self._by_key: dict[str, BibliographyEntry] = {}
        self._by_author: dict[tuple[str, str], BibliographyEntry] = {}
        for reference in references:
            self._by_key.setdefault(reference.key, reference)
            surnames = _SURNAME.findall(reference.text[:_NOTE_CHARACTERS])
            years = _YEAR.findall(reference.text)
            for surname in surnames[:_FIRST_NAMES]:
                for year in years:
                    self._by_author.setdefault((surname.lower(), year), reference)

    @property
    def references(self) -> Mapping[str, BibliographyEntry]:
        """References by key."""
        return self._by_key

    def cited(self, text: str) -> Iterator[tuple[int, BibliographyEntry]]:
        """Where a text cites which reference: by number, by key, or by author and year."""
        keys = [(match.start(), str(key)) for match in _NUMBERED.finditer(text) for key in _numbers(match.group(1))]
        keys += [(match.start(), (match[1] or match[2]).rstrip(".:")) for match in _NAMED.finditer(text)]
        yield from ((at, self._by_key[key]) for at, key in keys if key in self._by_key)
        for match in _AUTHORED.finditer(text):
            reference = self._by_author.get((match.group(1).lower(), match.group(2)))
            if reference is not None:
                yield match.start(), reference


def links_of_citations(cited: Iterable[tuple[int, BibliographyEntry]]) -> Iterator[tuple[int, Link]]:
    """By place, a link to each thing that what is cited there may be found by."""
    for at, reference in cited:
        for target in reference.targets:
            yield at, Link(LinkKind.CITES, target)


def _numbers(listed: str) -> Iterator[int]:
    """The numbers of "1, 3-5"."""
    for part in re.split(r"[,;]", listed):
        first, _, last = part.replace("\u2013", "-").partition("-")
        low, high = int(first), int(last or first)
        yield from range(low, min(high, low + _MOST_IN_RANGE) + 1)
