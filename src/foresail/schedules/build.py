"""The Backup of a slot: what it gets from its Schedule."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import NAMESPACE_UIDS, PROTECTION_CLASS, SCHEDULE_UID, SLOT
from foresail.api.specs import StoredSelector
from foresail.cron.duration import length_of
from foresail.plan import Create, Key
from foresail.schedules.observe import ScheduleRow
from foresail.schedules.settings import Settings
from foresail.schedules.slots import backup_name
from foresail.scope.labels import malformed_alternative

_FAMILY = "/*"
_OURS = "foresail.dev/*"  # state of the Schedule, never of its Backups, whatever the settings
_CACHE_SIZE = 20_000


class _Exec(msgspec.Struct):
    timeout: str | None = None


class _Hook(msgspec.Struct):
    exec: _Exec | None = None


class _HooksOfResources(msgspec.Struct):
    pre: tuple[_Hook, ...] | None = None
    post: tuple[_Hook, ...] | None = None


class _Hooks(msgspec.Struct):
    resources: tuple[_HooksOfResources, ...] | None = None


class _Durations(msgspec.Struct, rename="camel"):
    """Everything in a template that Go reads as a duration."""

    ttl: str | None = None
    csi_snapshot_timeout: str | None = None
    item_operation_timeout: str | None = None
    hooks: _Hooks | None = None


@lru_cache(_CACHE_SIZE)
def unreadable_duration(template: bytes) -> tuple[str, str] | None:
    """Return the field and the text of a duration that Go cannot read; None if there is none.

    In a Backup, it would stop Velero from listing all of them.
    """
    try:
        durations = msgspec.json.decode(template, type=_Durations)
    except msgspec.ValidationError:  # the API server's schema of Schedules lets none of these through
        return None
    texts = [
        ("ttl", durations.ttl),
        ("csiSnapshotTimeout", durations.csi_snapshot_timeout),
        ("itemOperationTimeout", durations.item_operation_timeout),
    ]
    for resources in (durations.hooks and durations.hooks.resources) or ():
        hooks = (*(resources.pre or ()), *(resources.post or ()))
        texts += [("hooks.resources.exec.timeout", hook.exec.timeout) for hook in hooks if hook.exec is not None]
    return next(((field, text) for field, text in texts if text is not None and length_of(text) is None), None)


class _Alternatives(msgspec.Struct, rename="camel"):
    or_label_selectors: tuple[StoredSelector, ...] | None = None


@lru_cache(_CACHE_SIZE)
def crashing_selector(template: bytes) -> str | None:
    """Return what is wrong with a selector on which Velero would crash; None if there is none."""
    try:
        alternatives = msgspec.json.decode(template, type=_Alternatives)
    except msgspec.ValidationError:  # the API server's schema of Schedules lets none of these through
        return None
    return malformed_alternative(alternatives.or_label_selectors)


@lru_cache(_CACHE_SIZE)
def has_hooks(template: bytes) -> bool:
    """Whether Velero would run commands for a Backup from this template."""
    try:
        hooks = msgspec.json.decode(template, type=_Durations).hooks
    except msgspec.ValidationError:  # the API server's schema of Schedules lets none of these through
        return False
    return bool(hooks and hooks.resources)


def create_backup(
    schedule: ScheduleRow,
    slot: datetime,
    settings: Settings,
    lifetime: timedelta | None = None,
    attempt: int = 0,
    namespaces: Mapping[str, str] | None = None,
) -> Create:
    """Return the creation of the Backup of a slot, recognisable by its marks; a lifetime replaces the template's."""
    key = Key(schedule.key.namespace, backup_name(schedule, slot, attempt))
    mark = {SCHEDULE_UID: schedule.uid, SLOT: stamp(slot)}
    return Create(velero.BACKUP, key, backup_body(schedule, settings, lifetime, namespaces), mark)


def backup_body(
    schedule: ScheduleRow,
    settings: Settings,
    lifetime: timedelta | None = None,
    namespaces: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Return a Backup from the Schedule's template, by Velero's rules for what is copied.

    The Backup of a ProtectionClass records the UIDs of its namespaces: whoever creates one of that name later gets
    nothing of it. A namespace that is created again before Velero reads it has another UID than the record.
    """
    template: dict[str, object] = msgspec.json.decode(schedule.template, type=dict[str, object])
    if lifetime is not None:
        template["ttl"] = f"{lifetime // timedelta(hours=1)}h0m0s"
    metadata: dict[str, object] = {"labels": _labels(schedule, settings)}
    annotations = copied(schedule.annotations, settings.not_copied)
    if namespaces is not None:
        annotations[PROTECTION_CLASS] = schedule.protection_class
        annotations[NAMESPACE_UIDS] = msgspec.json.encode(dict(sorted(namespaces.items()))).decode()
    if annotations:
        metadata["annotations"] = annotations
    if schedule.owns_backups:
        owner = {"apiVersion": velero.SCHEDULE.api_version, "kind": velero.SCHEDULE.name}
        metadata["ownerReferences"] = [{**owner, "name": schedule.key.name, "uid": schedule.uid, "controller": True}]
    return {"metadata": metadata, "spec": _spec(template)}


def copied(words: Mapping[str, str], not_copied: tuple[str, ...]) -> dict[str, str]:
    """Return the labels or annotations that a Backup gets: without those by which other tools would claim it."""
    excluded = (_OURS, *not_copied)
    return {name: value for name, value in words.items() if not any(_matches(name, pattern) for pattern in excluded)}


def _labels(schedule: ScheduleRow, settings: Settings) -> dict[str, str]:
    template = msgspec.json.decode(schedule.template, type=velero.Template)
    own = template.metadata.labels if template.metadata else None
    if own is None:
        labels = copied(schedule.labels, settings.not_copied)
    else:  # a label that the template itself sets is meant for the Backup; whole families of tracking labels never are
        labels = copied(own, tuple(pattern for pattern in settings.not_copied if pattern.endswith(_FAMILY)))
    return {**labels, velero.SCHEDULE_LABEL: schedule.key.name}


def _spec(template: dict[str, object]) -> dict[str, object]:
    policy = template.get("resourcePolicy")
    if not isinstance(policy, dict):
        return template
    return {**template, "resourcePolicy": {"kind": "configmap", "name": policy.get("name", "")}}


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith(_FAMILY) else name == pattern
