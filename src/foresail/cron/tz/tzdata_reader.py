"""Reads time zones from the pinned `tzdata` wheel, never from the machine."""

import os
import struct
from functools import cache

import tzdata

_HEADER = struct.Struct(">4s1s15x6l")
_KIND = struct.Struct(">lBB")


def read_zone_file(name: str) -> tuple[int, list[tuple[int, int]], str]:
    """Return the first UTC offset in seconds, each change with its new offset, and the POSIX rule for later years."""
    data = read_tzdata("zoneinfo", *name.split("/"))
    # The first block repeats the table in 32 bits for old readers; the second one is complete.
    _, _, *counts = _HEADER.unpack_from(data)
    at = _HEADER.size + _block_size(counts, 4)
    _, _, *counts = _HEADER.unpack_from(data, at)
    n_times = counts[3]
    n_kinds = counts[4]
    at += _HEADER.size
    times = struct.unpack_from(f">{n_times}q", data, at)
    kind_of = data[at + 8 * n_times : at + 9 * n_times]
    kinds = [_KIND.unpack_from(data, at + 9 * n_times + 6 * i) for i in range(n_kinds)]
    rule = data[at + _block_size(counts, 8) :].strip(b"\n").decode()
    changes = [(when, kinds[kind][0]) for when, kind in zip(times, kind_of, strict=True)]
    return kinds[_first_kind(kinds, kind_of)][0], changes, rule


@cache
def zone_names() -> frozenset[str]:
    """Return the names of all zones in the IANA database's spelling."""
    return frozenset(read_tzdata("zones").decode().split())


def read_tzdata(*path: str) -> bytes:
    """Return the bytes of a file of the `tzdata` package."""
    # The package's loader also works if the package comes from a zip.
    folder = os.path.dirname(tzdata.__file__)  # noqa: PTH120  pathlib takes longer to import than the engine
    data: bytes = tzdata.__spec__.loader.get_data(os.path.join(folder, *path))  # noqa: PTH118  the same
    return data


def _block_size(counts: list[int], time_size: int) -> int:
    utc_flags, standard_flags, leaps, times, kinds, letters = counts
    return times * (time_size + 1) + kinds * _KIND.size + letters + leaps * (time_size + 4) + standard_flags + utc_flags


def _first_kind(kinds: list[tuple[int, ...]], kind_of: bytes) -> int:
    """Return the kind of time in force before the first change, by the rule of Go and tzcode."""
    if 0 not in kind_of:
        return 0
    if kinds[kind_of[0]][1]:
        for kind in range(kind_of[0] - 1, -1, -1):
            if not kinds[kind][1]:
                return kind
    return next((kind for kind, (_, summer, _) in enumerate(kinds) if not summer), 0)
