"""What the doctor goes by: everything that was read, before anything is said about it."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Any, TypeVar

import msgspec

from foresail.api import mirrored, velero
from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.core import DEFINITION
from foresail.api.marks import OPERATORS_LEASE
from foresail.api.metadata import Metadata
from foresail.api.monitoring import PROMETHEUS_RULE, UNATTENDED
from foresail.cli.cluster import Cluster
from foresail.cli.doctor.permissions import Permission, needed
from foresail.cli.errors import CommandError
from foresail.cli.leader import Lease
from foresail.kube.clock import now
from foresail.kube.lease import LEASE
from foresail.plan import Key, Kind
from foresail.schedules.engine import DeploymentRow, deployment_row

REVIEW = Kind("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
OWN_REVIEW = Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False)
_NAME = "app.kubernetes.io/name"
_OTHER = "non-admin-controller"  # how Deployments of the other controller of these kinds are called
T = TypeVar("T")


class Write(msgspec.Struct, frozen=True):
    """When somebody last wrote to an object."""

    time: datetime | None = None


class Written(Metadata, frozen=True, rename="camel"):
    """Who an object is, and when it was written to."""

    managed_fields: tuple[Write, ...] = ()

    @property
    def last_write(self) -> datetime | None:
        """When anybody last wrote to it; its creation, if that is not known."""
        times = [each.time for each in self.managed_fields if each.time is not None]
        return max(times, default=self.creation_timestamp)


class Backup(msgspec.Struct, frozen=True):
    """A Backup, with where it is kept."""

    metadata: Written
    spec: mirrored.Stored = mirrored.Stored()
    status: velero.BackupStatus = velero.BackupStatus()


class _Deletion(msgspec.Struct, frozen=True, rename="camel"):
    backup_name: str = ""


class _Refusals(msgspec.Struct, frozen=True):
    errors: tuple[str, ...] = ()


class DeleteRequest(msgspec.Struct, frozen=True):
    """What Velero was asked to delete, and why it did not."""

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


@dataclass(frozen=True, slots=True)
class Operator:
    """A Deployment of ours."""

    key: Key
    schedules: bool
    self_service: bool
    primers: bool
    service_account: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was read; what could not be is None or empty, and named in `unread`."""

    namespace: str
    instant: datetime  # by the clock of this machine, when the API server was asked for its own
    server_time: datetime | None
    tzdata: str
    definitions: Mapping[str, dict[str, Any]] | None  # the spec of each, by its name
    servers: tuple[DeploymentRow, ...]
    lease: Lease | None
    operators: tuple[Operator, ...]
    others: tuple[Key, ...]  # Deployments of the other controller of the non-admin kinds
    locations: tuple[velero.Location, ...]
    schedules: frozenset[str]
    backups: tuple[Backup, ...]
    deletions: tuple[DeleteRequest, ...]
    permissions: Mapping[Permission, bool]  # of the operator
    own_permissions: Mapping[Permission, bool] = field(default_factory=dict)  # of whoever asks, where no operator is
    has_alert: bool = False  # that nobody runs the Schedules; looked for only where no operator is
    unread: tuple[CommandError, ...] = ()
    doubt: timedelta = timedelta()  # by how much the two may differ because the answer took its time


async def gather(cluster: Cluster, namespace: str, account: str | None) -> Evidence:
    """Read everything; what may not be read is noted, and the rest is read all the same."""
    reader = _Reader(cluster)
    asked = now()
    server_time = await reader.tried(cluster.server_time())
    doubt = (now() - asked) / 2
    # Now: read any later, it would have been renewed after the time with which it is compared.
    lease = await reader.tried(cluster.if_there(LEASE, Key(namespace, OPERATORS_LEASE), Lease))
    definitions = await reader.tried(_definitions(cluster))
    has_velero = definitions is None or "backups.velero.io" in definitions
    deployments = await reader.all(DEPLOYMENT, "", Deployment) or await reader.all(DEPLOYMENT, namespace, Deployment)
    rows = [deployment_row(each) for each in deployments if each.metadata.namespace == namespace]
    operators = tuple(_operator(each) for each in deployments if (each.metadata.labels or {}).get(_NAME) == "foresail")
    is_bare, alert = bool(deployments) and not operators, Key(namespace, UNATTENDED)
    return Evidence(
        namespace=namespace,
        instant=asked + doubt,
        server_time=server_time,
        tzdata=version("tzdata"),
        definitions=definitions,
        servers=tuple(row for row in rows if row is not None),
        lease=lease,
        operators=operators,
        others=tuple(Key(each.metadata.namespace, each.metadata.name) for each in deployments if is_other(each)),
        locations=tuple(await reader.all(velero.LOCATION, namespace, velero.Location) if has_velero else ()),
        schedules=frozenset(
            each.metadata.name for each in (await reader.all(velero.SCHEDULE, namespace, _Named) if has_velero else ())
        ),
        backups=tuple(await reader.all(velero.BACKUP, namespace, Backup) if has_velero else ()),
        deletions=tuple(await reader.all(velero.DELETE_REQUEST, namespace, DeleteRequest) if has_velero else ()),
        permissions=await reader.tried(_permissions(cluster, namespace, account, operators)) or {},
        own_permissions=await reader.tried(_own_permissions(cluster, namespace)) or {} if is_bare else {},
        has_alert=is_bare and bool(await reader.tried(cluster.if_there(PROMETHEUS_RULE, alert, _Named))),
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
        except CommandError as error:
            self.unread.append(error)
            return None

    async def all(self, kind: Kind, namespace: str, of: type[T]) -> list[T]:
        decoder = msgspec.json.Decoder(of)
        found = await self.tried(self._cluster.listed(kind, namespace))
        return [decoder.decode(each) for each in found or ()]


async def _definitions(cluster: Cluster) -> dict[str, dict[str, Any]]:
    decoder = msgspec.json.Decoder(_Definition)
    found = [decoder.decode(each) for each in await cluster.listed(DEFINITION, "")]
    return {each.metadata.name: each.spec for each in found}


def _operator(wire: Deployment) -> Operator:
    pod = wire.spec.template.spec
    words = [word for container in pod.containers for word in container.args]
    return Operator(
        Key(wire.metadata.namespace, wire.metadata.name),
        schedules="--schedules=false" not in words,
        self_service=bool({"--self-service", "--self-service=true"} & set(words)),
        primers=bool({"--primers", "--primers=true"} & set(words)),
        service_account=f"{wire.metadata.namespace}/{pod.service_account_name or 'default'}",
    )


def is_other(wire: Deployment) -> bool:
    """Tell whether a Deployment runs the other controller of the non-admin kinds."""
    images = [each.image for each in wire.spec.template.spec.containers]
    return any(_OTHER in each for each in (wire.metadata.name, *images))


async def _permissions(
    cluster: Cluster, namespace: str, account: str | None, operators: tuple[Operator, ...]
) -> dict[Permission, bool]:
    """Ask the API server what the operator's ServiceAccount may do."""
    operator = operators[0] if operators else None
    account = account or (operator.service_account if operator else "")
    if not account:
        return {}
    wanted = needed(
        schedules=operator.schedules if operator else True,
        self_service=operator.self_service if operator else False,
        primers=operator.primers if operator else False,
    )
    user = f"system:serviceaccount:{account.replace('/', ':')}"
    return await _allowed(cluster, namespace, wanted, REVIEW, {"user": user})


async def _own_permissions(cluster: Cluster, namespace: str) -> dict[Permission, bool]:
    """Ask what whoever asks may do: the API server lets nobody give an operator what they do not have themselves."""
    return await _allowed(cluster, namespace, needed(schedules=True, self_service=False), OWN_REVIEW, {})


async def _allowed(
    cluster: Cluster, namespace: str, wanted: Sequence[Permission], review: Kind, whose: Mapping[str, str]
) -> dict[Permission, bool]:
    answers = await asyncio.gather(*(_may(cluster, namespace, each, review, whose) for each in wanted))
    return dict(zip(wanted, answers, strict=True))


async def _may(cluster: Cluster, namespace: str, wanted: Permission, review: Kind, whose: Mapping[str, str]) -> bool:
    resource, _, subresource = wanted.resource.partition("/")
    asked = {
        "group": wanted.group,
        "resource": resource,
        "subresource": subresource,
        "verb": wanted.verb,
        "namespace": "" if wanted.everywhere else namespace,
    }
    if resource == "leases" and wanted.verb != "create":
        asked["name"] = OPERATORS_LEASE
    body = {"apiVersion": review.api_version, "kind": review.name, "spec": {**whose, "resourceAttributes": asked}}
    made = await cluster.create(review, Key("", ""), body)
    return msgspec.json.decode(made, type=_Review).status.allowed
