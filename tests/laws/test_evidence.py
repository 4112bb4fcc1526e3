"""LRN-1, ARC-1: evidence is a commutative group of integers, whatever order it came in."""

import hashlib
import json
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.outcomes import observe_outcome, outcome_evidence
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope, Signal
from weft.learning.evidence import Evidence, EvidenceKey, merge
from weft.learning.observe.tallies import Tally
from weft.learning.uses import UsageKey

names = st.sampled_from(["*", "a", "ß"])
masses = st.integers(-(10**12), 10**12)
keys = st.builds(
    EvidenceKey,
    st.integers(0, 3),
    st.sampled_from(list(Domain)).map(str),
    names,
    names,
    names,
    names,
    st.sampled_from(["for", "against"]),
)
usage_keys = st.builds(
    UsageKey,
    st.integers(0, 3),
    st.sampled_from(["a" * 64, "b" * 64]),
    st.sampled_from(["positive", "negative"]),
    st.sampled_from(["", "ada", "ß"]),
    st.sampled_from(["", 'why "so"']),
)
gathered = st.builds(
    Evidence, st.dictionaries(keys, masses, max_size=6), st.dictionaries(usage_keys, masses, max_size=4)
)
evidence = gathered | gathered.map(lambda each: Evidence.from_table(each.to_table()))  # what is read is in columns
shares = st.floats(0.0, 1.0)
outcomes = st.fixed_dictionaries(
    {
        "day": st.integers(0, 2),
        "scope": st.builds(Scope, st.sampled_from(list(Domain)), names, names),
        "intent": names,
        "signals": st.dictionaries(st.sampled_from([signal.value for signal in Signal]), shares),
        "score": shares,
        "content_hash": st.sampled_from(["a" * 64, "b" * 64]).map(ContentHash),
        "good": st.booleans(),
        "weight": st.floats(0.0, 2.0),
    }
)
histories = st.lists(outcomes, max_size=8)


def _total(history: list[dict]) -> Evidence:
    return Evidence.sum(outcome_evidence(**outcome) for outcome in history)


@given(evidence)
def test_tables_and_digests_are_those_of_the_sorted_rows(each: Evidence) -> None:
    """LRN-1, CON-1: however it is held; row by row as JSON writes them, which digests that were stored were made of."""
    lines = [json.dumps(row, separators=(",", ":")) + "\n" for row in each.rows()]
    assert each.digest() == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert [tuple(row.values()) for row in each.to_table().to_pylist()] == each.rows()


@given(evidence, evidence, evidence)
def test_addition_is_commutative_and_associative_with_an_identity(a: Evidence, b: Evidence, c: Evidence) -> None:
    """LRN-1."""
    assert a + b == b + a
    assert (a + b) + c == a + (b + c) == Evidence.sum([c, a, b])
    assert a + Evidence() == a


@given(evidence, evidence)
def test_subtraction_undoes_addition(a: Evidence, b: Evidence) -> None:
    """LRN-1: removing one session's influence is exact."""
    assert a + b - b == a
    assert (a - a).is_empty


@settings(max_examples=examples(60))
@given(histories, st.randoms(use_true_random=False))
def test_a_log_replayed_in_any_order_gives_the_same_evidence(history: list[dict], chance: random.Random) -> None:
    """ARC-1: the same bits in any order, whether tallied in place or summed as values."""
    shuffled = chance.sample(history, len(history))
    tally = Tally()
    for outcome in shuffled:
        observe_outcome(tally, **outcome)
    assert tally.freeze() == _total(history)
    assert tally.freeze().digest() == _total(history).digest()


@settings(max_examples=examples(50))
@given(histories, histories, histories)
def test_three_way_merge_equals_one_long_history(shared: list[dict], ours: list[dict], theirs: list[dict]) -> None:
    """LRN-1: what two branches added to a common base is counted once each."""
    base = _total(shared)
    merged = merge(base, ours=base + _total(ours), theirs=base + _total(theirs))
    assert merged == _total(shared + ours + theirs)


@given(evidence)
def test_a_table_gives_its_evidence_back_exactly(a: Evidence) -> None:
    """LRN-1: whatever the order of its rows."""
    table = a.to_table()
    assert Evidence.from_table(table) == a
    backwards = pa.array(range(table.num_rows - 1, -1, -1), type=pa.int64())
    assert Evidence.from_table(table.take(backwards)) == a
    assert Evidence.from_table(table).to_table() == table


@given(evidence, evidence)
def test_digests_differ_exactly_where_evidence_does(a: Evidence, b: Evidence) -> None:
    """LRN-1."""
    assert (a.digest() == b.digest()) == (a == b)


@settings(max_examples=examples(30))
@given(usage_keys, st.integers(1, 2**63 - 1))
def test_a_sum_beyond_int64_is_refused(key: UsageKey, more: int) -> None:
    """LRN-1: overflow raises instead of wrapping."""
    full = Evidence(usage={key: 2**63 - 1})
    with pytest.raises(OverflowError, match="int64"):
        full + Evidence(usage={key: more})
    with pytest.raises(OverflowError, match="int64"):
        Evidence.sum([full, Evidence(usage={key: more})])
