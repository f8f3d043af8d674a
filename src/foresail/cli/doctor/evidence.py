"""The evidence of the doctor: everything that the checks read."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from importlib.metadata import version
from itertools import chain
from typing import Any, TypeVar

import msgspec

from foresail.api import mirrored, nonadmin, velero
from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.authorization import OWN_ACCESS_REVIEW
from foresail.api.core import DEFINITION, NAMESPACE
from foresail.api.marks import (
    CHECK_LABEL,
    CHECKS_LEASE,
    PRIMERS_LEASE,
    SANDBOX_ROLE,
    SCHEDULES_LEASE,
    SELF_SERVICE_LEASE,
)
from foresail.api.metadata import Metadata, Written
from foresail.api.monitoring import PROMETHEUS_RULE, UNATTENDED
from foresail.api.pods import POD, Pod
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicy
from foresail.api.primer import PRIMER
from foresail.api.requests import NON_ADMIN_BACKUP, NON_ADMIN_LOCATION_REQUEST, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE
from foresail.api.restore_check import RESTORE_CHECK, RestoreCheckStatus
from foresail.api.schedule_policy import SCHEDULE_POLICY, SchedulePolicy
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.lease import BY_SERVER_TIME, Lease, leader
from foresail.cli.access.operators import OPERATOR_LABEL, Operator, is_operator, operator_of
from foresail.cli.access.refused_writes import RefusedWrite, all_refused_writes
from foresail.cli.doctor.admission import Admission, read_admission
from foresail.cli.doctor.ownerless import Ownerless, read_ownerless
from foresail.cli.doctor.permissions import FORECAST, Permission, needed
from foresail.cli.doctor.volume_data import SNAPSHOTS, VolumeData, read_volume_data
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.recovery_key.keys import read_keyring
from foresail.cli.tenant.adoptable import Adoptable, Scope, read_adoptable
from foresail.kube.clock import now
from foresail.kube.lease import LEASE
from foresail.plan import Key, Kind
from foresail.schedules.observe import ScheduleRow, Unread, schedule_row
from foresail.schedules.velero_server import DeploymentRow, deployment_row
from foresail.selfservice.records.keyring import SECRET_NAME

REVIEW = Kind("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
_ADMISSION = "admissionregistration.k8s.io"
_STAMP = Kind(_ADMISSION, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", namespaced=False)
_CHECK = Kind(
    _ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
_REQUESTER = Key("", "foresail-requester")
_OTHER = "non-admin-controller"  # how Deployments of the other controller of these kinds are called
T = TypeVar("T")


class Backup(msgspec.Struct, frozen=True):
    """A Backup, with its storage location."""

    metadata: Written
    spec: mirrored.Stored = mirrored.Stored()
    status: velero.BackupStatus = velero.BackupStatus()


class _Deletion(msgspec.Struct, frozen=True, rename="camel"):
    backup_name: str = ""


class _Refusals(msgspec.Struct, frozen=True):
    errors: tuple[str, ...] = ()


class DeleteRequest(msgspec.Struct, frozen=True):
    """A DeleteBackupRequest, and why Velero did not delete the Backup."""

    spec: _Deletion = _Deletion()
    status: _Refusals = _Refusals()


class _Named(msgspec.Struct, frozen=True):
    metadata: Metadata


class _Definition(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: dict[str, Any]


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Verdict = _Verdict()


class Named(msgspec.Struct, frozen=True):
    """A namespace."""

    metadata: Metadata


class CheckSeen(msgspec.Struct, frozen=True):
    """A RestoreCheck with its last result."""

    metadata: Metadata
    status: RestoreCheckStatus = RestoreCheckStatus()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was read; what could not be is None or empty, and named in `unread`."""

    namespace: str
    instant: datetime  # by the clock of this machine, when the API server's time was read
    server_time: datetime | None
    tzdata: str
    definitions: Mapping[str, dict[str, Any]] | None  # the spec of each, by its name
    servers: tuple[DeploymentRow, ...]
    lease: Lease | None
    operators: tuple[Operator, ...]
    others: tuple[Key, ...]  # Deployments of the other controller of the non-admin kinds
    locations: tuple[velero.Location, ...]  # of administrators and tenants
    schedules: Mapping[str, ScheduleRow | Unread]  # by name
    backups: tuple[Backup, ...]
    deletions: tuple[DeleteRequest, ...]
    permissions: Mapping[Permission, bool]  # of the operator
    own_permissions: Mapping[Permission, bool] = field(default_factory=dict)  # of the user, if there is no operator
    has_read_deployments: bool = True  # if not, nothing is known about Velero's server and the operator
    has_alert: bool = False  # the alert that no controller runs the Schedules; read only without an operator
    unread: tuple[CommandError, ...] = ()
    is_requester_set: bool = False  # the API server sets the requester
    is_requester_checked: bool = False  # the API server refuses a wrong one
    policies: tuple[SelfServicePolicy, ...] = ()
    schedule_policies: tuple[SchedulePolicy, ...] = ()
    signs_records: bool | None = None  # whether there is a recovery key; None if self-service is off
    adoptable: tuple[Adoptable, ...] = ()  # Velero Backups without a NonAdminBackup
    self_service_lease: Lease | None = None
    primers_lease: Lease | None = None
    checks_lease: Lease | None = None
    pods: tuple[Pod, ...] = ()  # of the operators
    refused_writes: Mapping[tuple[str, Key], RefusedWrite] = field(default_factory=dict)  # by kind and object
    unserved: Mapping[Kind, int] = field(default_factory=dict)  # objects of kinds that no operator's Deployment serves
    approvals: tuple[nonadmin.Approval, ...] = ()  # requests to approve locations of tenants
    ownerless: Ownerless = field(default_factory=Ownerless)  # Velero objects of tenants without a request
    checks: tuple[CheckSeen, ...] = ()  # RestoreChecks of administrators and tenants
    sandboxes: tuple[Named, ...] = ()  # of RestoreChecks
    volume_data: VolumeData | None = None  # of tenants' volumes; None if self-service is off, or there are no snapshots
    admission: Admission | None = None  # of annotations on tenants' objects; None if self-service is off
    doubt: timedelta = timedelta()  # by how much the two may differ because the answer took its time

    def holder(self, lease: Lease | None) -> str:
        """Return which replica holds a Lease now; empty if none does."""
        return leader(lease, self.server_time, BY_SERVER_TIME) if self.server_time else leader(lease, self.instant)


async def gather(cluster: Cluster, namespace: str, account: str | None) -> Evidence:
    """Read everything; what may not be read is noted, and the rest is read all the same."""
    reader = _Reader(cluster)
    asked = now()
    server_time = await reader.tried(cluster.server_time())
    doubt = (now() - asked) / 2
    # Now: read any later, it would have been renewed after the time with which it is compared.
    lease = await reader.tried(cluster.if_there(LEASE, Key(namespace, SCHEDULES_LEASE), Lease))
    self_service_lease = await reader.tried(cluster.if_there(LEASE, Key(namespace, SELF_SERVICE_LEASE), Lease))
    primers_lease = await reader.tried(cluster.if_there(LEASE, Key(namespace, PRIMERS_LEASE), Lease))
    checks_lease = await reader.tried(cluster.if_there(LEASE, Key(namespace, CHECKS_LEASE), Lease))
    definitions = await reader.tried(_definitions(cluster))
    has_velero = definitions is None or "backups.velero.io" in definitions
    listed = await reader.listed(DEPLOYMENT, "", Deployment) or await reader.listed(DEPLOYMENT, namespace, Deployment)
    deployments = listed or []
    rows = [deployment_row(each) for each in deployments if each.metadata.namespace == namespace]
    operators = tuple(map(operator_of, filter(is_operator, deployments)))
    others = tuple(Key(each.metadata.namespace, each.metadata.name) for each in deployments if is_other(each))
    has_policies = _serves(SELF_SERVICE_POLICY, definitions)
    pods = [await reader.all(POD, each.key.namespace, Pod, f"{OPERATOR_LABEL}={each.name}") for each in operators]
    serves = has_policies and any(each.self_service for each in operators)
    asked_for = NON_ADMIN_LOCATION_REQUEST
    has_approvals = serves and f"{asked_for.plural}.{asked_for.group}" in (definitions or ())
    policies = tuple(await reader.all(SELF_SERVICE_POLICY, "", SelfServicePolicy) if has_policies else ())
    never = {namespace, *(each.key.namespace for each in operators)}
    is_bare, alert = bool(deployments) and not operators, Key(namespace, UNATTENDED)
    return Evidence(
        namespace=namespace,
        instant=asked + doubt,
        server_time=server_time,
        tzdata=version("tzdata"),
        definitions=definitions,
        servers=tuple(row for row in rows if row is not None),
        has_read_deployments=listed is not None,
        lease=lease,
        self_service_lease=self_service_lease,
        primers_lease=primers_lease,
        checks_lease=checks_lease,
        operators=operators,
        others=others,
        locations=tuple(await reader.all(velero.LOCATION, namespace, velero.Location) if has_velero else ()),
        schedules=_schedules(await reader.all(velero.SCHEDULE, namespace, msgspec.Raw) if has_velero else ()),
        backups=tuple(await reader.all(velero.BACKUP, namespace, Backup) if has_velero else ()),
        deletions=tuple(await reader.all(velero.DELETE_REQUEST, namespace, DeleteRequest) if has_velero else ()),
        permissions=await reader.tried(_permissions(cluster, namespace, account, operators)) or {},
        own_permissions=await reader.tried(_own_permissions(cluster, namespace)) or {} if is_bare else {},
        has_alert=is_bare and bool(await reader.tried(cluster.if_there(PROMETHEUS_RULE, alert, _Named))),
        is_requester_set=bool(await reader.tried(cluster.if_there(_STAMP, _REQUESTER, _Named))),
        is_requester_checked=bool(await reader.tried(cluster.if_there(_CHECK, _REQUESTER, _Named))),
        schedule_policies=tuple(
            await reader.all(SCHEDULE_POLICY, "", SchedulePolicy) if _serves(SCHEDULE_POLICY, definitions) else ()
        ),
        policies=policies,
        admission=await reader.tried(read_admission(cluster, policies, never)) if serves else None,
        signs_records=await reader.tried(_signs_records(cluster, namespace)) if serves else None,
        adoptable=tuple(await reader.tried(read_adoptable(cluster, Scope(namespace), asked)) or ()) if serves else (),
        pods=tuple(chain.from_iterable(pods)),
        refused_writes=await reader.tried(all_refused_writes(cluster, server_time or asked)) or {},
        unserved=await reader.tried(_unserved(cluster, definitions if listed else {}, operators, others)) or {},
        approvals=tuple(await reader.all(asked_for, namespace, nonadmin.Approval) if has_approvals else ()),
        ownerless=await reader.tried(_ownerless(cluster, namespace, operators)) or Ownerless(),
        checks=tuple(await reader.all(RESTORE_CHECK, "", CheckSeen) if _serves(RESTORE_CHECK, definitions) else ()),
        sandboxes=tuple(
            await reader.all(NAMESPACE, "", Named, CHECK_LABEL) if _serves(RESTORE_CHECK, definitions) else ()
        ),
        volume_data=await reader.tried(read_volume_data(cluster, namespace, deployments))
        if serves and SNAPSHOTS in (definitions or ())
        else None,
        unread=tuple(reader.unread),
        doubt=doubt,
    )


class _Reader:
    """Reads on after a refusal, and remembers it."""

    def __init__(self, cluster: Cluster) -> None:
        self.unread: list[CommandError] = []
        self._cluster = cluster

    async def tried(self, reading: Awaitable[T]) -> T | None:
        try:
            return await reading
        except UnreachableError:  # nothing else could be read either
            raise
        except CommandError as error:
            self.unread.append(error)
            return None

    async def all(self, kind: Kind, namespace: str, of: type[T], labels: str = "") -> list[T]:
        return await self.listed(kind, namespace, of, labels) or []

    async def listed(self, kind: Kind, namespace: str, of: type[T], labels: str = "") -> list[T] | None:
        decoder = msgspec.json.Decoder(of)
        found = await self.tried(self._cluster.listed(kind, namespace, labels))
        return [decoder.decode(each) for each in found] if found is not None else None


async def _signs_records(cluster: Cluster, namespace: str) -> bool:
    keyring = await read_keyring(cluster, namespace)
    return keyring is not None and keyring.signing_key is not None


def _serves(kind: Kind, definitions: Iterable[str] | None) -> bool:
    return f"{kind.plural}.{kind.group}" in (definitions or ())


def _schedules(found: Iterable[msgspec.Raw]) -> dict[str, ScheduleRow | Unread]:
    rows: dict[str, ScheduleRow | Unread] = {}
    for each in found:
        metadata = msgspec.json.decode(each, type=_Named).metadata
        try:
            rows[metadata.name] = schedule_row(msgspec.json.decode(each, type=velero.Schedule))
        except (msgspec.DecodeError, ValueError) as error:
            rows[metadata.name] = Unread(Key(metadata.namespace, metadata.name), str(error))
    return rows


async def _unserved(
    cluster: Cluster, definitions: Mapping[str, Any] | None, operators: Sequence[Operator], others: Sequence[Key]
) -> dict[Kind, int]:
    """Count the objects of kinds for which no operator and no other controller has a Deployment."""
    unserved: list[Kind] = []
    if not others and not any(each.self_service for each in operators):
        unserved += [NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE, SELF_SERVICE_POLICY]
    if not any(each.primers for each in operators):
        unserved.append(PRIMER)
    if not any(each.restore_checks for each in operators):
        unserved.append(RESTORE_CHECK)
    known = [kind for kind in unserved if _serves(kind, definitions)]
    return {kind: await cluster.count(kind) for kind in known}


async def _ownerless(cluster: Cluster, namespace: str, operators: Sequence[Operator]) -> Ownerless:
    """Read the objects without an owner, where self-service is on."""
    return await read_ownerless(cluster, namespace) if any(each.self_service for each in operators) else Ownerless()


async def _definitions(cluster: Cluster) -> dict[str, dict[str, Any]]:
    decoder = msgspec.json.Decoder(_Definition)
    found = [decoder.decode(each) for each in await cluster.listed(DEFINITION, "")]
    return {each.metadata.name: each.spec for each in found}


def is_other(wire: Deployment) -> bool:
    """Return whether a Deployment runs the other controller of the non-admin kinds."""
    images = [each.image for each in wire.spec.template.spec.containers]
    return any(_OTHER in each for each in (wire.metadata.name, *images))


async def _permissions(
    cluster: Cluster, namespace: str, account: str | None, operators: tuple[Operator, ...]
) -> dict[Permission, bool]:
    """Ask the API server what the ServiceAccount of each operator may do; what one of them lacks is lacking."""
    reviewed = list(operators)
    if account and account not in {each.service_account for each in operators}:
        first = reviewed[0] if reviewed else Operator(Key("", ""), True, False, False, account)  # noqa: FBT003
        reviewed = [replace(first, service_account=account)]
    elif account:
        reviewed = [each for each in operators if each.service_account == account]
    found: dict[Permission, bool] = {}
    for operator in reviewed:
        wanted = needed(
            schedules=operator.schedules,
            self_service=operator.self_service,
            primers=operator.primers,
            locations=operator.locations,
            restore_checks=operator.restore_checks,
            tenant_checks=operator.tenant_checks,
            check_data=operator.check_data,
        )
        wanted = sorted({*wanted, *(FORECAST if operator.heeds_schedules else ())})
        user = f"system:serviceaccount:{operator.service_account.replace('/', ':')}"
        answers = await _allowed(cluster, namespace, wanted, REVIEW, {"user": user}, operator.lease)
        found |= {each: is_allowed and found.get(each, True) for each, is_allowed in answers.items()}
    return found


async def _own_permissions(cluster: Cluster, namespace: str) -> dict[Permission, bool]:
    """Review the user's own permissions: the API server lets no one grant what they do not have."""
    return await _allowed(cluster, namespace, needed(schedules=True, self_service=False), OWN_ACCESS_REVIEW, {})


async def _allowed(
    cluster: Cluster,
    namespace: str,
    wanted: Sequence[Permission],
    review: Kind,
    whose: Mapping[str, str],
    lease: str = SCHEDULES_LEASE,
) -> dict[Permission, bool]:
    asked = [_attributes(namespace, each, lease) for each in wanted]
    answers = await asyncio.gather(*(_may(cluster, each, review, whose) for each in asked))
    return dict(zip(wanted, answers, strict=True))


def _attributes(namespace: str, wanted: Permission, lease: str) -> dict[str, str]:
    resource, _, subresource = wanted.resource.partition("/")
    asked = {
        "group": wanted.group,
        "resource": resource,
        "subresource": subresource,
        "verb": wanted.verb,
        "namespace": "" if wanted.everywhere else namespace,
    }
    if resource == "leases" and wanted.verb != "create":
        asked["name"] = lease
    if resource == "secrets":
        asked["name"] = SECRET_NAME
    if resource == "clusterroles":
        asked["name"] = SANDBOX_ROLE
    return asked


async def _may(cluster: Cluster, asked: Mapping[str, str], review: Kind, whose: Mapping[str, str]) -> bool:
    body = {"apiVersion": review.api_version, "kind": review.name, "spec": {**whose, "resourceAttributes": asked}}
    made = await cluster.create(review, Key("", ""), body)
    return msgspec.json.decode(made, type=_Review).status.allowed
