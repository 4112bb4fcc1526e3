"""What must be true of contents that stand for one another, whatever became of them (CON-2)."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weft.domain.ids import ContentHash
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.beliefs import Beliefs, read_beliefs
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.accuracy import Checks
from weft.learning.observe.usage import ContentSignals
from weft.learning.uses import UsageKey
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
DAY = 20_000
NOW = (DAY + 3.5) * 86_400.0
CONTENTS = [ContentHash(letter * 64) for letter in "abcdef"]

keys = st.builds(
    UsageKey,
    day=st.integers(DAY, DAY + 3),
    content_hash=st.sampled_from(CONTENTS),
    bin=st.sampled_from(
        ["positive", "negative", "retrieval", "reference", "accurate", "inaccurate", "verdict:good:00000735:63"]
    ),
    principal=st.sampled_from(["", "ada", "ben"]),
    question=st.sampled_from(["", "q1", "q2"]),
)
evidences = st.dictionaries(keys, st.integers(1, 3 * MICRO), max_size=25).map(lambda usage: Evidence(usage=usage))


@st.composite
def aliases(draw: st.DrawFn) -> ContentAliases:
    leaders = draw(st.lists(st.sampled_from(CONTENTS), max_size=3, unique=True))
    others = [content for content in CONTENTS if content not in leaders]
    if not leaders:
        return NO_ALIASES
    chosen = draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    return ContentAliases({alias: draw(st.sampled_from(leaders)) for alias in chosen})


def columns_of(checks: Checks) -> list[np.ndarray]:
    return [getattr(checks, name) for name in Checks.__slots__]


def bits(beliefs: Beliefs) -> bytes:
    signals = beliefs.content_signals(CONTENTS)
    columns = [getattr(signals, name).tobytes() for name in ContentSignals.__slots__]
    checks = [column.tobytes() for column in columns_of(beliefs.checks.of(CONTENTS))]
    words = beliefs.precedents.verdicts
    said = sorted(
        (beliefs.precedents.contents[content], beliefs.precedents.questions[question], good, weight)
        for content, question, good, weight in zip(
            words.content.tolist(), words.question.tolist(), words.good.tolist(), words.weight.tolist(), strict=True
        )
    )
    return pickle.dumps((columns, checks, said))


def renamed(evidence: Evidence, standing: ContentAliases) -> Evidence:
    """The same masses, written under the representatives one by one."""
    return Evidence.sum(
        Evidence(usage={key._replace(content_hash=standing.of(key.content_hash)): micro})
        for key, micro in evidence.usage.items()
    )


@given(evidences, aliases())
def test_a_class_reads_the_sum_of_what_became_of_each(evidence: Evidence, standing: ContentAliases) -> None:
    """CON-2: the representative believes what it would if all had happened to it, and so does each alias."""
    merged = read_beliefs(PRIORS, evidence, now=NOW, aliases=standing)
    told = read_beliefs(PRIORS, renamed(evidence, standing), now=NOW)
    leaders = [standing.of(content) for content in CONTENTS]
    ours, theirs = merged.content_signals(CONTENTS), told.content_signals(leaders)
    for name in ContentSignals.__slots__:
        assert np.array_equal(getattr(ours, name), getattr(theirs, name))
    checked = columns_of(merged.checks.of(CONTENTS)), columns_of(told.checks.of(leaders))
    for own, other in zip(*checked, strict=True):
        assert np.array_equal(own, other)


@given(evidences, aliases())
def test_splitting_gives_every_belief_back(evidence: Evidence, standing: ContentAliases) -> None:
    """CON-2, CON-7a: evidence keeps masses apart, so that beliefs without aliases are what they were, bit for bit."""
    before = bits(read_beliefs(PRIORS, evidence, now=NOW))
    rows = evidence.digest()
    read_beliefs(PRIORS, evidence, now=NOW, aliases=standing)
    assert evidence.digest() == rows
    assert bits(read_beliefs(PRIORS, evidence, now=NOW)) == before


@given(evidences, evidences, aliases())
def test_merging_evidence_and_reading_it_together_commute(
    some: Evidence, more: Evidence, standing: ContentAliases
) -> None:
    """CON-2, LRN-1: a class of sums is the sum of the classes."""
    assert standing.merged(some + more) == standing.merged(some) + standing.merged(more)


@given(aliases())
def test_aliases_are_read_as_they_were_written(standing: ContentAliases) -> None:
    """CON-7a: the table in a learned version holds all of them, sorted."""
    assert ContentAliases.from_table(standing.to_table()).representatives == standing.representatives
    assert standing.to_table().equals(ContentAliases.from_table(standing.to_table()).to_table())


@given(aliases(), st.sets(st.sampled_from(CONTENTS)))
def test_a_class_whose_representative_is_gone_has_another(standing: ContentAliases, here: set[ContentHash]) -> None:
    """CON-6: whoever is there keeps its class: none is led by what is gone while any of the class is there."""
    led = standing.led_by(lambda content: content in here)
    for leader, members in standing.classes().items():
        of_class = {leader, *members}
        leaders = {led.of(content) for content in of_class}
        assert len(leaders) == 1
        assert leaders <= here or not of_class & here
