"""RET-10: any CrossEncoder by path or hub name, here a tiny one with random weights, saved as any other is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from pipelines.domain.errors import ModelUnavailableError
from pipelines.domain.ranking import Signal
from pipelines.embedding.encoder import load_pair_encoder
from pipelines.embedding.models import locate
from pipelines.embedding.settings import CrossEncoderSettings
from pipelines.retrieval.searcher import Searcher
from pipelines.settings import load_settings
from tests.support.retrieval_fakes import NOW, MemoryGeneration, MemorySource, a_query, settings

TEXTS = ["a checkpoint is written", "bananas are yellow", "word " * 900, ""]


def saved(folder: Path, labels: int = 1) -> Path:
    torch.manual_seed(7)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    model = BertForSequenceClassification(BertConfig(vocab_size=30_522, num_labels=labels, **size))
    # Weights larger than those that training starts from, so that its scores differ.
    for parameter in model.parameters():
        parameter.data *= 8.0
    model.save_pretrained(folder)
    bundled = locate(load_settings(environment={}).embedding)
    AutoTokenizer.from_pretrained(str(bundled)).save_pretrained(folder)
    return folder


def named(model: str) -> CrossEncoderSettings:
    return CrossEncoderSettings(model=model, max_tokens=64, batch=3, device="cpu")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("tiny-cross-encoder"))


def test_it_reads_query_and_text_together(tiny: Path) -> None:
    """RET-10: one number in [0, 1] per pair, in the order of the texts, the same in any company."""
    model = load_pair_encoder(named(str(tiny)))
    assert model is not None
    scores = model.score("when is a checkpoint written", TEXTS)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert len(set(scores)) > 1
    alone = [model.score("when is a checkpoint written", [text])[0] for text in TEXTS]
    assert scores == pytest.approx(alone, abs=1e-5)
    assert model.score("what is yellow", TEXTS) != pytest.approx(scores, abs=1e-5)
    assert model.score("x", []) == []


def test_its_signal_ranks_the_best_and_is_told(tiny: Path) -> None:
    """RET-10: blended by its share; without it the answer is what it was (ARC-8)."""
    generation = MemoryGeneration({f"d{number}": [f"checkpoint {number} written"] for number in range(6)})
    model = load_pair_encoder(named(str(tiny)))
    off = settings()
    on = settings(rerank=off.rerank.model_dump() | {"depth": 4, "cross_encoder": named(str(tiny)).model_dump()})
    source = MemorySource(generation)
    with Searcher(source, generation.encoder, on, clock=lambda: NOW, pairs=model) as searcher:
        answer = searcher.search(a_query("checkpoint written"))
    told = [result for result in answer.results if Signal.CROSS_ENCODER in result.signals]
    assert len(told) == 4
    for result in told:
        (part,) = [part for part in result.contributions if part.name == "cross_encoder"]
        assert part.value == result.signals[Signal.CROSS_ENCODER]
        assert part.value == pytest.approx(model.score("checkpoint written", [result.text])[0], abs=1e-5)
    with Searcher(source, generation.encoder, off, clock=lambda: NOW) as searcher:
        without = searcher.search(a_query("checkpoint written"))
    assert all(Signal.CROSS_ENCODER not in result.signals for result in without.results)
    with Searcher(source, generation.encoder, on, clock=lambda: NOW) as searcher:
        missing = searcher.search(a_query("checkpoint written"))
    assert "cross_encoder" in missing.failed_channels


class Failing:
    def score(self, query: str, texts: list[str]) -> list[float]:
        raise ModelUnavailableError("out of memory")


def test_one_that_fails_is_named_and_costs_no_answer() -> None:
    """RET-10."""
    generation = MemoryGeneration({"a": ["checkpoint written"], "b": ["something else"]})
    with Searcher(
        MemorySource(generation), generation.encoder, settings(), clock=lambda: NOW, pairs=Failing()
    ) as searcher:
        answer = searcher.search(a_query("checkpoint written"))
    assert answer.results[0].uris == ("a",)
    assert answer.failed_channels["cross_encoder"] == "out of memory"


def test_none_is_loaded_where_none_is_named() -> None:
    """RET-10: the default."""
    assert load_pair_encoder(load_settings(environment={}).retrieval.rerank.cross_encoder) is None


def test_a_missing_or_unfit_model_says_what_to_do(tmp_path: Path) -> None:
    """RET-10: what was expected, what was found."""
    with pytest.raises(ModelUnavailableError, match=r"cross_encoder\.model: expected a cross-encoder.*nowhere"):
        load_pair_encoder(named(str(tmp_path / "nowhere")))
    with pytest.raises(ModelUnavailableError, match=r"expected one number per pair.*gives 3"):
        load_pair_encoder(named(str(saved(tmp_path / "three", labels=3))))
