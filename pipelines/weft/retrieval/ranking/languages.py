"""One of each page in several languages (RET-12)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weft.retrieval.ranking.batch import RankingBatch
from weft.retrieval.snapshot.translations import Translations
from weft.wording.words import words_of


def in_one_language(candidates: RankingBatch) -> RankingBatch:
    """Candidates of which one document stands for a page in all its languages, and names the others.

    It is that of the best candidate, or the one in the store's main language where that holds all words of the query
    that the best one holds: names stand in every translation, and tell no language. What people said decides before.
    """
    translations = candidates.contexts[0].facts.translations if candidates.contexts else None
    if translations is None or not len(candidates):
        return candidates
    documents, pages = candidates.document.tolist(), translations.page[candidates.document].tolist()
    by_page = defaultdict[tuple[int, int], list[int]](list)
    for line, key in enumerate(zip(candidates.query.tolist(), pages, strict=True)):
        by_page[key].append(line)
    stays, duplicates = np.ones(len(candidates), dtype=bool), dict(candidates.duplicates)
    for (_, page), lines in by_page.items():
        if page >= 0 and len({documents[line] for line in lines}) > 1:
            shown = _shown(candidates, lines, translations)
            left_out = [line for line in lines if documents[line] != documents[shown]]
            stays[left_out] = False
            number = int(candidates.number[shown])
            uris = (uri for line in left_out for uri in candidates.uris(int(candidates.number[line])))
            duplicates[number] = tuple(dict.fromkeys((*duplicates.get(number, ()), *uris)))
    return replace(candidates.take(stays), duplicates=duplicates)


def _shown(candidates: RankingBatch, lines: Sequence[int], translations: Translations) -> int:
    """The line whose document stands for the others; lines are the best first."""
    best, first = lines[0], candidates.merged.first
    main = min(lines, key=lambda line: int(translations.preference[candidates.document[line]]))
    number = int(candidates.number[best])
    if number in candidates.effects or (first is not None and first[number] and not first[candidates.number[main]]):
        return best  # people said something of it, or the query's own signs put it first
    asked = frozenset(words_of(candidates.contexts[int(candidates.query[best])].plan.text))
    of_best, of_main = candidates.take(np.array([best, main])).contents
    held = asked.intersection(words_of(of_best.text))
    return main if held <= asked.intersection(words_of(of_main.text)) else best
