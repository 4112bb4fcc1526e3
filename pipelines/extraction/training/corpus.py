"""Annotated sentences from JSON Lines, and the names they hold."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from pipelines.domain.errors import SourceError
from pipelines.extraction.training.labels import LOCATION, ORGANIZATION, PERSON, SOURCES, collapse
from pipelines.extraction.training.sampling import Sentence, Span, resplit

LONGEST = 150  # words; a longer "sentence" is a table or a failed split, and would dominate a batch

_NAME_SOURCES = ("re_docred", "wikigold", "crossner_politics")
_DEMONYMS = ("an", "ish", "ese")  # one source marks "Portuguese" as a place


def read_sentences(path: Path, sources: Container[str] = SOURCES) -> dict[str, list[Sentence]]:
    """Sentences of some sources, those we train on unless others are named, by source, in file order.

    Raises:
        SourceError: The file cannot be read as gzipped JSON Lines of annotated sentences.
    """
    sentences: defaultdict[str, list[Sentence]] = defaultdict(list)
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                _keep(sentences, json.loads(line), sources)
    except (OSError, ValueError, KeyError) as error:
        raise SourceError(f"{path}: expected gzipped JSON Lines with tokenized_text, ner, source: {error}") from error
    return dict(sentences)


def _keep(sentences: defaultdict[str, list[Sentence]], row: Mapping[str, object], sources: Container[str]) -> None:
    source, words, spans = str(row["source"]), row["tokenized_text"], row["ner"]
    if source not in sources or not isinstance(words, list) or not isinstance(spans, list):
        return
    annotated: list[Span] = [(first, last, label) for first, last, label in spans]
    sentence = resplit(words, annotated, source)
    if 0 < len(sentence.words) <= LONGEST:
        sentences[source].append(sentence)


def known_names(sentences: Mapping[str, Sequence[Sentence]]) -> dict[str, list[str]]:
    """Capitalised names of at most four words for people, organisations and places, sorted."""
    names: dict[str, set[str]] = {PERSON: set(), ORGANIZATION: set(), LOCATION: set()}
    for source in _NAME_SOURCES:
        for sentence in sentences.get(source, ()):
            for first, last, label in sentence.spans:
                words = sentence.words[first : last + 1]
                if (kind := collapse(label)) in names and _is_proper(words):
                    names[kind].add(" ".join(words))
    return {label: sorted(found) for label, found in names.items()}


def _is_proper(words: Sequence[str]) -> bool:
    return len(words) <= 4 and words[0][0].isupper() and not words[-1].endswith(_DEMONYMS)
