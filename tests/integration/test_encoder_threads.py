"""How many threads an encoder computes with, whichever thread asks it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from pipelines.embedding.encoder import load_encoder
from pipelines.settings import load_settings


@pytest.mark.parametrize("threads", [1, 2])
def test_an_encoder_computes_with_as_many_threads_as_it_is_told(threads: int) -> None:
    """RET-20: also in threads that were started after it was loaded, which have a number of their own."""
    settings = load_settings(environment={}).embedding.model_copy(update={"threads": threads, "precision": "fp32"})
    encoder, seen = load_encoder(settings), list[int]()
    encoder._model.register_forward_pre_hook(lambda *_: seen.append(torch.get_num_threads()))  # type: ignore[attr-defined]

    def asked() -> tuple[int, int]:
        before = torch.get_num_threads()
        encoder.encode(["how is a checkpoint written"])
        return before, torch.get_num_threads()

    with ThreadPoolExecutor(1) as elsewhere:
        for before, after in (asked(), elsewhere.submit(asked).result()):
            assert after == before
    assert seen == [threads, threads]
