"""The last check before Velero gets an object: what the requester may create, and what the pods carry.

    contents of the backup → access reviews, at most a minute old → the kinds that Velero may restore

The answers come from background reads. They are kept in memory only, so a restart asks again.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api.instants import instant
from foresail.api.marks import BACKUP_UID
from foresail.api.policy import NO_MAXIMUM
from foresail.plan import Action, Create, Key
from foresail.selfservice.access import rules as access
from foresail.selfservice.access.rules import Authorized, Options
from foresail.selfservice.access.view import (
    LIST,
    PREFIXES,
    VOLUME_INFOS,
    AccessView,
    Check,
    Checked,
    PodCheck,
    PodsChecked,
    Recheck,
    SecretsCheck,
)
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.policy.locations import location_named, owner_of
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests import points
from foresail.selfservice.requests.file_requests import ask, delete_file_request, file_name
from foresail.selfservice.requests.rules import target_over_quota
from foresail.selfservice.requests.status import ACCEPTED, AUTHORIZED, FALSE
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.rows.locations import LocationRow
from foresail.selfservice.rows.velero import DownloadRequestRow, File, VeleroRow
from foresail.selfservice.specs import annotations, file_system, snapshot_timeout
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.volume_policies import VOLUME_POLICIES

FRESH = timedelta(seconds=60)
"""How old an answer about access may be when Velero gets the object."""

SILENCE = timedelta(seconds=30)
"""After which a tenant reads that Velero has not answered."""

_LABELLED = timedelta(seconds=5)  # how soon a namespace has its labels; before, a wait for them is not reported
_PAUSES = (timedelta(seconds=2), timedelta(seconds=10), timedelta(seconds=30), timedelta(minutes=2))
_MARGIN = timedelta(seconds=30)  # of the validity of a URL
_FILES = (LIST, VOLUME_INFOS)
_NOBODY = SecretsCheck("", "", ())


class Waiting(msgspec.Struct, frozen=True):
    """What is still missing: writes, a background read, when to reconcile next, and what the tenant reads meanwhile."""

    writes: tuple[Action, ...] = ()
    read: Check | PodCheck | None = None
    wake_at: datetime | None = None
    message: str = ""
    reason: Reason = Reason.CHECKING_ACCESS

    @property
    def reads(self) -> tuple[Check | PodCheck, ...]:
        """The background read as a Plan has it."""
        return () if self.read is None else (self.read,)


def authorize(view: RequestView, spec: dict[str, Any], now: datetime) -> Authorized | Refused | Waiting:
    """Return the spec for Velero, a refusal, or the check that is still missing."""
    policy = view.acting_policy
    if policy is None:
        return Waiting()
    if view.missing_label:
        return _unlabelled(view, view.request.key.namespace, view.missing_label, now)
    if view.target is not None and view.target.missing_label:
        return _unlabelled(view, view.target.name, view.target.missing_label, now)
    if view.family is BACKUPS:
        bounded = _within_snapshot_budget(view, policy, spec)
        made = bounded if isinstance(bounded, Refused) else _authorize_backup(view, policy, bounded, now)
        if isinstance(bounded, Refused) or not isinstance(made, Authorized):
            return made
        return msgspec.structs.replace(made, shortened=snapshot_timeout.shortened(spec, bounded, len(view.claims)))
    return _authorize_restore(view, policy, spec, now)


def _unlabelled(view: RequestView, namespace: str, label: str, now: datetime) -> Waiting:
    """Wait for a label of the namespace: without it, a tenant can add what the check of the pods has not seen."""
    accepted = view.request.status.condition(ACCEPTED)
    since = instant(accepted.last_transition_time) if accepted is not None else None
    late = (since or view.request.created) + _LABELLED
    if now < late:
        return Waiting(wake_at=late)
    text = f"Namespace {namespace} does not have label {label} yet"
    message = f"{text}; the operator sets it, then the {view.family.word} starts automatically"
    return Waiting(message=message, reason=Reason.NAMESPACE_UNLABELLED)


def prepare(view: RequestView, spec: dict[str, Any], now: datetime) -> Waiting | None:
    """Return the read to start before a restore's turn: the contents of its backup; None if none."""
    policy = view.acting_policy
    if policy is None or view.family is BACKUPS or (view.access is not None and view.access.has_contents):
        return None
    checked = _authorize_restore(view, policy, spec, now)
    return checked if isinstance(checked, Waiting) and (checked.writes or checked.read is not None) else None


def is_quick(read: object) -> bool:
    """Whether a background read needs only the API server, so that the request keeps its turn meanwhile."""
    return isinstance(read, PodCheck | Recheck | SecretsCheck) or (isinstance(read, Check) and not read.list_url)


def is_still_refused(view: RequestView) -> bool:
    """Whether the spec of a backup was refused at its hand-over for a rule that the policy still has."""
    condition = view.request.status.condition(AUTHORIZED)
    policy = view.policy
    if (
        condition is None
        or condition.status != FALSE
        or condition.observed_generation != view.request.generation
        or policy is None
    ):
        return False
    if condition.reason == Reason.POLICY_VIOLATION:
        return annotations.are_refused(policy) or file_system.is_refused(policy) or snapshot_timeout.is_bounded(policy)
    return condition.reason == Reason.INVALID_BACKUP_SPEC


# Backups: no pod makes Velero wait, and no bucket shows Secrets to who may not read them


def _authorize_backup(
    view: RequestView, policy: PolicyRow, spec: dict[str, Any], now: datetime
) -> Authorized | Refused | Waiting:
    check = _pod_check(view, policy, spec)
    if view.access is None or not (check.checks_pods or check.kinds or check.secrets or check.volume_policies):
        return Authorized(spec)
    pods = _checked_pods(view.access, check, now)
    if pods is None:
        return Waiting(read=check)
    again = _next_attempt(view.access)
    if pods.problem and again is not None:
        text = f"Cannot read the pods of namespace {check.namespace}, the served kinds or the requester's access"
        message = _retried(text, pods.problem)
        return Waiting(read=check, message=message) if now >= again else Waiting(wake_at=again, message=message)
    return _refused_pods(check, pods, policy) or _checked_backup(view, spec, check, pods)


def _within_snapshot_budget(view: RequestView, policy: PolicyRow, spec: dict[str, Any]) -> dict[str, Any] | Refused:
    """Return the spec with a timeout for which the claims of the namespace are not too many, or why there is none."""
    return snapshot_timeout.within_budget(spec, len(view.claims), policy) if access.holds_claims(spec) else spec


def _pod_check(view: RequestView, policy: PolicyRow, spec: dict[str, Any]) -> PodCheck:
    """Return what must be known about the namespace of a backup before Velero gets it."""
    refuses_files = file_system.is_refused(policy)
    return PodCheck(
        view.request.key.namespace,
        checks_hooks=annotations.are_refused(policy),
        checks_files=refuses_files and access.holds_pods(spec),
        kinds=tuple(spec.get("includedNamespaceScopedResources") or ()),
        secrets=_secrets_checks(view, spec),
        volume_policies=_administrators_volume_policies(view, spec) if refuses_files else None,
    )


def _checked_pods(known: AccessView, check: PodCheck, now: datetime) -> PodsChecked | None:
    """Return what this very check has found a moment ago; None if it must be made."""
    result = known.read_result
    if result is None or result.query != check or result.started + FRESH < now:
        return None
    return result.answer if isinstance(result.answer, PodsChecked) else None


def _refused_pods(check: PodCheck, checked: PodsChecked, policy: PolicyRow) -> Refused | None:
    """Return why Velero must not back the pods of the namespace up; None if it may."""
    if checked.is_too_large:
        return annotations.too_many_pods(check.namespace, policy)
    if checked.pod:
        return annotations.refused_pod(checked.pod, checked.annotation, policy)
    if checked.volume_policies and check.volume_policies is not None:
        return file_system.chosen_by_volume_policy(check.volume_policies.name, checked.volume_policies, policy)
    return None


def _administrators_volume_policies(view: RequestView, spec: dict[str, Any]) -> Key | None:
    """Return the ConfigMap of an administrator that a backup names; None if it names ours or none."""
    name = (spec.get("resourcePolicy") or {}).get("name", "")
    return Key(view.velero_namespace, name) if name and name not in VOLUME_POLICIES else None


def _checked_backup(
    view: RequestView, spec: dict[str, Any], check: PodCheck, checked: PodsChecked
) -> Authorized | Refused:
    """Return what a backup comes to when its kinds are known, and who may read Secrets."""
    denied = next((secret for secret in check.secrets if not _may_read_secrets(view, secret, checked)), None)
    who = _in_words(view, spec, denied) if denied is not None else ""
    kinds = [kind for kind in check.kinds if denied is None or not access.is_secrets(kind)]
    cluster_scoped = [word for word in checked.cluster_scoped if word in kinds]
    unserved = [word for word in checked.unserved if word in kinds]
    if cluster_scoped and {*cluster_scoped, *unserved}.issuperset(kinds):
        return access.no_kind_of_a_namespace(cluster_scoped, who)
    if denied is not None:
        return access.without_secrets(spec, who, unserved)
    return access.kinds_not_served(spec, unserved) if unserved else Authorized(spec)


def _secrets_checks(view: RequestView, spec: dict[str, Any]) -> tuple[SecretsCheck, ...]:
    """Return the questions about the Secrets in a backup that goes to a bucket of its tenant; none for another one.

    Whoever asked for the location has the bucket, and need not be who asks for the backup.
    """
    request = view.request
    row = _location(view, spec)
    if row is None or row.owner is None or not access.holds_secrets(spec):
        return ()
    namespace = request.key.namespace
    owner = owner_of(row, view.owners)
    of_location = SecretsCheck(namespace, owner.requester, owner.requester_groups) if owner is not None else _NOBODY
    return tuple(dict.fromkeys((SecretsCheck(namespace, request.requester, request.requester_groups), of_location)))


def _may_read_secrets(view: RequestView, check: SecretsCheck, checked: PodsChecked) -> bool:
    reserved = view.access.reserved if view.access is not None else frozenset()
    return check in checked.secrets_readers and access.requester_problem(check.user, reserved) is None


def _in_words(view: RequestView, spec: dict[str, Any], denied: SecretsCheck) -> str:
    """Return who may not read Secrets: the requester of the backup, or of its location."""
    request = view.request
    row = _location(view, spec)
    if (denied.user, denied.groups) == (request.requester, request.requester_groups):
        return denied.user or "the unknown requester"
    name = row.owner.name if row is not None and row.owner is not None else ""
    whose = f"requester of storage location {name[:80]}"
    return f"{denied.user}, the {whose}," if denied.user else f"the unknown {whose}"


def _location(view: RequestView, spec: dict[str, Any]) -> LocationRow | None:
    return location_named(spec.get("storageLocation") or "", view.locations)


# Restores: only what the requester may create


def _authorize_restore(
    view: RequestView, policy: PolicyRow, spec: dict[str, Any], now: datetime
) -> Authorized | Refused | Waiting:
    options = options_of(view, policy, spec)
    rules = policy.spec.restore
    has_maximum = rules.maximum_objects != NO_MAXIMUM or rules.maximum_claims != NO_MAXIMUM
    if not (options.is_by_requester or options.checks_volumes or has_maximum):
        copied = view.copied if access.may_restore_pods(options) else ()
        return _refused_files(view, policy, copied, restores_claims=True) or Authorized(spec)
    backup = view.source.velero if view.source is not None else None
    if backup is None:
        return Waiting()
    known = view.access or AccessView()
    check = _check(known, backup, options)
    answer = _checked_restore(view, policy, spec, check, now)
    if answer is not None:
        return answer
    waiting = None if known.has_contents else _files(view, backup, known, now)
    return waiting or Waiting(read=check)


def _checked_restore(
    view: RequestView, policy: PolicyRow, spec: dict[str, Any], check: Check, now: datetime
) -> Authorized | Refused | Waiting | None:
    """Return what the last check of the contents comes to; None if there is none that still counts."""
    known = view.access or AccessView()
    result = known.read_result
    if result is None or not isinstance(result.query, Check) or not isinstance(result.answer, Checked):
        return None
    if (result.query.backup_uid, result.query.options) != (check.backup_uid, check.options):
        return None
    checked = result.answer
    if checked.verdict is not None and now <= result.started + FRESH:
        return _judged_restore(view, policy, spec, checked.verdict, check.options)
    if checked.is_too_large:
        return access.too_large(view.request.point or view.request.source)
    again = _next_attempt(known)
    if not checked.problem or again is None or now >= again:
        return None
    text = f"Cannot check access to the contents of backup {view.request.point or view.request.source}"
    return Waiting(wake_at=again, message=_retried(text, checked.problem))


def _judged_restore(
    view: RequestView, policy: PolicyRow, spec: dict[str, Any], verdict: access.Verdict, options: Options
) -> Authorized | Refused:
    of_pods = view.copied if access.PODS in verdict.allowed else ()
    copied = (*verdict.copied, *of_pods)
    refused = points.files_left_out(view, verdict.copied, verdict.allowed)
    refused = refused or _refused_files(view, policy, copied, restores_claims=access.CLAIMS in verdict.allowed)
    made = refused or _within(policy, spec, verdict, options)
    return made if isinstance(made, Refused) else target_over_quota(view.target) or made


def _refused_files(
    view: RequestView, policy: PolicyRow, copied: Collection[str], *, restores_claims: bool
) -> Refused | None:
    """Return why Velero must not write the files of the backup into pods; None if it may, or there are none."""
    claims = [claim.name for claim in view.claims]
    name = view.request.point or view.request.source
    return file_system.refused_restore(name, copied, claims, policy, restores_claims=restores_claims)


def _within(policy: PolicyRow, spec: dict[str, Any], verdict: access.Verdict, options: Options) -> Authorized | Refused:
    made = access.authorized_spec(spec, verdict, options)
    rules = policy.spec.restore
    if isinstance(made, Refused):
        return made
    if verdict.objects > rules.maximum_objects != NO_MAXIMUM:
        return access.too_many_objects(verdict.objects, policy)
    if verdict.claims > rules.maximum_claims != NO_MAXIMUM:
        return access.too_many_claims(verdict.claims, policy)
    return made


def options_of(view: RequestView, policy: PolicyRow, spec: dict[str, Any]) -> Options:
    """Return what access depends on in a restore."""
    request = view.request
    rules = policy.spec.restore
    is_by_requester = view.is_by_requester
    target = view.target.namespace if view.target is not None else None
    return Options(
        namespace=request.key.namespace,
        target=request.target,
        target_uid=target.uid if target is not None else "",
        user=request.requester if is_by_requester else "",
        groups=request.requester_groups if is_by_requester else (),
        included=tuple(spec.get("includedResources") or ()),
        excluded=tuple(spec.get("excludedResources") or ()),
        is_update=spec.get("existingResourcePolicy") == "update",
        restores_volumes=spec.get("restorePVs") is not False,
        is_by_requester=is_by_requester,
        checks_volumes=rules.volumes != "AsIs" or bool(request.target) or bool(request.point),
        is_shared=bool(request.point),
    )


def _check(known: AccessView, backup: VeleroRow, options: Options) -> Check:
    urls = {file.target.kind: file.url for file in known.files} if not known.has_contents else {}
    return Check(backup.uid, options, urls.get(LIST, ""), urls.get(VOLUME_INFOS, ""), known.authority)


def _files(view: RequestView, backup: VeleroRow, known: AccessView, now: datetime) -> Waiting | None:
    """Return what is missing until both files can be read; None if they can."""
    rows = {file.target.kind: file for file in known.files}
    old = tuple(row for row in rows.values() if row.expires is not None and row.expires - _MARGIN <= now)
    if old:
        return Waiting(tuple(map(delete_file_request, old)))
    missing = tuple(_ask(view, backup, kind) for kind in _FILES if kind not in rows)
    if missing:
        return Waiting(missing)
    return _unanswered([row for row in rows.values() if not row.url], view, now)


def _unanswered(rows: list[DownloadRequestRow], view: RequestView, now: datetime) -> Waiting | None:
    if not rows:
        return None
    late = max(row.created for row in rows) + SILENCE
    if now < late:
        return Waiting(wake_at=late)
    name = view.request.point or view.request.source
    return Waiting(message=f"Waiting for Velero to provide the contents list of backup {name}")


def _ask(view: RequestView, backup: VeleroRow, kind: str) -> Create:
    """Return the creation of Velero's DownloadRequest for a file about a backup."""
    key = Key(view.velero_namespace, file_name(PREFIXES[kind], backup.uid))
    return ask(key, File(kind, backup.key.name), {BACKUP_UID: backup.uid})


def _next_attempt(known: AccessView) -> datetime | None:
    """Return when a background read that failed is repeated: later each time."""
    read_result = known.read_result
    return None if read_result is None else read_result.started + _PAUSES[min(read_result.attempts, len(_PAUSES)) - 1]


def _retried(text: str, problem: str) -> str:
    return f"{text}: {problem}. The operator retries automatically"
