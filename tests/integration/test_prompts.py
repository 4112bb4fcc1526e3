"""ING-19: encoders are given the prompts that they were trained with, each on its side, in their whole window."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from tests.support.tiny_bert import MAX_TOKENS, save_tiny_bert
from weft.app import indexing
from weft.app.searching.engines import load_engines, opened
from weft.catalog.catalog import Catalog
from weft.domain.errors import ConfigurationError
from weft.domain.ranking import Query
from weft.embedding.encoders.encoder import load_encoder
from weft.embedding.models import display_name, input_of
from weft.embedding.tokens import load_token_counter
from weft.ingestion.plan import made_with_of, models_of
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

pytestmark = pytest.mark.integration

TEXTS = {
    "offsets.txt": "A checkpoint is written in one transaction with its offset.",
    "locks.txt": "A lock is held by whoever writes, and released at the end.",
}
QUESTION = "where is the offset of a checkpoint?"
E5 = {"prompts": {"query": "query: ", "passage": "passage: "}}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("models") / "tiny", [QUESTION, *TEXTS.values()], E5)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


def of_store(store: Path, model: Path, *changes: str) -> Settings:
    own = [f"storage.root={store}", f"embedding.model='{model}'", "embedding.precision=fp32", "embedding.device=cpu"]
    others = ["embedding.tokens.dimension=16", "extraction.enabled=false", "retrieval.channels=[dense, lexical]"]
    return load_settings([], [*own, *others, *changes], environment={})


@pytest.mark.parametrize(("precision", "least"), [("fp32", 0.99999), ("int8", 0.99)])
def test_each_side_has_its_prompt(model: Path, precision: str, least: float) -> None:
    """ING-19: contents behind the passage's prompt, queries behind the query's, as sentence-transformers puts them."""
    encoder = load_encoder(of_store(Path("none"), model, f"embedding.precision={precision}").embedding)
    plain, texts = SentenceTransformer(str(model), device="cpu"), [*TEXTS.values(), QUESTION]
    for side, prompt in ((encoder, "passage: "), (encoder.queries, "query: ")):
        expected = plain.encode(texts, prompt=prompt)
        assert ((side.encode(texts) * expected).sum(axis=1) > least).all()
        _, tokens = side.encode_tokens(texts, len)
        assert tokens == [encoder.count_tokens(text) for text in texts]  # late interaction compares no prompts
    assert np.abs(encoder.encode(texts) - encoder.queries.encode(texts)).max() > 0.01
    assert encoder.queries.name == encoder.name


def test_a_prompt_left_out_of_pooling_is_left_out(model: Path, tmp_path: Path) -> None:
    """ING-19: some models read a prompt and do not count it, as their pooling says."""
    other = save_tiny_bert(tmp_path / "tiny", [QUESTION, *TEXTS.values()], E5)
    pooling = other / "1_Pooling" / "config.json"
    pooling.write_text(pooling.read_text().replace('"include_prompt": true', '"include_prompt": false'))
    plain, texts = SentenceTransformer(str(other), device="cpu"), list(TEXTS.values())
    vectors = load_encoder(of_store(Path("none"), other).embedding).encode(texts)
    assert ((vectors * plain.encode(texts, prompt="passage: ")).sum(axis=1) > 0.99999).all()
    assert np.abs(vectors - load_encoder(of_store(Path("none"), model).embedding).encode(texts)).max() > 0.001


@pytest.mark.parametrize(
    ("config", "changes", "expected"),
    [
        ({}, [], ("", "")),
        (E5, [], ("query: ", "passage: ")),
        ({"prompts": {"query": "find: ", "document": ""}, "default_prompt_name": None}, [], ("find: ", "")),
        ({"prompts": {"query": "find: "}, "default_prompt_name": "query"}, [], ("find: ", "")),
        ({"prompts": {"any": "text: "}, "default_prompt_name": "any"}, [], ("text: ", "text: ")),
        ({"prompts": {"clustering": "topic: "}}, [], ("", "")),
        (E5, ["embedding.query_prompt=''"], ("", "passage: ")),
        (E5, ["embedding.query_prompt='ask: '", "embedding.document_prompt=''"], ("ask: ", "")),
        ({"prompts": ["no table"], "default_prompt_name": 3}, [], ("", "")),
    ],
)
def test_prompts_are_those_of_the_model_or_of_the_settings(
    tmp_path: Path, config: dict[str, Any], changes: list[str], expected: tuple[str, str]
) -> None:
    """ING-19, OPS-3: what the model's file says, unless a setting says otherwise."""
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(config))
    given = input_of(tmp_path, of_store(Path("none"), tmp_path, *changes).embedding)
    assert (given.query_prompt, given.document_prompt) == expected


def test_a_further_encoder_has_its_own_models_prompts(model: Path) -> None:
    """ING-19: a prompt that is set for one encoder is none of another's."""
    settings = of_store(Path("none"), model, "embedding.query_prompt='ask: '", "embedding.further=[{model: bundled}]")
    assert [one.query_prompt for one in settings.embedding.encoders] == ["ask: ", None]


def test_prompts_are_part_of_what_an_encoder_is_known_by(model: Path, source: Path) -> None:
    """ING-20: neither a cached vector nor a generation is taken for one under other prompts."""
    names, keys = set(), set()
    for change in ("query_prompt=null", "query_prompt=''", "document_prompt='text: '", "document_prompt=''"):
        settings = of_store(Path("none"), model, f"embedding.{change}")
        plan = indexing.plan_of(settings, [source])
        names.add(display_name(model, settings.embedding))
        keys.update(made_with_of(plan, models_of(plan)))
    assert len(names) == len(keys) == 4
    unprompted = of_store(Path("none"), model, "embedding.query_prompt=''", "embedding.document_prompt=''")
    assert display_name(model, unprompted.embedding) == "tiny"


def test_what_is_stored_and_what_is_asked_have_their_prompts(model: Path, source: Path, tmp_path: Path) -> None:
    """ING-19, RET-7: indexing puts contents behind theirs, searching queries behind theirs; other prompts, no match."""
    settings = of_store(tmp_path / "store", model)
    indexing.run(indexing.plan_of(settings, [source]), executor=HERE)
    engines = load_engines(settings)
    with closing(Catalog(tmp_path / "store").open_live()) as generation:
        (name,) = generation.encoders
        texts = [content.text for content in generation.chunks.contents(range(2))]
        stored = generation.dense(name).vectors(range(2))
    plain = SentenceTransformer(str(model), device="cpu")
    assert np.allclose(stored, plain.encode(texts, prompt="passage: "), atol=2e-3)
    assert np.allclose(engines.of_contents[0].encode(texts), stored, atol=2e-3)
    assert np.allclose(engines.encoders[0].encode([QUESTION]), plain.encode([QUESTION], prompt="query: "), atol=1e-5)
    with opened(settings) as searcher:
        assert searcher.search(Query(text=QUESTION)).failed_channels == {}
    with opened(of_store(tmp_path / "store", model, "embedding.query_prompt=''", "storage.settings=given")) as searcher:
        answer = searcher.search(Query(text=QUESTION))
    assert "reindex" in answer.failed_channels["dense"]


def test_the_window_is_what_the_model_reads(model: Path, tmp_path: Path) -> None:
    """ING-11, ING-19: with nothing said it is the model's own, 512 at most; chunks leave room for the prompt in it."""
    settings = of_store(Path("none"), model).embedding
    counter = load_token_counter(settings)
    assert input_of(model, settings).window == MAX_TOKENS
    assert load_encoder(settings).max_tokens == counter.limit == MAX_TOKENS - 2 - counter("passage: ")
    assert input_of(tmp_path, settings).window == 512
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 8192}')
    assert input_of(tmp_path, settings).window == 512
    assert input_of(tmp_path, settings.model_copy(update={"max_tokens": 8192})).window == 8192
    with pytest.raises(ConfigurationError, match=f"at most {MAX_TOKENS}"):
        load_encoder(settings.model_copy(update={"max_tokens": 2 * MAX_TOKENS}))
    with pytest.raises(ConfigurationError, match=r"embedding\.document_prompt"):
        load_token_counter(settings.model_copy(update={"document_prompt": "passage: " * MAX_TOKENS}))
