"""Laws of the graph: it is a function of what was found, not of the order that it was found in."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.graphs import a_file, a_graph, edges
from weft.domain.links import Link, LinkKind
from weft.indexes.graph.aliases import Key, Name, doubtful, entity_key, entity_keys, merged

NAMES = st.sampled_from(["load", "Store", "Store.get", "get", "Index.get", "self.get", "b.load", "t.b.load", "x.load"])
LINKS = st.builds(
    Link,
    kind=st.sampled_from([LinkKind.CALLS, LinkKind.IMPORTS, LinkKind.REFERENCES]),
    target=st.one_of(NAMES, st.sampled_from(["t.b", "t.a.Store", ".b.load", "b.py", "t/a.py"])),
    confidence=st.sampled_from([0.5, 1.0]),
)
UNITS = st.lists(
    st.fixed_dictionaries({"symbol": st.one_of(st.none(), NAMES), "links": st.lists(LINKS, max_size=4).map(tuple)}),
    min_size=1,
    max_size=4,
)
TREES = st.fixed_dictionaries(dict.fromkeys(("t/a.py", "t/b.py", "t/c/d.py"), UNITS))

WORDS = st.sampled_from(
    ["apache", "kafka", "the", "ada", "lovelace", "a", "b", "ab", "king", "inc", "open ai", "openai"]
)
KEYS = st.tuples(st.sampled_from(["person", "software"]), st.lists(WORDS, min_size=1, max_size=3).map(" ".join))


@settings(max_examples=4, deadline=None)
@given(tree=TREES, seed=st.integers(0, 99))
def test_resolution_does_not_depend_on_the_order_of_rows(tree: dict, seed: int) -> None:
    """ING-14, ARC-9: however documents are spread over parts and shards, the same edges come out."""
    files = [a_file(uri, *units) for uri, units in tree.items()]
    with TemporaryDirectory() as folder:
        one = edges(a_graph(Path(folder) / "one", files, threads=1), files)
        other = edges(a_graph(Path(folder) / "other", files, seed=seed), files)
    assert one == other


@given(st.dictionaries(KEYS, st.integers(1, 3), max_size=12), st.floats(0, 1), st.randoms(use_true_random=False))
def test_merging_aliases_is_an_equivalence_that_merging_again_keeps(counts: dict, least: float, rng) -> None:
    """ING-17: every name has one that stands for it, which stands for itself; labels never mix; order is nothing."""

    def similarity(one: Key, other: Key) -> float:
        return len(set(one[1]) & set(other[1])) / len(set(one[1]) | set(other[1]))

    names = [Name(key, count) for key, count in counts.items()]
    joined = [pair for pair in doubtful(counts) if similarity(*pair) >= least]
    roots = merged(names, joined, longest=5)
    assert roots.keys() == counts.keys()
    assert all(roots[root] == root and root[0] == key[0] for key, root in roots.items())
    rng.shuffle(names)
    rng.shuffle(joined)
    assert merged(names, joined, longest=5) == roots
    sizes: dict[Key, int] = {}
    for root in roots.values():
        sizes[root] = sizes.get(root, 0) + 1
    assert max(sizes.values(), default=0) <= 5


LETTERS = st.text(alphabet=st.sampled_from("aBs'’._-+#1\u0301ßİﬁ´¨…ΣςЙ각\u1100가"), max_size=6)


@settings(max_examples=examples(300), deadline=None)
@given(words=st.lists((LETTERS | st.text(max_size=4)).filter(lambda word: word.split() == [word]), max_size=7))
def test_the_keys_of_runs_are_those_of_the_words_together(words: list[str]) -> None:
    """ING-17, RET-7: a name in a query is the name that was indexed, whatever it is written with."""
    for start, keys in enumerate(entity_keys(words, 4)):
        runs = [" ".join(words[start:end]) for end in range(start + 1, min(start + 4, len(words)) + 1)]
        assert keys == [entity_key(run) for run in runs]
