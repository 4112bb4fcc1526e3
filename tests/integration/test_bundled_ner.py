"""ING-16: the bundled recogniser, as it ships, without network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.domain.errors import ModelUnavailableError
from weft.extraction.entities import EntityExtractor
from weft.extraction.settings import CHECKPOINT, ExtractionSettings
from weft.settings import load_settings

MOST_BYTES = 30_000_000

SENTENCES = {
    "Guido van Rossum created Python.": {"Guido van Rossum": "person", "Python": "software"},
    "We store the offsets in PostgreSQL and publish with Apache Kafka.": {
        "PostgreSQL": "software",
        "Apache Kafka": "software",
    },
    "Angela Merkel spoke to the European Commission in Berlin on 4 May 2014.": {
        "Angela Merkel": "person",
        "European Commission": "organization",
        "Berlin": "location",
        "4 May 2014": "date",
    },
    "Barack Obama was born in Honolulu, Hawaii, and studied at Harvard Law School.": {
        "Barack Obama": "person",
        "Honolulu": "location",
        "Hawaii": "location",
        "Harvard Law School": "organization",
    },
    "The cluster runs Redis, Nginx and Elasticsearch on Linux.": {
        "Redis": "software",
        "Nginx": "software",
        "Elasticsearch": "software",
        "Linux": "software",
    },
    "Use tree-sitter to parse the code in src/parser/main.rs.": {
        "tree-sitter": "software",
        "src/parser/main.rs": "file path",
    },
}


@pytest.fixture(scope="module")
def settings() -> ExtractionSettings:
    return load_settings(environment={}).extraction


@pytest.fixture(scope="module")
def extractor(settings: ExtractionSettings) -> Iterator[EntityExtractor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield EntityExtractor(settings)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_names_in_real_sentences_are_found(extractor: EntityExtractor, sentence: str) -> None:
    """ING-16: people, organisations, places and software, offline, with the shipped settings."""
    (found,) = extractor.extract([sentence])
    labels = {mention.text: mention.label for mention in found}
    assert labels == SENTENCES[sentence]


def test_plain_prose_holds_no_names(extractor: EntityExtractor) -> None:
    """ING-16: a recogniser that marks everything is no help."""
    (found,) = extractor.extract(
        ["Restart the server after you change the settings, then read the error message again."]
    )
    assert found == []


def test_a_name_beyond_the_first_window_is_found_where_it_stands(extractor: EntityExtractor) -> None:
    """ING-16: long texts are windowed, not truncated, and spans refer to the whole text."""
    text = "The queue holds a thousand items and old ones are dropped. " * 60 + "Ada Lovelace lived in London."
    (found,) = extractor.extract([text])
    assert {"Ada Lovelace", "London"} <= {mention.text for mention in found}
    assert all(text[mention.start : mention.end] == mention.text for mention in found)


def test_many_tokens_in_few_words_do_not_hide_what_follows(extractor: EntityExtractor) -> None:
    """ING-16: 200 identifiers are far more than 512 tokens, though fewer than a window's words."""
    text = " ".join(f"parse_html_tbl_row_idx{index}qzx" for index in range(200)) + ". Ada Lovelace lived in London."
    (found,) = extractor.extract([text])
    assert "Ada Lovelace" in {mention.text for mention in found}


def test_batches_keep_the_order_of_texts_and_empty_texts_have_no_mentions(extractor: EntityExtractor) -> None:
    """ING-16."""
    texts = ["Ada Lovelace lived in London.", "", " \n", "Alan Turing was born in London."]
    first, empty, blank, last = extractor.extract(texts)
    assert empty == blank == []
    assert first[0].text == "Ada Lovelace"
    assert last[0].text == "Alan Turing"
    assert extractor.extract([]) == []


def test_a_model_that_is_not_there_stops_the_run_with_path_and_remedy(
    settings: ExtractionSettings, tmp_path: Path
) -> None:
    """ING-16: a model that cannot be loaded stops the run at its start with a reason."""
    missing = tmp_path / "no-such-model"
    missing.mkdir()
    with pytest.raises(ModelUnavailableError, match=r"no-such-model.*FileNotFoundError.*extraction\.model"):
        EntityExtractor(settings.model_copy(update={"model": str(missing)}))


def test_a_hub_name_without_network_stops_the_run_with_name_and_remedy(
    settings: ExtractionSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ING-16."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelUnavailableError, match=r"urchade/no-such-model.*extraction\.model"):
        EntityExtractor(settings.model_copy(update={"model": "urchade/no-such-model"}))


def test_the_checkpoint_is_small_and_names_no_path_of_the_machine_that_made_it() -> None:
    """ING-16: it ships with the code and loads anywhere."""
    assert sum(file.stat().st_size for file in CHECKPOINT.iterdir()) < MOST_BYTES
    for name in ("gliner_config.json", "tokenizer_config.json"):
        values = texts_in(json.loads((CHECKPOINT / name).read_text(encoding="utf-8")))
        assert not [value for value in values if Path(value).is_absolute()]


def texts_in(value: object) -> Iterator[str]:
    """Every text in a JSON value, at any depth."""
    if isinstance(value, str):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        yield from texts_in(item)
