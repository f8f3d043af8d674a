"""Reads what the operator publishes for teams, and applies it to what a team reads itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from foresail.api.marks import FACTS, SELF_SERVICE_LEASE
from foresail.api.metadata import Metadata
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.operators import Lease, leader
from foresail.cli.errors import CommandError, UnreachableError
from foresail.kube.lease import LEASE
from foresail.plan import Key
from foresail.proof.facts import Facts, decode
from foresail.proof.view import BackupRow, ScheduleRow
from foresail.schedules.observe import LocationRow, location_of
from foresail.schedules.rules import location_problem
from foresail.scope.resource_policies import config_map_of
from foresail.tenancy.volume_policies import VOLUME_POLICIES

UNSEEN = "whether Velero and its storage location work now, which only administrators may see"
_NOBODY = "no replica of Foresail's operator runs"


class _Published(Lease):
    """The operator's Lease with what it tells."""

    metadata: Metadata = Metadata("")


@dataclass(frozen=True, slots=True)
class SharedFacts:
    """What a team knows of the whole cluster."""

    facts: Facts | None = None
    nobody_runs: str = ""
    """Why nothing runs NonAdminSchedules, if so; then facts are out of date."""

    unknown: tuple[str, ...] = ()
    has_lease: bool = False
    """Whether an operator has ever run there."""

    def locations(self) -> Mapping[str, LocationRow]:
        """Return the locations of administrators by name."""
        facts = self.facts.locations if self.facts is not None else ()
        rows = (LocationRow(Key("", fact.name), fact.is_default, fact.is_read_only, fact.phase, "") for fact in facts)
        return {row.key.name: row for row in rows}

    def location_problems(self) -> Mapping[str, str]:
        """Return why each location of administrators cannot be used, empty if it can, by name; "" is the default."""
        if self.facts is None:
            return {}
        known = {name: location_problem(name, location) for name, location in self.locations().items()}
        return {**known, "": self.default_location_problem()}

    def default_location_problem(self) -> str:
        """Return why a backup that names no location would fail; empty if it would not, or that is unknown."""
        return location_problem("", location_of("", self.locations().values())) if self.facts is not None else ""


async def read_facts(cluster: Cluster, velero_namespace: str, now: datetime) -> SharedFacts:
    """Read the facts; they count only while the operator that wrote them renews its Lease."""
    try:
        lease = await cluster.if_there(LEASE, Key(velero_namespace, SELF_SERVICE_LEASE), _Published)
    except UnreachableError:
        raise
    except CommandError:
        return SharedFacts(unknown=(UNSEEN,))
    if not leader(lease, now - (cluster.client.skew or timedelta())):
        return SharedFacts(nobody_runs=_NOBODY, unknown=(UNSEEN,), has_lease=lease is not None)
    text = (lease.metadata.annotations or {}).get(FACTS, "") if lease is not None else ""
    facts = decode(text) if text else None
    if facts is None or facts.stale:
        return SharedFacts(unknown=(f"{UNSEEN}: {facts.stale}" if facts is not None else UNSEEN,))
    return SharedFacts(facts, unknown=(facts.velero_unknown,) if facts.velero_unknown else ())


def with_facts(row: ScheduleRow, shared: SharedFacts) -> ScheduleRow:
    """Return a team's schedule with what keeps all of them from running."""
    row = replace(row, nobody_runs=shared.nobody_runs)
    if shared.facts is None:
        return row
    name = row.spec.storage_location or ""
    return replace(
        row,
        velero_down=shared.facts.velero_problem,
        location_problem="" if name else shared.default_location_problem(),
        policy_unread=_unread(config_map_of(row.spec), shared.facts.global_policies),
        is_in_tenants_bucket=bool(name) and name not in shared.locations(),
    )


def _unread(own: str, for_all: str) -> str:
    """Return which resource policy decides about volumes and may not be read by a team, if there is one."""
    name = for_all or ("" if own in VOLUME_POLICIES else own)
    return f"the policies in ConfigMap {name} can be read by administrators only" if name else ""


def located(row: BackupRow, shared: SharedFacts) -> BackupRow:
    """Return a team's backup with whether Velero can read it now."""
    name = row.spec.storage_location
    if shared.facts is None or not name:
        return row
    location = shared.locations().get(name)
    if location is None:
        return replace(row, is_in_tenants_bucket=True)
    return replace(row, location_problem=location_problem(name, location, is_for_restore=True))


def unknown_policies(shared: SharedFacts) -> tuple[str, ...]:
    """Return that it is unknown whether Velero can run any Backup, if it needs a ConfigMap that a team may not read."""
    name = shared.facts.global_policies if shared.facts is not None else ""
    unknown = f"whether Velero can use the volume policies in ConfigMap {name}, as it must for each Backup"
    return (unknown,) if name else ()


def unknown_locations(rows: Iterable[ScheduleRow], shared: SharedFacts) -> tuple[str, ...]:
    """Return the locations of schedules of which the operator publishes nothing: a team's own."""
    if shared.facts is None:
        return ()
    known = shared.locations()
    names = dict.fromkeys(row.spec.storage_location for row in rows if row.spec.storage_location not in (None, ""))
    return tuple(f"whether storage location {name} works now" for name in names if name not in known)
