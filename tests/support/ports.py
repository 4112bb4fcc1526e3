"""Ports for servers that a test starts."""

from __future__ import annotations

import random
import socket

# Linux gives outgoing connections ports from 32768 on: one found free there may be taken when the server binds it.
# Ray's workers listen on ports from 10002 to 19999.
_RANGE = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Ports of this machine on which nothing listens and that no outgoing connection is given.

    >>> len(set(free_ports(3)))
    3
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        if len(found) == count:
            return found
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    raise OSError(f"expected {count} free ports between {_RANGE.start} and {_RANGE.stop}, found {len(found)}")
