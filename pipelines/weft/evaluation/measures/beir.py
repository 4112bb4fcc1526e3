"""Data sets in BEIR layout: a corpus, queries and judgements by split (EVA-5)."""

from __future__ import annotations

import gzip
import json
import logging
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.domain.errors import SourceError
from weft.runtime.storage.errors import advice_on

log = logging.getLogger(__name__)

_COLUMNS = 3
_INTEGER = re.compile(r"-?[0-9]+")

_TEXT = "a text in UTF-8 that can be read to its end"

Qrels = Mapping[str, Mapping[str, int]]
"""Grade by document id, by query id; 0 is judged and irrelevant."""


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query with at least one judgement in the split."""

    query_id: str
    text: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Dataset:
    """One split of a data set; the corpus stays on disk."""

    name: str
    split: str
    corpus: Path
    queries: tuple[JudgedQuery, ...]  # judged ones only, in the order of the file
    qrels: Qrels


def read_dataset(folder: Path, split: str) -> Dataset:
    """Read a folder with `corpus.jsonl[.gz]`, `queries.jsonl[.gz]` and `qrels/SPLIT.tsv`.

    Raises:
        SourceError: A file is missing or malformed, or contradicts itself; for a missing split, the splits there are.
    """
    qrels = _qrels(folder, split)
    judged = [query for query in _queries(_either(folder, "queries")) if query.query_id in qrels]
    if unknown := qrels.keys() - {query.query_id for query in judged}:
        raise SourceError(f"{folder}: expected a text for every judged query, none for {sorted(unknown)[:3]} …")
    return Dataset(folder.resolve().name, split, _either(folder, "corpus"), tuple(judged), qrels)


def splits(folder: Path) -> list[str]:
    """The splits that a data set has judgements for."""
    return sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))


def _either(folder: Path, name: str) -> Path:
    for path in (folder / f"{name}.jsonl", folder / f"{name}.jsonl.gz"):
        if path.is_file():
            return path
    raise SourceError(f"{folder}: expected {name}.jsonl or {name}.jsonl.gz, found neither")


def _queries(path: Path) -> Iterator[JudgedQuery]:
    once = UniqueLines("query")
    for place, line in numbered_lines(path, _TEXT):
        query = _query(line, place)
        if once.note(place, query.query_id, says=query):
            yield query
    once.report(path)


def _query(line: str, place: str) -> JudgedQuery:
    try:
        row = json.loads(line)
        named, text = row["_id"], row["text"]
        if type(named) not in {str, int} or not isinstance(text, str) or not is_id(str(named)) or not text.strip():
            raise ValueError(f"{named!r:.64} and {text!r:.64}")
        return JudgedQuery(str(named), text, dict(row.get("metadata") or {}))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SourceError(
            f"{place}: expected a JSON object with _id, text and, if any, an object as metadata, the id "
            f"without blanks around it, found: {error!r}"
        ) from error


def _qrels(folder: Path, split: str) -> Qrels:
    path = folder / "qrels" / f"{split}.tsv"
    if not path.is_file():
        raise SourceError(f"{folder}: expected judgements in qrels/{split}.tsv, found splits {splits(folder)}")
    qrels: dict[str, dict[str, int]] = {}
    once = UniqueLines("judgement")
    for number, (place, line) in enumerate(numbered_lines(path, _TEXT)):
        row = line.split("\t")
        if number or not _is_head(row):
            query_id, document_id, grade = _judgement(row, place)
            once.note(place, query_id, document_id, says=grade)
            qrels.setdefault(query_id, {})[document_id] = grade
    once.report(path)
    return qrels


def _judgement(row: list[str], place: str) -> tuple[str, str, int]:
    if len(row) != _COLUMNS or not _INTEGER.fullmatch(row[2].strip()) or not is_id(row[0]) or not is_id(row[1]):
        expected = "query-id, corpus-id and an integer score, with tabs between and no blanks around ids"
        raise SourceError(f"{place}: expected {expected}, found {row}")
    return row[0], row[1], int(row[2])


def _is_head(row: list[str]) -> bool:
    """Whether it is the line of column names that files in BEIR layout begin with: three, and the last of letters."""
    return len(row) == _COLUMNS and row[2].strip().replace("_", "").replace("-", "").isalpha()


def is_id(text: str) -> bool:
    """Whether a text names a document or a query: no blanks around it, and no byte order mark of files joined."""
    return bool(text) and text == text.strip() and "\ufeff" not in text


class UniqueLines:
    """Lines of a file that say what no two of them may say."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._places: dict[tuple[str, ...], tuple[str, object]] = {}
        self.repeated = 0  # lines that say what an earlier one says, word for word

    def note(self, place: str, *names: str, says: object = None) -> bool:
        """Note a line by the names in it and what it says of them; whether it is the first to say so.

        Raises:
            SourceError: An earlier line has the same names, and says something else, or what they say is not told.
        """
        where, before = self._places.setdefault(names, (place, says))
        if where != place and says is not None and before == says:
            self.repeated += 1
            return False
        if where != place:
            line = where.rpartition(":")[2]
            raise SourceError(
                f"{place}: expected every {self._what} once, found {' '.join(names)[:80]!r} again, as in line {line}: "
                "take one of the two out"
            )
        return True

    def report(self, path: Path) -> None:
        """Say in the log how many lines say the same again."""
        if self.repeated:
            log.warning("%s: %s lines say the same again, and count once", path, f"{self.repeated:,}")


def numbered_lines(path: Path, expected: str) -> Iterator[tuple[str, str]]:
    """The lines of a text that are not blank, each with its place, such as "queries.jsonl:3"; unpacked if it is packed.

    Raises:
        SourceError: It cannot be read to its end.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"{path}:{number}", line.rstrip("\r\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise SourceError(f"{path}: expected {expected}, found: {error}: {advice_on(error)}") from error
