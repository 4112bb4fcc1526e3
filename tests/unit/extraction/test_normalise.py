"""ING-17: aliases of one entity are merged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.domain.entities import Mention
from pipelines.extraction.normalise import entities, entity_key


def a_mention(text: str, label: str = "software", score: float = 0.5) -> Mention:
    return Mention(0, len(text), text, label, score)


def test_spellings_that_differ_in_case_blanks_and_punctuation_are_one_entity() -> None:
    """ING-17: the commonest spelling names it, the others are aliases."""
    spellings = ["Apache Kafka", "apache  kafka", "Apache-Kafka", "Apache Kafka"]
    (kafka,) = entities(
        a_mention(text, score=score) for text, score in zip(spellings, (0.5, 0.9, 0.6, 0.5), strict=True)
    )
    assert (kafka.key, kafka.name, kafka.mentions, kafka.score) == ("apache kafka", "Apache Kafka", 4, 0.9)
    assert kafka.aliases == ("Apache Kafka", "Apache-Kafka", "apache kafka")


def test_one_name_under_two_labels_is_two_entities() -> None:
    """ING-17: "Washington" the person is not the place."""
    found = entities([a_mention("Washington", "person"), a_mention("Washington", "location")])
    assert [entity.label for entity in found] == ["location", "person"]


@pytest.mark.parametrize("name", ["C++", "C#", "C", "...", "_"])
def test_names_made_of_signs_keep_a_key_of_their_own(name: str) -> None:
    """ING-17: no name has an empty key, and languages that differ in a sign stay apart."""
    others = {"C++", "C#", "C"} - {name}
    assert entity_key(name)
    assert entity_key(name) not in {entity_key(other) for other in others}


@given(st.text(min_size=1))
def test_a_key_is_its_own_key(name: str) -> None:
    """ING-17: normalising twice changes nothing."""
    assert entity_key(entity_key(name)) == entity_key(name)
