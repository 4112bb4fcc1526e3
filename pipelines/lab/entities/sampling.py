"""Training texts drawn from annotated sentences: several sentences a text, a few labels each.

Sentences are short and a text shares its label prompt among all its words, so packing sentences
halves the cost of a word and shows the model texts as long as the chunks it will meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from lab.entities.labels import SOFTWARE, SOURCES, TECHNOLOGY, collapse, wording
from lab.entities.sentences import Sentence, Span


@dataclass(frozen=True, slots=True)
class Packed:
    """A training text: words, spans under the labels offered, and those labels."""

    words: list[str]
    spans: list[Span]
    labels: list[str]


@dataclass(frozen=True, slots=True)
class Packing:
    """Shape of the drawn texts."""

    words: tuple[int, int] = (30, 130)  # words a text aims for, as (least, most)
    labels: tuple[int, int] = (3, 12)  # labels offered a text, as (least, most)
    drop: float = 0.12  # chance that a label present in the text is not offered
    canonical: float = 0.7  # chance that a text of a collapsing source uses our labels, not its own
    mixed: float = 0.5  # chance that a canonical text joins sentences of several sources
    paraphrase: float = 0.12  # chance that a canonical label is put in other words
    merged: float = 0.35  # chance that software and technology are one label, as users often mean it


class Sampler:
    """Draws packed texts for ever; equal seeds draw equal texts."""

    def __init__(self, sentences: Mapping[str, Sequence[Sentence]], packing: Packing, rng: Random) -> None:
        self._sentences = sentences
        self._packing = packing
        self._rng = rng
        self._sources = [name for name in SOURCES if sentences.get(name)]
        self._shares = [SOURCES[name].share for name in self._sources]
        self._inventory = {name: inventory(sentences[name]) for name in self._sources}
        self._mixable = [name for name in self._sources if SOURCES[name].collapses]
        self._mixable_shares = [SOURCES[name].share for name in self._mixable]

    def draw(self) -> Packed:
        """The next training text."""
        rng, packing = self._rng, self._packing
        source = rng.choices(self._sources, self._shares)[0]
        if not SOURCES[source].collapses or rng.random() >= packing.canonical:
            return self._fine(source)
        others = rng.choices(self._mixable, self._mixable_shares, k=2) if rng.random() < packing.mixed else []
        return self._canonical([source, *others])

    def _fine(self, source: str) -> Packed:
        words, spans = self._join([source])
        # Negatives come from the same source only: another source's labels may be present unannotated.
        return self._offer(words, spans, self._inventory[source])

    def _canonical(self, sources: Sequence[str]) -> Packed:
        words, spans = self._join(sources)
        allowed = sorted(frozenset.intersection(*(judged(name, self._inventory[name]) for name in sources)))
        names = {label: wording(label, self._rng, paraphrase_rate=self._packing.paraphrase) for label in allowed}
        if names.keys() >= {SOFTWARE, TECHNOLOGY} and self._rng.random() < self._packing.merged:
            names[SOFTWARE] = names[TECHNOLOGY] = self._rng.choice((SOFTWARE, TECHNOLOGY))
        renamed = [(a, b, names[kind]) for a, b, label in spans if (kind := collapse(label)) in names]
        return self._offer(words, renamed, list(dict.fromkeys(names.values())))

    def _join(self, sources: Sequence[str]) -> tuple[list[str], list[Span]]:
        words: list[str] = []
        spans: list[Span] = []
        goal = self._rng.randint(*self._packing.words)
        turn = 0
        while len(words) < goal or turn < len(sources):
            sentence = self._rng.choice(self._sentences[sources[turn % len(sources)]])
            spans += [(a + len(words), b + len(words), label) for a, b, label in sentence.spans]
            words += sentence.words
            turn += 1
        return words, spans

    def _offer(self, words: list[str], spans: list[Span], inventory: Sequence[str]) -> Packed:
        rng, packing = self._rng, self._packing
        present = sorted({label for *_, label in spans})
        offered = [label for label in present if rng.random() >= packing.drop]
        absent = [label for label in inventory if label not in present]
        most = rng.randint(*packing.labels)
        offered = rng.sample(offered, min(len(offered), packing.labels[1]))
        offered += rng.sample(absent, min(len(absent), max(most - len(offered), 0)))
        rng.shuffle(offered)
        labels = offered or list(inventory[:1])
        return Packed(words, [span for span in spans if span[2] in labels], labels)


def inventory(sentences: Sequence[Sentence]) -> list[str]:
    """Labels a source annotates often enough to be believed absent where they are not marked."""
    counts: dict[str, int] = {}
    for sentence in sentences:
        for *_, label in sentence.spans:
            counts[label] = counts.get(label, 0) + 1
    return sorted(label for label, count in counts.items() if count >= 3)


def judged(source: str, annotated: Sequence[str]) -> frozenset[str]:
    """Canonical labels whose absence from a text of `source` can be trusted."""
    covered = {kind for label in annotated if (kind := collapse(label)) is not None}
    return frozenset(covered) | SOURCES[source].absent
