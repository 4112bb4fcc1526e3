"""CON-4: what a night takes for a later release of a page, and what of that searches read."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.duplicate_bench import PlainMemory
from tests.support.parts import a_document
from tests.support.small_store import published_store
from weft.consolidation.steps.duplicates import GenerationContents, find_duplicates, word_lists
from weft.consolidation.steps.succession import Page, Passage, Successions, find_successions
from weft.domain.documents import ContentType
from weft.domain.ids import content_hash
from weft.domain.links import LinkKind, Relation, RelationSource
from weft.learning.edges import LearnedEdge, LearnedEdges
from weft.learning.evidence import Evidence
from weft.retrieval.snapshot.relations import resolve_relations
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
RULES = SETTINGS.consolidation.succession
NAMES = ("index", "install", "guide/start", "guide/more", "api")
SPRING, SUMMER, AUTUMN = 1e9, 1.01e9, 1.02e9
HOUR = 3600.0
Tree = Mapping[str, str]
"""Text by path."""


def release(word: str, names: Sequence[str] = NAMES, *, about: str = "shop") -> Tree:
    """Pages of which two lines in three are those of every release."""
    return {f"{name}.rst": f"{about} {name} one\n{about} {name} two\nsince {word} {name}" for name in names}


def found(
    trees: Mapping[str, tuple[Tree, float | None]],
    *,
    kind: ContentType = ContentType.RST,
    titled: bool = True,
    seed: int = 0,
) -> Successions:
    """What a night finds of trees of pages, each with the time that all of it is from."""
    texts = {f"{tree}/{path}": text for tree, (pages, _) in trees.items() for path, text in pages.items()}
    pages = [
        Page(f"{tree}/{path}", path if titled else text[-9:], kind, time)
        for tree, (some, time) in trees.items()
        for path, text in some.items()
    ]
    random.Random(seed).shuffle(pages)
    standing = list(texts.values())

    def passages(uri: str) -> list[Passage]:
        return [Passage(content_hash(texts[uri]), texts[uri], alone=standing.count(texts[uri]) == 1)]

    return find_successions(pages, passages, RULES)


def pairs(result: Successions) -> set[tuple[str, str]]:
    return {(each.newer, each.older) for each in result.examples}


@pytest.mark.parametrize("seed", range(3))
def test_pages_of_a_later_release_supersede_those_of_the_same_path(seed: int) -> None:
    """CON-4: from the newer content to the older one, found by texts, and one of each pair of pages."""
    old, new = release("spring"), release("summer")
    result = found({"docs/shop-1": (old, SPRING), "docs/shop-2": (new, SUMMER)}, seed=seed)
    assert pairs(result) == {(f"docs/shop-2/{name}.rst", f"docs/shop-1/{name}.rst") for name in NAMES}
    assert {(each.content, each.target) for each in result.edges.edges} == {
        (content_hash(new[path]), content_hash(old[path])) for path in old
    }
    assert {(each.kind, each.source) for each in result.edges.edges} == {(LinkKind.SUPERSEDES, RelationSource.AUTO)}


def test_each_earlier_release_is_superseded_by_every_later_one() -> None:
    """CON-4: of three releases, whichever two are found together."""
    three = {f"shop-{at}": (release(f"year {at}"), SPRING + at * 24 * HOUR) for at in range(3)}
    assert len(found(three).edges) == 3 * len(NAMES)


def test_a_page_that_was_written_anew_needs_the_same_title() -> None:
    """CON-4: of a tree that is a release, the pages in which nothing stayed."""
    new = {**release("summer"), "api.rst": "all of this is new"}
    trees = {"shop-1": (release("spring"), SPRING), "shop-2": (new, SUMMER)}
    assert len(found(trees).edges) == len(NAMES)
    assert len(found(trees, titled=False).edges) == len(NAMES) - 1


def test_pages_in_another_markup_are_those_of_the_same_path() -> None:
    """CON-4: documentation that moved from reStructuredText to Markdown between two releases."""
    old = {path: text.replace("shop", "``shop``") for path, text in release("spring").items()}
    new = {path.replace(".rst", ".md"): text.replace("shop", "*shop*") for path, text in release("summer").items()}
    result = found({"shop-1": (old, SPRING), "shop-2": (new, SUMMER)})
    assert pairs(result) == {(f"shop-2/{name}.md", f"shop-1/{name}.rst") for name in NAMES}


PAYING = "pay by card or by letter before the goods are sent on their way to you"
RETURNS = "send back what does not fit within two weeks and name the order it came with"


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ({"guide/paying.rst": f"{PAYING} again"}, {"guide/paying.rst"}),  # under another path
        ({"a.rst": PAYING, "b.rst": f"{RETURNS} and why"}, {"a.rst", "b.rst"}),  # in two pages
        (
            {"a.rst": f"{PAYING} {RETURNS} or not", "b.rst": f"{PAYING} later"},
            {"a.rst"},
        ),  # one has all that another repeats
        ({"a.rst": "pay by card and nothing else is the same in this page at all"}, set()),  # hardly anything
        ({"paying.rst": "moved to the guide", "guide/paying.rst": PAYING}, {"guide/paying.rst"}),  # a note stays behind
        ({}, set()),
    ],
)
def test_a_page_that_was_moved_or_split_is_superseded_by_what_says_the_same(new: Tree, expected: set[str]) -> None:
    """CON-4: of trees that are releases, whatever the paths of the new pages are."""
    old = {**release("spring"), "paying.rst": f"{PAYING} {RETURNS}"}
    result = found({"shop-1": (old, SPRING), "shop-2": ({**release("summer"), **new}, SUMMER)}, titled=False)
    assert {newer for newer, older in pairs(result) if older == "shop-1/paying.rst"} == {
        f"shop-2/{path}" for path in expected
    }


@pytest.mark.parametrize(
    ("kind", "later", "superseded"),
    [
        (ContentType.CODE, "def pay(card, order): return card.pay(order) # again", True),
        (ContentType.CODE, "class Card: nothing else is as it was", False),
        (ContentType.CONFIGURATION, "def pay(card, order): return card.pay(order) # again", False),
    ],
)
def test_code_of_a_release_supersedes_that_of_the_same_path(kind: ContentType, later: str, superseded: bool) -> None:
    """CON-4: pages say which folder is a release, and configuration stays in force."""
    before = "def pay(card, order): return card.pay(order)"
    texts = {f"shop-1/{path}": text for path, text in {**release("spring"), "pay.py": before}.items()}
    texts |= {f"shop-2/{path}": text for path, text in {**release("summer"), "pay.py": later}.items()}
    pages = [
        Page(uri, None, kind if uri.endswith(".py") else ContentType.RST, SPRING if "-1/" in uri else SUMMER)
        for uri in texts
    ]
    result = find_successions(pages, lambda uri: [Passage(content_hash(texts[uri]), texts[uri], alone=True)], RULES)
    assert len(pairs(result)) == len(NAMES) + superseded


def test_a_page_that_stayed_is_not_superseded_by_new_ones_like_it() -> None:
    """CON-4: nor does what is no release supersede what it repeats."""
    old = {**release("spring"), "paying.rst": PAYING}
    new = {**release("summer"), "paying.rst": f"{PAYING} today", "more.rst": f"{PAYING} tomorrow"}
    result = found({"shop-1": (old, SPRING), "shop-2": (new, SUMMER)})
    assert {newer for newer, older in pairs(result) if older == "shop-1/paying.rst"} == {"shop-2/paying.rst"}
    assert not pairs(found({"shop-1": (old, SPRING), "notes": ({"more.rst": PAYING}, SUMMER)}))


@pytest.mark.parametrize(
    ("tree", "time"),
    [
        (release("a copy", NAMES[:2]), AUTUMN),  # of some pages
        (release("autumn", about="bank"), AUTUMN),  # another project with the same paths and titles
        (release("autumn"), None),
        (release("autumn"), SPRING + HOUR),  # of the same day, as of two trees that were copied in one go
        (release("spring"), AUTUMN),  # nothing was changed
    ],
)
def test_what_only_looks_like_a_release_supersedes_nothing(tree: Tree, time: float | None) -> None:
    """CON-4."""
    assert not pairs(found({"shop-1": (release("spring"), SPRING), "elsewhere": (tree, time)}))


def test_versions_that_count_down_while_dates_go_on_are_no_succession() -> None:
    """CON-4: where the earlier release was copied later, dates say nothing."""
    later, earlier = (release("summer"), SPRING), (release("spring"), SUMMER)
    assert not pairs(found({"shop-2.10": later, "shop-2.9": earlier}))
    assert len(found({"shop-2.9": later, "shop-2.10": earlier}).edges) == len(NAMES)
    assert len(found({"latest": later, "shop-2.10": earlier}).edges) == len(NAMES)


def test_configuration_of_two_hosts_is_no_succession() -> None:
    """CON-4: both are in force, whichever was changed last."""
    trees = {"east": (release("east"), SPRING), "west": (release("west"), SUMMER)}
    assert not pairs(found(trees, kind=ContentType.CONFIGURATION))


def test_trees_that_both_have_later_pages_are_branches() -> None:
    """CON-4: the one with more of them is the release, and nothing is one where they are as many."""
    names = NAMES[:4]
    left, right = release("left", names), release("right", names)
    half = {f"left/{path}": text for path, text in left.items()} | {
        f"right/{path}": text for path, text in right.items()
    }
    order = {path: SPRING if at % 2 == (path.startswith("left")) else SUMMER for at, path in enumerate(sorted(half))}
    pages = [Page(path, path.partition("/")[2], ContentType.RST, order[path]) for path in half]
    result = find_successions(pages, lambda uri: [Passage(content_hash(half[uri]), half[uri], alone=True)], RULES)
    assert not result.edges


def test_what_is_superseded_stands_for_nothing_newer() -> None:
    """CON-2, CON-4: of near-duplicates the newer one leads, whatever their hashes are."""
    text = "The scheduler retries a failed task before it gives up on the whole run and tells its owner"
    both = [f"{text} of it.", f"{text} of that."]
    for old, new in (both, both[::-1]):
        led = find_duplicates(
            PlainMemory(both),
            lambda texts: np.ones((len(list(texts)), 1), np.float32),
            Evidence(),
            word_lists(SETTINGS),
            SETTINGS.consolidation.duplicates,
            superseded={content_hash(old)},
        )
        assert led.aliases.representatives == {content_hash(old): content_hash(new)}


@pytest.mark.integration
def test_of_equally_supported_near_duplicates_the_first_leads(tmp_path: Path) -> None:
    """CON-2: what was there first is the original, whatever the hashes are; a copy is later."""
    texts = [f"The scheduler retries a failed task before it gives up on the run and tells its {who}" for who in "ab"]
    for first, second in (texts, texts[::-1]):
        documents = [a_document("a.txt", second), a_document("b.txt", first)]
        dated = [
            (replace(document, modified_at=SPRING + HOUR * (document.uri == "a.txt")), chunks)
            for document, chunks in documents
        ]
        generation = published_store(tmp_path / first[-1], dated).open_live()
        led = find_duplicates(
            GenerationContents(generation.contents, generation.chunks),
            lambda texts: np.ones((len(list(texts)), 1), np.float32),
            Evidence(),
            word_lists(SETTINGS),
            SETTINGS.consolidation.duplicates,
        )
        assert led.aliases.representatives == {content_hash(second): content_hash(first)}


@pytest.mark.integration
def test_contradictions_that_nights_found_carry_no_energy(tmp_path: Path) -> None:
    """CON-4, RET-7: declared ones do, and so does what supersedes; each is named all the same."""
    catalog = published_store(tmp_path, [a_document("old.txt", "was so"), a_document("new.txt", "is so")])
    ends = sorted(map(content_hash, ("is so", "was so")))
    found = [
        LearnedEdge(ends[0], kind, ends[1], RelationSource.AUTO) for kind in (LinkKind.CONTRADICTS, LinkKind.SUPERSEDES)
    ]
    said = Relation("new.txt", LinkKind.CONTRADICTS, "old.txt")
    placed = resolve_relations(catalog.open_live(), [said], LearnedEdges.of(found))
    assert len(placed.further) == 3
    assert sorted((each.kind.value, each.origin.value) for each in placed.energy_edges.further) == [
        ("contradicts", "declared"), ("supersedes", "auto"),
    ]  # fmt: skip


@pytest.mark.integration
def test_searches_read_it_of_whole_documents(tmp_path: Path) -> None:
    """CON-4: each document that has one of the contents and not the other, named on both sides."""
    catalog = published_store(
        tmp_path, [a_document("old.txt", "shared", "was so"), a_document("new.txt", "shared", "is so")]
    )
    edge = LearnedEdge(content_hash("is so"), LinkKind.SUPERSEDES, content_hash("was so"), RelationSource.AUTO)
    placed = resolve_relations(catalog.open_live(), (), LearnedEdges.of([edge]))
    assert placed.newer.documents == {"old.txt": {"new.txt"}}
    (related,) = placed.relations_of(["old.txt"], "")
    assert (related.kind, related.uri, related.inward, related.source) == (
        LinkKind.SUPERSEDES, "new.txt", True, RelationSource.AUTO,
    )  # fmt: skip
