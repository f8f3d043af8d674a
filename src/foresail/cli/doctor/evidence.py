"""The evidence of the doctor: everything that the checks read."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Any, TypeVar

import msgspec

from foresail.api import mirrored, nonadmin, velero
from foresail.api.apps import DAEMON_SET, DEPLOYMENT, DaemonSet, Deployment, ObservedDeployment, is_node_agent
from foresail.api.authorization import OWN_ACCESS_REVIEW
from foresail.api.core import DEFINITION, NAMESPACE
from foresail.api.marks import (
    CHECK_LABEL,
    CHECKS_LEASE,
    LEASES,
    PRIMERS_LEASE,
    PROTECTION_LEASE,
    ROLLBACK_LEASE,
    SANDBOX_ROLE,
    SCHEDULES_LEASE,
    SELF_SERVICE_LEASE,
)
from foresail.api.metadata import Metadata, Named, Written
from foresail.api.monitoring import PROMETHEUS_RULE, UNATTENDED
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_LOCATION_REQUEST, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicy
from foresail.api.primer import PRIMER
from foresail.api.protection import PROTECTION, PROTECTION_CLASS, Protection, ProtectionClass
from foresail.api.restore_check import RESTORE_CHECK, RestoreCheckStatus
from foresail.api.rollback import ROLLBACK
from foresail.api.schedule_policy import SCHEDULE_POLICY, SchedulePolicy
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.operators import BY_SERVER_TIME, Lease, Operator, is_operator, leader, operator_of
from foresail.cli.access.refused_writes import RefusedWrite, all_refused_writes
from foresail.cli.access.together import Together, together
from foresail.cli.doctor.admission import Admission, read_admission, recommended_flags
from foresail.cli.doctor.permissions import FORECAST, Permission, needed
from foresail.cli.doctor.requests import Ownerless, Request, read_ownerless, read_requests, unprocessed
from foresail.cli.doctor.workloads import (
    SNAPSHOTS,
    VolumeData,
    Workload,
    read_agent,
    read_changed_policies,
    read_deployment,
    read_volume_data,
)
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.recovery_key.keys import read_keyring
from foresail.cli.tenant.adoptable import Adoptable, Scope, read_adoptable
from foresail.kube.clock import now
from foresail.kube.lease import LEASE
from foresail.plan import Key, Kind
from foresail.safety.velero_pods import VALIDATES_EVERY, validates_every
from foresail.schedules.observe import ScheduleRow, Unread, schedule_row
from foresail.schedules.velero_server import DeploymentRow, deployment_row
from foresail.selfservice.signatures import SECRET_NAME

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


class Restore(msgspec.Struct, frozen=True):
    """A Restore, and when it was last written to."""

    metadata: Written
    status: velero.RestoreStatus = velero.RestoreStatus()


class _Deletion(msgspec.Struct, frozen=True, rename="camel"):
    backup_name: str = ""


class _Refusals(msgspec.Struct, frozen=True):
    errors: tuple[str, ...] = ()


class DeleteRequest(msgspec.Struct, frozen=True):
    """A DeleteBackupRequest, and why Velero did not delete the Backup."""

    spec: _Deletion = _Deletion()
    status: _Refusals = _Refusals()


class _Definition(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: dict[str, Any]


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Verdict = _Verdict()


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
    restores: tuple[Restore, ...] = ()  # Velero's
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
    protection_lease: Lease | None = None
    rollback_lease: Lease | None = None
    workloads: tuple[Workload, ...] = ()  # of Velero, its node agents and the operators
    validates_every: timedelta = VALIDATES_EVERY  # how often Velero validates its locations
    refused_writes: Mapping[tuple[str, Key], RefusedWrite] = field(default_factory=dict)  # by kind and object
    unserved: Mapping[Kind, int] = field(default_factory=dict)  # objects of kinds that no operator's Deployment serves
    unprocessed: tuple[Request, ...] = ()  # of tenants, without a phase for minutes
    approvals: tuple[nonadmin.Approval, ...] = ()  # requests to approve locations of tenants
    ownerless: Ownerless = field(default_factory=Ownerless)  # Velero objects of tenants without a request
    checks: tuple[CheckSeen, ...] = ()  # RestoreChecks of administrators and tenants
    sandboxes: tuple[Named, ...] = ()  # of RestoreChecks
    protection_classes: tuple[ProtectionClass, ...] = ()
    protections: tuple[Protection, ...] = ()
    recommended_flags: tuple[str, ...] = ()  # that Velero's server lacks
    volume_data: VolumeData | None = None  # of tenants' volumes; None if self-service is off, or there are no snapshots
    changed_policies: tuple[str, ...] = ()  # ConfigMaps of the chart for the volumes of tenants
    admission: Admission | None = None  # of annotations on tenants' objects; None if self-service is off
    doubt: timedelta = timedelta()  # by how much the two may differ because the answer took its time

    @property
    def leases(self) -> Mapping[str, Lease | None]:
        """The Lease of each capability by its name."""
        own = (self.lease, self.self_service_lease, self.primers_lease, self.checks_lease)
        return dict(zip(LEASES, (*own, self.protection_lease, self.rollback_lease), strict=True))

    def holder(self, lease: Lease | None) -> str:
        """Return which replica holds a Lease now; empty if none does."""
        return leader(lease, self.server_time, BY_SERVER_TIME) if self.server_time else leader(lease, self.instant)


async def gather(cluster: Cluster, namespace: str, account: str | None) -> Evidence:
    """Read everything; what may not be read is noted, and the rest is read all the same."""
    asked = now()
    async with together() as tasks:
        reader = _Reader(cluster, tasks)
        server_time = await reader.begin(cluster.server_time())
        doubt = (now() - asked) / 2
        at = server_time or asked
        # Now: read any later, they would have been renewed after the time with which they are compared.
        leases = {name: reader.begin(cluster.if_there(LEASE, Key(namespace, name), Lease)) for name in LEASES}
        defined = reader.begin(_definitions(cluster))
        is_set, is_checked = (reader.begin(cluster.if_there(kind, _REQUESTER, Named)) for kind in (_STAMP, _CHECK))
        refused = reader.begin_or({}, all_refused_writes(cluster, at))
        listed = await reader.listed(DEPLOYMENT, "", ObservedDeployment)
        deployed = _Deployed(namespace, listed or await reader.listed(DEPLOYMENT, namespace, ObservedDeployment))
        operators = deployed.operators
        running = [
            reader.begin(read_deployment(cluster, deployment)) for deployment in (*deployed.of_velero, *deployed.ours)
        ]
        agents = reader.begin_or([], _agents(cluster, namespace))
        permissions = reader.begin_or({}, _permissions(cluster, namespace, account, operators))
        own_permissions = reader.begin_or({}, _own_permissions(cluster, namespace), deployed.is_bare)
        alert = reader.begin(cluster.if_there(PROMETHEUS_RULE, Key(namespace, UNATTENDED), Named), deployed.is_bare)
        served = _Served(await defined, deployed)
        locations = reader.all(velero.LOCATION, namespace, velero.Location, served.velero)
        schedules = reader.all(velero.SCHEDULE, namespace, msgspec.Raw, served.velero)
        backups = reader.all(velero.BACKUP, namespace, Backup, served.velero)
        deletions = reader.all(velero.DELETE_REQUEST, namespace, DeleteRequest, served.velero)
        restores = reader.all(velero.RESTORE, namespace, Restore, served.velero)
        policies = reader.all(SELF_SERVICE_POLICY, "", SelfServicePolicy, served.policies)
        of_schedules = reader.all(SCHEDULE_POLICY, "", SchedulePolicy, served.schedule_policies)
        approvals = reader.all(NON_ADMIN_LOCATION_REQUEST, namespace, nonadmin.Approval, served.approvals)
        checks = reader.all(RESTORE_CHECK, "", CheckSeen, served.checks)
        sandboxes = reader.all(NAMESPACE, "", Named, served.checks, CHECK_LABEL)
        classes = reader.all(PROTECTION_CLASS, "", ProtectionClass, served.protection)
        protections = reader.all(PROTECTION, "", Protection, served.protection)
        changed = reader.begin_or((), read_changed_policies(cluster, namespace), served.tenants)
        signs = reader.begin(_signs_records(cluster, namespace), served.tenants)
        adoptable = reader.begin_or((), read_adoptable(cluster, Scope(namespace), asked), served.tenants)
        unserved = reader.begin_or({}, _unserved(cluster, served.counted, operators, deployed.others))
        requests = reader.begin(read_requests(cluster), served.requests)
        never = {namespace, *(operator.key.namespace for operator in operators)}
        admission = reader.begin(read_admission(cluster, await policies, never), served.tenants)
        asked_for = await requests
        has_owners = served.tenants and asked_for is not None
        owners = asked_for or {}
        ownerless = reader.begin_or(Ownerless(), read_ownerless(cluster, namespace, owners), has_owners)
        sets = await agents
        works = [reader.begin(read_agent(cluster, daemon_set)) for daemon_set in sets if is_node_agent(daemon_set)]
        volume_data = reader.begin(read_volume_data(cluster, namespace, deployed.deployments, sets), served.snapshots)
        return Evidence(
            namespace=namespace,
            instant=asked + doubt,
            server_time=server_time,
            tzdata=version("tzdata"),
            definitions=served.definitions,
            servers=deployed.servers,
            has_read_deployments=deployed.is_read,
            lease=await leases[SCHEDULES_LEASE],
            self_service_lease=await leases[SELF_SERVICE_LEASE],
            primers_lease=await leases[PRIMERS_LEASE],
            checks_lease=await leases[CHECKS_LEASE],
            protection_lease=await leases[PROTECTION_LEASE],
            rollback_lease=await leases[ROLLBACK_LEASE],
            operators=operators,
            others=deployed.others,
            locations=tuple(await locations),
            schedules=_schedules(await schedules),
            backups=tuple(await backups),
            deletions=tuple(await deletions),
            restores=tuple(await restores),
            permissions=await permissions,
            own_permissions=await own_permissions,
            has_alert=bool(await alert),
            is_requester_set=bool(await is_set),
            is_requester_checked=bool(await is_checked),
            schedule_policies=tuple(await of_schedules),
            policies=tuple(await policies),
            admission=await admission,
            signs_records=await signs,
            adoptable=tuple(await adoptable),
            workloads=tuple(await _present((*running, *works))),
            refused_writes=await refused,
            unserved=await unserved,
            unprocessed=unprocessed(owners, at),
            approvals=tuple(await approvals),
            ownerless=await ownerless,
            checks=tuple(await checks),
            sandboxes=tuple(await sandboxes),
            protection_classes=tuple(await classes),
            protections=tuple(await protections),
            recommended_flags=recommended_flags(deployed.deployments, namespace),
            volume_data=await volume_data,
            changed_policies=await changed,
            validates_every=deployed.validates_every,
            unread=reader.unread(),
            doubt=doubt,
        )


async def _present(readings: Iterable[asyncio.Task[T | None]]) -> list[T]:
    """Return what was there."""
    return [value for reading in readings if (value := await reading) is not None]


class _Deployed:
    """What the Deployments of the cluster tell: Velero's servers, the operators, and other controllers."""

    def __init__(self, namespace: str, listed: list[ObservedDeployment] | None) -> None:
        self.is_read = listed is not None
        self.deployments = listed or []
        rows = [
            (deployment, deployment_row(deployment))
            for deployment in self.deployments
            if deployment.metadata.namespace == namespace
        ]
        self.of_velero = [deployment for deployment, row in rows if row is not None]
        self.servers = tuple(row for _, row in rows if row is not None)
        self.ours = [deployment for deployment in self.deployments if is_operator(deployment)]
        self.operators = tuple(map(operator_of, self.ours))
        self.others = tuple(
            Key(deployment.metadata.namespace, deployment.metadata.name)
            for deployment in self.deployments
            if is_other(deployment)
        )

    @property
    def is_bare(self) -> bool:
        """Whether there are Deployments, and none of ours."""
        return bool(self.deployments) and not self.operators

    @property
    def serves_tenants(self) -> bool:
        """Whether an operator has self-service."""
        return any(operator.self_service for operator in self.operators)

    @property
    def validates_every(self) -> timedelta:
        """How often Velero validates a location that does not say it itself."""
        return validates_every(self.of_velero)


class _Served:
    """Which kinds are read, by the definitions in the cluster and what the operators serve."""

    def __init__(self, definitions: Mapping[str, dict[str, Any]] | None, deployed: _Deployed) -> None:
        self.definitions = definitions
        self.velero = definitions is None or "backups.velero.io" in definitions
        self.checks = _serves(RESTORE_CHECK, definitions)
        is_on = any(operator.protection for operator in deployed.operators)
        self.protection = is_on and _serves(PROTECTION_CLASS, definitions) and _serves(PROTECTION, definitions)
        self.policies = _serves(SELF_SERVICE_POLICY, definitions)
        self.schedule_policies = _serves(SCHEDULE_POLICY, definitions)
        self.tenants = deployed.serves_tenants and self.policies
        self.approvals = self.tenants and _serves(NON_ADMIN_LOCATION_REQUEST, definitions)
        self.snapshots = self.tenants and SNAPSHOTS in (definitions or ())
        # An operator without a Deployment may serve requests too.
        self.requests = _serves(NON_ADMIN_BACKUP, definitions) and (deployed.serves_tenants or not deployed.operators)
        self.counted = definitions if deployed.is_read else {}


class _Reader:
    """Reads on after a refusal, and remembers it; all readings that have begun run at the same time."""

    def __init__(self, cluster: Cluster, tasks: Together) -> None:
        self._refusals: dict[int, CommandError] = {}  # in the order in which the readings began
        self._begun = 0
        self._cluster = cluster
        self._tasks = tasks

    def unread(self) -> tuple[CommandError, ...]:
        """Return what could not be read by the readings that have ended."""
        return tuple(error for _, error in sorted(self._refusals.items()))

    def begin(self, reading: Coroutine[Any, Any, T], is_wanted: bool = True) -> asyncio.Task[T | None]:  # noqa: FBT001, FBT002
        self._begun += 1
        if not is_wanted:
            reading.close()
        return self._tasks.begin(self._tried(reading, self._begun) if is_wanted else _nothing())

    def begin_or(self, default: T, reading: Coroutine[Any, Any, T], is_wanted: bool = True) -> asyncio.Task[T]:  # noqa: FBT001, FBT002
        """Begin a reading whose result is the default if it is not wanted, or refused."""
        return self._tasks.begin(self._or(default, self.begin(reading, is_wanted)))

    @staticmethod
    async def _or(default: T, reading: asyncio.Task[T | None]) -> T:
        return await reading or default

    async def _tried(self, reading: Coroutine[Any, Any, T], order: int) -> T | None:
        try:
            return await reading
        except UnreachableError:  # nothing else could be read either
            raise
        except CommandError as error:
            self._refusals[order] = error
            return None

    def all(
        self, kind: Kind, namespace: str, of: type[T], is_wanted: bool, labels: str = ""  # noqa: FBT001
    ) -> asyncio.Task[list[T]]:  # fmt: skip
        return self.begin_or([], self._read(kind, namespace, of, labels), is_wanted)

    async def listed(self, kind: Kind, namespace: str, of: type[T]) -> list[T] | None:
        return await self.begin(self._read(kind, namespace, of))

    async def _read(self, kind: Kind, namespace: str, of: type[T], labels: str = "") -> list[T]:
        decoder = msgspec.json.Decoder(of)
        return [decoder.decode(raw) for raw in await self._cluster.listed(kind, namespace, labels)]


async def _nothing() -> None:
    return None


async def _agents(cluster: Cluster, namespace: str) -> list[DaemonSet]:
    """Read the DaemonSets in Velero's namespace."""
    return [msgspec.json.decode(raw, type=DaemonSet) for raw in await cluster.listed(DAEMON_SET, namespace)]


async def _signs_records(cluster: Cluster, namespace: str) -> bool:
    keyring = await read_keyring(cluster, namespace)
    return keyring is not None and keyring.signing_key is not None


def _serves(kind: Kind, definitions: Iterable[str] | None) -> bool:
    return f"{kind.plural}.{kind.group}" in (definitions or ())


def _schedules(raws: Iterable[msgspec.Raw]) -> dict[str, ScheduleRow | Unread]:
    rows: dict[str, ScheduleRow | Unread] = {}
    for raw in raws:
        metadata = msgspec.json.decode(raw, type=Named).metadata
        try:
            rows[metadata.name] = schedule_row(msgspec.json.decode(raw, type=velero.Schedule))
        except (msgspec.DecodeError, ValueError) as error:
            rows[metadata.name] = Unread(Key(metadata.namespace, metadata.name), str(error))
    return rows


async def _unserved(
    cluster: Cluster, definitions: Mapping[str, Any] | None, operators: Sequence[Operator], others: Sequence[Key]
) -> dict[Kind, int]:
    """Count the objects of kinds for which no operator and no other controller has a Deployment."""
    unserved: list[Kind] = []
    if not others and not any(operator.self_service for operator in operators):
        unserved += [NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE, SELF_SERVICE_POLICY]
    if not any(operator.primers for operator in operators):
        unserved.append(PRIMER)
    if not any(operator.restore_checks for operator in operators):
        unserved.append(RESTORE_CHECK)
    if not any(operator.protection for operator in operators):
        unserved.append(PROTECTION_CLASS)
    if not any(operator.rollback for operator in operators):
        unserved.append(ROLLBACK)
    known = [kind for kind in unserved if _serves(kind, definitions)]
    return {kind: await cluster.count(kind) for kind in known}


async def _definitions(cluster: Cluster) -> dict[str, dict[str, Any]]:
    decoder = msgspec.json.Decoder(_Definition)
    definitions = [decoder.decode(raw) for raw in await cluster.listed(DEFINITION, "")]
    return {definition.metadata.name: definition.spec for definition in definitions}


def is_other(wire: Deployment) -> bool:
    """Return whether a Deployment runs the other controller of the non-admin kinds."""
    images = [container.image for container in wire.spec.template.spec.containers]
    return any(_OTHER in text for text in (wire.metadata.name, *images))


async def _permissions(
    cluster: Cluster, namespace: str, account: str | None, operators: tuple[Operator, ...]
) -> dict[Permission, bool]:
    """Ask the API server what the ServiceAccount of each operator may do; what one of them lacks is lacking."""
    reviewed = list(operators)
    if account and account not in {operator.service_account for operator in operators}:
        first = reviewed[0] if reviewed else Operator(Key("", ""), True, False, False, account)  # noqa: FBT003
        reviewed = [replace(first, service_account=account)]
    elif account:
        reviewed = [operator for operator in operators if operator.service_account == account]
    allowed: dict[Permission, bool] = {}
    for operator in reviewed:
        wanted = needed(
            schedules=operator.schedules,
            self_service=operator.self_service,
            primers=operator.primers,
            locations=operator.locations,
            restore_checks=operator.restore_checks,
            tenant_checks=operator.tenant_checks,
            check_data=operator.check_data,
            protection=operator.protection,
            rollback=operator.rollback,
            records_namespaces=operator.records_namespaces,
        )
        wanted = sorted({*wanted, *(FORECAST if operator.heeds_schedules else ())})
        user = f"system:serviceaccount:{operator.service_account.replace('/', ':')}"
        answers = await _allowed(cluster, namespace, wanted, REVIEW, {"user": user}, operator.lease)
        allowed |= {
            permission: is_allowed and allowed.get(permission, True) for permission, is_allowed in answers.items()
        }
    return allowed


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
    asked = [_attributes(namespace, permission, lease) for permission in wanted]
    answers = await asyncio.gather(*(_may(cluster, permission, review, whose) for permission in asked))
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
