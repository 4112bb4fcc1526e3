"""Where a source that lies elsewhere is brought to on this machine, told from its URL alone (SCL-2)."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

from weft.domain.errors import ConfigurationError
from weft.runtime.storage.files import write_atomically
from weft.runtime.storage.objects import is_url

OBJECTS = ("s3://", "gs://", "az://", "memory://")
"""How URLs of objects begin."""

_GIT = re.compile(r"(?:https?|ssh|git|file)://.")
_ACCOUNT = re.compile(r"[\w.-]+@[\w.-]+:.")  # git@host:repository, as git takes it
_ORIGIN = ".weft-origin.json"  # beside the folder: what it was brought from


def source_place(text: str) -> Path:
    """The folder or file of a source: its path, or for a URL where it will be brought to.

    Raises:
        ConfigurationError: Nothing is read from such a URL.
    """
    if not is_url(text) and (not _ACCOUNT.match(text) or Path(text).exists()):
        return Path(text).expanduser()
    if not text.startswith(OBJECTS) and not (_GIT.match(text) or _ACCOUNT.match(text)):
        raise ConfigurationError(f"source {text}: expected a path, s3://, gs://, az:// or the URL of a git repository")
    url = text.rstrip("/")
    name = url.partition("#")[0].removesuffix(".git").replace(":", "/").rpartition("/")[2]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute()
    place = cache / "weft" / "sources" / hashlib.sha256(url.encode()).hexdigest()[:12] / name
    write_atomically(place.with_name(_ORIGIN), json.dumps({"url": url}).encode())
    return place


def origin_of(place: Path) -> str | None:
    """The URL that a folder or file is brought from; None of one that lies here."""
    try:
        return str(json.loads(place.with_name(_ORIGIN).read_bytes())["url"])
    except (OSError, ValueError):
        return None
