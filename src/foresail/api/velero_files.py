"""Bounded readers of the JSON files that Velero stores beside a backup; whoever has the bucket may write them.

A few packed bytes can become many objects in memory. So the bytes that begin an object are counted before decoding.
"""

import re
from typing import TypeVar

import msgspec

MOST_BYTES = 16 << 20
"""The largest file that is read, unpacked: some 200,000 objects."""

MOST_VOLUMES = 10_000
MOST_KINDS = 2_000
MOST_NAMES = 250_000
"""Names in a list of objects, where they are all decoded."""

_OBJECTS_PER_VOLUME = 8  # the volume itself and what is nested in it
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_AFTER_A_KEY = re.compile(rb'"[ \t\r\n]*:')  # no name of an object contains a quote

T = TypeVar("T")
_lists = msgspec.json.Decoder(dict[str, msgspec.Raw])
_names = msgspec.json.Decoder(list[str])
_named = msgspec.json.Decoder(dict[str, list[str]])


def volume_infos(file: bytes, decoder: msgspec.json.Decoder[list[T] | None]) -> list[T] | None:
    """Return the volumes of a backup or a restore; None if the file is not of Velero's shape or has too many."""
    if file.count(b"{") > MOST_VOLUMES * _OBJECTS_PER_VOLUME:
        return None
    try:
        infos = decoder.decode(file) or []
    except _UNREADABLE:
        return None
    return infos if len(infos) <= MOST_VOLUMES else None


def raw_lists(file: bytes) -> dict[str, msgspec.Raw] | None:
    """Return the lists of objects by kind, not decoded; None if the file is not of Velero's shape or has too many."""
    for number, _ in enumerate(_AFTER_A_KEY.finditer(file)):
        if number >= MOST_KINDS:
            return None
    try:
        return _lists.decode(file)
    except _UNREADABLE:
        return None


def names_in(raw: msgspec.Raw | bytes, most: int) -> list[str] | None:
    """Return the names in one of the lists; None if it is no list of names or has more than so many."""
    if bytes(raw).count(b",") >= most:
        return None
    try:
        return _names.decode(raw)
    except _UNREADABLE:
        return None


def named_lists(file: bytes) -> dict[str, list[str]] | None:
    """Return the names of all objects by kind; None if the file is not of Velero's shape or has too many."""
    if file.count(b",") > MOST_NAMES:
        return None
    try:
        return _named.decode(file)
    except _UNREADABLE:
        return None
