"""OPS: a broker that pip installs, and that nobody has to clean up after."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.domain.errors import BrokerUnavailableError
from weft.runtime.kafka.broker import EmbeddedBroker

ROOT = Path(__file__).resolve().parents[2]


def runs(pid: int) -> bool:
    # A killed process whose new parent has not looked at it yet is still listed, as a zombie.
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def await_end(pid: int) -> None:
    while runs(pid):
        time.sleep(0.01)


def test_it_answers_inside_its_block_and_is_gone_after_it() -> None:
    """OPS: on the loopback interface, at a port of its own."""
    with EmbeddedBroker() as one, EmbeddedBroker() as two:
        assert one.bootstrap != two.bootstrap
        for broker in (one, two):
            host, port = broker.bootstrap.split(":")
            assert host == "127.0.0.1"
            socket.create_connection((host, int(port)), timeout=1).close()
        pids = [one.pid, two.pid]
    for pid in pids:
        await_end(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
def test_it_ends_with_a_parent_that_was_killed() -> None:
    """OPS: SIGKILL leaves no time to clean up."""
    program = (
        "import time; from weft.runtime.kafka.broker import EmbeddedBroker\n"
        "with EmbeddedBroker() as broker: print(broker.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert runs(pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    await_end(pid)


def test_its_process_has_an_id_only_while_it_runs() -> None:
    """OPS."""
    with pytest.raises(ValueError, match="enter its context first"):
        _ = EmbeddedBroker().pid


def test_a_port_that_is_taken_is_named() -> None:
    """OPS: who listens there would be taken for the broker."""
    with EmbeddedBroker() as first:
        port = int(first.bootstrap.rpartition(":")[2])
        with pytest.raises(BrokerUnavailableError, match=f"expected port {port} of 127.0.0.1 to be free"):
            EmbeddedBroker(port=port).__enter__()
        assert runs(first.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the broker's process where Linux lists it")
def test_the_job_ends_with_its_broker() -> None:
    """OPS: a job that stands for a broker that is gone would be waited for in vain."""
    with EmbeddedBroker() as lent:  # and given back: its port is free again
        port = lent.bootstrap.rpartition(":")[2]
    job = subprocess.Popen(
        [sys.executable, "-m", "jobs.broker", "--port", port], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    assert job.stderr is not None
    assert "broker at" in job.stderr.readline()
    (child,) = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    _, said = job.communicate(timeout=30)
    assert (job.returncode, said.count("\n")) == (75, 1)
    assert said.startswith("jobs.broker: expected the broker")
