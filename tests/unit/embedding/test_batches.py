from __future__ import annotations

from pathlib import Path

from pipelines.embedding.encoder import _batches, resolve_precision
from pipelines.settings import load_settings

SETTINGS = load_settings(environment={}).embedding


def test_every_text_is_in_one_batch_of_its_own_padded_length_within_the_token_budget() -> None:
    """ING-21, ARC-9: batches keep to the budget, and a text's padded length depends on the text alone."""
    settings = SETTINGS.model_copy(update={"batch_tokens": 64, "length_step": 16, "max_tokens": 40})
    lengths = [3, 16, 17, 40, 1, 33, 20, 5, 6, 7, 8]
    batches = list(_batches(lengths, settings))
    assert sorted(row for rows, _ in batches for row in rows) == list(range(len(lengths)))
    for rows, width in batches:
        assert len(rows) * width <= 64
        for row in rows:
            assert lengths[row] <= width < lengths[row] + 16
            assert width <= 40


def test_a_text_longer_than_the_budget_still_gets_a_batch() -> None:
    """ING-21: a token budget below one text's length means batches of one."""
    settings = SETTINGS.model_copy(update={"batch_tokens": 1})
    assert list(_batches([100, 100], settings)) == [([0], 112), ([1], 112)]


def test_auto_precision_takes_bf16_only_where_the_cpu_multiplies_it(tmp_path: Path) -> None:
    """ING-21: bf16 without hardware for it would be slower than fp32, so auto looks first."""
    facts = tmp_path / "cpuinfo"
    facts.write_text("flags: avx2 avx512_bf16")
    assert resolve_precision("auto", cpu_facts=facts) == "bf16"
    facts.write_text("flags: avx2")
    assert resolve_precision("auto", cpu_facts=facts) == "fp32"
    assert resolve_precision("auto", cpu_facts=tmp_path / "absent") == "fp32"
    assert resolve_precision("fp32", "cuda") == "fp32"
