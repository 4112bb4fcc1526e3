"""The same application as a Ray Serve deployment: replicas on the machines of a cluster (OPS-5).

    serve run weft.service.on_ray:application store=/shared/store bootstrap=kafka:9092

Each replica holds a search process over the store, which every machine must reach under the same path. With
`shards` it is a root that has tables and graph, and asks so many deployments of shards beside it. Tokens come from the
variable WEFT_TOKENS of whoever deploys; replicas are given their digests alone.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack
from typing import Any

import ray
from fastapi import FastAPI
from ray import serve
from ray.serve import Application

from weft.domain.errors import ConfigurationError, StoreError
from weft.service.application import create_application
from weft.service.run import DRAIN_S, LOOPBACK, opened_service
from weft.service.shards import LOOK_S, NAME, OPEN_S, shard_deployments
from weft.service.tokens import ENVIRONMENT, TokenSet
from weft.settings import Settings, load_settings, require_store

REQUESTS = 64
"""That a replica has under way; Ray gives it no more, and refuses what waits beyond `serve.waiting`."""


@serve.ingress()
class ServedStore:
    """One replica: the application over a store."""

    def __init__(self, settings: Settings, tokens: TokenSet, *shards: object, reports: bool) -> None:
        self._undo = ExitStack()
        joined = settings.cluster.model_copy(update={"address": ray.get_runtime_context().gcs_address})
        settings = settings.model_copy(update={"cluster": joined})  # the search process asks shards by itself
        self._service = self._undo.enter_context(
            opened_service(settings, processes=1, tokens=tokens, reports=reports, shards=len(shards))
        )

    def __serve_build_asgi_app__(self) -> FastAPI:
        return create_application(self._service)

    def trouble(self) -> str | None:
        """Why it answers no searches yet; None where it does."""
        return self._service.searches.trouble

    def check_health(self) -> None:
        """Ray replaces the replica where this raises: a search process that does not come back is a reason to."""
        if self._service.searches.restarts and self._service.searches.trouble is not None:
            raise RuntimeError(self._service.searches.trouble)

    def __del__(self) -> None:
        self._undo.close()


def deployment(settings: Settings, *, replicas: int, tokens: TokenSet, reports: bool, shards: int = 0) -> Application:
    """The application, to be run on a cluster."""
    deployed = serve.deployment(ServedStore).options(
        name=NAME,
        num_replicas=replicas,
        max_ongoing_requests=REQUESTS,
        max_queued_requests=settings.serve.waiting,
        graceful_shutdown_timeout_s=DRAIN_S,
        ray_actor_options={"num_cpus": 1},
    )
    bound: Application = deployed.bind(
        settings, tokens, *shard_deployments(settings, shards, replicas=replicas), reports=reports
    )
    return bound


def run(
    settings: Settings, *, host: str, port: int, replicas: int, tokens: TokenSet, reports: bool, shards: int = 0
) -> None:
    """Deploy, or replace what is deployed, and wait until it is ready; it goes on after this process has ended.

    Raises:
        ConfigurationError: It is to listen to others than this machine, and there are no tokens.
        StoreError: It answers no searches within the time that opening a generation may take.
    """
    if not tokens and host not in LOOPBACK:
        raise ConfigurationError(
            f"expected tokens for a service that listens on {host}, found none: name a file with --tokens, or set "
            f"{ENVIRONMENT}"
        )
    serve.start(http_options={"host": host, "port": port, "request_timeout_s": settings.serve.timeout_s * 2.0})
    bound = deployment(settings, replicas=replicas, tokens=tokens, reports=reports, shards=shards)
    served = serve.run(bound, name=NAME, route_prefix="/")
    until = time.monotonic() + OPEN_S
    while troubles := [each for each in served.broadcast("trouble").results(timeout_s=OPEN_S) if each is not None]:
        if time.monotonic() > until:
            raise StoreError(f"expected searches to be answered within {OPEN_S:g} s, found: {troubles[0]}")
        time.sleep(LOOK_S)


def application(arguments: dict[str, Any]) -> Application:
    """What `serve run` and a RayService build: `store`; and `bootstrap`, `replicas`, `shards`, a list `set`."""
    stated = [f"storage.root={json.dumps(arguments['store'])}", *arguments.get("set", ())]
    if (bootstrap := arguments.get("bootstrap")) is not None:
        stated.append(f"kafka.bootstrap={json.dumps(bootstrap)}")
    settings = load_settings(assignments=stated)
    require_store(settings)
    tokens = TokenSet.configured(None, os.environ.get(ENVIRONMENT, ""))
    replicas = int(arguments.get("replicas", 1))
    shards = int(arguments.get("shards", 0))
    return deployment(settings, replicas=replicas, tokens=tokens, reports=bootstrap is not None, shards=shards)
