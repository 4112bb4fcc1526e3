"""Which files a repository tracks, from its index: versions 2 to 4, also where it is split in two (ING-40)."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

INDEX_BYTES = 1 << 27
"""Larger indexes are not read: about a million files."""

_NAME_BYTES = 4_096  # no path of a system is longer
_ALL_NAMES_BYTES = 1 << 28  # version 4 writes what two names share once, so that a short index may hold long names
_HEADER = struct.Struct(">4sLL")
_STAT_BYTES = 40  # times, device, mode, owner and size before an entry's id
_MODE_AT = 24
_KIND = 0o170000  # of a mode
_FOLDER = 0o040000  # a folder that a sparse checkout left out: nothing of it is there
_SUBMODULE = 0o160000
_EXTENDED = 0x4000
_WORD_BITS = 64


class IndexUnreadableError(ValueError):
    """The bytes are no index, or a larger one than is read."""


class Tracked:
    """Paths of tracked files from the top of a repository; those of submodules end with a slash.

    Examples:
        >>> tracked = Tracked([b"src/a.py"])
        >>> tracked.has(b"src/a.py"), tracked.has(b"src"), tracked.has_below(b"src"), tracked.has_below(b"sr")
        (True, False, True, False)
    """

    def __init__(self, paths: Iterable[bytes] = ()) -> None:
        self._paths = sorted(paths)

    def has(self, path: bytes) -> bool:
        """Whether a file is tracked."""
        return self._first_from(path) == path

    def has_submodule(self, folder: bytes) -> bool:
        """Whether a folder is a submodule, whose own repository knows its files."""
        return self.has(folder + b"/")

    def has_below(self, folder: bytes) -> bool:
        """Whether anything below a folder is tracked, or it is a submodule."""
        inside = folder + b"/"
        return self._first_from(inside).startswith(inside)

    def _first_from(self, path: bytes) -> bytes:
        at = bisect_left(self._paths, path)
        return self._paths[at] if at < len(self._paths) else b""


def tracked_paths(data: bytes, *, id_bytes: int, shared_index: Callable[[str], bytes]) -> set[bytes]:
    """Paths of an index; those of submodules end with a slash.

    Raises:
        IndexUnreadableError: It is damaged, or names take more than is read.
    """
    if len(data) > INDEX_BYTES:
        raise IndexUnreadableError(f"expected an index of at most {INDEX_BYTES} bytes, found a larger one")
    try:
        names, end = _names(data, id_bytes)
        link = _extension(data, end, id_bytes, b"link")
        if link is None or not any(link[:id_bytes]):
            return {name for name in names if name}
        shared, _ = _names(shared_index(link[:id_bytes].hex()), id_bytes)
        deleted = set(_ones(link[id_bytes:])) if len(link) > id_bytes else set()
        return {name for number, name in enumerate(shared) if name and number not in deleted} | {*names} - {b""}
    except (struct.error, IndexError) as error:
        raise IndexUnreadableError(
            f"expected an index of git, found one that ends early or is damaged: {error}"
        ) from error


def _names(data: bytes, id_bytes: int) -> tuple[list[bytes], int]:
    """Names of all entries in order, empty where an entry is no file, and where the entries end."""
    mark, version, count = _HEADER.unpack_from(data)
    if mark != b"DIRC" or version not in {2, 3, 4}:
        raise IndexUnreadableError(f"expected an index of version 2, 3 or 4, found {mark!r} {version}")
    names: list[bytes] = []
    at, total, name = _HEADER.size, 0, b""
    for _ in range(count):
        (mode,) = struct.unpack_from(">L", data, at + _MODE_AT)
        (flags,) = struct.unpack_from(">H", data, at + _STAT_BYTES + id_bytes)
        begin = at + _STAT_BYTES + id_bytes + (4 if flags & _EXTENDED else 2)
        if version < 4:
            end = _zero_from(data, begin)
            name, at = data[begin:end], at + ((end - at + 8) & ~7)
        else:
            dropped, begin = _number(data, begin)
            end = _zero_from(data, begin)
            name, at = name[: max(0, len(name) - dropped)] + data[begin:end], end + 1
        total += len(name)
        if len(name) > _NAME_BYTES or total > _ALL_NAMES_BYTES:
            raise IndexUnreadableError(f"expected names of at most {_NAME_BYTES} bytes, {_ALL_NAMES_BYTES} in all")
        names.append(_path(name, mode & _KIND))
    return names, at


def _path(name: bytes, kind: int) -> bytes:
    if kind == _FOLDER:
        return b""
    return name + b"/" if kind == _SUBMODULE and name else name


def _zero_from(data: bytes, at: int) -> int:
    end = data.find(b"\0", at, at + _NAME_BYTES + 1)
    if end < 0:
        raise IndexUnreadableError(f"expected a name of at most {_NAME_BYTES} bytes at {at}, found a longer one")
    return end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, each but the last with its high bit set, and where it ends."""
    number, more = data[at] & 127, data[at] & 128
    while more:
        at += 1
        number, more = ((number + 1) << 7) | (data[at] & 127), data[at] & 128
        if number > _NAME_BYTES:
            raise IndexUnreadableError(f"expected at most {_NAME_BYTES} bytes of a name to be dropped, found {number}")
    return number, at + 1


def _extension(data: bytes, at: int, id_bytes: int, wanted: bytes) -> bytes | None:
    while at + 8 <= len(data) - id_bytes:
        name, size = struct.unpack_from(">4sL", data, at)
        if name == wanted:
            return data[at + 8 : at + 8 + size]
        at += 8 + size
    return None


def _ones(data: bytes) -> Iterator[int]:
    """Places of the ones in a bitmap whose words of 64 bits are runs of equal bits, each followed by literal words.

    The low bit of a run's word is the bit, the next 32 are the run's length in words, the last 31 how many follow.
    """
    bits, words = struct.unpack_from(">LL", data)
    at = place = 0
    while at < words:
        (run,) = struct.unpack_from(">Q", data, 8 + 8 * at)
        length, literals = ((run >> 1) & 0xFFFFFFFF) * _WORD_BITS, run >> 33
        if run & 1:
            yield from range(place, min(bits, place + length))
        place += length
        for word in struct.unpack_from(f">{literals}Q", data, 16 + 8 * at):
            yield from (place + bit for bit in range(_WORD_BITS) if word >> bit & 1)
            place += _WORD_BITS
        at += 1 + literals
