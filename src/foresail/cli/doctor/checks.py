"""Checks of the installation: pure functions from the evidence to findings."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from foresail.api.crds import DEFINITIONS, definition
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.primer import PRIMER
from foresail.api.requests import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE
from foresail.api.restore_check import RESTORE_CHECK
from foresail.cli.doctor.admission import annotations
from foresail.cli.doctor.evidence import Evidence
from foresail.cli.doctor.finding import Finding, good, problem, some, warning
from foresail.cli.doctor.ownerless import garbage
from foresail.cli.doctor.recovery_checks import recovery
from foresail.cli.doctor.requests import unprocessed_requests
from foresail.cli.doctor.restore_checks import restore_checks
from foresail.cli.doctor.running import pods, stores, veleros
from foresail.cli.doctor.server_flags import flag_findings
from foresail.cli.doctor.velero_checks import (
    attended,
    clocks,
    locations,
    objectives,
    primed,
    runnable,
    served,
    strangers,
    stuck,
    undeletable,
    zones,
)
from foresail.cli.doctor.volume_data import changed_policies, volume_findings
from foresail.plan import Kind
from foresail.selfservice.specs.file_system import ALLOWED_MEANS

_SERVED_WITH = {
    "--self-service": (NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE, SELF_SERVICE_POLICY),
    "--primers": (PRIMER,),
    "--restore-checks": (RESTORE_CHECK,),
}


def findings(seen: Evidence) -> list[Finding]:
    """Say everything that there is to say, in the order in which it should be mended."""
    checks = (
        unread, kinds, unserved, clocks, zones, veleros, pods, attended, runnable, objectives, served, primed,
        unprocessed_requests, locations, strangers, rivals, stuck, undeletable, garbage, permissions, stores,
        refusals, requesters, data_path, recovery, restore_checks, volumes, admission,
    )  # fmt: skip
    return [finding for check in checks for finding in check(seen)]


def volumes(seen: Evidence) -> Iterator[Finding]:
    """Report what is wrong with the way of tenants' volumes into backups and back."""
    yield from changed_policies(seen.changed_policies, seen.namespace)
    yield from volume_findings(seen.volume_data, seen.namespace)
    if any(operator.self_service for operator in seen.operators):
        yield from flag_findings(seen.recommended_flags, seen.namespace)


def unread(seen: Evidence) -> Iterator[Finding]:
    """Report what could not be read."""
    for error in seen.unread:
        yield warning("access", f"not checked: {error.problem}", error.hint or "")


def admission(seen: Evidence) -> Iterator[Finding]:
    """Report on annotations that Velero acts on."""
    yield from annotations(seen.admission)


def requesters(seen: Evidence) -> Iterator[Finding]:
    """Report who sets the requester of a request, and which authorization of restores is in force."""
    if not any(operator.self_service for operator in seen.operators):
        return
    if not seen.is_requester_checked:
        fix = (
            "install the admission policies: foresail install --self-service, or helm upgrade foresail charts/foresail"
        )
        yield problem("requester", "nothing validates the requester, so tenants can impersonate others", fix)
    elif seen.is_requester_set:
        yield good("requester", "the API server sets the requester and rejects any other value")
    else:
        fix = (
            "add annotation foresail.dev/requester to requests; from Kubernetes 1.36 on, run foresail install"
            " --self-service, or set selfService.requesterStamp=Always"
        )
        yield warning("requester", "only the command line sets the requester; kubectl needs the annotation", fix)
    for self_service_policy in sorted(seen.policies, key=lambda policy: policy.metadata.name):
        by = self_service_policy.spec.restore.authorization
        means = "what the requester may create" if by == "Requester" else "what the policy allows, for every requester"
        yield good(
            "restores", f"SelfServicePolicy {self_service_policy.metadata.name}: authorization {by}, restores {means}"
        )


def data_path(seen: Evidence) -> Iterator[Finding]:
    """Report the policies under which Velero copies files from and to tenants' pods."""
    if not any(operator.self_service for operator in seen.operators) or not seen.policies:
        return
    allowing = sorted(policy.metadata.name for policy in seen.policies if policy.spec.backup.file_system == "Allowed")
    if not allowing:
        yield good("data path", "no SelfServicePolicy lets Velero copy files from or to the pods of tenants")
    for name in allowing:
        fix = "set spec.backup.fileSystem: Refused, unless you trust these tenants with the node"
        yield warning("data path", f"SelfServicePolicy {name} has fileSystem: Allowed, so {ALLOWED_MEANS}", fix)


def kinds(seen: Evidence) -> Iterator[Finding]:
    """Report whether the kinds are there, with all the fields that we know."""
    there = seen.definitions
    if there is None:
        return
    if "backups.velero.io" not in there:
        yield problem("kinds", "Velero's kinds are not installed in this cluster", "install Velero first")
    ours = {f"{each.kind.plural}.{each.kind.group}": each for each in DEFINITIONS}
    absent = sorted(name for name in ours if name not in there)
    if absent:
        fix = "run foresail install; with Helm: helm upgrade --install foresail-crds charts/foresail-crds"
        is_none = len(absent) == len(ours)
        says = (
            f"none of Foresail's {len(ours)} kinds is installed" if is_none else f"not installed: {', '.join(absent)}"
        )
        yield warning("kinds", says, fix)
    complete = 0
    for name in sorted(ours.keys() & there.keys()):
        missing = sorted(_fields(definition(ours[name])["spec"]) - _fields(there[name]))
        if missing:
            fix = (
                "if Foresail installed the definition: helm upgrade foresail-crds charts/foresail-crds; otherwise"
                " these fields are dropped"
            )
            yield warning("kinds", f"{name} lacks {some(missing)}", fix)
        else:
            complete += 1
    if complete:
        says = f"all {len(ours)} kinds have" if complete == len(ours) else f"{complete} of {len(ours)} kinds have"
        yield good("kinds", f"{says} every field")


def unserved(seen: Evidence) -> Iterator[Finding]:
    """Report objects of ours whose status stays empty, because the capability that serves their kind is off."""
    if not seen.operators and any((seen.lease, seen.self_service_lease, seen.primers_lease)):
        return  # an operator without a Deployment: its capabilities are unknown
    for option, kinds in _SERVED_WITH.items():
        counts = [(kind, seen.unserved.get(kind, 0)) for kind in kinds]
        found = [f"{count} {kind.name if count == 1 else _several(kind)}" for kind, count in counts if count]
        if found:
            says = f"no operator serves {_listed(found)}: {option} is off, so they have no effect"
            yield problem("kinds", says, f"foresail install {option}; or delete them")


def _several(kind: Kind) -> str:
    return f"{kind.name[:-1]}ies" if kind.name.endswith("y") else f"{kind.name}s"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def rivals(seen: Evidence) -> Iterator[Finding]:
    """Report other controllers of the same kinds."""
    serving = [operator for operator in seen.operators if operator.self_service]
    for other in seen.others:
        if serving:
            fix = "stop one of the two: selfService.enabled=false, or the other controller"
            yield problem("rivals", f"Deployment {other} works on the same NonAdminBackups as self-service", fix)
        else:
            yield good("rivals", f"Deployment {other} serves the non-admin kinds; self-service is off here")
    for one, second in combinations(seen.operators, 2):
        names = f"{one.key}, {second.key}"
        if one.has_work_of(second):
            yield problem("rivals", f"several operators are installed: {names}", "remove all but one")
        elif one.lease == second.lease:
            says = f"Deployments {names}: both use Lease {one.lease}, so only one of them works"
            yield problem("rivals", says, "start one of them with another --lease-name")


def permissions(seen: Evidence) -> Iterator[Finding]:
    """Report whether the operator may do what it must."""
    refused = [str(each) for each, allowed in seen.permissions.items() if not allowed]
    if refused:
        fix = "install it again: foresail install, or helm upgrade foresail charts/foresail"
        yield problem("permissions", f"the operator's ServiceAccount may not {some(refused)}", fix)
    elif seen.permissions:
        yield good("permissions", f"the operator has all {len(seen.permissions)} permissions that it needs")
    lacking = [str(each) for each, allowed in seen.own_permissions.items() if not allowed]
    if lacking:
        says = f"no operator was found, and you could not install one: you may not {some(lacking)}"
        yield warning("permissions", says, "ask a cluster administrator to install it")
    elif seen.own_permissions:
        yield good("permissions", "no operator was found, and you have all the permissions that one needs")


def refusals(seen: Evidence) -> Iterator[Finding]:
    """Report the objects for which the API server has refused a write within the last minutes, and why the first."""
    found = sorted(seen.refused_writes)
    if found:
        names = [f"{kind} {key}" for kind, key in found]
        fix = "correct what the message names; all of them: kubectl get events -A --field-selector reason=WriteRefused"
        yield warning("refused", f"{some(names)}: {seen.refused_writes[found[0]]}", fix)


def _fields(spec: dict[str, Any]) -> set[str]:
    """Return the paths of all fields that a definition keeps; what it keeps unseen is left out."""
    found: set[str] = set()

    def walk(node: dict[str, Any], path: str) -> None:
        for name, below in (node.get("properties") or {}).items():
            here = f"{path}.{name}" if path else name
            found.add(here)
            walk(below, here)
        if isinstance(node.get("items"), dict):
            walk(node["items"], path)

    for version in spec.get("versions", []):
        walk(version.get("schema", {}).get("openAPIV3Schema", {}), "")
    return found
