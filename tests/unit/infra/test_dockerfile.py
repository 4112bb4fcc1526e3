"""OPS-9: what the Dockerfile says, read instruction by instruction."""

from __future__ import annotations

import re

import pytest

from tests.support.infra import DOCKERFILE, ROOT, build_stages, whole

STAGES = build_stages(DOCKERFILE.read_text(encoding="utf-8"))
CONSTRAINTS = (ROOT / "infra/python/constraints.txt").read_text(encoding="utf-8")
TARGETS = ("cpu", "gpu", "mlflow")


def last(target: str, name: str) -> list[str]:
    return [each for each in whole(STAGES, target) if each.name == name][-1].words


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_runs_as_root(target: str) -> None:
    """OPS-9, OPS-11: the user is a number, so that Kubernetes can see that it is not root."""
    assert last(target, "USER") == ["10001:10001"]


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_the_health_of_a_container_is_whether_it_searches(target: str) -> None:
    """OPS-9: at the port that it serves on."""
    check = " ".join(last(target, "HEALTHCHECK"))
    assert "/readyz" in check
    assert f":{last(target, 'CMD')[-1]}/" in check
    assert last(target, "EXPOSE") == last(target, "CMD")[-1:]
    assert last(target, "ENTRYPOINT") == ["weft"]


def test_every_source_that_is_copied_exists_and_is_let_in() -> None:
    """OPS-9: the build's context holds what is needed, and nothing else."""
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        source
        for stage in STAGES.values()
        for each in stage.instructions
        if each.name == "COPY" and "from" not in each.options
        for source in each.words[:-1]
    }
    assert copied == let_in
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_what_is_copied_from_a_stage_comes_from_one_that_is_there() -> None:
    """OPS-9: names of stages are bound."""
    for stage in STAGES.values():
        assert stage.base in STAGES or ":" in stage.base
        assert {each.options["from"] for each in stage.instructions if "from" in each.options} <= set(STAGES)


def test_versions_are_pinned() -> None:
    """OPS-11: the base by its tag; packages by the constraints, or where these lack them, in the command."""
    for stage in STAGES.values():
        assert stage.base in STAGES or re.search(r":\d+\.\d+\.\d+-", stage.base)
    for command in (each.rest for stage in STAGES.values() for each in stage.instructions if each.name == "RUN"):
        if "pip install" in command and "--no-deps" not in command:
            assert "--constraint /tmp/constraints.txt" in command
            names = command.split("/tmp/constraints.txt")[1].split()
            bare = [name for name in names if "==" not in name and "$" not in name]
            assert [name for name in bare if f"\n{name}==" not in CONSTRAINTS] == []


def test_torch_comes_before_all_that_asks_for_it() -> None:
    """OPS-8a: without CUDA on a CPU, from PyTorch's own index."""
    first, second = (each.rest for each in STAGES["cpu-packages"].instructions if each.name == "RUN")
    assert "$TORCH_INDEX" in first
    assert "torch==" in first
    assert "torch" not in second
    assert "TORCH_INDEX" not in " ".join(each.rest for each in STAGES["gpu-packages"].instructions)


def test_what_is_needed_to_build_stays_behind() -> None:
    """OPS-9: the image holds the environment, not the sources, the wheel or pip's downloads."""
    for target in ("cpu", "gpu"):
        copied = [each for each in whole(STAGES, target) if each.name == "COPY"]
        assert [each.words[-1] for each in copied] == ["/tmp/constraints.txt", "/opt/weft"]
    assert any("PIP_NO_CACHE_DIR=1" in each.words for each in STAGES["base"].instructions if each.name == "ENV")
