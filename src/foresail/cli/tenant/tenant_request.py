"""A NonAdminBackup or NonAdminRestore as its tenant sees it: the spec, and the status that the operator reports."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.instants import instant
from foresail.api.marks import DELETE_AFTER, DELETE_REASON, PINNED, ROLLBACK_UID, SCHEDULE_UID, SLOT
from foresail.api.nonadmin import Condition, Reference, Request, RestoredItems
from foresail.api.velero import COMPLETED, RESTORABLE, TERMINAL, WAITING
from foresail.cli.access.refused_writes import RefusedWrite
from foresail.cli.errors import CommandError
from foresail.cli.output.words import Transfer, transfer_of
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, Family
from foresail.selfservice.requests.status import (
    ACCEPTED,
    DATA_INCOMPLETE,
    DELETING,
    FALSE,
    IN_DELETION,
    QUEUED,
    SUCCEEDED,
    TRUE,
)

INCOMPLETE = "Incomplete"
"""The word in lists for a complete backup with the condition DataIncomplete."""

_any = msgspec.json.Decoder(dict[str, Any])
_request = msgspec.json.Decoder(Request)


class Progress(msgspec.Struct, frozen=True, rename="camel"):
    """Items in total and done; a backup sets one of the last two, a restore the other."""

    total_items: int = 0
    items_backed_up: int = 0
    items_restored: int = 0


class VeleroStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a Velero object's status that the commands show."""

    phase: str = ""
    progress: Progress | None = None
    errors: int = 0
    warnings: int = 0
    start_timestamp: str | None = None
    completion_timestamp: str | None = None
    expiration: str | None = None
    failure_reason: str = ""
    validation_errors: list[str] | None = None


_velero = msgspec.json.Decoder(VeleroStatus)


def decode_velero(raw: msgspec.Raw) -> VeleroStatus:
    """Return what the commands show of the status of a Backup or a Restore."""
    return _velero.decode(raw)


class DeletionMark(msgspec.Struct, frozen=True):
    """What the annotations of a backup say about its schedule and its deletion."""

    schedule_uid: str
    slot: str
    why: str  # `keepLast` gives it up; empty if not
    delete_after: datetime | None  # None: the deletion waits for an approval
    is_kept: bool  # its owner keeps it

    @property
    def is_marked(self) -> bool:
        """Whether it is deleted later, or waits for an approval of that."""
        return bool(self.why)


class TenantRequest(msgspec.Struct, frozen=True):
    """One request: the raw object, and its decoded parts."""

    family: Family
    raw: msgspec.Raw | bytes
    request: Request
    velero: VeleroStatus
    refused: RefusedWrite | None = None  # only `explain` reads it
    stalled: str = ""  # why nothing starts it in Velero; only `explain` reads it

    @property
    def content(self) -> dict[str, Any]:
        """The whole object; decoded at each use, because lists of thousands show few of them."""
        kind = self.family.kind
        return {"apiVersion": kind.api_version, "kind": kind.name, **_any.decode(self.raw)}

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return Key(self.request.metadata.namespace, self.request.metadata.name)

    @property
    def phase(self) -> str:
        """The phase of the request; empty before the operator's first reconcile."""
        return self.request.status.phase

    @property
    def position(self) -> int:
        """The position in Velero's queue; 0 if it has none."""
        queue = self.request.status.queue_info
        return (queue.estimated_queue_position or 0) if queue else 0

    @property
    def starts_by(self) -> str:
        """Until when a restore that waits may start; empty if it does not wait, or has no limit."""
        return self.request.status.starting_deadline if self.is_open and self.velero.phase in WAITING else ""

    @property
    def made(self) -> Reference:
        """The Velero object that belongs to it."""
        status = self.request.status
        reference = status.velero_backup if self.family is BACKUPS else status.velero_restore
        return reference or Reference()

    @property
    def started(self) -> datetime | None:
        """When Velero began with it; None if that is not known."""
        return instant(self.velero.start_timestamp or "")

    @property
    def transfer(self) -> Transfer | None:
        """How far the data of its volumes is, while it runs; None if nothing is known of that."""
        status = self.request.status
        if not self.is_open:
            return None
        if self.family is BACKUPS:
            return transfer_of(status.data_mover_data_uploads, status.file_system_pod_volume_backups)
        return transfer_of(status.data_mover_data_downloads, status.file_system_pod_volume_restores)

    @property
    def restored(self) -> RestoredItems | None:
        """What a restore did; None as long as the operator has not read it."""
        return self.request.status.restored_items

    @property
    def spec(self) -> dict[str, Any]:
        """The backupSpec or restoreSpec."""
        spec: dict[str, Any] = (self.content.get("spec") or {}).get(f"{self.family.word}Spec") or {}
        return spec

    @property
    def point(self) -> str:
        """The backup of a ProtectionClass that a restore names; empty if it names none."""
        named = (self.content.get("spec") or {}).get("fromProtection") or {}
        return str(named.get("backup") or "")

    @property
    def source(self) -> str:
        """The backup that a restore is from, whoever made that; empty if it names none."""
        return self.point or str(self.spec.get("backupName") or "")

    @property
    def target(self) -> str:
        """The namespace that a restore restores into: its own, or the one that it maps its own to."""
        own = self.key.namespace
        return str((self.spec.get("namespaceMapping") or {}).get(own, own))

    @property
    def is_before_rollback(self) -> bool:
        """Whether a Rollback took this backup before it changed anything: it has what the Rollback took back."""
        return ROLLBACK_UID in (self.request.metadata.annotations or {})

    @property
    def mark(self) -> DeletionMark:
        """What its annotations say about its schedule and its deletion."""
        annotations = self.request.metadata.annotations or {}
        return DeletionMark(
            annotations.get(SCHEDULE_UID, ""),
            annotations.get(SLOT, ""),
            annotations.get(DELETE_REASON, ""),
            instant(annotations.get(DELETE_AFTER, "")),
            annotations.get(PINNED) == "true",
        )

    @property
    def is_terminating(self) -> bool:
        """Whether it is being deleted, by the API or by a field of its spec."""
        spec = self.request.spec
        deletion = self.condition(IN_DELETION)
        is_reported = self.phase == DELETING or (deletion is not None and deletion.status == TRUE)
        is_requested = spec.delete_backup or spec.force_delete_backup
        return bool(is_reported or is_requested or self.request.metadata.deletion_timestamp)

    def condition(self, kind: str) -> Condition | None:
        """Return a condition; None if it is not set."""
        return next((condition for condition in self.request.status.conditions or () if condition.type == kind), None)

    @property
    def blocking(self) -> Condition | None:
        """The condition that explains why it is not complete; None if there is none.

        A deletion takes precedence over a refusal, a refusal over what Velero reports.
        """
        deletion = self.condition(IN_DELETION)
        accepted = self.condition(ACCEPTED)
        if deletion is not None and deletion.status == TRUE:
            return deletion
        if accepted is not None and accepted.status == FALSE:
            return accepted
        return None if self.done else self.condition(SUCCEEDED) or self.condition(QUEUED) or accepted

    @property
    def done(self) -> Condition | None:
        """The condition that reports success; None without one."""
        succeeded = self.condition(SUCCEEDED)
        return succeeded if succeeded is not None and succeeded.status == TRUE else None

    @property
    def incomplete(self) -> Condition | None:
        """The condition that reports what a complete backup lacks; None if it lacks nothing, or is not complete."""
        condition = self.condition(DATA_INCOMPLETE)
        return condition if condition is not None and condition.status == TRUE and self.done is not None else None

    @property
    def shown_phase(self) -> str:
        """The phase in lists: Velero calls a backup Completed although it lacks data, so that has its own word."""
        phase = self.velero.phase or self.phase or "New"
        return INCOMPLETE if phase == COMPLETED and self.incomplete is not None else phase

    @property
    def is_open(self) -> bool:
        """Whether it has not ended yet: it waits, or it runs."""
        return self.velero.phase not in TERMINAL and self.done is None and not self.is_refused

    @property
    def is_running(self) -> bool:
        """Whether Velero has begun it and not ended it."""
        return self.is_open and bool(self.made.name) and self.velero.phase not in WAITING

    @property
    def is_refused(self) -> bool:
        """Whether it stays blocked until someone changes it or its policy; the reason decides, not the phase."""
        from foresail.selfservice.requests.rules import is_refused  # noqa: PLC0415 - `get` needs none of the rules

        accepted = self.condition(ACCEPTED)
        is_current = accepted is not None and accepted.observed_generation in (0, self.request.metadata.generation)
        return is_current and is_refused(self.family, self.phase, accepted)


def decode_request(family: Family, raw: msgspec.Raw | bytes) -> TenantRequest:
    """Decode a request from the API server."""
    try:
        request = _request.decode(raw)
        made = request.status.velero_backup if family is BACKUPS else request.status.velero_restore
        velero = decode_velero(made.status) if made else VeleroStatus()
    except msgspec.DecodeError as error:
        metadata = _any.decode(raw).get("metadata") or {}
        name = f"{family.kind.name} {metadata.get('namespace')}/{metadata.get('name')}"
        raise CommandError(
            f"{name} cannot be decoded: {error}", "update foresail if it is older than the operator"
        ) from error
    return TenantRequest(family, raw, request, velero)


def decode_if_open(family: Family, raw: msgspec.Raw | bytes) -> TenantRequest | None:
    """Decode a request that has not ended; None for others."""
    request = decode_request(family, raw)
    return request if request.is_open else None


def is_restorable(request: TenantRequest, at: datetime) -> bool:
    """Whether Velero has finished a backup, nobody deletes it, and it has not expired."""
    expires = instant(request.velero.expiration) if request.velero.expiration else None
    is_kept = not request.is_terminating and (expires is None or expires > at)
    return is_kept and request.velero.phase in RESTORABLE


def restorable(requests: Iterable[TenantRequest], at: datetime) -> list[TenantRequest]:
    """Return the backups that can be restored, the newest first."""
    return sorted((request for request in requests if is_restorable(request, at)), key=_started, reverse=True)


def _started(request: TenantRequest) -> tuple[str, str]:
    return request.velero.start_timestamp or "", request.key.name
