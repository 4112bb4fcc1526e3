"""Which checkpoint finds entities, and whether it can be loaded: known before a run begins (ING-16)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

import huggingface_hub

from weft.domain.errors import ModelUnavailableError
from weft.extraction.settings import BUNDLED, ExtractionSettings
from weft.runtime.storage.errors import advice_on
from weft.runtime.storage.files import sha256_of

NAME_ANOTHER: Final = (
    "give extraction.model a folder with a GLiNER checkpoint, the hub name of one that can be downloaded, or "
    f"{BUNDLED!r} for the one that comes with weft"
)
"""The advice where a model cannot be loaded, and the machine is not to blame."""
ONNX_FILE: Final = "model.onnx"  # the name GLiNER looks for by default
_CONFIG = "gliner_config.json"
_TORCH_FILES = ("model.safetensors", "pytorch_model.bin")


def onnx_file_of(settings: ExtractionSettings) -> str | None:
    """The file that ONNX Runtime runs, where the checkpoint has one; None where PyTorch runs it."""
    has_one = settings.model == BUNDLED or (Path(settings.source) / ONNX_FILE).is_file()
    return ONNX_FILE if has_one else None


def identify(settings: ExtractionSettings) -> str:
    """What tells the configured checkpoint from any other: the SHA-256 of a folder, the commit of a hub name.

    Called at the start of every run with entities, so that hours of work do not end in a missing model.
    """
    folder = Path(settings.source)
    try:
        return _of_folder(folder, settings) if folder.is_dir() else _of_hub(settings)
    # The hub client and ONNX Runtime raise what they like; every reason stops the run alike.
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelUnavailableError(
            f"entity model {settings.model!r} cannot be loaded from {folder}: {type(error).__name__}: {reason}: "
            + advice_on(error, otherwise=NAME_ANOTHER)
        ) from error


def _of_folder(folder: Path, settings: ExtractionSettings) -> str:
    json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    onnx = onnx_file_of(settings)
    if onnx is not None:
        # Importing it starts threads, without which a forked child hangs at its end: who only searches never does.
        import onnxruntime  # noqa: PLC0415

        onnxruntime.InferenceSession(str(folder / onnx), providers=["CPUExecutionProvider"])
    names = (onnx,) if onnx is not None else _TORCH_FILES
    weights = next((folder / name for name in names if (folder / name).is_file()), None)
    if weights is None:
        raise FileNotFoundError(f"expected one of {', '.join(names)} in {folder}, found none")
    parts = "".join(sha256_of(path) for path in (folder / _CONFIG, weights))
    return hashlib.sha256(parts.encode()).hexdigest()


def _of_hub(settings: ExtractionSettings) -> str:
    name = settings.model
    if Path(name).is_absolute() or name.startswith((".", "~")):
        raise FileNotFoundError(f"expected a folder at {name}, found none")
    # In the cache it lies below a folder named after the commit.
    return f"{name}@{Path(huggingface_hub.hf_hub_download(name, _CONFIG)).parent.name}"
