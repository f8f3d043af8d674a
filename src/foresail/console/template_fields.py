"""The fields that describe a backup in a form: which volumes, which kinds, and how long it is kept."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foresail.cli.errors import CommandError
from foresail.cli.options.values import read_length, spelled
from foresail.cli.output.words import go_duration
from foresail.cli.tenant.spec_arguments import BACKUP_LISTS, BACKUP_SWITCHES, BACKUP_TIMES
from foresail.console.acts import Choice, Fields

_WAYS: dict[str, tuple[str, dict[str, bool]]] = {
    "default": ("as the policy or Velero decides", {}),
    "snapshots": ("snapshots", {"snapshotVolumes": True}),
    "moved": ("snapshots, moved to the storage location", {"snapshotMoveData": True}),
    "files": ("through the file system", {"defaultVolumesToFsBackup": True}),
    "none": ("without their data", {"snapshotVolumes": False, "defaultVolumesToFsBackup": False}),
}
_OWN = "own"  # a way that the form does not have, and leaves as it is
_KINDS, _KEPT = "includedResources", "ttl"
_SWITCHES = {entry: option for option, (entry, _) in BACKUP_SWITCHES.items()}
_DATA = ("snapshotVolumes", "snapshotMoveData", "defaultVolumesToFsBackup")
_KIND = re.compile(r"[A-Za-z][-A-Za-z0-9]{0,62}(\.[-A-Za-z0-9.]{1,190})?")
_MOST_KINDS, _LONGEST = 64, 2_000


@dataclass(frozen=True, slots=True)
class Template:
    """What a form says of a backup: as fields of a spec, as options of a command, and as the form again."""

    spec: Mapping[str, Any]
    options: tuple[str, ...]
    choices: tuple[Choice, ...]
    problem: str = ""


def template_of(fields: Fields, stored: Mapping[str, Any] | None = None) -> Template:
    """Return what the fields describe, on top of what a template has that is edited."""
    before = stored or {}
    way = fields.get("volumes", _way_of(before))
    kinds = fields.get("kinds", ", ".join(map(str, before.get(_KINDS) or ())))[:_LONGEST]
    kept = fields.get("keep", str(before.get(_KEPT) or "")).strip()[:64]
    ways = {name: label for name, (label, _) in _WAYS.items()}
    if _way_of(before) == _OWN:
        ways = {_OWN: "as it is now"} | ways
    names = list(dict.fromkeys(names_in(kinds)))
    length, wrong = _length(kept)
    problem = wrong or _problem(way in ways, names)
    data = {name: before[name] for name in _DATA if name in before} if way == _OWN else _WAYS.get(way, ("", {}))[1]
    chosen = {**({_KINDS: names} if names else {}), **data, **({_KEPT: length} if length else {})}
    other = {name: value for name, value in before.items() if name not in (_KINDS, _KEPT, *_DATA)}
    choices = (
        Choice("volumes", "Data of volumes", way, tuple(ways.items())),
        Choice("kinds", "Only these kinds (empty: all)", kinds, is_required=False),
        Choice("keep", "Keep for, such as 720h (empty: the default)", kept, is_required=False),
    )
    return Template({**other, **chosen}, _options(names, data, length), choices, problem)


def names_in(text: str) -> list[str]:
    """Return the names of a text field, with commas or spaces between them."""
    return text.replace(",", " ").split()


def _problem(is_way: bool, kinds: list[str]) -> str:  # noqa: FBT001 - a judgement about the form
    if len(kinds) > _MOST_KINDS or not all(map(_KIND.fullmatch, kinds)):
        return f"kinds: write up to {_MOST_KINDS} such as deployments.apps, secrets"
    return "" if is_way else "volumes: choose one of the ways"


def _length(text: str) -> tuple[str, str]:
    """Return a duration as Velero writes it, or why it is none."""
    try:
        return go_duration(read_length(text, "keep for")) if text else "", ""
    except CommandError as error:
        return "", f"{error.problem}: {error.hint}"


def _way_of(spec: Mapping[str, Any]) -> str:
    """Return which of the ways a stored template has."""
    data = {name: spec[name] for name in _DATA if spec.get(name) is not None}
    return next((name for name, (_, values) in _WAYS.items() if values == data), _OWN)


def _options(kinds: list[str], data: Mapping[str, Any], length: str) -> tuple[str, ...]:
    listed = next(option for option, (entry, _) in BACKUP_LISTS.items() if entry == _KINDS)
    timed = next(option for option, (entry, _) in BACKUP_TIMES.items() if entry == _KEPT)
    return (
        *([f"{spelled(listed)}={','.join(kinds)}"] if kinds else []),
        *(f"{spelled(_SWITCHES[name])}={str(value).lower()}" for name, value in data.items()),
        *([f"{spelled(timed)}={length}"] if length else []),
    )
