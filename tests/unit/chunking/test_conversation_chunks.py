"""ING-8: sessions, topics, questions with their answers, and blocks of code."""

import numpy as np
import pytest

from weft.chunking.conversation.dialogue import Line, Turn, written
from weft.chunking.conversation.session import chunk_conversation, distances, far_apart, question_of
from weft.chunking.units.splitting import ChunkSizes, TopicRules
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain

SIZES = ChunkSizes(max_tokens=60, target_tokens=40, min_tokens=5, overlap_tokens=5)
FRUIT = np.array([[1.0, 0.0]], np.float32)
STEEL = np.array([[0.0, 1.0]], np.float32)


def words(text: str) -> int:
    return len(text.split())


def by_word(texts: list[str]) -> np.ndarray:
    rows = [FRUIT[0] if "pear" in text else STEEL[0] if "bolt" in text else np.zeros(2, np.float32) for text in texts]
    return np.array(rows, np.float32)


def chunks_of(lines: list[Line], sizes: ChunkSizes = SIZES, similarity=None, **metadata: str) -> list[Chunk]:
    document = Document(
        uri="chat#1",
        content_type=ContentType.CONVERSATION,
        domain=Domain.HISTORY,
        text=written(lines),
        trust_level=50,
        metadata=metadata,
    )
    return chunk_conversation(document, sizes, words, similarity=similarity)


def pairs(chunks: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks if chunk.level == 2]


def test_a_question_stays_with_its_answer() -> None:
    """ING-8: two speakers in turn; remarks before a question stand alone."""
    chunks = chunks_of(
        [
            Turn("Ann", "I ran."),
            Turn("Bob", "How far?"),
            Turn("Ann", "Ten."),
            Turn("Ann", "Miles."),
            Turn("Bob", "When?"),
            Turn("Ann", "Now."),
        ]
    )
    assert pairs(chunks) == ["Ann: I ran.", "Bob: How far?\nAnn: Ten.\nAnn: Miles.", "Bob: When?\nAnn: Now."]
    assert [chunk.kind for chunk in chunks if chunk.level == 0] == ["session"]


def test_a_question_inside_a_chain_is_carried_to_its_answer() -> None:
    """ING-8: where an answer asks in its turn, that question stands before the next answer too."""
    lines: list[Line] = [
        Turn("Ann", "Who?"),
        Turn("Bob", "Me. Why now? Odd."),
        Turn("Ann", "Rain. Late?"),
        Turn("Bob", "No."),
    ]
    assert pairs(chunks_of(lines))[1] == "Bob: Why now?\nAnn: Rain. Late?\nBob: No."


def test_a_user_is_followed_by_everything_until_the_next_request() -> None:
    """ING-8: roles of an agent's log: tools and remarks belong to the request before them."""
    roles = ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]
    chunks = chunks_of([Turn(role, f"Said {number}.") for number, role in enumerate(roles)], turns="a b c d e f g")
    assert [chunk.attributes["turns"] for chunk in chunks if chunk.level == 2] == ["a", "b c d e", "f g"]


def test_topics_end_at_markers_phrases_and_drops() -> None:
    """ING-8: explicit boundaries, and cosine distance of neighbouring turns above the threshold."""
    rules = TopicRules(distance=0.3, phrases=("by the way",))
    sizes = ChunkSizes(60, 40, 5, 5, topics=rules)
    fruit: list[Line] = [Turn("Ann", "A pear?"), Turn("Bob", "A pear.")] * 2
    steel: list[Line] = [Turn("Ann", "A bolt?"), Turn("Bob", "A bolt.")] * 2
    odd: list[Line] = [Turn("Ann", "By the way, tea?"), Turn("Bob", "Yes."), Turn("Ann", "Two?"), Turn("Bob", "Yes.")]
    marked: list[Line] = ["Metal", *steel]
    topics = [chunk for chunk in chunks_of([*fruit, *steel, *odd, *marked], sizes, by_word) if chunk.level == 1]
    assert [topic.text.splitlines()[0] for topic in topics] == [
        "Ann: A pear?",
        "Ann: A bolt?",
        "Ann: By the way, tea?",
        "# Metal",
    ]
    assert topics[-1].heading_path == ("Metal",)
    assert pairs(chunks_of([*fruit, *marked], sizes, by_word))[-1].startswith("Metal\n")


def test_chunks_know_their_place() -> None:
    """ING-8, ING-13: parents, speakers, times and turns."""
    lines: list[Line] = ["One", Turn("A", "x?"), Turn("B", "y", "10:30"), Turn("A", "z?"), Turn("B", "w"), "Two"]
    chunks = chunks_of([*lines, *lines[1:-1]], turns="1 2 3 4 5 6 7 8", session="s", time="noon")
    session = chunks[0]
    topics = [chunk for chunk in chunks if chunk.level == 1]
    assert [topic.parent_id for topic in topics] == [session.chunk_id] * 2
    first = chunks[2]
    assert first.parent_id == topics[0].chunk_id
    assert first.attributes == {"session": "s", "time": "10:30", "speakers": "A, B", "turns": "1 2"}
    assert session.attributes["turns"] == "1 2 3 4 5 6 7 8"


def test_a_large_block_of_code_is_a_chunk_under_its_question() -> None:
    """ING-8: whole in the exchange where that fits, and found on its own."""
    code = "```py\n" + "x = 1\n" * 8 + "```"
    chunks = chunks_of([Turn("user", "How?"), Turn("assistant", f"Thus:\n{code}\nDone."), Turn("user", "Thanks.")])
    (block,) = [chunk for chunk in chunks if chunk.level == 3]
    pair = next(chunk for chunk in chunks if chunk.level == 2)
    assert block.text.startswith("user: How?\n  ```py\n")
    assert block.text.endswith("```")
    assert (block.parent_id, block.kind, block.attributes["language"]) == (pair.chunk_id, "code_block", "py")
    assert "Done." in pair.text


def test_an_exchange_above_the_maximum_is_cut_around_its_code() -> None:
    """ING-12: parts carry the question, and no block that fits is cut."""
    code = "```\n" + "y = 2\n" * 12 + "```"
    prose = "Some words that say a thing. " * 12
    chunks = chunks_of([Turn("user", "How come?"), Turn("assistant", f"{prose}\n{code}\n{prose}")])
    assert all(chunk.tokens <= SIZES.max_tokens for chunk in chunks)
    indented = "\n".join(f"  {line}" for line in code.split("\n"))
    assert any(indented in chunk.text for chunk in chunks)
    assert all("user: How come?" in chunk.text for chunk in chunks)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("A? B.", "A?"),
        ("No.", ""),
        ("好吗？", "好吗？"),
        ("See? [shares image: a cat]", "See?"),
        ("http://x/?a=b is it.", ""),
    ],
)
def test_what_asks(text: str, question: str) -> None:
    """ING-8: a question ends in its mark."""
    assert question_of(text) == question


def test_distances_are_of_the_turns_around() -> None:
    """ING-8: sums over a window on either side; orthogonal ones are 1 apart, alike ones 0, empty ones tell nothing."""
    texts = ["pear", "pear", "bolt", "bolt", "", ""]
    mixed = 1 - 1 / np.sqrt(2)  # (1, 0) against (1, 1)
    assert distances(texts, 2, by_word) == pytest.approx([0, mixed, 1, mixed, 0, 0])
    assert distances(texts, 1, by_word) == pytest.approx([0, 0, 1, 0, 0, 0])


@pytest.mark.parametrize("block", [2, 3, 7])
def test_distances_do_not_depend_on_how_many_are_read_at_once(block: int) -> None:
    """ING-8: a very long session is read block by block."""
    rng = np.random.default_rng(3)
    table = {str(number): rng.normal(size=4) for number in range(17)}
    texts = list(table)

    def vectors(some: list[str]) -> np.ndarray:
        return np.array([table[text] for text in some])

    assert distances(texts, 2, vectors, block=block) == pytest.approx(distances(texts, 2, vectors))


@pytest.mark.parametrize(
    "said",
    ["Why?", "So.", "```", "```\ncode\n```", "a " * 40, "?" * 40, "[shares image: ", " \n" * 20, "# x"],
)
def test_hostile_repetition_costs_little(said: str) -> None:
    """ING-3, ING-8: thousands of turns, or one that repeats itself, in linear time."""
    sizes = ChunkSizes(250, 200, 50, 20, topics=TopicRules(0.3, ("by the way",)))
    many = [Turn("Ann" if number % 2 else "Bob", said) for number in range(20_000 // (len(said) + 5))]
    for lines in (many, [Turn("Ann", said * (20_000 // len(said)))]):
        assert chunks_of(list(lines), sizes, by_word)


@pytest.mark.parametrize(
    "turn",
    [
        "By the way, what of pears?",
        "OK, now let's talk about pears.",
        "Thanks, that works! Moving on: what of pears?",
        "So, quick different question: pears?",
        "Can we go back to the pears?",
    ],
)
def test_a_marker_stands_anywhere_near_the_beginning(turn: str) -> None:
    """ING-29: behind what people say before they name a topic, and in the second sentence."""
    phrases = ("by the way", "let's talk about", "moving on", "different question", "back to")
    sizes = ChunkSizes(60, 40, 5, 5, topics=TopicRules(2.0, phrases))
    lines: list[Line] = [Turn("user", "Bolts?"), Turn("agent", "Yes."), Turn("user", "Nuts?"), Turn("agent", "No.")]
    more: list[Line] = [Turn("user", turn), Turn("agent", "Ripe."), Turn("user", "When?"), Turn("agent", "Now.")]
    topics = [chunk.text.splitlines()[0] for chunk in chunks_of([*lines, *more], sizes) if chunk.level == 1]
    assert topics == ["user: Bolts?", f"user: {turn}"]


def test_what_is_said_of_a_marker_later_begins_no_topic() -> None:
    """ING-29: "back to" in the middle of a story."""
    sizes = ChunkSizes(60, 40, 5, 5, topics=TopicRules(2.0, ("back to",)))
    lines: list[Line] = [
        Turn("user", "Bolts?"),
        Turn("agent", "Yes."),
        Turn("user", "I went back to them."),
        Turn("agent", "A."),
    ]
    assert len([chunk for chunk in chunks_of(lines, sizes) if chunk.level == 1]) == 1


def test_a_drop_of_similarity_is_one_border() -> None:
    """ING-29: at the farthest of some neighbours above the threshold, the first of those that are as far."""
    gaps = np.array([0.0, 0.5, 0.7, 0.6, 0.1, 0.3, 0.5, 0.5, 0.2])
    assert np.flatnonzero(far_apart(gaps, 0.4)).tolist() == [2, 6]
    assert not far_apart(gaps, 0.8).any()
