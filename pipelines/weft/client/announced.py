"""What a service says of itself in the store that it serves, for whoever owns that store."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from weft.client.http import Client
from weft.domain.errors import WeftError

PLACE = "serving.json"
"""In a store. Private to its owner: it holds a token that is good for everything."""


TOKEN_VARIABLE = "WEFT_TOKEN"  # noqa: S105  its name


class Announced(msgspec.Struct, frozen=True):
    """Where a service answers."""

    url: str
    pid: int
    token: str


def announced_in(root: Path) -> Announced | None:
    """The service that serves a store by a process of this machine; None where there is none."""
    try:
        stated = msgspec.json.decode((root / PLACE).read_bytes(), type=Announced)
        os.kill(stated.pid, 0)
    except PermissionError:  # somebody else's process: it runs
        return stated
    except (OSError, msgspec.MsgspecError, OverflowError):
        return None
    return stated


def client_in(root: Path, *, feedback: bool = False) -> Client | None:
    """A client of the service that serves a store; None where none answers, or it is to take feedback and cannot."""
    if (stated := announced_in(root)) is None:
        return None
    client = Client(stated.url, stated.token)
    try:
        ready = client.ready()
    except WeftError:
        ready = None
    if ready is None or (feedback and not ready["feedback"]):
        client.close()
        return None
    return client


def client_at(url: str) -> Client:
    """A client of a service by its address, with the token that the environment holds."""
    return Client(url, os.environ.get(TOKEN_VARIABLE))
