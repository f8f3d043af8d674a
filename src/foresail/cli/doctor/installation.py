"""Checks of the installation: pure functions from the evidence to findings."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

from foresail.api import velero
from foresail.api.crds import DEFINITIONS, definition
from foresail.api.marks import CHECK_LABEL, CHECKS_LEASE, PROTECTION_LEASE, ROLLBACK_LEASE
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_LOCATION_REQUEST, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.primer import PRIMER
from foresail.api.protection import PROTECTION_CLASS
from foresail.api.restore_check import RESTORE_CHECK
from foresail.api.rollback import ROLLBACK
from foresail.cli.doctor.admission import annotations, flag_findings
from foresail.cli.doctor.clocks import clocks, zones
from foresail.cli.doctor.evidence import CheckSeen, Evidence
from foresail.cli.doctor.finding import Finding, good, minutes, problem, warning
from foresail.cli.doctor.locations import locations, strangers
from foresail.cli.doctor.running import pods, primed, served, stores, veleros, without_leader
from foresail.cli.doctor.schedules import attended, lifetimes, objectives, runnable
from foresail.cli.doctor.stuck import stuck, undeletable, unfinished
from foresail.cli.doctor.workloads import changed_policies, volume_findings
from foresail.plan import Kind
from foresail.reporting import some
from foresail.selfservice.garbage.decide import CYCLE, GRACE, GarbageView
from foresail.selfservice.specs.file_system import ALLOWED_MEANS

_LATE = GRACE + CYCLE + timedelta(minutes=10)
_LASTING = (velero.LOCATION, NON_ADMIN_LOCATION_REQUEST)  # their age does not tell since when they have no owner


def recovery(seen: Evidence) -> Iterator[Finding]:
    """Report whether a rebuilt cluster could verify its tenants' backups, and what can be adopted now."""
    if seen.signs_records is False:
        fix = "foresail recovery-key create, then keep a copy: foresail recovery-key export > recovery-key.yaml"
        yield warning("recovery", "no recovery key: after a disaster no tenant's backup can be verified", fix)
    elif seen.signs_records:
        yield good("recovery", "the records of tenants' backups are signed")
    if seen.adoptable:
        verified = sum(adoptable.offer.is_verified for adoptable in seen.adoptable)
        rest = len(seen.adoptable) - verified
        says = f"Velero Backups without a NonAdminBackup: {verified} verified, {rest} unverified"
        yield warning("recovery", says, "see them, then adopt them: foresail backup adopt -A")


def unprocessed_requests(seen: Evidence) -> Iterator[Finding]:
    """Report the requests that no operator has processed, although one should."""
    late = [request for request in seen.unprocessed if not seen.unserved.get(request.kind)]
    if late:
        now = seen.server_time or seen.instant
        age = minutes(now - (late[0].created or now))
        names = some([str(request) for request in late])
        those = "1 request has" if len(late) == 1 else f"{len(late)} requests have"
        fix = "check the operator of self-service: findings pods and self-service, then its log"
        yield problem("requests", f"{those} had no status for up to {age}: no operator processes {names}", fix)


def garbage(seen: Evidence) -> Iterator[Finding]:
    """Report objects without an owner: a few wait for the operator, old ones should be gone."""
    now = seen.server_time or seen.instant
    late = [orphan for orphan in seen.ownerless.ours if now - orphan.since > _LATE and orphan.kind not in _LASTING]
    if late:
        fix = "check that the operator runs with --self-service; delete them with kubectl delete if it is removed"
        yield warning("garbage", f"{_named(late)}: no owner for more than two hours, and not deleted", fix)
    elif seen.ownerless.ours:
        yield good("garbage", f"{_named(seen.ownerless.ours)}: no owner; the operator deletes them within two hours")
    if seen.ownerless.others:
        says = f"{some(seen.ownerless.others)}: made by another controller, no owner, and left alone by Foresail"
        yield warning(
            "garbage", says, f"delete those that you do not need: kubectl delete -n {seen.namespace} KIND NAME"
        )


def _named(views: Iterable[GarbageView]) -> str:
    return some([f"{view.kind.name} {view.key.name}" for view in views])


def restore_checks(seen: Evidence) -> Iterator[Finding]:
    """Report an operator that does not run, failed checks, and sandboxes that no check needs."""
    absent = [
        operator for operator in seen.operators if operator.lease == CHECKS_LEASE and not seen.holder(seen.checks_lease)
    ]
    if absent:
        yield without_leader(seen, absent[0], "restores", "no RestoreCheck runs")
    yield from _results(seen, is_attended=not absent)
    yield from _left_behind(seen)


def _results(seen: Evidence, *, is_attended: bool) -> Iterator[Finding]:
    """Report the checks that failed last, or that all have passed; tenants see to theirs."""
    own = [check for check in seen.checks if check.metadata.namespace == seen.namespace]
    ended = [(check.metadata.name, check.status.last) for check in own if check.status.last is not None]
    failed = [(name, last) for name, last in ended if last.result == "Fail"]
    if failed:
        names = some([name for name, _ in failed])
        name, last = failed[0]
        yield warning("restores", f"RestoreCheck {names} failed: {last.message}", f"foresail check explain {name}")
    elif is_attended and ended:
        yield good("restores", "every RestoreCheck has passed")


def _left_behind(seen: Evidence) -> Iterator[Finding]:
    """Report the sandboxes that no check needs, and that nobody deletes."""
    now = seen.server_time or seen.instant
    in_use = {check.metadata.uid for check in seen.checks if _needs_sandbox(check, now)}
    staying = [sandbox.metadata for sandbox in seen.sandboxes if sandbox.metadata.deletion_timestamp is None]
    left = [metadata.name for metadata in staying if (metadata.labels or {}).get(CHECK_LABEL) not in in_use]
    if left:
        fix = f"start the operator with restore checks, or kubectl delete namespace {left[0]}"
        yield warning("restores", f"sandboxes that no RestoreCheck needs: {some(left)}", fix)


def _needs_sandbox(check: CheckSeen, now: datetime) -> bool:
    last = check.status.last
    is_kept = last is not None and last.kept_until is not None and last.kept_until > now
    return check.status.run is not None or is_kept


def protection(seen: Evidence) -> Iterator[Finding]:
    """Report whether labels of namespaces have an effect, and what is not protected as it asks."""
    serving = [operator for operator in seen.operators if operator.lease == PROTECTION_LEASE]
    if not serving:
        return
    if not seen.holder(seen.protection_lease):
        yield without_leader(seen, serving[0], "protection", "labels of namespaces have no effect")
        return
    if not any(operator.schedules and operator.records_namespaces for operator in seen.operators):
        says = "no operator of Schedules records namespaces in Backups, so no backup of a class counts"
        yield problem("protection", says, "foresail install --schedules --protection")
    yield from _unprotected(seen)


def _unprotected(seen: Evidence) -> Iterator[Finding]:
    for protection_class in seen.protection_classes:
        conditions = protection_class.status.conditions
        condition = next((condition for condition in conditions if condition.type == "Ready"), None)
        if condition is not None and condition.status == "False":
            fix = f"kubectl describe protectionclass {protection_class.metadata.name}"
            yield problem("protection", condition.message, fix)
    gaps = [protection for protection in seen.protections if protection.status.not_covered]
    if gaps:
        names = some([gap.metadata.namespace for gap in gaps])
        says = f"not protected as they ask: {names}: {gaps[0].status.not_covered[0].message}"
        yield warning("protection", says, "foresail protection get -A --gaps")
    elif seen.protections:
        yield good("protection", f"{len(seen.protections)} namespaces have no gap in their protection")


def rollback(seen: Evidence) -> Iterator[Finding]:
    """Report whether Rollbacks run."""
    serving = [operator for operator in seen.operators if operator.lease == ROLLBACK_LEASE]
    if serving and not seen.holder(seen.rollback_lease):
        yield without_leader(seen, serving[0], "rollback", "no Rollback proceeds, and what one suspended stays so")
    if serving and not any(operator.self_service for operator in seen.operators):
        says = "no operator has self-service, which takes the backups and restores of Rollbacks"
        yield problem("rollback", says, "foresail install --self-service --rollback")


_SERVED_WITH = {
    "--self-service": (NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE, SELF_SERVICE_POLICY),
    "--primers": (PRIMER,),
    "--restore-checks": (RESTORE_CHECK,),
    "--protection": (PROTECTION_CLASS,),
    "--rollback": (ROLLBACK,),
}


def findings(seen: Evidence) -> list[Finding]:
    """Say everything that there is to say, in the order in which it should be mended."""
    checks = (
        unread, kinds, unserved, clocks, zones, veleros, pods, attended, runnable, objectives, lifetimes, served,
        primed, unprocessed_requests, locations, strangers, rivals, stuck, unfinished, undeletable, garbage,
        permissions, stores, refusals, requesters, data_path, recovery, restore_checks, protection, rollback, volumes,
        admission,
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
    ours = {f"{custom.kind.plural}.{custom.kind.group}": custom for custom in DEFINITIONS}
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
        counted = [f"{count} {kind.name if count == 1 else _several(kind)}" for kind, count in counts if count]
        if counted:
            says = f"no operator serves {_listed(counted)}: {option} is off, so they have no effect"
            yield problem("kinds", says, f"foresail install {option}; or delete them")


def _several(kind: Kind) -> str:
    ending = {"y": "ies", "s": "ses"}.get(kind.name[-1])
    return f"{kind.name[:-1]}{ending}" if ending else f"{kind.name}s"


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
    refused = [str(permission) for permission, allowed in seen.permissions.items() if not allowed]
    if refused:
        fix = "install it again: foresail install, or helm upgrade foresail charts/foresail"
        yield problem("permissions", f"the operator's ServiceAccount may not {some(refused)}", fix)
    elif seen.permissions:
        yield good("permissions", f"the operator has all {len(seen.permissions)} permissions that it needs")
    lacking = [str(permission) for permission, allowed in seen.own_permissions.items() if not allowed]
    if lacking:
        says = f"no operator was found, and you could not install one: you may not {some(lacking)}"
        yield warning("permissions", says, "ask a cluster administrator to install it")
    elif seen.own_permissions:
        yield good("permissions", "no operator was found, and you have all the permissions that one needs")


def refusals(seen: Evidence) -> Iterator[Finding]:
    """Report the objects for which the API server has refused a write within the last minutes, and why the first."""
    writes = sorted(seen.refused_writes)
    if writes:
        names = [f"{kind} {key}" for kind, key in writes]
        fix = "correct what the message names; all of them: kubectl get events -A --field-selector reason=WriteRefused"
        yield warning("refused", f"{some(names)}: {seen.refused_writes[writes[0]]}", fix)


def _fields(spec: dict[str, Any]) -> set[str]:
    """Return the paths of all fields that a definition keeps; what it keeps unseen is left out."""
    paths: set[str] = set()

    def walk(node: dict[str, Any], path: str) -> None:
        for name, below in (node.get("properties") or {}).items():
            here = f"{path}.{name}" if path else name
            paths.add(here)
            walk(below, here)
        if isinstance(node.get("items"), dict):
            walk(node["items"], path)

    for version in spec.get("versions", []):
        walk(version.get("schema", {}).get("openAPIV3Schema", {}), "")
    return paths
