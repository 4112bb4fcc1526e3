"""RET-10: any CrossEncoder by path or hub name, here a tiny one with random weights, saved as any other is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from tests.support.retrieval_fakes import NOW, MemoryGeneration, MemorySource, a_query, settings
from weft.domain.errors import ModelUnavailableError
from weft.domain.ranking import Signal
from weft.embedding.encoders.encoder import load_pair_encoder
from weft.embedding.models import locate
from weft.embedding.ports import PairScorer
from weft.embedding.settings import CrossEncoderSettings
from weft.retrieval.searcher import Searcher
from weft.settings import load_settings

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


def named(model: str, precision: str = "auto", max_tokens: int = 64, most_tokens: int = 4400) -> CrossEncoderSettings:
    facts = {"model": model, "max_tokens": max_tokens}
    return CrossEncoderSettings.model_validate(facts | {"precision": precision, "most_tokens": most_tokens})


def loaded(settings: CrossEncoderSettings) -> PairScorer | None:
    return load_pair_encoder(settings, "cpu", threads=0)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("tiny-cross-encoder"))


def test_it_reads_query_and_text_together(tiny: Path) -> None:
    """RET-10: one number in [0, 1] per pair, in the order of the texts, the same in any company."""
    model = loaded(named(str(tiny)))
    assert model is not None
    scores = model.score("when is a checkpoint written", TEXTS)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert len(set(scores)) > 1
    alone = [model.score("when is a checkpoint written", [text])[0] for text in TEXTS]
    assert scores == pytest.approx(alone, abs=1e-5)
    assert model.score("what is yellow", TEXTS) != pytest.approx(scores, abs=1e-5)
    assert model.score("x", []) == []


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder over the trained weights of the bundled encoder, whose last layer alone is random."""
    folder, bundled = tmp_path_factory.mktemp("cross-encoder"), locate(load_settings(environment={}).embedding)
    torch.manual_seed(3)
    model = BertForSequenceClassification.from_pretrained(bundled, num_labels=1)
    model.classifier.weight.data *= 60.0
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(bundled)).save_pretrained(folder)
    return folder


def test_eight_bits_score_as_single_precision_does(trained: Path) -> None:
    """RET-10: within .05 of what sentence-transformers computes, pair by pair, and in nearly the same order."""
    query = "how is a checkpoint written"
    topics = ["a checkpoint is written to disk", "bananas are yellow and sweet", "def save(path): return open(path)"]
    topics += ["the war ended in 1945", "proteins fold within milliseconds", "she moved to Lisbon last spring"]
    texts = [f"{one}. {other}." for one in topics for other in topics] + ["", "bananas " * 300]
    quick, exact = (loaded(named(str(trained), precision, 128)) for precision in ("int8", "fp32"))
    assert type(quick) is not type(exact)
    found, expected = np.array(quick.score(query, texts)), np.array(exact.score(query, texts))
    assert np.ptp(expected) > 0.1
    assert np.abs(found - expected).max() <= 0.05
    assert np.corrcoef(found, expected)[0, 1] > 0.97
    assert quick.score(query, texts) == found.tolist()


def test_a_search_reads_no_more_than_it_may(trained: Path) -> None:
    """RET-10, RET-20: where all texts together are too long the longest lose their ends, and the others nothing."""
    query, texts = "how is a checkpoint written", ["it is written to disk", "bananas " * 20, "checkpoint " * 60]
    query_tokens = 7  # its five words, and what stands around them
    ends = [query_tokens + 5 + 1, query_tokens + 20 + 1, query_tokens + 60 + 1]
    whole = loaded(named(str(trained), "int8", 128, sum(ends)))
    tight = loaded(named(str(trained), "int8", 128, ends[0] + ends[1] + query_tokens + 30 + 1))
    assert whole is not None
    assert tight is not None
    shortened = [*texts[:2], "checkpoint " * 30]
    assert tight.score(query, texts) == whole.score(query, shortened)
    assert tight.score(query, texts)[:2] == whole.score(query, texts)[:2]
    assert tight.score(query, texts)[2] != whole.score(query, texts)[2]


def test_eight_bits_are_refused_for_a_model_they_cannot_compute(tmp_path: Path) -> None:
    """RET-10: what was expected, and what to do."""
    with pytest.raises(ModelUnavailableError, match="int8 takes the folder of a BERT"):
        loaded(named(str(tmp_path), "int8"))


def test_its_signal_ranks_the_best_and_is_told(tiny: Path) -> None:
    """RET-10: blended by its share; without it the answer is what it was (ARC-8)."""
    generation = MemoryGeneration({f"d{number}": [f"checkpoint {number} written"] for number in range(6)})
    model = loaded(named(str(tiny)))
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
    assert loaded(load_settings(environment={}).retrieval.rerank.cross_encoder) is None


def test_a_missing_or_unfit_model_says_what_to_do(tmp_path: Path) -> None:
    """RET-10: what was expected, what was found."""
    with pytest.raises(ModelUnavailableError, match=r"cross_encoder\.model: expected a cross-encoder.*nowhere"):
        loaded(named(str(tmp_path / "nowhere")))
    with pytest.raises(ModelUnavailableError, match=r"expected one number per pair.*gives 3"):
        loaded(named(str(saved(tmp_path / "three", labels=3))))
