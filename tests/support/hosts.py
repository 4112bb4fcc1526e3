"""Hosts on one machine: namespaces with a name, an address, a disk and a shared memory of their own (SCL-16)."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.conftest import ROOT

BIN = Path(sys.executable).parent
GCS_PORT, S3_PORT = 6379, 9000
OBJECT_STORE_BYTES = 100_000_000  # Ray takes no less than 75 MB
PATIENCE_S = 240.0

# Its first process ends when the pipe to it does, and every other one with it: nothing outlives the test.
_FIRST = """
mount -t tmpfs -o size=512m tmpfs /dev/shm
mount --bind "$1" "$2"
hostname "$3"
ip link set lo up
echo ready
exec cat
"""


@dataclass(frozen=True)
class Host:
    """One host.

    Attributes:
        name: As processes on it learn it from the system.
        address: Where other hosts reach it.
        own_disk: Where what it keeps at `Hosts.disk` can be seen from here.
        pid: Of its first process.
        switch: Of the process that holds the switch.
    """

    name: str
    address: str
    own_disk: Path
    pid: int
    switch: int
    environment: dict[str, str]

    def start(self, *command: str | Path, log: Path) -> subprocess.Popen[bytes]:
        """Start a program on the host; it ends with the host at the latest."""
        with log.open("ab") as file:
            return subprocess.Popen(self._inside(command), env=dict(self.environment), stdout=file, stderr=file)

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program on the host to its end."""
        return subprocess.run(
            self._inside(command),
            env=dict(self.environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    def link(self, state: str) -> None:
        """Cut the host's link (`down`), or mend it (`up`)."""
        _call("nsenter", "-t", str(self.switch), "-n", "ip", "link", "set", self.name, state)

    def end(self) -> None:
        """Take the host's power away."""
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(self.pid).kill()

    def _inside(self, command: Sequence[str | Path]) -> list[str]:
        entered = ["nsenter", "-t", str(self.pid), "-m", "-u", "-n", "-p", f"--wd={ROOT}"]
        return [*entered, *map(str, command)]


@dataclass(frozen=True)
class Hosts:
    """Hosts on one switch.

    Attributes:
        folder: A folder that all of them share, as they share every path but those of `disk` and /dev/shm.
        disk: A path under which each host has a disk of its own.
    """

    folder: Path
    disk: Path
    hosts: list[Host] = field(default_factory=list)

    def start_ray(self, *, cpus: int) -> str:
        """Start Ray on all hosts, its head on the first; the address that drivers join it at."""
        head = self.hosts[0]
        address = f"{head.address}:{GCS_PORT}"
        for host in self.hosts:
            joining = (
                ["--head", f"--port={GCS_PORT}", "--include-dashboard=false"]
                if host is head
                else [f"--address={address}"]
            )
            options = [f"--node-ip-address={host.address}", f"--num-cpus={cpus}", "--disable-usage-stats"]
            options += [f"--object-store-memory={OBJECT_STORE_BYTES}", f"--temp-dir={self.folder / f'ray-{host.name}'}"]
            log = self.folder / f"{host.name}.log"
            host.start(BIN / "ray", "start", "--block", *joining, *options, log=log)
            # One after the other: a node that is not there within 30 s gives up.
            wait_until(lambda log=log: "will now block" in log.read_text())  # type: ignore[misc]
        counted = f"import ray; ray.init(address={address!r}, log_to_driver=False); print(len(ray.nodes()))"
        wait_until(lambda: head.run(sys.executable, "-c", counted).stdout.split()[-1:] == [str(len(self.hosts))])
        return address


def require_hosts() -> None:
    """Skip a test where this user or machine can have no hosts."""
    if os.geteuid() != 0:
        pytest.skip("hosts are namespaces, which root alone may make")
    for program in ("ip", "unshare", "nsenter"):
        if shutil.which(program) is None:
            pytest.skip(f"no program {program}: Debian has it in iproute2 or util-linux")
    if (
        made := subprocess.run(["unshare", "-m", "-n", "-p", "-u", "-f", "true"], capture_output=True, check=False)
    ).returncode:
        pytest.skip(f"this machine lets nobody make namespaces: {made.stderr.decode().strip()}")


@contextlib.contextmanager
def hosts_of(*names: str) -> Iterator[Hosts]:
    """Hosts of these names, which end with the block, or with this process however it ends."""
    require_hosts()
    # Sockets lie below this folder and their paths must be short.
    folder = Path(tempfile.mkdtemp(prefix="weft-hosts-", dir="/tmp"))
    made = Hosts(folder, folder / "disk")
    made.disk.mkdir()
    environment = _environment(folder)
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        switch = undo.enter_context(_first_process(["unshare", "-n", "-f", "--kill-child", "cat"]))
        _on_switch(switch, "ip", "link", "add", "switch", "type", "bridge")
        _on_switch(switch, "ip", "link", "set", "switch", "up")
        for number, name in enumerate(names, start=1):
            own_disk = folder / f"disk-{name}"
            own_disk.mkdir()
            unshared = ["unshare", "-m", "-u", "-n", "-p", "-f", "--kill-child", "--mount-proc"]
            first = [*unshared, "sh", "-e", "-c", _FIRST, "sh", str(own_disk), str(made.disk), name]
            pid = undo.enter_context(_first_process(first, says="ready"))
            address = f"10.0.0.{number}"
            _on_switch(switch, "ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
            _on_switch(switch, "ip", "link", "set", name, "master", "switch", "up")
            host = Host(name, address, own_disk, pid, switch, environment)
            _call("nsenter", "-t", str(pid), "-n", "ip", "address", "add", f"{address}/24", "dev", "eth0")
            _call("nsenter", "-t", str(pid), "-n", "ip", "link", "set", "eth0", "up")
            made.hosts.append(host)
        yield made


@contextlib.contextmanager
def hosts_with_s3(*names: str) -> Iterator[tuple[Hosts, Path]]:
    """Hosts with an S3 on the first, whose clients find it; a file that lists the bucket, and then the requests."""
    with hosts_of(*names) as hosts:
        first, told = hosts.hosts[0], hosts.folder / "requests"
        own = {
            "AWS_ENDPOINT_URL": f"http://{first.address}:{S3_PORT}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "anyone",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "XDG_CACHE_HOME": str(hosts.disk),
            "PYTHONPATH": f"{ROOT / 'pipelines'}:{ROOT}",
        }
        first.environment.update(own)  # all hosts have one environment
        served = sys.executable, "-m", "tests.support.s3", first.address, str(S3_PORT), told
        first.start(*served, log=hosts.folder / "s3")
        wait_until(lambda: told.exists() and told.read_text().count("\n") > 0)
        yield hosts, told


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for a condition; a test that waits for too long fails."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {PATIENCE_S:g} s in vain")
        time.sleep(0.1)


def _environment(folder: Path) -> dict[str, str]:
    token = folder / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "WEFT__"))},
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
    }


@contextlib.contextmanager
def _first_process(command: Sequence[str], says: str | None = None) -> Iterator[int]:
    """The first process in new namespaces, which all others in them end with."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as outer:
        try:
            if says is not None and (outer.stdout is None or outer.stdout.readline().strip() != says):
                pytest.fail(f"{command[:6]} did not start")
            wait_until(lambda: bool(psutil.Process(outer.pid).children()))
            yield psutil.Process(outer.pid).children()[0].pid
        finally:
            outer.kill()


def _on_switch(switch: int, *command: str) -> None:
    _call("nsenter", "-t", str(switch), "-n", *command)


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
