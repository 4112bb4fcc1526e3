"""Actors that work round after round, spread over the hosts; where one falls silent, another takes its place."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from weft.runtime.ray.cluster import remote_cause

_OVERDUE_S = 2.0  # beyond what a round was to take, after which the others go on without an actor
_CONNECTED_S = 2.0  # that a host may take to let a connection in
_log = logging.getLogger(__name__)


@dataclass
class _Member:
    """One actor, and what it was asked last."""

    arguments: tuple[Any, ...]
    actor: Any
    node: str = ""  # where it was when it last answered
    asked: tuple[Any, Any] | None = None  # where it is, and what it was asked to do
    asked_s: float = 0.0


class Crew:
    """Actors of one class, each with arguments of its own; Ray starts those anew that die.

    Ray waits half a minute and more for a host that was cut off. A crew asks the host itself: where it lets nobody in,
    its actor is given up, and made anew on this host. Whatever it still does must be fenced by what it writes to.
    """

    def __init__(self, worker: type[Any], arguments: Sequence[tuple[Any, ...]]) -> None:
        located = type(worker.__name__, (worker, _Located), {})
        self._actors = ray.remote(located)
        self._members = [self._member(each, scheduling_strategy="SPREAD") for each in arguments]

    def ask(self, method: str, seconds: float) -> list[Any]:
        """Have a method of all actors take about that many seconds; what those returned that are done by then.

        Raises:
            Exception: What the first of the actors raised.
        """
        now = time.monotonic()
        for each in self._members:
            if each.asked is None:
                each.asked = each.actor.node.remote(), getattr(each.actor, method).remote(seconds)
                each.asked_s = now
        waited = [each.asked[1] for each in self._members if each.asked is not None and each.asked_s == now]
        ray.wait(waited, num_returns=len(waited), timeout=seconds + _OVERDUE_S) if waited else time.sleep(seconds)
        answers = []
        for number, each in enumerate(self._members):
            node, asked = each.asked or (None, None)
            if ray.wait([asked], timeout=0.0)[0]:
                answers.append(_answer(asked))
                each.node, each.asked = _answer(node), None
            elif time.monotonic() - each.asked_s > seconds + _OVERDUE_S and not _lets_in(each.node):
                _log.warning("the host of an actor lets nobody in: it is made anew on %s", socket.gethostname())
                ray.kill(each.actor, no_restart=True)
                # Nowhere else: a busy raylet would hand it on to the host that was lost.
                here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
                self._members[number] = self._member(each.arguments, scheduling_strategy=here)
        return answers

    def close(self, method: str) -> None:
        """Call a method of every actor that is at hand, and let go of all."""
        answers = [getattr(each.actor, method).remote() for each in self._members if _lets_in(each.node)]
        self._members.clear()
        for each in answers:
            _answer(each)

    def _member(self, arguments: tuple[Any, ...], **options: Any) -> _Member:
        made = self._actors.options(num_cpus=0, max_restarts=-1, max_task_retries=-1, **options)
        return _Member(arguments, made.remote(*arguments))


class _Located:
    def node(self) -> str:
        """The node that this actor is on."""
        return str(ray.get_runtime_context().get_node_id())


def _answer(asked: Any) -> Any:
    try:
        return ray.get(asked)
    except RayError as error:
        raise remote_cause(error, Exception) from error


def _lets_in(name: str) -> bool:
    """Whether a node's host lets a connection in; true of one that is not known, or that Ray gave up itself."""
    for node in ray.nodes():
        if node["NodeID"] == name and node["Alive"]:
            try:
                socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), _CONNECTED_S).close()
            except OSError:
                return False
    return True
