"""Shards of a store on Ray Serve, for tests that are their root."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ray import serve

from weft.indexes.spread import Indexes
from weft.indexes.text.jvm import JAVA
from weft.service.shards import ServedShards, shard_deployments
from weft.settings import load_settings


class Root:
    """What the shards of a test belong to; it does nothing."""

    def __init__(self, *_shards: object) -> None: ...


@contextmanager
def on_serve(root: Path, *, shards: int, replicas: int = 1) -> Iterator[Callable[[float], ServedShards]]:
    """Reaches the shards of a store, deployed, that have so many milliseconds for a reply; nothing listens to HTTP."""
    settings = load_settings(assignments=[f"storage.root={root}"], environment={})
    name = f"test-{secrets.token_hex(4)}"
    serve.start(proxy_location="Disabled")
    bound_shards = shard_deployments(settings, shards, replicas=replicas)
    bound = serve.deployment(Root).options(ray_actor_options={"num_cpus": 0}).bind(*bound_shards)
    serve.run(bound, name=name, route_prefix=None)
    try:
        yield lambda ms: ServedShards(shards, ms / 1000.0, name)
    finally:
        serve.delete(name)


def process_of(_indexes: Indexes) -> int:
    """The process of a replica, which whoever asks may end."""
    return os.getpid()


def asleep(_indexes: Indexes, seconds: float) -> None:
    """Keep all searches by words of a replica waiting, unless something does already."""
    if JAVA.acquire(blocking=False):
        try:
            time.sleep(seconds)
        finally:
            JAVA.release()
