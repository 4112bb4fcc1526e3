"""SCL-15: stages ask for the GPUs that they use, by Ray's logical ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.support.on_gpus", str(tmp_path_factory.mktemp("gpus"))]
    paths = {"PYTHONPATH": f"{ROOT / 'pipelines'}:{ROOT}"}  # workers import what the models are made of
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_gpu_has_one_actor_of_each_model(told: dict[str, Any]) -> None:
    """SCL-15: two GPUs, one encoder on each, which sees no other; what runs on CPUs holds none."""
    encoders = [each for each in told["held"] if each["role"] == "encoder on cuda"]
    assert sorted(gpu for each in encoders for gpu in each["gpus"]) == [0, 1]
    assert all(each["seen"] == str(each["gpus"][0]) for each in encoders)
    extractors = [each for each in told["held"] if each["role"].startswith("extractor")]
    assert len(extractors) >= 1
    assert not any(each["gpus"] for each in extractors)


def test_others_read_and_cut_meanwhile(told: dict[str, Any]) -> None:
    """SCL-15: the stage on GPUs is a stage of its own, and all actors fit on the cluster together."""
    *before, last = told["stages"]
    assert (last["actors"], last["gpus"]) == (2, 1.0)
    assert before
    assert not any(stage["gpus"] for stage in before)
    assert sum(stage["actors"] * stage["cpus"] for stage in told["stages"]) < 6


def test_gpus_that_pytorch_does_not_find_are_left_alone(told: dict[str, Any]) -> None:
    """SCL-15: "auto" computes on CPUs then, and the manifest says so."""
    assert list(told["devices"].values()) == ["cpu"]


def test_a_gpu_that_is_asked_for_and_missing_is_an_error(told: dict[str, Any]) -> None:
    """SCL-15: before anything is made."""
    assert told["refused"].startswith("embedding.device: expected a GPU on the cluster that PyTorch can use")
    assert told["published"] is None


def test_faiss_trains_and_adds_on_a_gpu_that_it_was_given(told: dict[str, Any]) -> None:
    """SCL-15: once for all shards, and for each shard, by tasks that hold a GPU each; the manifest names the device."""
    faiss = told["faiss"]
    assert (faiss["kind"], faiss["device"]) == ("ivfpq", "cuda")
    assert faiss["shards"] > 1
    roles = [each["role"] for each in faiss["notes"]]
    assert (roles.count("FAISS trains"), roles.count("FAISS adds")) == (1, faiss["shards"])
    assert all(len(each["gpus"]) == 1 and each["seen"] == str(each["gpus"][0]) for each in faiss["notes"])
