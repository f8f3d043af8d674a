"""JSON that is nested deeper than a decoder goes: what lies too deep is taken out, and the rest is read.

The API server takes ten thousand levels, and below a field without a schema anyone may write them, such as a tenant in
the init containers of a restore. The decoder gives up at a thousand, by an error that would end the watch, and with it
the work for everybody. Nothing of ours reads as far down as is kept here.
"""

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

DEEPEST = 100
"""Levels that are kept of what is nested too deep."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def decoded(decoder: msgspec.json.Decoder[T], data: bytes | msgspec.Raw) -> T:
    """Decode JSON of any depth."""
    try:
        return decoder.decode(data)
    except RecursionError:
        return decoder.decode(shallow(bytes(data)))


def shallow(data: bytes, deepest: int = DEEPEST) -> bytes:
    """Return JSON with null in place of each array and object that is nested deeper than so many levels."""
    kept: list[bytes] = []
    depth = since = 0
    for token in _TOKEN.finditer(data):
        if token[0] in (b"{", b"["):
            depth += 1
            if depth == deepest + 1:
                kept += (data[since : token.start()], b"null")
        elif token[0] in (b"}", b"]"):
            if depth == deepest + 1:
                since = token.end()
            depth -= 1
    return b"".join([*kept, data[since:]])
