"""Prints how well borders of topics are found: LoCoMo's sessions joined end to end, and chats of questions and answers.

    python -m tests.support.topic_measure [--chats N]

Pk (Beeferman et al., Machine Learning 1999) and WindowDiff (Pevzner and Hearst, Computational Linguistics 2002) are
shares of windows that see a wrong border: less is better, and finding none costs about .4 to .5. A chat asks of some
functions of each of some modules of Python's library, and is answered by their docstrings; its borders lie between
modules. TextTiling (Hearst, Computational Linguistics 1997) takes counts of words in blocks of two turns, and depths
above their mean less half of their deviation.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import inspect
import json
import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.support.turns import turns_of
from weft.chunking.conversation.dialogue import Turn
from weft.chunking.conversation.session import distances, topics_of
from weft.chunking.units.splitting import TopicRules, encoded
from weft.embedding.word_vectors import load_word_vectors
from weft.ingestion.sources.transcripts import sessions
from weft.settings import Settings, load_settings

SPLITS = {"train": ("conv-26", "conv-30", "conv-41", "conv-42"), "dev": ("conv-43", "conv-44")}
MODULES = (
    "argparse calendar csv decimal difflib email.utils fractions gzip heapq html ipaddress json logging mailbox math "
    "random sched shutil smtplib socket sqlite3 statistics string tarfile tempfile textwrap threading turtle zipfile"
)
ASKED = ("How do I use {name}?", "And what does {name} do?", "What about {name}?", "When would I call {name}?")
BEFORE = 0.47  # the threshold that was in force before, on stretches of two turns
_WORD = re.compile(r"[a-z]{3,}")
Said = tuple[str, str]  # speaker and text
Texts = list[list[Said]]  # of a session, by topic


def joined_sessions(root: Path) -> dict[str, list[Texts]]:
    """What is said in conversations of LoCoMo by session, by split."""
    text = gzip.decompress((root / "locomo" / "locomo_conv1-6.json.gz").read_bytes()).decode()
    found: defaultdict[str, Texts] = defaultdict(list)
    for session in sessions(text, "locomo"):
        said = [(line.speaker, line.text) for line in turns_of(session.text) if isinstance(line, Turn)]
        found[session.metadata["conversation"]].append(said)
    return {f"LoCoMo {split}": [found[name] for name in names] for split, names in SPLITS.items()}


def chats(count: int) -> list[Texts]:
    """Chats about some functions of some modules."""
    choose = random.Random(7)
    documented: dict[str, list[tuple[str, str]]] = {}
    for module in MODULES.split():
        members = inspect.getmembers(importlib.import_module(module), inspect.isroutine)
        told = [(name, inspect.getdoc(value) or "") for name, value in members if not name.startswith("_")]
        documented[module] = [(name, text[:400]) for name, text in told if len(text) > 60]
    modules = [module for module, told in documented.items() if len(told) >= 4]
    made = []
    for _ in range(count):
        topics = []
        for module in choose.sample(modules, 5):
            asked = choose.sample(documented[module], choose.randint(2, 4))
            turns = ((("user", choose.choice(ASKED).format(name=name)), ("assistant", text)) for name, text in asked)
            topics.append([each for pair in turns for each in pair])
        made.append(topics)
    return made


def text_tiling(texts: Sequence[str]) -> np.ndarray:
    """Whether a topic begins at each turn, bool (n,), by counts of words."""
    words = sorted({word for text in texts for word in _WORD.findall(text.lower())})
    column = {word: number for number, word in enumerate(words)}

    def counted(some: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(some), len(words)))
        for row, text in enumerate(some):
            for word, times in Counter(_WORD.findall(text.lower())).items():
                vectors[row, column[word]] = times
        return vectors

    gaps = distances(texts, 2, counted)
    depth = np.array([_depth(gaps, at) for at in range(len(gaps))])
    return depth > depth[1:].mean() - depth[1:].std() / 2


def _depth(gaps: np.ndarray, at: int) -> float:
    """How far a distance stands above the valleys beside it; 0 where it is no peak."""
    if at == 0 or (at + 1 < len(gaps) and gaps[at + 1] > gaps[at]) or gaps[at - 1] > gaps[at]:
        return 0.0
    left = right = at
    while left > 1 and gaps[left - 1] <= gaps[left]:
        left -= 1
    while right + 1 < len(gaps) and gaps[right + 1] <= gaps[right]:
        right += 1
    return float(2 * gaps[at] - gaps[left] - gaps[right])


def pk(true: np.ndarray, found: np.ndarray, width: int) -> float:
    """Share of pairs of turns `width` apart that only one of two says to be of one topic."""
    same, told = (np.cumsum(each) for each in (true, found))
    return float(((same[width:] == same[:-width]) != (told[width:] == told[:-width])).mean())


def window_diff(true: np.ndarray, found: np.ndarray, width: int) -> float:
    """Share of windows in which the numbers of borders differ."""
    same, told = (np.cumsum(each) for each in (true, found))
    return float(((same[width:] - same[:-width]) != (told[width:] - told[:-width])).mean())


def measured(sets: Sequence[Texts], finds: Callable[[Sequence[Said]], np.ndarray]) -> tuple[float, float, float]:
    """Pk, WindowDiff and borders found by true ones, each the mean over sessions."""
    figures = []
    for topics in sets:
        texts = [said for topic in topics for said in topic]
        true = np.zeros(len(texts), dtype=bool)
        true[np.cumsum([len(topic) for topic in topics])[:-1]] = True
        found = np.array(finds(texts), dtype=bool)
        found[0] = False
        width = max(2, round(len(texts) / len(topics) / 2))
        figures.append((pk(true, found, width), window_diff(true, found, width), found.sum() / true.sum()))
    means = np.mean(figures, axis=0)
    return float(means[0]), float(means[1]), float(means[2])


def ways_of(settings: Settings) -> dict[str, Callable[[Sequence[Said]], np.ndarray]]:
    """What finds borders: whether a topic begins at each turn of a session, bool (n,)."""
    similarity = load_word_vectors(settings.embedding)

    def before(said: Sequence[Said]) -> np.ndarray:
        return distances([text for _, text in said], 2, similarity) > BEFORE

    def in_force(said: Sequence[Said]) -> np.ndarray:
        turns = [{"speaker": speaker, "text": text} for speaker, text in said]
        (session,) = sessions(json.dumps({"turns": turns}), "a")
        rules = TopicRules(settings.chunking.conversation.topic_distance)
        found = np.zeros(len(said), dtype=bool)
        found[[topic[0].turns[0] for topic in topics_of(encoded(session.text), rules, similarity)]] = True
        return found

    return {
        "no border": lambda said: np.zeros(len(said), dtype=bool),
        "TextTiling": lambda said: text_tiling([text for _, text in said]),
        f"every distance above {BEFORE}": before,
        "in force": in_force,
    }


def main() -> None:
    """Run on arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chats", type=int, default=60, metavar="N", help="chats that are made")
    given = parser.parse_args()
    data = {**joined_sessions(Path(os.environ["WEFT_DATA"])), "questions and answers": chats(given.chats)}
    table = Table("", *(f"{name}: Pk, WD, found" for name in data), box=None)
    for way, finds in ways_of(load_settings()).items():
        cells = (" ".join(f"{figure:.3f}" for figure in measured(sets, finds)) for sets in data.values())
        table.add_row(way, *cells)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
