"""A tiny BERT of random weights, as a sentence-transformers folder or as the jar of a Maven artifact."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

WIDTH = 32
MAX_TOKENS = 64
HEADS = 2
_SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


def save_tiny_bert(folder: Path, corpus: Sequence[str], config: dict[str, Any] | None = None) -> Path:
    """Save a model with mean pooling to a folder, and what its config_sentence_transformers.json is to say."""
    tokenizer = _tokenizer(corpus)
    parts = folder.parent / f"{folder.name}-transformer"
    _bert(len(tokenizer)).save_pretrained(parts)
    tokenizer.save_pretrained(parts)
    transformer = Transformer(str(parts), max_seq_length=MAX_TOKENS)
    SentenceTransformer(modules=[transformer, Pooling(WIDTH, pooling_mode="mean"), Normalize()]).save(str(folder))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config or {}))
    return folder


def tiny_jar(corpus: Sequence[str]) -> tuple[bytes, BertModel, PreTrainedTokenizerFast]:
    """A jar with `tiny.onnx` and `tiny-tokenizer.json`, and what is in it.

    The graph has what an export of PyTorch says of weights: linear layers by transposed matrices under numbers.
    """
    import onnx

    tokenizer = _tokenizer(corpus)
    bert = _bert(len(tokenizer))
    tensors, nodes = [], []
    for number, (name, values) in enumerate(bert.state_dict().items()):
        linear = values.ndim == 2 and not name.startswith("embeddings.")
        stored = f"onnx::MatMul_{number}" if linear else name
        tensors.append(onnx.numpy_helper.from_array((values.T if linear else values).numpy().copy(), stored))
        if linear:
            layer = "/" + name.removesuffix(".weight").replace(".", "/") + "/MatMul"
            nodes.append(onnx.helper.make_node("MatMul", [f"of {layer}", stored], [f"{layer}_output_0"], name=layer))
    graph = onnx.helper.make_graph(nodes, "main_graph", [], [], tensors)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as jar:
        jar.writestr("tiny.onnx", onnx.helper.make_model(graph).SerializeToString())
        jar.writestr("tiny-tokenizer.json", tokenizer.backend_tokenizer.to_str())
    return written.getvalue(), bert, tokenizer


def _bert(words: int) -> BertModel:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=words,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=MAX_TOKENS,
        initializer_range=0.1,
    )
    return BertModel(config).eval()


def _tokenizer(corpus: Sequence[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = list(_SPECIAL.values())
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([*corpus, "query: passage:"], trainer)
    ends = [(name, special.index(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=MAX_TOKENS, **_SPECIAL)
