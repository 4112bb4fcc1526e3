"""OPS-9: the steps of the Dockerfile's CPU target, run one after the other in a new Debian, where no Docker is needed.

Everything is as the Dockerfile says but for one build argument: PyTorch comes from an index of this test's, which holds
an empty package of that version. What is not PyTorch is installed for real, from the package index.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.support.infra import DOCKERFILE, ROOT, Instruction, build_stages, whole
from weft import __version__

pytestmark = [pytest.mark.slow, pytest.mark.integration, pytest.mark.timeout(1800)]

STAGES = build_stages(DOCKERFILE.read_text(encoding="utf-8"))
CONSTRAINTS = ROOT / "infra/python/constraints.txt"


@contextmanager
def mounted(*command: str | Path) -> Iterator[None]:
    subprocess.run(["mount", *command], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", command[-1]], check=True)


@dataclass
class Built:
    """A file system that instructions have changed, and what they say of processes in it."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    folder: str = "/"

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command there, as the user and in the folder that were set last."""
        inside = ["chroot", f"--userspec={self.user}", self.root, "env", "-i", *self._assigned(environment)]
        change = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", self.folder]
        return subprocess.run([*inside, *change, *words], capture_output=True, text=True, check=False)

    def _assigned(self, environment: Mapping[str, str]) -> list[str]:
        home = "/root" if self.user == "0:0" else self.folder
        return [f"{name}={value}" for name, value in {"HOME": home, **self.environment, **environment}.items()]

    def path(self, inside: str) -> Path:
        return self.root / inside.lstrip("/")


def apply(built: Built, instruction: Instruction, arguments: dict[str, str], context: Path) -> None:
    """Do what one instruction says."""
    match instruction.name:
        case "ENV":
            built.environment |= dict(word.split("=", 1) for word in instruction.words)
        case "ARG":
            name, _, default = instruction.rest.partition("=")
            arguments.setdefault(name, default)
        case "USER":
            built.user = instruction.rest
        case "WORKDIR":
            built.folder = instruction.rest
        case "COPY":
            copy(built, instruction, context)
        case "RUN":
            ended = built.run("sh", "-c", instruction.rest, **arguments)
            assert ended.returncode == 0, f"{instruction.rest}\n{ended.stdout[-2000:]}{ended.stderr[-3000:]}"


def copy(built: Built, instruction: Instruction, context: Path) -> None:
    *sources, target = instruction.words
    for source in sources:
        found, into = context / source.lstrip("/"), built.path(target)
        if found.is_dir():
            into.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "--archive", "--no-target-directory", found, into], check=True)
        else:
            into = into / found.name if target.endswith("/") else into
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, into)


def empty_torch(folder: Path) -> Path:
    """An index with a package that has PyTorch's name and version, and nothing in it."""
    (pinned,) = re.findall(r"^torch==(.*)$", CONSTRAINTS.read_text(), re.MULTILINE)
    place = folder / "torch"
    place.mkdir(parents=True)
    info = f"torch-{pinned}.dist-info"
    with zipfile.ZipFile(place / f"torch-{pinned}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {pinned}\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    (place / "index.html").write_text(f'<a href="torch-{pinned}-py3-none-any.whl">torch</a>')
    return folder


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new Debian with Python, as far as it stands for the image that the Dockerfile begins with."""
    if os.geteuid() != 0:
        pytest.skip("a chroot takes root")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is missing: apt-get install debootstrap")
    root = tmp_path_factory.mktemp("debian")
    packages = "--include=python3,python3-venv,python-is-python3,ca-certificates"
    command = ["debootstrap", "--variant=minbase", packages, "bookworm", str(root)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        pytest.skip(f"debootstrap: {ended.stdout[-300:]}")
    subprocess.run(["umount", root / "proc"], check=False, capture_output=True)  # which debootstrap may leave
    for file in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
        if Path(file).is_file():  # how this machine reaches package indexes
            shutil.copy(file, root / file[1:])
    return root


@dataclass
class Builder:
    """Builds stages, each as a layer over the stage that it begins with."""

    debian: Path
    folder: Path
    arguments: Mapping[str, str]
    undo: ExitStack
    built: dict[str, Built] = field(default_factory=dict)
    layers: dict[str, list[Path]] = field(default_factory=dict)

    def stage(self, name: str) -> Built:
        """A stage; what it copies from others is built before it."""
        if name in self.built:
            return self.built[name]
        stage = STAGES[name]
        below = self.stage(stage.base) if stage.base in STAGES else Built(self.debian)
        lower = self.layers.get(stage.base, [self.debian])
        made = Built(self._layer(name, lower), dict(below.environment), below.user, below.folder)
        arguments = dict(self.arguments)
        for instruction in stage.instructions:
            other = instruction.options.get("from")
            apply(made, instruction, arguments, ROOT if other is None else self.stage(other).root)
        self.built[name] = made
        return made

    def _layer(self, name: str, lower: Sequence[Path]) -> Path:
        upper, work, root = (self.folder / name / part for part in ("upper", "work", "root"))
        for part in (upper, work, root):
            part.mkdir(parents=True)
        options = f"lowerdir={':'.join(map(str, lower))},upperdir={upper},workdir={work}"
        self.undo.enter_context(mounted("-t", "overlay", "overlay", "-o", options, root))
        # Devices are debootstrap's own: this machine's are not mounted where a clean-up might come by.
        self.undo.enter_context(mounted("-t", "proc", "proc", root / "proc"))
        self.layers[name] = [upper, *lower]
        return root


@pytest.fixture(scope="module")
def image(debian: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """The CPU target."""
    empty_torch(debian / "torch-index")
    arguments = {name: value for name, value in os.environ.items() if name in {"PIP_CERT", "PIP_DEFAULT_TIMEOUT"}}
    folder = tmp_path_factory.mktemp("layers")
    with ExitStack() as undo:
        yield Builder(debian, folder, {**arguments, "TORCH_INDEX": "file:///torch-index"}, undo).stage("cpu")
    for each in (folder, debian):  # gigabytes
        shutil.rmtree(each)


def test_the_image_runs_weft_as_a_user_without_rights(image: Built) -> None:
    """OPS-9, OPS-11: the command answers, and the store is this user's alone."""
    assert image.run("id", "-u").stdout == "10001\n"
    version = image.run("weft", "--version")
    assert (version.returncode, version.stdout.split()[-1]) == (0, __version__), version.stderr
    assert image.run("stat", "--format=%u %a", "/store").stdout == "10001 700\n"
    assert image.run("touch", "/opt/weft/anything").returncode != 0
    assert image.run("git", "--version").returncode == 0


def test_the_environment_is_whole_and_without_cuda(image: Built) -> None:
    """OPS-8a: every package has what it asks for, in the pinned versions."""
    checked = image.run("pip", "check")
    assert checked.returncode == 0, checked.stdout
    listed = image.run("pip", "list", "--format=freeze").stdout
    installed = dict(line.split("==") for line in listed.lower().replace("_", "-").splitlines() if "==" in line)
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", CONSTRAINTS.read_text().lower().replace("_", "-"), re.MULTILINE))
    assert {name: version for name, version in installed.items() if pinned.get(name, version) != version} == {}
    assert [name for name in installed if name.startswith(("nvidia", "cuda"))] == []


def test_the_health_check_says_whether_the_service_is_ready(image: Built) -> None:
    """OPS-9: ready, not ready, and not there."""
    check = [each.rest for each in whole(STAGES, "cpu") if each.name == "HEALTHCHECK"][-1]

    class Answers(BaseHTTPRequestHandler):
        status = 200

        def do_GET(self) -> None:
            self.send_response(self.status if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        there = [word.replace(":8080", f":{server.server_port}") for word in json.loads(check.removeprefix("CMD "))]
        assert image.run(*there).returncode == 0
        Answers.status = 503
        assert image.run(*there).returncode != 0
        server.shutdown()
    assert image.run(*there).returncode != 0
