from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weft.domain.errors import ConfigurationError
from weft.embedding.encoders.bert_files import read_bert
from weft.embedding.encoders.precision import (
    _say_slow,
    devices_of,
    pinned,
    precisions_of,
    resolve_precision,
    warn_if_slow,
)
from weft.settings import load_settings

MEAN = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
BERT = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "num_attention_heads": 4,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
}


def a_folder(folder: Path, config: dict[str, Any] = BERT, pooling: dict[str, Any] = MEAN, *more_modules: str) -> Path:
    (folder / "1_Pooling").mkdir(parents=True)
    names = ("models.Transformer", "models.Pooling", *more_modules)
    modules = [
        {"type": f"sentence_transformers.{name}", "path": "1_Pooling" if at == 1 else ""}
        for at, name in enumerate(names)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    header = json.dumps({"bert.embeddings.word_embeddings.weight": {}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    return folder


def pooling_of(folder: Path) -> str | None:
    found = read_bert(folder)
    return None if found is None else found.pooling


def facts(folder: Path, flags: str) -> Path:
    path = folder / "cpuinfo"
    path.write_text(f"model name: x\nflags: {flags}\n")
    return path


@pytest.mark.parametrize(
    ("flags", "bert", "any_model"),
    [
        ("avx2 avx512_vnni avx512_bf16", "int8", "bf16"),
        ("avx2 avx512_vnni", "int8", "fp32"),
        ("avx2 avx512f", "int8", "fp32"),
        ("avx2", "int8", "fp32"),
        ("sse4_2 avx", "fp32", "fp32"),
        ("asimd", "fp32", "fp32"),
    ],
)
def test_auto_takes_the_fastest_arithmetic_of_cpu_and_model(
    tmp_path: Path, flags: str, bert: str, any_model: str
) -> None:
    """ING-21: none that the processor has no instructions for, and 8 bits for what is computed in them."""
    model, other, cpu = a_folder(tmp_path / "model"), tmp_path / "other", facts(tmp_path, flags)
    assert resolve_precision("auto", model, cpu_facts=cpu) == bert
    assert resolve_precision("auto", other, cpu_facts=cpu) == any_model
    assert resolve_precision("auto", model, "cuda", cpu_facts=cpu) == "bf16"


def test_a_system_that_says_nothing_of_its_processor_gets_single_precision(tmp_path: Path) -> None:
    """ING-21: every processor computes that."""
    assert resolve_precision("auto", a_folder(tmp_path / "model"), cpu_facts=tmp_path / "absent") == "fp32"


def test_what_is_asked_for_is_taken() -> None:
    """ING-21: only auto is resolved."""
    assert [resolve_precision(name, Path()) for name in ("fp32", "bf16", "int8")] == ["fp32", "bf16", "int8"]


def test_vectors_that_there_are_decide(tmp_path: Path) -> None:
    """ARC-9: of every encoder by its name; a new one's is resolved; only who makes all anew moves one."""
    first, second = (a_folder(tmp_path / name) for name in ("first", "second"))
    further = f"embedding.further=[{{model: {second}}}]"
    on_cpu = "embedding.device=cpu"
    settings = load_settings(assignments=[f"embedding.model={first}", further, on_cpu], environment={}).embedding
    both = pinned(settings, {"first": "bf16", "second": "int8"})
    assert precisions_of(both) == {"first": "bf16", "second": "int8"}
    assert precisions_of(pinned(both, {"first": "bf16", "second": "int8"})) == precisions_of(both)
    assert precisions_of(pinned(settings, {"second": "fp32"}))["second"] == "fp32"
    named = settings.model_copy(update={"precision": "fp32"})
    with pytest.raises(
        ConfigurationError, match=r"expected int8, in which the vectors of first .* found fp32: use auto"
    ):
        pinned(named, {"first": "int8", "second": "fp32"})
    assert precisions_of(pinned(named, {"first": "int8"}, moving=True))["first"] == "fp32"


def test_what_auto_means_is_named_with_the_arithmetic(tmp_path: Path) -> None:
    """SCL-15: 8 bits stay on the CPU, a device that is asked for stays, and a new store takes the GPU's arithmetic."""
    first, second, third = (a_folder(tmp_path / name) for name in ("first", "second", "third"))
    further = f"embedding.further=[{{model: {second}}}, {{model: {third}, device: cpu, precision: fp32}}]"
    settings = load_settings(assignments=[f"embedding.model={first}", further], environment={}).embedding
    placed = pinned(settings, {"second": "int8"}, auto="cuda")
    assert devices_of(placed) == {"first": "cuda", "second": "cpu", "third": "cpu"}
    assert precisions_of(placed) == {"first": "bf16", "second": "int8", "third": "fp32"}
    assert pinned(placed, precisions_of(placed), auto="cpu") == placed


@pytest.mark.parametrize(("precision", "flags"), [("int8", "sse4_2"), ("bf16", "avx2")])
def test_a_slow_precision_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, precision: str, flags: str
) -> None:
    """ARC-9, OPS-15: what it costs here, and the setting that would change it."""
    _say_slow.cache_clear()
    for _ in range(2):
        warn_if_slow(precision, cpu_facts=facts(tmp_path, flags))
    (said,) = [record.getMessage() for record in caplog.records]
    assert "embedding.precision" in said
    assert f"no instructions for {precision}" in said


def test_a_precision_that_the_processor_multiplies_is_not_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """OPS-15: nothing is said where nothing is lost."""
    for precision, flags in (("int8", "avx2"), ("bf16", "avx512_bf16"), ("fp32", "")):
        warn_if_slow(precision, cpu_facts=facts(tmp_path, flags))
    assert not caplog.records


@pytest.mark.parametrize(
    ("pooling", "found"),
    [
        (MEAN, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode": "max"}, None),
        ({"pooling_mode": ["cls", "mean"]}, None),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, None),
        ({"pooling_mode_max_tokens": True}, None),
    ],
)
def test_pooling_is_read_in_the_old_and_the_new_notation(
    tmp_path: Path, pooling: dict[str, Any], found: str | None
) -> None:
    """ING-19: hub models of all ages say how they pool."""
    assert pooling_of(a_folder(tmp_path / "model", BERT, pooling)) == found


def test_models_of_another_build_are_left_to_the_general_encoder(tmp_path: Path) -> None:
    """ING-19: any sentence-transformers model works; the fast path takes only what it computes rightly."""
    for at, change in enumerate(
        (
            {"model_type": "mpnet"},
            {"hidden_act": "relu"},
            {"position_embedding_type": "relative_key"},
            {"is_decoder": True},
        )
    ):
        assert pooling_of(a_folder(tmp_path / str(at), {**BERT, **change})) is None
    assert pooling_of(a_folder(tmp_path / "dense", BERT, MEAN, "models.Dense")) is None
    assert pooling_of(a_folder(tmp_path / "normal", BERT, MEAN, "models.Normalize")) == "mean"


def test_what_the_files_say_is_read_without_loading_the_model(tmp_path: Path) -> None:
    """ING-19: names, positions and the window come from the files, as the model's own library reads them."""
    folder = a_folder(tmp_path / "model", {**BERT, "model_type": "xlm-roberta", "pad_token_id": 1})
    found = read_bert(folder)
    assert found is not None
    assert (found.prefix, found.first_position, found.pad, found.longest) == ("bert.", 2, 1, 510)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    found = read_bert(folder)
    assert found is not None
    assert found.longest == 128
    (folder / "model.safetensors").write_bytes(b"damaged")
    assert read_bert(folder) is None
