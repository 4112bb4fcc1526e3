"""How many threads an encoder computes with, whichever thread asks it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from weft.embedding.encoders.encoder import load_encoder
from weft.settings import load_settings


@pytest.mark.parametrize("threads", [1, 2])
def test_an_encoder_computes_with_as_many_threads_as_it_is_told(threads: int) -> None:
    """RET-20: also in a thread that computed with another number before, and leaves each its own."""
    other, before = 3 - threads, torch.get_num_threads()
    settings = load_settings(environment={}).embedding.model_copy(update={"threads": threads, "precision": "fp32"})
    seen: list[int] = []
    with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(other,)) as elsewhere:
        elsewhere.submit(torch.get_num_threads).result()
        encoder = load_encoder(settings)
        encoder._model.register_forward_pre_hook(  # type: ignore[attr-defined]
            lambda *_: seen.append(torch.get_num_threads())
        )
        torch.set_num_threads(other)
        try:
            encoder.encode(["how is a checkpoint written"])
            assert torch.get_num_threads() == other
            elsewhere.submit(encoder.encode, ["how is a checkpoint written"]).result()
            assert elsewhere.submit(torch.get_num_threads).result() == other
        finally:
            torch.set_num_threads(before)
    assert seen == [threads, threads]
