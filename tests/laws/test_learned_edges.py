"""CON-4, CON-7a: edges that nights found, as a learned version holds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.domain.errors import StoreError
from weft.domain.ids import content_hash
from weft.domain.links import LinkKind, RelationSource
from weft.learning.edges import LearnedEdge, LearnedEdges
from weft.learning.evidence import MICRO, Evidence
from weft.learning.parts import parts_of

CONTENTS = sorted(content_hash(letter) for letter in "abcdef")
FOUND = st.builds(
    lambda ends, kind, source, micro: LearnedEdge(ends[0], kind, ends[1], source, micro),
    st.lists(st.sampled_from(CONTENTS), min_size=2, max_size=2, unique=True).map(sorted),
    st.sampled_from([LinkKind.CONTRADICTS, LinkKind.SIMILAR]),
    st.sampled_from([RelationSource.AUTO, RelationSource.LEARNED]),
    st.integers(1, MICRO),
)


@given(st.lists(FOUND, max_size=20), st.randoms(use_true_random=False))
def test_edges_are_the_same_in_whatever_order_they_come(edges: list[LearnedEdge], rng: object) -> None:
    """CON-4: one of each pair and kind, the strongest; a table gives back what it was made of."""
    other = list(edges)
    rng.shuffle(other)  # type: ignore[attr-defined]
    found = LearnedEdges.of(edges)
    assert found == LearnedEdges.of(other)
    assert LearnedEdges.from_table(found.to_table()) == found
    for each in found.edges:
        same = [one.micro for one in edges if one[:3] == each[:3]]
        assert each.micro == max(same)


@pytest.mark.parametrize(
    "edge",
    [
        LearnedEdge(CONTENTS[1], LinkKind.CONTRADICTS, CONTENTS[0], RelationSource.AUTO),
        LearnedEdge(CONTENTS[0], LinkKind.CONTRADICTS, CONTENTS[1], RelationSource.DECLARED),
        LearnedEdge(CONTENTS[0], LinkKind.CONTRADICTS, CONTENTS[1], RelationSource.AUTO, MICRO + 1),
    ],
)
def test_a_found_edge_is_never_declared(edge: LearnedEdge) -> None:
    """CON-4: what people say and what a night finds are never confused."""
    with pytest.raises(StoreError, match="nobody declared"):
        LearnedEdges((edge,))


def test_a_learned_version_holds_them_and_older_ones_have_none(tmp_path: Path) -> None:
    """CON-7a: edges are a file of the version; one that was written without reads as none."""
    catalog = Catalog(tmp_path)
    found = LearnedEdges.of([LearnedEdge(CONTENTS[0], LinkKind.CONTRADICTS, CONTENTS[1], RelationSource.AUTO)])
    first = catalog.learned.publish(
        LearnedState(parent=None, evidence=Evidence(), cut=Evidence()), expected_newest=None
    )
    second = catalog.learned.publish(
        LearnedState(parent=first, evidence=Evidence(), cut=Evidence(), parts=parts_of(found)), expected_newest=first
    )
    assert catalog.learned.read(first).parts == {}
    assert catalog.learned.read(second).part(LearnedEdges) == found
    assert not (tmp_path / "learned" / first / "edges.parquet").exists()
