"""Shards searched on Ray Serve: a deployment for each share of them, with replicas, and how a root asks these (SCL-12).

A replica opens a share of the live generation before it is ready, and a newer one beside it as soon as a root asks for
that; a root moves on once all replicas have it, and every call names its generation, so that no answer mixes two
(SCL-13).
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ray import serve
from ray.exceptions import ActorDiedError, ActorUnavailableError
from ray.serve import Application
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle

from weft.catalog.catalog import Catalog
from weft.domain.errors import StoreError
from weft.domain.ids import GenerationId
from weft.indexes.manifest import Manifest
from weft.indexes.parts import IndexPart, LocalPart, PartFacts, Share
from weft.indexes.spread import facts_of
from weft.runtime.ray.cluster import connect
from weft.settings import Settings

log = logging.getLogger(__name__)

NAME = "weft"
"""Of the application on the cluster."""

HELD = 2
"""Generations that a replica has open: the one that roots search, and the one that they move to."""

PAUSE_S = 1.0
"""That a share which did not reply is not asked again: searches without it need not wait for that."""

OPEN_S = 600.0
"""Within which a root that has nothing yet expects all shares to be open."""

LOOK_S = 0.2
"""Between looks at whether they are."""

_CONTROL_S, _OPENING_S = 2.0, 30.0  # for replicas to say whether they have a generation, and one what is known of it
_FETCH_S = 0.2  # that is left for a reply which came while another one was waited for to the last
_REPLIES = 3  # for which a channel has time: words take two
_AT_ONCE = 32  # calls that wait in a replica; more go to another one


class ShardSearcher:
    """One replica: a share of the shards of the generations that are searched."""

    def __init__(self, settings: Settings, share: Share) -> None:
        """Open what is live."""
        self._catalog = Catalog(Path(settings.storage.root))
        self._share = share
        self._held: OrderedDict[GenerationId, IndexPart | None] = OrderedDict()
        self._opening: dict[GenerationId, Future[IndexPart | None]] = {}
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="open")
        self._lock = threading.Lock()
        if (live := self._catalog.pointer().generation) is not None:
            self._held[live] = self._opened(live)

    def prepare(self, generation: GenerationId) -> bool:
        """Whether a generation is open; if not, it is fetched and opened beside what is, while calls go on.

        Raises:
            StoreError: It cannot be opened; asked again, it is tried again.
        """
        with self._lock:
            if generation in self._held:
                self._held.move_to_end(generation)
                return True
            opening = self._opening.get(generation)
            if opening is None:
                self._opening[generation] = self._threads.submit(self._opened, generation)
            elif opening.done():
                self._held[generation] = self._opening.pop(generation).result()
                while len(self._held) > HELD:
                    self._catalog.drop_share(self._held.popitem(last=False)[0], self._share)
                return True
            return False

    async def ask(self, generation: GenerationId, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """What a function of the indexes gives; StoreError where that generation is not open here.

        One call after the other: there is one processor, and a thread for each would cost more than many calls do.
        """
        if not self.prepare(generation) or (part := self._held.get(generation)) is None:
            raise StoreError(f"expected {generation} to be open, found it being opened")
        return part.begin(work, *arguments)()

    def _opened(self, generation: GenerationId) -> IndexPart | None:
        indexes = self._catalog.open_share(generation, self._share)
        if indexes is None:
            return None
        part = LocalPart(indexes, range(0), PartFacts({}))
        weakref.finalize(part, indexes.close)  # when it was dropped, and the last call that holds it has ended
        return part


class RemotePart:
    """A share of one generation, wherever its replicas are."""

    def __init__(self, name: str, handle: DeploymentHandle, generation: GenerationId, rows: range) -> None:
        """Ask for the facts of a part; StoreError where they cannot be had."""
        self.name = name
        self.rows = rows
        # Sent as they are, calls take half the time that they take through Ray's store of objects; tokens guard both.
        self._handle = handle.options(_by_reference=False)
        self._generation = generation
        self._limit_s = _OPENING_S
        self._silent: tuple[float, str] = (float("-inf"), "")  # until when it is not asked, and why
        self.facts: PartFacts = self.begin(facts_of)()

    def within(self, limit_s: float) -> RemotePart:
        """The same, which has so long for each reply from now on."""
        self._limit_s = limit_s
        return self

    def begin(self, work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        """Ask a replica; a call that is lost with one goes to another."""
        started = time.monotonic()
        until, why = self._silent
        if started < until:
            return _failing(why)
        replies = [self._handle.ask.remote(self._generation, work, arguments)]

        def reply() -> Any:
            while True:
                try:
                    left_s = started + self._limit_s - time.monotonic()
                    return replies[-1].result(timeout_s=max(_FETCH_S, left_s))
                except (ActorDiedError, ActorUnavailableError) as error:
                    if time.monotonic() - started > self._limit_s:
                        raise self._failed(f"no replica within {self._limit_s * 1000.0:g} ms") from error
                    replies.append(self._handle.ask.remote(self._generation, work, arguments))
                except TimeoutError:
                    replies[-1].cancel()
                    raise self._failed(f"no reply within {self._limit_s * 1000.0:g} ms") from None
                except Exception as error:
                    cause = getattr(error, "cause", error)  # what Ray was told, without where that was
                    raise self._failed(f"{type(cause).__name__}: {cause}") from error

        return reply

    def close(self) -> None:
        """Nothing of it is open here."""

    def _failed(self, why: str) -> StoreError:
        log.warning("%s left out: %s", self.name, why)
        self._silent = (time.monotonic() + PAUSE_S, why)
        return StoreError(why)


def _failing(why: str) -> Callable[[], Any]:
    def wait() -> Any:
        raise StoreError(why)

    return wait


class ServedShards:
    """The shares that are deployed, as a root sees them."""

    def __init__(self, count: int, limit_s: float, application: str = NAME) -> None:
        """Take how many there are, and how long each has for a reply."""
        self._limit_s = limit_s
        names = [shard_name(number) for number in range(count)]
        self._handles = {name: serve.get_deployment_handle(name, application) for name in names}
        self._ready: set[GenerationId] = set()
        self._logged: set[tuple[str, GenerationId]] = set()  # what could not be opened, which is said once

    def holds(self, generation: GenerationId) -> bool:
        """Whether every replica has it open; those that have not begin to."""
        if generation not in self._ready:
            has_it = [self._has(name, generation) for name in self._handles]  # each is asked, so that all begin
            self._ready |= {generation} if all(has_it) else set()
        return generation in self._ready

    def parts(self, manifest: Manifest) -> Sequence[IndexPart]:
        """The shares of a generation that have any of its shards."""
        until = time.monotonic() + OPEN_S
        while not self.holds(manifest.id):
            if time.monotonic() > until:
                raise StoreError(
                    f"expected shards of {manifest.id} to be open within {OPEN_S:g} s, found some that are not"
                )
            time.sleep(LOOK_S)
        count = len(self._handles)
        rows = {name: Share(number, count).rows(manifest) for number, name in enumerate(self._handles)}
        return [
            RemotePart(name, self._handles[name], manifest.id, some).within(self._limit_s)
            for name, some in rows.items()
            if some
        ]

    def _has(self, name: str, generation: GenerationId) -> bool:
        asked = self._handles[name].broadcast("prepare", generation)
        try:
            replies = asked.results(timeout_s=_CONTROL_S, return_exceptions=True)
        except (RayServeException, TimeoutError) as error:
            log.warning("%s does not say what it has: %s", name, error)
            return False
        # One that has died is replaced by one that opens what is live before it is asked.
        living = [each for each in replies if not isinstance(each, ActorDiedError)]
        for each in living:
            if isinstance(each, Exception) and (name, generation) not in self._logged:
                log.warning("%s cannot open %s: %s", name, generation, getattr(each, "cause", each))
                self._logged.add((name, generation))
        return bool(living) and all(each is True for each in living)


def shard_name(number: int) -> str:
    """What the deployment of a share is called, in answers too."""
    return f"shard-{number}"


def joined(settings: Settings, count: int) -> ServedShards:
    """The shares that are deployed on the cluster, from any process that can join it."""
    connect(settings.cluster)
    return ServedShards(count, settings.retrieval.budget_ms.searching / _REPLIES / 1000.0)


def shard_deployments(settings: Settings, count: int, *, replicas: int) -> list[Application]:
    """A deployment for each of so many shares, to be bound to a root."""
    deployed = serve.deployment(ShardSearcher).options(
        num_replicas=replicas,
        max_ongoing_requests=_AT_ONCE,
        ray_actor_options={"num_cpus": 1},
        logging_config={"enable_access_log": False},
    )
    shares = [Share(number, count) for number in range(count)]
    return [deployed.options(name=shard_name(each.number)).bind(settings, each) for each in shares]
