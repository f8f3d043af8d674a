"""The Deployments of the operator, and which capabilities their flags switch on."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.marks import LEASES, RETIRED_LEASE, SCHEDULES_LEASE
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.plan import Key

_SILENCE = timedelta(minutes=1)  # a Lease is renewed every few seconds; two clocks may differ by some more
BY_SERVER_TIME = timedelta(seconds=15)
"""How long a Lease of 10 s counts, by the API server's clock, from which the operator's may differ by some seconds."""


class LeaseSpec(msgspec.Struct, rename="camel"):
    """Who holds a Lease, and since when it was not renewed."""

    holder_identity: str | None = None
    renew_time: datetime | None = None


class Lease(msgspec.Struct):
    """The Lease of the operator."""

    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


def leader(lease: Lease | None, instant: datetime, silence: timedelta = _SILENCE) -> str:
    """Return who holds the operator's Lease; empty if no replica does, or has not renewed it for a while."""
    if lease is None or lease.spec.renew_time is None or instant - lease.spec.renew_time > silence:
        return ""
    return lease.spec.holder_identity or ""


OPERATOR_LABEL = "app.kubernetes.io/name"
"""The label by which a Deployment of ours is known."""

_OURS = (*LEASES, RETIRED_LEASE)
OPERATORS = f"{OPERATOR_LABEL} in ({','.join(_OURS)})"
"""The selector of the Deployments of ours."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A Deployment of ours."""

    key: Key
    schedules: bool
    self_service: bool
    primers: bool
    service_account: str
    lease: str = SCHEDULES_LEASE
    name: str = _OURS[0]  # in the label of its pods
    locations: bool = False  # of tenants
    restore_checks: bool = False
    protection: bool = False
    rollback: bool = False
    records_namespaces: bool = False  # in Backups of ProtectionClasses
    tenant_checks: bool = False
    check_data: bool = False  # RestoreChecks with depth Data
    heeds_schedules: bool = False  # of another Deployment
    velero_schedules_off: bool = False  # says that Velero's controller is off, whatever is recognised
    zone: str = ""  # of Velero's clock, if its flag is set

    def has_work_of(self, other: "Operator") -> bool:
        """Return whether the two have a capability in common."""
        shared = (self.schedules and other.schedules, self.self_service and other.self_service)
        apart = (self.primers and other.primers, self.restore_checks and other.restore_checks)
        later = (self.protection and other.protection, self.rollback and other.rollback)
        return any((*shared, *apart, *later))


def is_operator(wire: Deployment) -> bool:
    """Return whether a Deployment is one of ours."""
    return (wire.metadata.labels or {}).get(OPERATOR_LABEL) in _OURS


def operator_of(wire: Deployment) -> Operator:
    """Return what a Deployment of ours runs."""
    pod = wire.spec.template.spec
    words = [word for container in pod.containers for word in container.args]
    return Operator(
        Key(wire.metadata.namespace, wire.metadata.name),
        schedules="--schedules=false" not in words,
        self_service=bool({"--self-service", "--self-service=true"} & set(words)),
        primers=bool({"--primers", "--primers=true"} & set(words)),
        service_account=f"{wire.metadata.namespace}/{pod.service_account_name or 'default'}",
        lease=_value(words, "--lease-name=") or SCHEDULES_LEASE,
        name=(wire.metadata.labels or {})[OPERATOR_LABEL],
        locations=bool({"--tenant-locations", "--tenant-locations=true"} & set(words)),
        restore_checks=bool({"--restore-checks", "--restore-checks=true"} & set(words)),
        protection=bool({"--protection", "--protection=true"} & set(words)),
        rollback=bool({"--rollback", "--rollback=true"} & set(words)),
        records_namespaces=bool({"--record-namespaces", "--record-namespaces=true"} & set(words)),
        tenant_checks=bool({"--tenant-checks", "--tenant-checks=true"} & set(words)),
        heeds_schedules=bool({"--heed-schedules", "--heed-schedules=true"} & set(words)),
        velero_schedules_off=bool({"--velero-schedules-off", "--velero-schedules-off=true"} & set(words)),
        zone=_value(words, "--velero-time-zone="),
        check_data=any(word.startswith("--check-canary-image=") for word in words),
    )


def _value(words: list[str], flag: str) -> str:
    """Return the value of a flag, the last if it is repeated."""
    return next((word.removeprefix(flag) for word in reversed(words) if word.startswith(flag)), "")


_any = msgspec.json.Decoder(dict[str, Any])


async def operator_namespaces(cluster: Cluster, given: str | None) -> set[str]:
    """Return the namespace that is given, or those of the operator's Deployments; none, with a hint, if unreadable."""
    if given:
        return {given}
    try:
        listed = await cluster.listed(DEPLOYMENT, "", OPERATORS)
    except CommandError as error:
        hint(f"the operator's namespace is not known ({error.problem}); specify it with --operator-namespace")
        return set()
    return {str(_any.decode(raw)["metadata"]["namespace"]) for raw in listed}
