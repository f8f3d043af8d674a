"""The fields in which two objects differ."""

from collections.abc import Iterator
from typing import Any

ABSENT = object()
"""The value of a field that one of the two objects does not have."""

_LONGEST_LIST = 200


def differences(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401
    """Yield each field that differs, with both values; a list of another length differs as a whole."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            at = f"{path}.{name}" if path else str(name)
            yield from differences(one.get(name, ABSENT), other.get(name, ABSENT), at)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other) <= _LONGEST_LIST:
        for index, (ours, theirs) in enumerate(zip(one, other, strict=True)):
            yield from differences(ours, theirs, f"{path}[{index}]")
    elif one != other:
        yield path, one, other
