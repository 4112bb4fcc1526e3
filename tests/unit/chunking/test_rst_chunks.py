"""ING-6: reStructuredText by headings."""

from itertools import pairwise

import pytest

from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.links import Link, LinkKind

SIZES = ChunkSizes(max_tokens=60, target_tokens=40, min_tokens=5, overlap_tokens=10, list_tokens=20)


def words(text: str) -> int:
    return len(text.split())


def chunks_of(text: str, sizes: ChunkSizes = SIZES) -> list[Chunk]:
    document = Document(
        uri="tree/a.rst", content_type=ContentType.RST, domain=Domain.GENERAL, text=text, trust_level=70
    )
    return chunk_document(document, sizes, words)


PAGE = """
======
Manual
======

What it is.

.. _install:
.. _set-up:

Install
-------

Linux
~~~~~

See :ref:`the use <use>`, :doc:`other/page` and :func:`pkg.mod.run`; `Linux`_ again, but not `this`.

Mac
~~~

Another way, see [Apple2020]_ and `the notes <notes.rst>`_.

.. [Apple2020] A. Pple. How to set up
   a machine.

.. _Use:

Use
---

.. include:: more.rst

Call it::

    Not a title
    -----------

    :func:`not.a.link`
"""


def test_sections_have_their_levels_paths_and_anchors() -> None:
    """ING-6: as in Markdown; the adornment's first appearance gives the rank, labels belong to the next heading."""
    assert [(chunk.level, chunk.heading_path, chunk.anchor) for chunk in chunks_of(PAGE)] == [
        (0, ("Manual",), "manual"),
        (2, ("Manual", "Install", "Linux"), "install"),
        (3, ("Manual", "Install", "Mac"), "mac"),
        (2, ("Manual", "Use"), "use"),
    ]
    assert chunks_of(PAGE)[1].attributes["anchors"] == "install set-up linux"


def test_what_names_the_heading_below_it_belongs_to_that() -> None:
    """ING-6, ING-40: and is said once; what has more to say, or another name, is the section's above."""
    section = "\n\n{name}\n{rule}\n\nAt most so many words of {name}.\n\n.. versionadded:: 2.0\n\n.. setting:: {next}\n"
    names = ["RETRIES", "``wait``", "spider_idle", "End"]
    rows = [
        section.format(name=name, rule="-" * len(name), next=following.strip("`"))
        for name, following in pairwise(names)
    ]
    chunks = chunks_of(f"Settings\n========\n\nThey are:\n{''.join(rows)}\n.. _last:\n\nEnd\n---\n\nNo more.\n")
    assert [chunk.heading_path[-1] for chunk in chunks] == ["Settings", "RETRIES", "wait", "spider_idle", "End"]
    for chunk, following in pairwise(chunks[1:]):
        assert chunk.text.endswith("versionadded 2.0")
        assert f"\n{following.heading_path[-1]}" not in chunk.text
    assert [chunk.text.count(chunk.heading_path[-1]) for chunk in chunks[1:]] == [2, 2, 2, 1]


def test_the_heading_path_is_part_of_the_text() -> None:
    """ING-6: what stands above, then the section with its own heading."""
    title, linux, mac, use = chunks_of(PAGE)
    assert title.text == "Manual\n\nWhat it is."
    assert linux.text.startswith("Manual\nInstall\n\nLinux\n\nSee")
    assert mac.text.startswith("Manual > Install\nMac\n\nAnother way, see [Apple2020] and")
    assert use.text.startswith("Manual\nUse\n\nmore.rst")
    assert {chunk.parent_id for chunk in (linux, mac, use)} == {title.chunk_id}


def test_roles_and_references_are_links() -> None:
    """ING-14: labels in any document by name, places of this one with a sign, paths, symbols; none from literals."""
    _, linux, mac, use = chunks_of(PAGE)
    assert linux.links == tuple(
        Link(LinkKind.REFERENCES, target) for target in ("use", "other/page", "pkg.mod.run", "#linux")
    )
    assert mac.links == (Link(LinkKind.CITES, "Apple2020"), Link(LinkKind.REFERENCES, "notes.rst"))
    assert mac.attributes["cite:Apple2020"] == "A. Pple. How to set up a machine."
    assert [link.target for link in use.links] == ["more.rst"]


def test_a_described_object_is_a_unit_of_its_own() -> None:
    """ING-6, ING-14: where the section is too long; it refers to the code that it describes."""
    described = "".join(
        f".. function:: mod.f{number}(a)\n\n   Does one thing. " + "And more of it. " * 5 + "\n\n"
        for number in range(3)
    )
    _, *functions = chunks_of(f"Title\n=====\n\nSome five words of introduction.\n\n{described}")
    assert [(chunk.kind, chunk.level, chunk.anchor) for chunk in functions] == [
        ("function", 3, f"mod.f{number}") for number in range(3)
    ]
    assert functions[1].links == (Link(LinkKind.REFERENCES, "mod.f1"),)
    assert functions[1].text.startswith("Title\nmod.f1(a)\n\n   Does one thing.")


PROSE = "These are some ten words of prose to fill space. " * 2 + "\n\n"
GRID = "+-----+-----+\n| one | two |\n+=====+=====+\n| one | two |\n+-----+-----+\n"
SIMPLE = "=== ===\none two\n=== ===\na   b\n\nc   d\n=== ===\n"


@pytest.mark.parametrize(
    "block",
    [
        ".. code-block:: python\n   :linenos:\n\n   run()\n\n   # not a title\n   # -----------\n\n   stop()\n",
        ".. note:: Mind the gap.\n\n   Really. Do mind it.\n",
        ".. math::\n\n   a = b\n\n   c = d\n",
        ".. figure:: a.png\n   :alt: One.\n\n   Its caption. And more.\n",
        GRID,
        SIMPLE,
        "    quoted text.\n\n    More of it. And more.\n",
        ">>> run()\n1. One\n2\n",
        "term\n    What it means. And more.\n\n    And more again.\n",
        "- one item\n- another\n\n  with more\n",
        "#. one item\n#. another\n",
        ":field: its value\n:other: its value.\n   More. And more.\n",
        "| a line\n| another line\n",
    ],
)
@pytest.mark.parametrize("before", range(4))
def test_a_block_within_the_limit_stays_whole(block: str, before: int) -> None:
    """ING-6: directives, literal blocks, tables, lists, wherever windows would have ended."""
    text = (
        "Title\n=====\n\n"
        + PROSE * before
        + "An introduction to it::\n\n" * block.startswith(" ")
        + block
        + "\n"
        + PROSE * 3
    )
    chunks = chunks_of(text)
    assert len(chunks) > 1
    start = text.index(block)
    end = start + len(block.rstrip())
    assert any(chunk.start_byte <= start and end <= chunk.end_byte for chunk in chunks), [
        chunk.text for chunk in chunks
    ]


def test_a_literal_block_above_the_limit_is_cut_at_lines_that_overlap() -> None:
    """ING-12: at last at lines, of which neighbours share up to the overlap."""
    lines = "".join(f"    line number {number}\n" for number in range(40))
    chunks = chunks_of(f"Title\n=====\n\nSo it is::\n\n{lines}\nEnd.\n")
    assert all(chunk.tokens <= SIZES.max_tokens for chunk in chunks)
    # Three words a line: three lines are nine of the ten tokens that may be shared.
    for one, other in pairwise(chunks[:-1]):
        assert one.text.splitlines()[-3:] == other.text.splitlines()[1:4]


def test_a_long_list_is_cut_between_items_and_never_inside_a_short_one() -> None:
    """ING-6: above its own limit a list may be cut between its items."""
    items = "".join(f"* item {number}\n\n  which goes on. And on.\n" for number in range(12))
    chunks = chunks_of(f"Title\n=====\n\n{items}")
    assert len(chunks) > 2
    assert all(chunk.text.endswith("And on.") for chunk in chunks)


@pytest.mark.parametrize(
    "text", ["A. Person wrote this\nover two lines.\n", "One\n..\n", "::\n", "====\n", "* \n", ".. \n\n   a\n"]
)
def test_what_only_looks_like_structure_is_text(text: str) -> None:
    """ING-6: initials are no list, two dots no underline."""
    (chunk,) = chunks_of(text)
    assert (chunk.kind, chunk.heading_path) == ("preamble", ())


def test_what_is_described_by_its_source_refers_to_it() -> None:
    """ING-14: `autoclass` and its kin name the code whose words stand there."""
    (chunk,) = chunks_of("Title\n=====\n\n.. autoclass:: pkg.Shelf\n   :members:\n")
    assert chunk.links == (Link(LinkKind.REFERENCES, "pkg.Shelf"),)
    assert chunk.attributes["anchors"] == "title pkg.Shelf"


@pytest.mark.parametrize(
    "signature",
    ["Queue(maxsize=0, *, block=True)", 'gannet.Heap(order="size")\n           Heap(birds)', "Nest", "deque"],
)
@pytest.mark.parametrize("above", ["", "Other\n=====\n\n", ".. module:: gannet\n\n"])
def test_classes_of_sphinx_are_shown(signature: str, above: str) -> None:
    """ING-6: `.. class::` describes one where it is signed, or says something below it."""
    (chunk,) = chunks_of(f"{above}.. class:: {signature}\n\n   Text of it.\n")
    for line in signature.split("\n"):
        assert line.strip() in chunk.text


def test_styles_of_docutils_are_left_out() -> None:
    """ING-40: `.. class::` names a style where it is one, which no reader sees."""
    (chunk,) = chunks_of("One.\n\n.. class:: special\n\nTwo.\n\n.. class:: wide dark\n\n   Three.\n")
    assert "special" not in chunk.text
    assert "wide" not in chunk.text
    assert all(word in chunk.text for word in ("One.", "Two.", "Three."))


def test_directives_in_others_are_read_as_any_other() -> None:
    """ING-6, ING-40: wherever they stand; those in a literal block are an example."""
    text = (
        "Title\n=====\n\nterm\n   - .. code-block:: sh\n        :caption: Run it\n\n        run\n\n"
        "     __ https://a.org\n     __ https://b.org\n\n.. note::\n\n   .. literalinclude:: a.py\n"
        "      :language: python\n\nSo::\n\n   .. include:: b.rst\n"
    )
    (chunk,) = chunks_of(text)
    assert [link.target for link in chunk.links] == ["a.py"]
    assert all(hidden not in chunk.text for hidden in (":caption:", "https://", "literalinclude", ":language:"))
    assert all(shown in chunk.text for shown in ("code-block:: sh", "Run it", ".. include:: b.rst"))
