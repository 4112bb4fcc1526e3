"""FBK-9: attribution with the real encoder, from an answer to what the event carries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.answers import a_query, an_answer
from tests.support.feedback_publisher import MemoryPublisher
from weft.domain.events import Success
from weft.domain.ids import content_hash
from weft.feedback.events.attributor import Attributor
from weft.feedback.events.producer import FeedbackProducer
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
RULES = SETTINGS.feedback.attribution
TEXTS = {
    content_hash(text): text
    for text in (
        "The updater writes evidence and the next offset in one transaction, so that a crash loses nothing.",
        "Freshness is the posterior mean of the survival of a document at its age.",
        "Bread dough rises for an hour in a warm place before it is baked.",
    )
}
USED, RELATED, STRANGE = TEXTS
RESPONSE = "A crash loses nothing. Evidence and offset are written together, in a single transaction."


@pytest.fixture(scope="module")
def attributor() -> Attributor:
    return Attributor.load(RULES, SETTINGS.embedding)


def test_the_content_that_was_used_gets_the_greatest_share(attributor: Attributor) -> None:
    """FBK-9: what the response says stands in the first content alone; the same bits whenever it is asked."""
    found = attributor.attribution(TEXTS, RESPONSE)
    assert found is not None
    assert found.method == "counterfactual"
    shares = found.shares
    assert shares[USED] > 2.0 * shares[RELATED]
    assert shares[RELATED] >= shares[STRANGE]
    assert attributor.attribution(TEXTS, RESPONSE) == found


def test_a_near_copy_takes_the_counterfactual_credit_away(attributor: Attributor) -> None:
    """FBK-9: of two contents that say the same, neither would be missed; what is left is similarity."""
    copy = TEXTS[USED].replace("so that a crash loses nothing", "and so a crash loses nothing")
    found = attributor.attribution({**TEXTS, content_hash(copy): copy}, RESPONSE)
    alone = attributor.attribution(TEXTS, RESPONSE)
    assert found is not None
    assert alone is not None
    assert found.shares[USED] < alone.shares[USED]


def test_no_encoder_is_loaded_where_none_is_asked_for() -> None:
    """FBK-9: switched off, only attention tells contents apart."""
    off = RULES.model_copy(update={"encoder": False})
    assert Attributor.load(off, SETTINGS.embedding).attribution(TEXTS, RESPONSE) is None


def test_the_documented_example_sends_an_attributed_success() -> None:
    """FBK-9: as it stands in docs/feedback.md."""
    text = (Path(__file__).parents[2] / "docs/feedback.md").read_text()
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "Attributor.load" in block]
    kept, query = MemoryPublisher(), a_query()
    names = {"settings": SETTINGS, "producer": FeedbackProducer(kept)}
    exec(compile(code, "docs/feedback.md", "exec"), {**names, "query": query, "answer": an_answer(query)})
    (sent,) = kept.events
    assert isinstance(sent, Success)
    assert sent.attribution is not None
    assert sent.attribution.shares.keys() == {result.content_hash for result in an_answer(query).results}
