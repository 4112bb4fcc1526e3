"""Shards of a store on Ray Serve, for tests that are their root."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ray import serve

from weft.indexes.parts import Indexes
from weft.service.shards import ServedShards, shard_deployments
from weft.settings import load_settings


class Root:
    """What the shards of a test belong to; it does nothing."""

    def __init__(self, *_shards: object) -> None: ...


@contextmanager
def on_serve(root: Path, *, shards: int, replicas: int = 1, timeout_ms: float = 20_000.0) -> Iterator[ServedShards]:
    """The shards of a store, deployed; nothing listens to HTTP."""
    asked = {"shards": shards, "shard_replicas": replicas, "shard_timeout_ms": timeout_ms}
    stated = [f"storage.root={root}", *(f"serve.{name}={value}" for name, value in asked.items())]
    settings = load_settings(assignments=stated, environment={})
    name = f"test-{secrets.token_hex(4)}"
    serve.start(proxy_location="Disabled")
    bound = serve.deployment(Root).options(ray_actor_options={"num_cpus": 0}).bind(*shard_deployments(settings))
    serve.run(bound, name=name, route_prefix=None)
    try:
        yield ServedShards(settings.serve, name)
    finally:
        serve.delete(name)


def process_of(_indexes: Indexes) -> int:
    """The process of a replica, which whoever asks may end."""
    return os.getpid()


def asleep(_indexes: Indexes, seconds: float) -> None:
    """Keep a replica busy."""
    time.sleep(seconds)
