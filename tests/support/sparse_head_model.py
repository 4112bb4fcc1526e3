"""A tiny XLM-RoBERTa of random weights with a sparse head, in the files of BGE-M3, made where a test wants it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

WIDTH = 32
MAX_TOKENS = 64
_SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


def save_tiny_m3(folder: Path, corpus: Sequence[str], *, seed: int = 0) -> Path:
    """Save the model to a folder; its vocabulary is what the corpus is made of, and nothing else is known to it."""
    tokenizer = _tokenizer(corpus)
    torch.manual_seed(seed)
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=MAX_TOKENS + 2,
        initializer_range=0.1,
        pad_token_id=tokenizer.pad_token_id,
    )
    parts = folder.parent / f"{folder.name}-transformer"
    XLMRobertaModel(config).save_pretrained(parts)
    tokenizer.save_pretrained(parts)
    transformer = Transformer(str(parts), max_seq_length=MAX_TOKENS)
    SentenceTransformer(modules=[transformer, Pooling(WIDTH, pooling_mode="cls"), Normalize()]).save(str(folder))
    torch.save(torch.nn.Linear(WIDTH, 1).state_dict(), folder / "sparse_linear.pt")
    return folder


def _tokenizer(corpus: Sequence[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = list(_SPECIAL.values())
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    ends = [(name, special.index(name)) for name in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=MAX_TOKENS, **_SPECIAL)
