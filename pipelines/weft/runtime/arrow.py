"""What this process does without for the sake of Arrow."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa


def leave_pandas_out() -> None:
    """Have Arrow make its arrays without pandas, which it imports for the first one: .3 s of processor, and 55 MB.

    Only for processes that are ours alone: Arrow then takes a column of pandas for any sequence, until it is asked to
    make one itself.
    """
    refusing = _Refusing()
    sys.meta_path.insert(0, refusing)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(refusing)


class _Refusing(MetaPathFinder):
    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("left out", name=fullname)
