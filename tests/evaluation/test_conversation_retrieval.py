"""ING-8: what questions with their answers find in LoCoMo beside single turns, and what topics add; slow."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from tests.support.turns import turns_of
from weft.chunking.chunker import chunk_document, chunkers_with
from weft.chunking.conversation.dialogue import Turn
from weft.domain.documents import ContentType, Document, Domain
from weft.embedding.encoders.encoder import Encoder, load_encoder
from weft.embedding.word_vectors import load_word_vectors
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.sources.transcripts import Transcript, sessions
from weft.settings import load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(1800)]

SETTINGS = load_settings()
DEV = ("conv-43", "conv-44")
DEPTH = 10
K1, B = SETTINGS.index.lexical.k1, SETTINGS.index.lexical.b


Question = tuple[str, str, frozenset[str]]
"""Conversation, text and the turns that answer it."""


@dataclass(frozen=True)
class Unit:
    conversation: str
    text: str
    turns: frozenset[str]


def transcripts(root: Path) -> list[Transcript]:
    text = gzip.decompress((root / "locomo" / "locomo_conv1-6.json.gz").read_bytes()).decode()
    return [session for session in sessions(text, "locomo") if session.metadata["conversation"] in DEV]


def questions(root: Path) -> dict[str, Question]:
    """Every judged question."""
    evidence: defaultdict[str, set[str]] = defaultdict(set)
    for line in (root / "locomo" / "qrels" / "dev.tsv").read_text().splitlines()[1:]:
        query, turn, _ = line.split("\t")
        evidence[query].add(turn)
    with gzip.open(root / "locomo" / "queries.jsonl.gz", "rt") as file:
        records = {record["_id"]: record for record in map(json.loads, file)}
    return {
        query: (records[query]["metadata"]["group"], records[query]["text"], frozenset(turns))
        for query, turns in evidence.items()
    }


def single_turns(found: Sequence[Transcript]) -> list[Unit]:
    units = []
    for session in found:
        name = session.metadata["conversation"]
        turns = [line for line in turns_of(session.text) if isinstance(line, Turn)]
        for turn, turn_id in zip(turns, session.metadata["turns"].split(), strict=True):
            units.append(Unit(name, f"{turn.speaker}\n{turn.text}", frozenset({f"{name}:{turn_id}"})))
    return units


def chunked(found: Sequence[Transcript], encoder: Encoder) -> dict[int, list[Unit]]:
    """Units by level."""
    stated = prior_sizes(SETTINGS.chunking, SETTINGS.priors, limit=encoder.max_tokens)
    sizes = stated.domains[Domain.HISTORY]
    chunkers = chunkers_with(load_word_vectors(SETTINGS.embedding))
    levels: defaultdict[int, list[Unit]] = defaultdict(list)
    for session in found:
        document = Document(
            uri=session.uri,
            content_type=ContentType.CONVERSATION,
            domain=Domain.HISTORY,
            text=session.text,
            trust_level=50,
            metadata=session.metadata,
        )
        name = session.metadata["conversation"]
        for chunk in chunk_document(document, sizes, encoder.count_tokens, chunkers):
            turns = frozenset(f"{name}:{turn}" for turn in chunk.attributes["turns"].split())
            levels[chunk.level].append(Unit(name, chunk.text, turns))
    return levels


def bm25(texts: Sequence[str], queries: Sequence[str]) -> np.ndarray:
    """Scores (queries, texts), Robertson and Zaragoza 2009, over lower-case words."""
    counts = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    lengths = np.array([count.total() for count in counts])
    frequency = Counter(word for count in counts for word in count)
    scores = np.zeros((len(queries), len(texts)))
    for row, query in enumerate(queries):
        for word in set(re.findall(r"\w+", query.lower())) & frequency.keys():
            rarity = math.log(1 + (len(texts) - frequency[word] + 0.5) / (frequency[word] + 0.5))
            times = np.array([count[word] for count in counts])
            scores[row] += rarity * times / (times + K1 * (1 - B + B * lengths / lengths.mean()))
    return scores


def judged(order: np.ndarray, units: Sequence[Unit], evidence: frozenset[str]) -> tuple[float, float]:
    """Recall and nDCG of turns: a unit gains for the evidence in it that no earlier unit held."""
    seen: set[str] = set()
    gain = 0.0
    for rank, index in enumerate(order[:DEPTH]):
        new = (units[index].turns & evidence) - seen
        gain += bool(new) / math.log2(rank + 2)
        seen |= new
    return len(seen) / len(evidence), gain / sum(1 / math.log2(rank + 2) for rank in range(min(DEPTH, len(evidence))))


def measured(
    units: Sequence[Unit], asked: Mapping[str, tuple[str, str, frozenset[str]]], encoder: Encoder
) -> list[float]:
    """Recall@10 and nDCG@10, dense and BM25, and tokens in ten dense results; each in its own conversation."""
    rows = []
    for name in DEV:
        own = [unit for unit in units if unit.conversation == name]
        of_it = [(text, evidence) for group, text, evidence in asked.values() if group == name]
        texts, queries = [unit.text for unit in own], [text for text, _ in of_it]
        dense = encoder.encode(queries) @ encoder.encode(texts).T
        lengths = np.array([encoder.count_tokens(text) for text in texts])
        lexical = bm25(texts, queries)
        for (_, evidence), by_vector, by_word in zip(of_it, dense, lexical, strict=True):
            order = np.argsort(-by_vector, kind="stable")
            found = judged(order, own, evidence)
            rows.append(
                (*found, *judged(np.argsort(-by_word, kind="stable"), own, evidence), lengths[order[:DEPTH]].sum())
            )
    return [float(value) for value in np.mean(rows, axis=0)]


def test_questions_with_answers_find_more_evidence_than_single_turns(data_root: Path) -> None:
    """ING-8: recall@10 and nDCG@10 of evidence turns on LoCoMo dev, categories 1 to 4; topics add to it."""
    encoder = load_encoder(SETTINGS.embedding)
    found, asked = transcripts(data_root), questions(data_root)
    levels = chunked(found, encoder)
    pairs = [*levels[2], *levels[3]]
    sets = {
        "single turns": single_turns(found),
        "turn pairs": pairs,
        "pairs and topics": [*pairs, *levels[1]],
        "pairs, topics, sessions": [*pairs, *levels[1], *levels[0]],
    }
    table = Table("units", "number", "dense R@10", "dense nDCG", "BM25 R@10", "BM25 nDCG", "tokens in 10")
    values = {name: measured(units, asked, encoder) for name, units in sets.items()}
    for name, (*figures, tokens) in values.items():
        table.add_row(name, str(len(sets[name])), *(f"{figure:.3f}" for figure in figures), f"{tokens:.0f}")
    Console(width=120).print(table)
    single, pair, topics = (np.array(values[name][:4]) for name in ("single turns", "turn pairs", "pairs and topics"))
    assert (pair > single).all()
    assert (topics[[0, 2]] >= pair[[0, 2]]).all()
