"""The plan of a Rollback: what it creates, changes, deletes and suspends, and what keeps it from beginning."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256

import msgspec

from foresail.api.fence import TENANTS_LOCATION
from foresail.api.marks import NOT_BACKED_UP
from foresail.api.policy import RestoredKinds, RollbackPolicy, SelfServicePolicySpec
from foresail.api.rollback import (
    MOST_NAMES,
    MOST_PRUNED,
    MOST_STOPPED,
    KeptVolume,
    NamedGroup,
    Pruned,
    RollbackPlan,
    RollbackSpec,
    Stopped,
)
from foresail.rollback import accounts
from foresail.rollback.kinds import CLAIMS, LISTED, NEVER, NEVER_KINDS, OF_KUBERNETES, SUSPENDED, full_name
from foresail.rollback.view import Findings, Listed, Suspendable
from foresail.rollback.volumes_plan import plan_volumes
from foresail.tenancy.restored_kinds import brings_back, brings_back_kind

_LISTED = frozenset(map(full_name, LISTED))
_RESOURCES = {f"{kind.group}/{kind.name}": full_name(kind) for kind in LISTED}
_NEVER = frozenset((*NEVER, *map(full_name, SUSPENDED)))
_CREATED = (("create", "nonadminbackups.oadp.openshift.io"), ("create", "nonadminrestores.oadp.openshift.io"))
_TENANTS = re.compile(TENANTS_LOCATION)


class Planned(msgspec.Struct, frozen=True):
    """A plan, with what is recorded before anything is changed."""

    plan: RollbackPlan
    stopped: tuple[Stopped, ...] = ()
    pruned: tuple[Pruned, ...] = ()
    volumes: tuple[KeptVolume, ...] = ()
    has_claims: bool = False  # whether the backup has a claim with its data


class _Names(msgspec.Struct, frozen=True):
    """The names in each group of the plan, all of them."""

    created: tuple[str, ...]
    existing: tuple[str, ...]
    not_compared: tuple[str, ...]
    extra: tuple[Listed, ...]
    left_out: tuple[str, ...]


def make_plan(
    spec: RollbackSpec,
    policy: SelfServicePolicySpec,
    findings: Findings,
    contents: Mapping[str, tuple[str, ...]],
    keeping: str = "",
) -> Planned:
    """Return the plan of a Rollback to a backup with these contents."""
    volumes = plan_volumes(spec, policy.rollback, findings, contents, keeping)
    names = _compared(spec, findings, contents, policy.restore.kinds)
    active = [suspendable for suspendable in findings.suspendables if not suspendable.is_suspended]
    extra = tuple(f"{listed.resource}/{listed.name}" for listed in names.extra)
    suspended = tuple(sorted(f"{suspendable.resource}/{suspendable.name}" for suspendable in active))
    groups = {
        "created": names.created,
        "existing": names.existing,
        "not_compared": names.not_compared,
        "extra": extra,
        "left_out": names.left_out,
        "suspended": suspended,
        "replaced": tuple(f"{CLAIMS}/{volume.claim}" for volume in volumes.kept),
        "stopped": tuple(f"{workload.kind}/{workload.name}" for workload in volumes.stopped),
    }
    plan = RollbackPlan(
        digest=_digest(spec, findings, groups),
        **{name: NamedGroup(len(group), group[:MOST_NAMES]) for name, group in groups.items()},
        in_the_way=(
            *_in_the_way(spec, policy.rollback, findings, names, active),
            *_refused(spec, policy.restore.kinds),
            *_against_accounts(findings),
            *_against_history(policy),
            *volumes.in_the_way,
            *_against_number(len(active) + len(volumes.stopped)),
        )[:MOST_NAMES],
    )
    pruned = tuple(Pruned(listed.resource, listed.name, listed.uid) for listed in names.extra) if spec.prune else ()
    return Planned(plan, tuple(map(stopped, active)), pruned, volumes.kept, volumes.has_claims)


def stopped(seen: Suspendable) -> Stopped:
    """Return what is recorded of something before it is suspended."""
    return Stopped(seen.resource, seen.name, seen.uid, seen.value)


def owner_of_claim(findings: Findings, objects: Iterable[Listed], since: datetime | None = None) -> str:
    """Return which of these objects owns a claim, that is older if a time is given; empty if none does."""
    claims = [claim for claim in findings.owned_claims if since is None or not claim.created or claim.created < since]
    owning = ((listed, claim) for listed in objects for claim in claims if listed.uid in claim.owners)
    return next((f"{listed.resource}/{listed.name} owns claim {claim.name}" for listed, claim in owning), "")


def is_of_tenant(location: str) -> bool:
    """Whether a storage location is one that self-service made for a tenant, who can write to its bucket."""
    return _TENANTS.search(location) is not None


def _compared(
    spec: RollbackSpec, findings: Findings, contents: Mapping[str, tuple[str, ...]], kinds: RestoredKinds
) -> _Names:
    chosen = frozenset(resource for resource in _LISTED if brings_back(resource, kinds))
    chosen = chosen if spec.only is None else chosen & frozenset(spec.only)
    wanted = {
        (_RESOURCES[kind], name) for kind, names in contents.items() if _RESOURCES.get(kind) in chosen for name in names
    }
    present = {(listed.resource, listed.name) for listed in findings.listed}
    left_out, rest = _not_listed(spec, contents, chosen, kinds)
    return _Names(
        created=_spelled(wanted - present),
        existing=_spelled(wanted & present),
        not_compared=tuple(map(_kind_word, rest)),
        extra=_extra(findings, chosen, wanted | OF_KUBERNETES),
        left_out=tuple(map(_kind_word, left_out)),
    )


def _extra(findings: Findings, chosen: frozenset[str], known: Collection[tuple[str, str]]) -> tuple[Listed, ...]:
    """Return the objects that are not in the backup; what another object owns comes and goes with that.

    Secrets and claims are never among them: `kinds.LISTED` has neither. What no backup may have could not come back.
    """
    extra = [
        listed
        for listed in findings.listed
        if listed.resource in chosen and not listed.is_owned and (listed.resource, listed.name) not in known
        if not listed.is_excluded
    ]
    return tuple(sorted(extra, key=lambda listed: (listed.resource, listed.name)))


def _not_listed(
    spec: RollbackSpec, contents: Mapping[str, tuple[str, ...]], chosen: frozenset[str], kinds: RestoredKinds
) -> tuple[list[str], list[str]]:
    """Return the kinds of the backup that stay as they are, and those that come back and are not listed."""
    left_out = [kind for kind, resource in _RESOURCES.items() if kind in contents and resource not in chosen]
    if spec.only is not None:
        return sorted(left_out), sorted(frozenset(spec.only) - _LISTED - _NEVER)
    others = sorted(kind for kind in contents if kind not in _RESOURCES)
    never = [kind for kind in others if not _comes_back(kind, kinds)]
    return sorted((*left_out, *never)), [kind for kind in others if kind not in never]


def _comes_back(kind: str, kinds: RestoredKinds) -> bool:
    group, _, name = kind.rpartition("/")
    return (group, name) not in NEVER_KINDS and brings_back_kind(group, name, kinds)


def _refused(spec: RollbackSpec, kinds: RestoredKinds) -> Iterator[str]:
    """Say which kinds are asked for that the policy lets no restore bring back."""
    for kind in sorted({*(spec.only or ())} - _NEVER):
        if not brings_back(kind, kinds):
            yield f"spec.only has {kind}, which the SelfServicePolicy does not let come back: leave it out"
    if spec.volumes != "None" and not brings_back(CLAIMS, kinds):
        yield f"the SelfServicePolicy does not let {CLAIMS} come back: leave out spec.volumes"


def _spelled(objects: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{resource}/{name}" for resource, name in sorted(objects))


def _kind_word(kind: str) -> str:
    """Return group/Kind as Kind.group."""
    group, slash, name = kind.partition("/")
    if not slash:
        return kind
    return f"{name}.{group}" if group else name


def _digest(spec: RollbackSpec, findings: Findings, groups: Mapping[str, tuple[str, ...]]) -> str:
    """Return the digest of everything that a user has seen and agreed to."""
    asked = {"only": sorted(spec.only) if spec.only is not None else None, "prune": spec.prune, "volumes": spec.volumes}
    backup = findings.to.uid if findings.to is not None else ""
    text = json.dumps([backup, asked, {name: list(names) for name, names in groups.items()}], sort_keys=True)
    return sha256(text.encode()).hexdigest()


def _in_the_way(
    spec: RollbackSpec, policy: RollbackPolicy, findings: Findings, names: _Names, active: list[Suspendable]
) -> Iterator[str]:
    yield from findings.in_the_way
    if findings.to is not None and is_of_tenant(findings.to.location):
        yield "the backup is in a storage location of the team: what is in it is not trusted to change objects"
    for verb, resource in _CREATED:
        if (verb, resource) in findings.denied:
            yield f"the requester may not {verb} {resource} in this namespace"
    for suspendable in sorted(active, key=lambda suspendable: (suspendable.resource, suspendable.name)):
        if ("patch", suspendable.resource) in findings.denied:
            yield f"{suspendable.resource}/{suspendable.name} is to be suspended, and the requester may not patch it"
    yield from _not_allowed(findings, names)
    yield from _not_backed_up(findings, names)
    for kind in sorted({*(spec.only or ())} & _NEVER):
        yield f"spec.only has {kind}, which no Rollback changes: leave it out"
    if spec.prune:
        yield from _against_prune(policy, findings, names)


def _not_allowed(findings: Findings, names: _Names) -> Iterator[str]:
    for resource in sorted({spelled.partition("/")[0] for spelled in (*names.created, *names.existing)}):
        verbs = [verb for verb in ("create", "update", "patch") if (verb, resource) in findings.denied]
        if verbs:
            text = f"{resource} are to be changed back, and the requester may not {' or '.join(verbs)} them"
            yield f"{text}: name other kinds in spec.only"


def _not_backed_up(findings: Findings, names: _Names) -> Iterator[str]:
    for listed in findings.listed:
        spelled = f"{listed.resource}/{listed.name}"
        if listed.is_excluded and spelled in names.existing:
            text = f"{spelled} has the label {NOT_BACKED_UP}, so the safety backup would not have it"
            yield f"{text}: take the label away, or name other kinds in spec.only"


def _against_history(policy: SelfServicePolicySpec) -> Iterator[str]:
    if policy.quotas.restores.history == 0:
        text = "quotas.restores.history of the SelfServicePolicy is 0, so nobody would see how the restores end"
        yield f"{text}: have it set to 1 or more"


def _against_accounts(findings: Findings) -> Iterator[str]:
    too_many = accounts.too_many(findings.accounts)
    if too_many:
        yield f"{too_many}: name other kinds in spec.only"


def _against_number(stopped: int) -> Iterator[str]:
    if stopped > MOST_STOPPED:
        yield f"{stopped} objects are to be suspended or stopped: a Rollback does that to {MOST_STOPPED} at most"


def _against_prune(policy: RollbackPolicy, findings: Findings, names: _Names) -> Iterator[str]:
    if not policy.prune:
        yield "rollback.prune of the SelfServicePolicy is false: leave out spec.prune"
    if len(names.extra) > MOST_PRUNED:
        yield f"{len(names.extra)} objects are not in the backup: a Rollback deletes {MOST_PRUNED} at most"
    owner = owner_of_claim(findings, names.extra)
    if owner:
        yield f"{owner}: neither is deleted by a Rollback; delete them, or leave out spec.prune"
    for resource in sorted({listed.resource for listed in names.extra}):
        if ("delete", resource) in findings.denied:
            yield f"{resource} are to be deleted, and the requester may not delete them"
