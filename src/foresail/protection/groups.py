"""Groups of namespaces that share a backup: stable, so that one that comes or goes changes one Schedule.

Who is in which group is what the Schedules say. No namespace ever moves within its class: it would be in no Schedule,
or in two that run at the same minute, for as long as the second write takes.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count

_NUMBER = re.compile("-([1-9][0-9]{0,5})$")


def group_name(of: str, number: int) -> str:
    """Return the name of the Schedule of a group."""
    return f"{of}-{number}"


def order(name: str) -> tuple[int, str]:
    """Return by what groups are sorted: by their numbers."""
    number = _NUMBER.search(name)
    return (int(number[1]) if number else 0, name)


def regrouped(
    members: Mapping[str, Sequence[str]], wanted: Collection[str], staying: Collection[str], capacity: int
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the next members of each group of a class, and those namespaces for which no group has room.

    `wanted` are the namespaces of the class; `staying` are those of its groups that must not leave yet. A namespace
    that is in two groups, which a person has brought about, stays in the first.
    """
    allowed = {*wanted, *staying}
    placed: set[str] = set()
    groups: dict[str, list[str]] = {}
    for name in sorted(members, key=order):
        kept = [member for member in dict.fromkeys(members[name]) if member in allowed and member not in placed]
        placed.update(kept)
        groups[name] = kept
    missing = iter(sorted(set(wanted) - placed))
    for kept in groups.values():
        if kept:  # one that is empty is deleted
            kept.extend(_take(missing, capacity - len(kept)))
    return {name: tuple(sorted(kept)) for name, kept in groups.items()}, tuple(missing)


def new_groups(of: str, missing: Sequence[str], taken: Collection[str], capacity: int) -> dict[str, tuple[str, ...]]:
    """Return further groups of a class, with the first numbers that no Schedule has."""
    names = (name for name in (group_name(of, number) for number in count(1)) if name not in taken)
    return {next(names): tuple(missing[at : at + capacity]) for at in range(0, len(missing), capacity)}


def _take(missing: Iterator[str], most: int) -> list[str]:
    return [name for _, name in zip(range(max(most, 0)), missing, strict=False)]
