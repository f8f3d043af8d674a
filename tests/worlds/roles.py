"""The chart's permissions in a world: each capability asks with its own Role and nothing else, as in a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from foresail.cli.install.manifests import InstallOptions, operators
from foresail.kube.failures import Cause, Failure
from foresail.plan import Kind

VELERO = "velero"
RESTORE_CHECKS = "restore-checks"
TENANT_CHECKS = "tenant-checks"
"""Restore checks where self-service is on: tenants have theirs too."""


class Grant(NamedTuple):
    """One verb on one resource, in Velero's namespace or in all."""

    resource: str  # as people write it: "backups.velero.io", "primers.foresail.dev/status"
    verb: str
    everywhere: bool


@cache
def granted(capability: str) -> frozenset[Grant]:
    """Return what the operator may do if this capability is the only one that is on."""
    capabilities = ("self-service", RESTORE_CHECKS) if capability == TENANT_CHECKS else (capability,)
    pieces = operators(InstallOptions(capabilities, VELERO, "velero", "foresail", "pause"))
    bound = {
        each.body["roleRef"]["name"]
        for each in pieces
        if each.kind.name.endswith("RoleBinding") and each.body["subjects"][0]["kind"] == "ServiceAccount"
    }
    if capability == TENANT_CHECKS:
        bound &= {"foresail-checks"}
    return frozenset(
        Grant(_written(group, resource), verb, everywhere=piece.kind.name == "ClusterRole")
        for piece in pieces
        if piece.kind.name.endswith("Role") and piece.key.name in bound
        for rule in piece.body["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


@dataclass
class Circumstances:
    """What a test changes for every operator that starts meanwhile, and what it sees."""

    taken: Grant | None = None
    is_old: bool = False  # whether the API server is too old to answer a watch with all that is there
    used: set[Grant] = field(default_factory=set)
    missed: set[Grant] = field(default_factory=set)


_now = [Circumstances()]


@contextmanager
def circumstances(taken: Grant | None = None, *, is_old: bool = False) -> Iterator[Circumstances]:
    """Have others for a while."""
    _now.append(Circumstances(taken, is_old))
    try:
        yield _now[-1]
    finally:
        _now.pop()


@dataclass(frozen=True, slots=True)
class Role:
    """As whom a visitor asks."""

    capability: str
    more: frozenset[Grant] = frozenset()  # what a value of the chart adds

    def refusal(self, verb: str, kind: Kind, namespace: str, subresource: str = "") -> Failure | None:
        """Return why a request is refused; None if it is granted."""
        resource = _written(kind.group, f"{kind.plural}/{subresource}" if subresource else kind.plural)
        wide, narrow = Grant(resource, verb, everywhere=True), Grant(resource, verb, everywhere=False)
        allowed = granted(self.capability) | self.more
        found = wide if wide in allowed else narrow if namespace == VELERO and narrow in allowed else None
        seen = _now[-1]
        if found is not None and found != seen.taken:
            seen.used.add(found)
            return None
        if found is not None:
            seen.missed.add(found)
        message = f'cannot {verb} resource "{resource}" in namespace "{namespace}"'
        return Failure(Cause.FORBIDDEN, message, 403, "Forbidden")

    @property
    def meets_an_old_server(self) -> bool:
        """Whether the API server is too old to answer a watch with all that is there."""
        return _now[-1].is_old


def _written(group: str, resource: str) -> str:
    plural, slash, subresource = resource.partition("/")
    return plural + (f".{group}" if group else "") + slash + subresource
