"""weft as a small install has it: packages that the base and `[cpu]` do not bring are not to be found.

As a program: `python -m tests.support.base_only search "…" --store DIR`, or `-c` and Python.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import packages_distributions
from types import ModuleType

from packaging.utils import canonicalize_name

from tests.support.licences import NAME, closure, direct

OURS = frozenset({"weft", "tests"})


class BaseFinder(PathFinder):
    """Finds what Python itself, weft and its base bring, and nothing else."""

    hidden: frozenset[str] = frozenset()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What `PathFinder` finds, but for what is hidden."""
        return None if fullname.partition(".")[0] in cls.hidden else super().find_spec(fullname, path, target)


def hidden_names(extras: Sequence[str] = ("cpu",)) -> frozenset[str]:
    """What is imported from packages that are installed here, and are none of the base's and these extras'."""
    base = {*closure(direct(extras)), canonicalize_name(NAME)}
    return frozenset(
        name
        for name, owners in packages_distributions().items()
        if name not in OURS and not base.intersection(map(canonicalize_name, owners))
    )


def hide(names: frozenset[str]) -> None:
    """From now on, find none of them."""
    for name in [name for name in sys.modules if name.partition(".")[0] in names]:
        del sys.modules[name]
    BaseFinder.hidden = names
    sys.meta_path[:] = [BaseFinder if finder is PathFinder else finder for finder in sys.meta_path]


def main(arguments: Sequence[str]) -> int:
    """Run a command line of weft, or Python."""
    hide(hidden_names())
    if arguments[:1] == ["-c"]:
        exec(arguments[1], {"__name__": "__main__"})
        return 0
    from weft.cli.registry import main as weft

    return weft(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
