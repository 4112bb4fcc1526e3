"""A process killed at any step of publishing leaves the old pointer or the new one, never half a generation."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.generations import a_staged_generation, publish
from weft.catalog.catalog import Catalog

STEPS = ("fsync", "rename", "replace", "mkdir", "unlink")


def publish_and_die(root: Path, staging: Path, step: int) -> None:
    """Publish in a process that is killed right before its `step`-th call that changes the disk."""
    left = iter(range(step))

    def killing(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return counted

    for name in STEPS:
        setattr(os, name, killing(getattr(os, name)))
    Catalog(root).publish(staging, expected_parent=Catalog(root).pointer().generation)


@pytest.mark.crash
def test_a_kill_at_any_step_leaves_old_or_new(tmp_path: Path) -> None:
    """ING-26, ARC-2: readers see a whole generation, whenever the publisher dies, and the next run cleans up."""
    # Forked from a fresh server: quick, and free of whatever threads this process has.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.crash.test_publish", __name__])
    live = []
    for step in range(100):
        root = tmp_path / str(step)
        catalog = Catalog(root)
        publish(catalog, "old")
        process = context.Process(target=publish_and_die, args=(root, a_staged_generation(catalog, "new"), step))
        process.start()
        process.join()
        survivor = Catalog(root)
        live.append(survivor.pointer().generation)
        assert survivor.verify(live[-1]).id == live[-1]
        assert {survivor.verify(manifest.id).id for manifest in survivor.generations()} <= {"old", "new"}
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert (live[0], live[-1], process.exitcode) == ("old", "new", 0)
    assert len(live) > 10  # files, folders, two renames: each was a place to die
