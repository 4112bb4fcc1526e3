"""The one module that starts or joins Ray: a laptop, a cluster and a submitted job differ by configuration alone."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ray

from pipelines.runtime.settings import ClusterSettings

_TOKEN_FILE = Path("~/.ray/auth_token")


def connect(settings: ClusterSettings) -> None:
    """Join the cluster that RAY_ADDRESS or `settings.address` names, or start a local one; once per process."""
    if ray.is_initialized():
        return
    address = os.environ.get("RAY_ADDRESS") or settings.address
    # Ray's core warns of its own actors' arguments at every pipeline; what fails reaches us as an exception.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    common: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.WARNING, "configure_logging": False}
    if address == "local":
        # A cluster that Ray starts for this process turns token authentication on and makes the token itself.
        local: dict[str, Any] = {"num_cpus": settings.cpus or None, "object_store_memory": settings.object_store_bytes}
        ray.init(address="local", include_dashboard=False, **local, **common)
    else:
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # never join a cluster in the clear by accident
        ray.init(address=address, **common)
    _make_private(_TOKEN_FILE.expanduser())


def disconnect() -> None:
    """Leave the cluster; a local one ends with it."""
    ray.shutdown()


def start_actor(worker: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Start a plain class as an actor: `options` are Ray's own (`name`, `num_cpus`, `max_restarts` …)."""
    return ray.remote(worker).options(**options).remote(*arguments)


def ask_all(actors: Sequence[Any], method: str, *arguments: Any) -> list[Any]:
    """Call one method on every actor at once and wait for all answers, in the actors' order."""
    answers: list[Any] = ray.get([getattr(actor, method).remote(*arguments) for actor in actors])
    return answers


def _make_private(token: Path) -> None:
    # Ray creates the file readable by everyone; whoever reads it controls the cluster.
    with contextlib.suppress(FileNotFoundError):
        token.chmod(0o600)
