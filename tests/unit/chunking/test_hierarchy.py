"""ING-13: what becomes of a unit's own facts when it becomes a chunk."""

from itertools import pairwise

from weft.chunking.units.hierarchy import assemble
from weft.chunking.units.parsed import NamePositions, ParsedUnit, SourceFacts
from weft.chunking.units.splitting import ChunkSizes, SizedText
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.links import Link, LinkKind

SIZES = ChunkSizes(max_tokens=400, target_tokens=100, min_tokens=5, overlap_tokens=10)


def assembled(*units: ParsedUnit, text: str, facts: SourceFacts | None = None) -> list[Chunk]:
    document = Document(uri="tree/a", content_type=ContentType.TEXT, domain=Domain.GENERAL, text=text, trust_level=70)
    sized = SizedText(text, SIZES, lambda content: len(content.split()))
    return assemble(document, sized, units, facts or SourceFacts())


def units_of(text: str, *paths: str, **given: str | None) -> list[ParsedUnit]:
    starts = [0, *(index + 1 for index, letter in enumerate(text) if letter == " "), len(text)]
    return [
        ParsedUnit(start=start, end=end, path=path, kind="part", level=1, bundle_path=given.get(path))
        for (start, end), path in zip(pairwise(starts), paths, strict=True)
    ]


def test_a_bundle_is_found_before_and_after_its_members() -> None:
    """ING-5: a method may stand above or below its type, and a type twice; a type is not in its own bundle."""
    text = "m t n t o"
    units = units_of(text, "m", "t", "n", "t", "o", m="t", t="t", n="t", o="t")
    above, first, between, second, below = assembled(*units, text=text)
    assert (above.bundle, between.bundle, below.bundle) == (first.chunk_id, first.chunk_id, second.chunk_id)
    assert (first.bundle, second.bundle) == (None, None)


def test_a_bundle_that_no_unit_bears_is_none() -> None:
    """ING-13: a method of a type in another file."""
    (chunk,) = assembled(*units_of("m", "m", m="elsewhere"), text="m")
    assert chunk.bundle is None


def test_links_are_the_units_own_and_those_in_its_span_each_once() -> None:
    """ING-14: the surest of several links of one kind to one target is kept."""
    called, likelier = Link(LinkKind.CALLS, "f", 0.6), Link(LinkKind.CALLS, "f", 0.9)
    own, beyond = Link(LinkKind.TESTS, "f", 0.6), Link(LinkKind.CALLS, "g", 0.4)
    facts = SourceFacts(links=NamePositions.of([(2, beyond), (1, likelier), (0, called)]))
    units = [ParsedUnit(start=0, end=2, path="a", kind="part", level=1, links=(own,), attributes={"speaker": "A"})]
    units.append(ParsedUnit(start=2, end=3, path="b", kind="part", level=1))
    first, second = assembled(*units, text="abc", facts=facts)
    assert (first.links, first.attributes) == ((own, likelier), {"speaker": "A"})
    assert (second.links, second.attributes) == ((beyond,), {})
