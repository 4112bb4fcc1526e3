"""Which sources train the bundled recogniser, and how their labels collapse onto ours.

Sources whose licence is unclear or excludes commercial use are simply not listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

PERSON, ORGANIZATION, LOCATION, DATE = "person", "organization", "location", "date"
SOFTWARE, TECHNOLOGY, TECHNIQUE, CONCEPT = "software", "technology", "technique", "concept"
FILE_PATH, EVENT, CREATIVE_WORK, PRODUCT = "file path", "event", "creative work", "product"

CANONICAL = (
    PERSON, ORGANIZATION, LOCATION, DATE, SOFTWARE, TECHNOLOGY,
    TECHNIQUE, CONCEPT, FILE_PATH, EVENT, CREATIVE_WORK, PRODUCT,
)  # fmt: skip

# Fine label of any source -> canonical label. Labels not listed exist only in the fine view.
COLLAPSED: Mapping[str, str] = {
    "person": PERSON, "politician": PERSON, "writer": PERSON, "musical artist": PERSON,
    "organization": ORGANIZATION, "political party": ORGANIZATION, "band": ORGANIZATION,
    "corporation": ORGANIZATION, "group": ORGANIZATION, "software developer": ORGANIZATION,
    "location": LOCATION, "country": LOCATION, "city": LOCATION, "state": LOCATION,
    "date": DATE, "time expression": DATE, "release date": DATE,
    "software": SOFTWARE, "software application": SOFTWARE, "software library": SOFTWARE,
    "software plugin": SOFTWARE, "software extension": SOFTWARE, "software or system": SOFTWARE,
    "programming environment": TECHNOLOGY, "programming language": TECHNOLOGY,
    "operating system": TECHNOLOGY, "technology": TECHNOLOGY,
    "method": TECHNIQUE, "algorithm": TECHNIQUE, "technique": TECHNIQUE,
    "scientific term": CONCEPT, "task": CONCEPT, "concept": CONCEPT,
    "file name": FILE_PATH, "file path": FILE_PATH,
    "event": EVENT, "election": EVENT,
    "book": CREATIVE_WORK, "poem": CREATIVE_WORK, "album": CREATIVE_WORK, "song": CREATIVE_WORK,
    "magazine": CREATIVE_WORK, "creative work": CREATIVE_WORK,
    "product": PRODUCT, "device": PRODUCT,
}  # fmt: skip

# Other words for a canonical label, drawn now and then so that a user's wording works too.
PARAPHRASES: Mapping[str, tuple[str, ...]] = {
    PERSON: ("people", "person name", "human"),
    ORGANIZATION: ("organisation", "institution", "company or organization"),
    LOCATION: ("place", "geographic location"),
    DATE: ("time expression", "time"),
    SOFTWARE: ("software product", "tool", "software tool"),
    TECHNOLOGY: ("tech", "technical product"),
    TECHNIQUE: ("method", "algorithm"),
    CONCEPT: ("idea", "scientific concept"),
    FILE_PATH: ("file name", "path"),
    CREATIVE_WORK: ("work of art",),
    EVENT: ("named event",),
    PRODUCT: ("device",),
}


@dataclass(frozen=True, slots=True)
class LabelSource:
    """How one source takes part."""

    share: float  # relative share of the drawn words, > 0
    # canonical labels that hardly ever occur in its texts, so that they are safe negatives although nobody
    # annotated them
    absent: frozenset[str] = frozenset()
    collapses: bool = True  # whether the canonical view applies; False keeps to the source's own labels


_NEWS = frozenset({SOFTWARE, TECHNOLOGY, TECHNIQUE, FILE_PATH})
_CODE = frozenset({PERSON, LOCATION})
_OWN_VIEW = LabelSource(0.006, collapses=False)

SOURCES: Mapping[str, LabelSource] = {
    "re_docred": LabelSource(0.15, _NEWS),
    "wikigold": LabelSource(0.10, _NEWS),
    "broad_twitter": LabelSource(0.05, frozenset({TECHNIQUE, FILE_PATH})),
    "wnut17": LabelSource(0.06, frozenset({TECHNIQUE, FILE_PATH})),
    "re3d": LabelSource(0.015, _NEWS),
    "sec_filings": LabelSource(0.01, _NEWS),
    "presidio_synth": LabelSource(0.04, _NEWS | {CONCEPT}),
    "crossner_politics": LabelSource(0.06, _NEWS),
    "crossner_literature": LabelSource(0.04, _NEWS),
    "crossner_music": LabelSource(0.04, _NEWS),
    "stackoverflow": LabelSource(0.11, _CODE | {EVENT, CREATIVE_WORK}),
    "stackoverflow_github": LabelSource(0.05, _CODE | {EVENT, CREATIVE_WORK}),
    "somesci": LabelSource(0.07, frozenset({EVENT, CREATIVE_WORK, FILE_PATH})),
    "cyner": LabelSource(0.035, frozenset({PERSON, EVENT, CREATIVE_WORK})),
    "scierc": LabelSource(0.05, _CODE | {ORGANIZATION, DATE, FILE_PATH, EVENT, CREATIVE_WORK}),
    "templates": LabelSource(0.12, frozenset({EVENT, CREATIVE_WORK, PRODUCT})),
    "snips": LabelSource(0.015, collapses=False),
    "slurp": LabelSource(0.015, collapses=False),
    "craft": _OWN_VIEW,
    "bionlp13cg": _OWN_VIEW,
    "bionlp13pc": _OWN_VIEW,
    "bc5cdr": _OWN_VIEW,
    "ncbi_disease": _OWN_VIEW,
    "jnlpba": _OWN_VIEW,
    "anem": _OWN_VIEW,
}

# Sources whose licence is unclear or excludes commercial use: never trained on, hence a measure of what was not seen.
UNSEEN = frozenset({"pile_ner", "aptner", "few_tk", "mit_movie", "mit_restaurant"})

# Annotated "mentions" that are no names: two sources mark coreferent pronouns and party roles.
NOT_NAMES = frozenset({
    "he", "she", "him", "her", "his", "hers", "they", "them", "their", "it", "its", "we", "us", "our", "i", "me", "my",
    "you", "your", "who", "whom", "whose", "which", "that", "this", "these", "those", "lender", "lenders", "borrower",
    "borrowers", "agent", "bank", "company", "guarantor",
})  # fmt: skip


def collapse(label: str) -> str | None:
    """The canonical label of a source's label, or None where it has none.

    Examples:
        >>> collapse("politician"), collapse("protein")
        ('person', None)
    """
    return COLLAPSED.get(label)


def wording(label: str, rng: Random, *, paraphrase_rate: float) -> str:
    """The words that name a canonical label in one training text, mostly the label itself."""
    if rng.random() < paraphrase_rate and label in PARAPHRASES:
        return rng.choice(PARAPHRASES[label])
    return label
