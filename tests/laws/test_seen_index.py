"""FBK-5: the index over event ids finds what the rows hold, however it came together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.feedback.store.deduplication import SeenIndex

# Few distinct keys, so that ids share theirs and come again.
fingerprints = st.integers(0, 40).map(lambda n: (n % 7).to_bytes(8, "little") + n.to_bytes(8, "little"))


@given(batches=st.lists(st.lists(fingerprints, max_size=20), max_size=30), wanted=st.lists(fingerprints, max_size=10))
def test_the_index_names_every_row_that_may_hold_an_id(batches: list[list[bytes]], wanted: list[bytes]) -> None:
    """FBK-5: all rows with the same first eight bytes and no others, in the order of their offsets."""
    index, rows = SeenIndex(), []
    for batch in batches:
        offsets = list(range(len(rows), len(rows) + len(batch)))
        index.add(batch, offsets)
        rows += batch
    keys = {fingerprint[:8] for fingerprint in wanted}
    expected = [offset for offset, fingerprint in enumerate(rows) if fingerprint[:8] in keys]
    assert index.offsets(wanted).tolist() == expected
    assert len(index) == len(rows)


@given(batches=st.lists(st.lists(fingerprints, min_size=1, max_size=20), max_size=30), horizon=st.integers(0, 300))
def test_what_is_gone_may_be_named_but_what_is_left_always_is(batches: list[list[bytes]], horizon: int) -> None:
    """FBK-5: forgetting never loses an id whose row is still there."""
    index, rows = SeenIndex(), []
    for batch in batches:
        index.add(batch, list(range(len(rows), len(rows) + len(batch))))
        rows += batch
    index.forget_before(horizon)
    found = set(index.offsets(rows).tolist())
    assert set(range(horizon, len(rows))) <= found <= set(range(len(rows)))


def test_runs_stay_few() -> None:
    """FBK-8: a look-up is over a logarithmic number of runs."""
    index = SeenIndex()
    for number in range(4096):
        index.add([number.to_bytes(16, "little")], [number])
    assert len(index._runs) <= 13
    assert len(index) == 4096
