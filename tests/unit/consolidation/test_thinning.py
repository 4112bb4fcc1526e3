"""CON-5: which chunks are far from what their document is about, and which of them stay all the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.consolidation.improvement import Improvement, MeanInterval, QuestionSource
from weft.consolidation.settings import ThinningSettings
from weft.consolidation.steps.thinning import (
    LEAST_CHUNKS,
    MEASURE,
    ContentDocuments,
    Thinning,
    far_contents,
    thinnable,
    used,
)
from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash, content_hash
from weft.learning.aliases import ContentAliases
from weft.learning.evidence import MICRO, Evidence
from weft.learning.thinned import NOTHING_THINNED, Thinned
from weft.learning.uses import UsageKey

RULES = ThinningSettings(enabled=True, least_cosine=0.3, most_loss=0.1)
places = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 4)), min_size=1, max_size=60)


def standings(pairs: list[tuple[int, int]]) -> ContentDocuments:
    """Places of contents, every content of them somewhere."""
    contents = {content: at for at, content in enumerate(sorted({content for content, _ in pairs}))}
    rows = sorted((contents[content], document) for content, document in pairs)
    return ContentDocuments(np.array([row for row, _ in rows]), np.array([document for _, document in rows]))


def plainly(where: ContentDocuments, vectors: np.ndarray, least: int) -> list[float]:
    """The same by the definition, a content at a time."""
    nearness = []
    for row in range(len(vectors)):
        of_each = []
        for document in {int(d) for c, d in zip(where.content, where.document, strict=True) if c == row}:
            members = where.content[where.document == document]
            mean = vectors[members].mean(axis=0)
            length = np.linalg.norm(mean)
            near = float(vectors[row] @ mean / length) if length > 0.0 else 0.0
            of_each.append(near if len(members) > least else 1.0)
        nearness.append(max(of_each))
    return nearness


@given(places, st.integers(0, 99))
def test_nearness_is_the_cosine_to_the_mean_of_the_document(pairs: list[tuple[int, int]], seed: int) -> None:
    """CON-5: the same as the definition says, for any standing of contents in documents."""
    where = standings(pairs)
    vectors = np.random.default_rng(seed).normal(size=(int(where.content.max()) + 1, 4))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    stored = vectors.astype(np.float32)
    nearness = far_contents(where, lambda rows: stored[rows], least=2)
    assert nearness == pytest.approx(plainly(where, vectors, 2), abs=1e-5)


@given(places, st.integers(0, 99))
def test_enough_of_every_document_and_all_that_is_anchored_stays(pairs: list[tuple[int, int]], seed: int) -> None:
    """CON-5: two chunks of each document stay at least, nothing that stays goes, and nothing near goes."""
    where, rng = standings(pairs), np.random.default_rng(seed)
    size = int(where.content.max()) + 1
    nearness, stays = rng.uniform(-1.0, 1.0, size), rng.random(size) < 0.2
    gone = thinnable(where, nearness, stays, RULES)
    assert not stays[gone].any()
    assert (nearness[gone] < RULES.least_cosine).all()
    assert len(set(gone)) == len(gone)
    left = ~np.isin(where.content, gone)
    for document in set(where.document[~left].tolist()):
        assert (where.document[left] == document).sum() >= LEAST_CHUNKS


def test_what_somebody_used_stays_and_what_is_like_it() -> None:
    """CON-5: what was praised, included or mentioned stays, and what stands for it; being found is no use."""
    a, b, c, d, e, f = (content_hash(name) for name in "abcdef")
    bins = {a: "positive", b: "inclusion", c: "retrieval", d: "negative", e: "verdict:good:00000735:63"}
    evidence = Evidence(usage={UsageKey(3, content, name): MICRO for content, name in bins.items()})
    assert used(evidence) == {a, b, e}
    assert used(evidence, ContentAliases({ContentHash(a): f})) == {a, b, e, f}
    assert used(Evidence()) == frozenset()


@pytest.mark.parametrize(("after", "stays"), [(0.5, True), (0.45, True), (0.44, False), (0.0, False)])
def test_nothing_is_thinned_that_costs_too_much(after: float, stays: bool) -> None:
    """CON-5: a tenth of recall@20 may go; beyond it, and where no question measures it, all is only proposed."""
    some = Thinning(proposed=Thinned({content_hash("a")}))
    figures = [MeanInterval(value, value, value) for value in (0.5, after, after - 0.5)]
    recall = Improvement(
        measure=MEASURE,
        source=QuestionSource.OWN,
        before=figures[0],
        after=figures[1],
        change=figures[2],
        questions=9,
        significant=True,
    )
    checked = some.checked([recall], RULES)
    assert checked.thinned == (some.proposed if stays else NOTHING_THINNED)
    assert checked.counts()["waiting"] == int(not stays)
    assert some.checked([], RULES).thinned == NOTHING_THINNED


def test_a_file_of_something_else_is_refused() -> None:
    """CON-5: equal sets make equal tables, and what is none is named."""
    names = Thinned(content_hash(name) for name in "abc")
    assert names.to_table() == Thinned(sorted(names, reverse=True)).to_table()
    assert Thinned.from_table(names.to_table()) == names
    with pytest.raises(StoreError, match="expected a hash of each"):
        Thinned.from_table(pa.table({"content": pa.array([1])}))
