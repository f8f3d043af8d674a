"""What the operator publishes for teams: the facts of the whole cluster that decide whether a namespace is safe.

They are an annotation of the Lease that the operator renews, which every user may read: a fact is as fresh as the
Lease, and costs no write of its own. They are facts, not verdicts: the reader judges them as an administrator does.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from foresail.api import nonadmin, velero
from foresail.api.apps import DaemonSet, Deployment, server_words
from foresail.safety.velero_pods import agents_problem, last_validation, server_pods, validates_every, velero_state
from foresail.scope.server import ServerFlags, server_flags

MOST_LOCATIONS = 50
"""Locations of administrators that are published; the default ones come first."""


class LocationFact(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A storage location of administrators, without what only they should read."""

    name: str
    phase: str = ""
    is_default: bool = msgspec.field(default=False, name="default")
    is_read_only: bool = msgspec.field(default=False, name="readOnly")


class Facts(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a team cannot read itself."""

    stale: str = ""
    """Why the operator itself does not know, if so; then nothing else is said."""

    velero_problem: str = ""
    """Why no Velero server runs, if so."""

    velero_unknown: str = ""
    """What is unknown about that, if so."""

    agents_problem: str = ""
    """Why no node agent works, if so."""

    locations: tuple[LocationFact, ...] = ()
    files_by_default: bool = False
    has_csi: bool = msgspec.field(default=True, name="csi")
    global_policies: str = ""
    snapshot_providers: tuple[str, ...] = ()
    is_recognised: bool = msgspec.field(default=False, name="recognised")
    """Whether a Deployment shows how Velero was started; without one, its flags are unknown."""

    @property
    def flags(self) -> ServerFlags:
        """How Velero saves volumes of which the reader knows no type: which snapshots it can make, a run must show."""
        return ServerFlags(self.files_by_default, global_policies=self.global_policies)


_facts = msgspec.json.Decoder(Facts)


def facts_of(
    deployments: Sequence[Deployment],
    locations: Sequence[velero.Location],
    providers: Iterable[str],
    agents: Iterable[DaemonSet],
    now: datetime,
) -> Facts:
    """Return what is true now; `now` is a time by the API server's clock."""
    validation = last_validation(locations, validates_every(deployments))
    state = velero_state(server_pods(deployments), validation, now)
    containers = (container for deployment in deployments for container in deployment.spec.template.spec.containers)
    words = next((words for words in map(server_words, containers) if words is not None), None)
    flags = server_flags(words or ())
    return Facts(
        velero_problem=state.problem,
        velero_unknown=state.unknown,
        agents_problem=agents_problem(agents),
        locations=_published(locations),
        files_by_default=flags.default_volumes_to_fs_backup,
        has_csi=flags.has_csi if words is not None else True,
        global_policies=flags.global_policies,
        snapshot_providers=tuple(sorted(set(providers))),
        is_recognised=words is not None,
    )


def _published(locations: Iterable[velero.Location]) -> tuple[LocationFact, ...]:
    facts = [
        LocationFact(
            location.metadata.name, location.status.phase, bool(location.spec.default), location.spec.is_read_only
        )
        for location in locations
        if nonadmin.LOCATION_ORIGIN not in (location.metadata.annotations or {})
    ]
    return tuple(sorted(facts, key=lambda fact: (not fact.is_default, fact.name))[:MOST_LOCATIONS])


def encode(facts: Facts) -> str:
    """Return the value of the annotation."""
    return msgspec.json.encode(facts).decode()


def decode(text: str) -> Facts | None:
    """Return the facts in an annotation; None if this version cannot read them."""
    try:
        return _facts.decode(text)
    except msgspec.DecodeError:
        return None
