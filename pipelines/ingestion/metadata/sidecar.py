"""Sidecars: `NAME.meta.json` beside a document declares facts about it, and is no document itself (ING-4)."""

from __future__ import annotations

import json
from collections.abc import Collection

from pipelines.ingestion.metadata.declared import DeclarationError, Declared, declared, require_shallow

SUFFIX = ".meta.json"


def sidecar_of(name: str, names: Collection[str]) -> str | None:
    """The sidecar of a file among the names in its folder: after its whole name, else after its stem.

    Examples:
        >>> sidecar_of("guide.md", {"guide.md", "guide.md.meta.json"}), sidecar_of("guide.md", {"guide.meta.json"})
        ('guide.md.meta.json', 'guide.meta.json')
    """
    if name.endswith(SUFFIX):
        return None
    stem = name.rpartition(".")[0] or name
    return next((one for one in (f"{name}{SUFFIX}", f"{stem}{SUFFIX}") if one in names), None)


def sidecars(names: Collection[str]) -> dict[str, str]:
    """Sidecar by the name of the file that it is about; one beside no such file is a document like any other."""
    if not any(name.endswith(SUFFIX) for name in names):
        return {}
    found = ((name, sidecar_of(name, names)) for name in names)
    return {name: sidecar for name, sidecar in found if sidecar is not None}


def read_sidecar(data: bytes, *, depth: int) -> tuple[Declared, list[str]]:
    """Facts of a sidecar, and what is wrong with some of them.

    Raises:
        DeclarationError: It is no JSON object, or nested too deep.
    """
    try:
        facts = json.loads(data)
        if not isinstance(facts, dict):
            raise DeclarationError(f"expected a JSON object, found {type(facts).__name__}")
        require_shallow(facts, depth)
        return declared(facts)
    except (ValueError, RecursionError) as error:
        raise DeclarationError(f"expected a JSON object, found: {error}") from error
