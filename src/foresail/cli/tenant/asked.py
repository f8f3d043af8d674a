"""A NonAdminBackup or NonAdminRestore as its tenant sees it: what was asked for, and what was said to that."""

from dataclasses import dataclass
from typing import Any

import msgspec

from foresail.api.nonadmin import Condition, Reference, Request
from foresail.cli.access.refused_writes import RefusedWrite
from foresail.cli.errors import CommandError
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, Family
from foresail.selfservice.requests.rules import is_refused
from foresail.selfservice.requests.status import ACCEPTED, DELETING, FALSE, IN_DELETION, QUEUED, SUCCEEDED, TRUE

_any = msgspec.json.Decoder(dict[str, Any])
_request = msgspec.json.Decoder(Request)


class Progress(msgspec.Struct, frozen=True, rename="camel"):
    """How many items there are, and how many are done: of the last two, one is a backup's and one a restore's."""

    total_items: int = 0
    items_backed_up: int = 0
    items_restored: int = 0


class VeleroStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What Velero says about its object, as far as it is shown here."""

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


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, whole and as it is read."""

    family: Family
    content: dict[str, Any]
    request: Request
    velero: VeleroStatus
    refused: RefusedWrite | None = None  # read by `explain` alone

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return Key(self.request.metadata.namespace, self.request.metadata.name)

    @property
    def phase(self) -> str:
        """How far the request is; empty if the operator has never looked at it."""
        return self.request.status.phase

    @property
    def position(self) -> int:
        """Its place in Velero's queue: 0 if it is done or has none."""
        queue = self.request.status.queue_info
        return (queue.estimated_queue_position or 0) if queue else 0

    @property
    def made(self) -> Reference:
        """The Velero object that was made for it."""
        status = self.request.status
        found = status.velero_backup if self.family is BACKUPS else status.velero_restore
        return found or Reference()

    @property
    def spec(self) -> dict[str, Any]:
        """What is to be backed up or restored."""
        spec: dict[str, Any] = (self.content.get("spec") or {}).get(f"{self.family.word}Spec") or {}
        return spec

    @property
    def is_going(self) -> bool:
        """Whether somebody has deleted it, in whichever way."""
        spec, said = self.request.spec, self.condition(IN_DELETION)
        is_said = self.phase == DELETING or (said is not None and said.status == TRUE)
        is_asked_for = spec.delete_backup or spec.force_delete_backup
        return bool(is_said or is_asked_for or self.request.metadata.deletion_timestamp)

    def condition(self, kind: str) -> Condition | None:
        """Return a condition; None if it is not there."""
        return next((each for each in self.request.status.conditions or () if each.type == kind), None)

    @property
    def holding(self) -> Condition | None:
        """The condition that says why there is no complete backup or restore yet; None if nothing has been said.

        The strongest counts: a deletion before a refusal, a refusal before what Velero says.
        """
        going, accepted = self.condition(IN_DELETION), self.condition(ACCEPTED)
        if going is not None and going.status == TRUE:
            return going
        if accepted is not None and accepted.status == FALSE:
            return accepted
        return None if self.done else self.condition(SUCCEEDED) or self.condition(QUEUED) or accepted

    @property
    def done(self) -> Condition | None:
        """The condition that says that it is complete; None if it is not."""
        succeeded = self.condition(SUCCEEDED)
        return succeeded if succeeded is not None and succeeded.status == TRUE else None

    @property
    def is_refused(self) -> bool:
        """Whether somebody must change it, or its policy, before anything happens; by the reason, not the phase."""
        accepted = self.condition(ACCEPTED)
        is_current = accepted is not None and accepted.observed_generation in (0, self.request.metadata.generation)
        return is_current and is_refused(self.phase, accepted)


def asked(family: Family, raw: msgspec.Raw | bytes) -> Asked:
    """Return a request as it came from the API server."""
    content = {"apiVersion": family.kind.api_version, "kind": family.kind.name, **_any.decode(raw)}
    try:
        request = _request.decode(raw)
        made = request.status.velero_backup if family is BACKUPS else request.status.velero_restore
        velero = _velero.decode(made.status) if made else VeleroStatus()
    except msgspec.DecodeError as error:
        metadata = content.get("metadata") or {}
        name = f"{family.kind.name} {metadata.get('namespace')}/{metadata.get('name')}"
        raise CommandError(
            f"{name} cannot be decoded: {error}", "update foresail if it is older than the operator"
        ) from error
    return Asked(family, content, request, velero)
