"""FAISS's build for processors in the place of that for GPUs, on Ray's logical GPUs; who held which is noted."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faiss
import numpy as np
import ray

HELD = "WEFT_TEST_HELD"
"""The folder where notes are kept."""


def note(role: str) -> None:
    """Write down which GPUs the worker at hand was given, and which a library would see."""
    held = {"role": role, "gpus": ray.get_gpu_ids(), "seen": os.environ.get("CUDA_VISIBLE_DEVICES")}
    Path(os.environ[HELD], uuid.uuid4().hex).write_text(json.dumps(held), "utf-8")


class OnGpu:
    """An index that is none of a processor's, and trains and fills as one does."""

    def __init__(self, index: Any) -> None:
        self.index = index

    def __getattr__(self, name: str) -> Any:
        return getattr(self.index, name)

    def train(self, vectors: np.ndarray) -> None:
        note("FAISS trains")
        self.index.train(vectors)

    def add(self, vectors: np.ndarray) -> None:
        note("FAISS adds")
        self.index.add(vectors)


def give_gpus() -> None:
    """Have FAISS see the GPUs that a worker was given."""
    faiss.StandardGpuResources = faiss.GpuClonerOptions = SimpleNamespace
    faiss.get_num_gpus = lambda: len(ray.get_gpu_ids())
    faiss.index_cpu_to_gpu = lambda _resources, _number, index, _options: OnGpu(index)
    faiss.index_gpu_to_cpu = lambda placed: placed.index
