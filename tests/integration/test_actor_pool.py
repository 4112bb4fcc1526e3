"""ARC-5: tasks dealt to actors: none is lost with an actor, and what one raises is what the caller sees."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.domain.errors import NothingPublishedError, WeftError
from weft.runtime.ray.actors import ActorPool, Shared


class Clerk:
    """Does what it is told."""

    def after(self, seconds: float, value: int) -> int:
        time.sleep(seconds)
        return value

    def refuse(self, message: str) -> None:
        raise NothingPublishedError(message)

    def die(self, unless: Path | None) -> int:
        if unless is None:
            os._exit(1)
        if not unless.exists():
            unless.touch()
            os._exit(1)
        return os.getpid()

    def read(self, value: Shared[list[int]]) -> int:
        return sum(value.get())


class Reluctant(Clerk):
    """Dies before it can be asked anything, unless a file is there."""

    def __init__(self, unless: Path) -> None:
        if not unless.exists():
            os._exit(1)


@pytest.fixture(scope="module")
def pool(cluster: None) -> Iterator[ActorPool]:
    made = ActorPool(Clerk, size=2, cpus=1, deaths=1, name="a clerk")
    yield made
    made.close()


def test_results_come_in_the_order_of_the_tasks(pool: ActorPool) -> None:
    """ARC-9: whichever is done first; and an actor that is held up does not hold up what others can do."""
    tasks = [(0.4, 0), *((0.0, number) for number in range(1, 7))]
    assert list(pool.map("after", tasks)) == list(range(7))
    assert list(pool.map("after", [])) == []


def test_a_value_is_put_once_for_all(pool: ActorPool) -> None:
    """Every actor gets it by the same key."""
    shared = Shared([1, 2, 3])
    assert list(pool.map("read", [(shared,)] * 4)) == [6] * 4
    assert pool.everywhere("read", shared) == [6, 6]


def test_what_an_actor_raises_comes_through_as_itself(pool: ActorPool) -> None:
    """OPS-1: without Ray's wrapping, and the pool goes on."""
    with pytest.raises(NothingPublishedError, match=r"^reindex first$") as caught:
        list(pool.map("refuse", [("reindex first",)]))
    assert type(caught.value) is NothingPublishedError
    with pytest.raises(TypeError):
        list(pool.map("after", [("a little", 1)]))
    assert list(pool.map("after", [(0.0, 5)])) == [5]


def test_a_task_whose_actor_dies_is_done_by_another(pool: ActorPool, tmp_path: Path) -> None:
    """ARC-5."""
    (died,) = pool.map("die", [(tmp_path / "once",)])
    assert died != os.getpid()
    assert list(pool.map("after", [(0.0, 1), (0.0, 2), (0.0, 3)])) == [1, 2, 3]


def test_a_task_that_kills_again_and_again_is_given_up(pool: ActorPool) -> None:
    """OPS-1: the message says what to do; with it other tasks can still be done."""
    with pytest.raises(WeftError, match=r"a clerk died 2 times over one and the same task: give it more memory"):
        list(pool.map("die", [(None,)]))
    assert list(pool.map("after", [(0.0, 1)])) == [1]


def test_a_pool_that_was_given_up_starts_anew(cluster: None, tmp_path: Path) -> None:
    """ARC-5, OPS-1: the next call says what is wrong as the first one did, and works once it is right."""
    pool = ActorPool(Reluctant, tmp_path / "ready", size=1, cpus=1, deaths=0, name="a clerk")
    for _ in range(2):
        with pytest.raises(WeftError, match="a clerk died 1 times before it had started"):
            list(pool.map("after", [(0.0, 1)]))
    with pytest.raises(WeftError, match="before it had started"):
        pool.everywhere("after", 0.0, 1)
    (tmp_path / "ready").touch()
    assert pool.everywhere("after", 0.0, 1) == [1]
    pool.close()
