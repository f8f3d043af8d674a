"""The steps of depth Data: prove the fence before anything of the backup starts, then wait for pods, then assert.

    sandboxes → canary in each → status.run.fence → Restore → it ends → pods ready → assertion → result

Pods are read in the sandboxes only, every few seconds while such a check runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from foresail.api.instants import whole
from foresail.api.marks import CANARY_CLOSED, CANARY_REACHED
from foresail.api.pods import SUCCEEDED
from foresail.api.restore_check import MOST_DATA_NAMESPACES, RESTORE_CHECK, CheckRun, RestoreCheckSpec
from foresail.api.velero import COMPLETED
from foresail.plan import Create, Key, Level, Note, Plan, ReadResult
from foresail.proof.checks import build, data_build, rules
from foresail.proof.checks.contents import Contents, Place, SavedClaims
from foresail.proof.checks.judge import Verdict, failed
from foresail.proof.checks.kinds import CLAIM, POD, kind_of
from foresail.proof.checks.reasons import Reason
from foresail.proof.checks.rows import CheckRow, PodRow, Pods, PodsFound, RestoreRow, labels_in_sandbox
from foresail.proof.checks.view import CheckView, DataSettings, FilesFound
from foresail.reporting import some

POLL = timedelta(seconds=3)
"""Between two reads of the pods."""

UNFENCED = "NOT FENCED: "
"""Before the message of every result of a check that ran without a closed network."""

_SHOWN = 3
_MOST_REACHED = 10
_REACHED = "reached: "
_FILLS_VOLUMES = ("InProgress", "WaitingForPluginOperations")
"""The phases in which Velero waits for the volumes of pods: for files, and for the data of snapshots."""


class Recorded(msgspec.Struct, frozen=True):
    """Something to write into status.run before the next step."""

    run: CheckRun
    note: Note | None = None


Step = Plan | Verdict | Recorded
"""Something to do or to wait for, the end of the check, or something to record."""


def verdict_before(
    contents: Contents, spec: RestoreCheckSpec, claims: SavedClaims | None, free_volumes: Mapping[str, str]
) -> Verdict | None:
    """Return the verdict on a backup or a spec that depth Data cannot check; None if it can."""
    sources = contents.namespaces
    if len(sources) > MOST_DATA_NAMESPACES:
        text = f"the backup has {len(sources)} namespaces; depth Data takes {MOST_DATA_NAMESPACES}: set spec.namespaces"
        return failed(Reason.TOO_MANY_NAMESPACES, text)
    if not any(kind_of(item.gvk) == POD for item in contents.optional):
        return failed(Reason.BACKUP_EMPTY, "the backup has no pods to start: use depth Objects")
    missing = _missing_data(contents, spec, claims)
    if missing:
        return failed(Reason.DATA_MISSING, missing)
    return _foreign_volume(contents, free_volumes) or _misplaced_assertion(contents, spec)


def _foreign_volume(contents: Contents, free_volumes: Mapping[str, str]) -> Verdict | None:
    """Return the verdict if a claim could take somebody's volume: no quota can count claims without a class."""
    if "" not in free_volumes or not claims_of(contents):
        return None
    text = f"PersistentVolume {free_volumes['']} has no storage class: a claim in the sandbox could take it"
    return failed(Reason.VOLUME_NOT_PROVISIONED, f"{text}; bind it, give it a class, or delete it")


def _misplaced_assertion(contents: Contents, spec: RestoreCheckSpec) -> Verdict | None:
    sources = contents.namespaces
    wanted = spec.assertion
    if wanted is not None and wanted.namespace is None and len(sources) > 1:
        text = f"set spec.assertion.namespace: the backup has {len(sources)} namespaces"
        return failed(Reason.ASSERTION_FAILED, text)
    if wanted is not None and wanted.namespace is not None and wanted.namespace not in sources:
        return failed(Reason.ASSERTION_FAILED, f"the backup has no objects of namespace {wanted.namespace}")
    return None


def _missing_data(contents: Contents, spec: RestoreCheckSpec, claims: SavedClaims | None) -> str:
    """Return which claims cannot get their volumes or their data back; empty if all can, or an assertion decides."""
    listed = claims_of(contents)
    if listed and not contents.has_volumes:
        names = [f"{namespace}/{name}" for namespace, name in listed]
        return f"claim {_shown(names)}: the backup has no PersistentVolumes; include them, and bind claims first"
    without = _claims_without_data(contents, claims) if spec.assertion is None else []
    if without:
        return (
            f"the bucket has no data of claim {_shown(without)}: use snapshotMoveData or file-system backup,"
            " or set spec.assertion"
        )
    return ""


def _shown(names: Sequence[str]) -> str:
    return some(names, _SHOWN)


def _claims_without_data(contents: Contents, claims: SavedClaims | None) -> list[str]:
    """Return the claims that would get an empty volume: an application may start on it as if nothing were lost."""
    saved = {*claims.files, *claims.moved} if claims is not None else set()
    return [f"{namespace}/{name}" for namespace, name in claims_of(contents) if (namespace, name) not in saved]


def claims_of(contents: Contents) -> list[Place]:
    """Return the claims of a backup."""
    return [(item.namespace, item.name) for item in contents.expected if kind_of(item.gvk) == CLAIM]


# The fence


def canary_query(run: CheckRun, sources: tuple[str, ...], files_found: FilesFound) -> Pods:
    """Return what to read to see the canaries."""
    sandboxes = tuple((source, build.sandbox_name(run.id, source)) for source in sources)
    return Pods(run.id, sandboxes, files_found.outside, kubernetes=files_found.kubernetes)


def prove_fence(
    check: CheckRow, run: CheckRun, settings: DataSettings, result: ReadResult[Pods, PodsFound], now: datetime
) -> Step:
    """Let a canary try to get out of each sandbox, and record what it found."""
    if result.answer.problem:
        return _again(result, now)
    name = data_build.canary_name(run.id)
    rows = {row.key.namespace: row for row in result.answer.pods if row.key.name == name}
    missing = [sandbox for _, sandbox in result.query.sandboxes if sandbox not in rows]
    if missing:
        canaries = _canaries(check, run, settings, missing, result.query.outside)
        return _created(canaries, result, now)
    broken = next((row for row in rows.values() if row.has_ended and not _is_answer(row)), None)
    if broken is not None:
        return failed(Reason.CANARY_FAILED, f"the canary pod of the sandbox {_how(broken)}")
    if not all(row.has_ended for row in rows.values()):
        return _again(result, now)
    return _judged(check, run, sorted({target for row in rows.values() for target in _reached(row)}))


def _canaries(
    check: CheckRow, run: CheckRun, settings: DataSettings, sandboxes: Iterable[str], outside: str
) -> list[Create]:
    labels = labels_in_sandbox(check)
    mark = build.marks(check, run.id)
    name = data_build.canary_name(run.id)
    return [data_build.canary(settings, labels, Key(sandbox, name), outside, mark) for sandbox in sandboxes]


def _judged(check: CheckRow, run: CheckRun, reached: list[str]) -> Verdict | Recorded:
    """Return what follows from what the canaries reached."""
    if not reached:
        return Recorded(msgspec.structs.replace(run, fence="Enforced"))
    shown = ", ".join(reached)
    if not check.spec.allow_unfenced:
        text = f"a pod in the sandbox reached {shown}: this network does not enforce NetworkPolicies"
        return failed(Reason.NOT_FENCED, text)
    text = f"{UNFENCED}pods of Backup {run.backup} start although they can reach {shown}: spec.allowUnfenced is true"
    note = Note(RESTORE_CHECK, check.key, check.uid, Reason.NOT_FENCED.value, text, Level.WARNING)
    return Recorded(msgspec.structs.replace(run, fence="NotEnforced", reached=tuple(reached)), note)


def _is_answer(row: PodRow) -> bool:
    return row.exit_code in (CANARY_CLOSED, CANARY_REACHED)


def _reached(row: PodRow) -> list[str]:
    """Return what a canary reached; something, if it did not say what."""
    if row.exit_code != CANARY_REACHED:
        return []
    named = row.message.rpartition(_REACHED)[2] if _REACHED in row.message else ""
    return [address.strip() for address in named.split(",") if address.strip()][:_MOST_REACHED] or ["something outside"]


# Pods and the assertion


def kept_verdict(view: CheckView, run: CheckRun) -> Verdict | None:
    """Return the verdict on the restore, if the pods were read since."""
    result = view.pods_result
    return result.query.verdict if result is not None and result.query.run == run.id else None


def check_pods(
    view: CheckView, check: CheckRow, run: CheckRun, restore: RestoreRow, verdict: Verdict, now: datetime
) -> Step:
    """Wait until the pods are ready, run the assertion, and return the final verdict."""
    result = view.pods_result
    if result is None or result.query.run != run.id or result.query.verdict is None:
        files = view.files_result
        version = files.answer.kubernetes if files is not None else ""
        return Plan(reads=(Pods(run.id, restore.sandboxes, verdict=verdict, kubernetes=version),))
    if result.answer.problem:
        return _again(result, now)
    if view.taken_volumes:
        text = f"PersistentVolume {view.taken_volumes[0]} was not provisioned for the claim in the sandbox that has it"
        why = failed(Reason.VOLUME_NOT_PROVISIONED, f"{text}: it is left as it is; see whose it is")
        return msgspec.structs.replace(verdict, problems=why.problems, count=why.count)
    pods = pods_of_backup(run, result.answer)
    if run.ready_seconds is None:
        if not pods or not all(pod.is_ready for pod in pods):
            return _again(result, now)
        since = restore.started or run.started
        return Recorded(msgspec.structs.replace(run, ready_seconds=int((whole(now) - since).total_seconds())))
    passed = msgspec.structs.replace(verdict, pods_ready=len(pods))
    return passed if check.spec.assertion is None else _assert(check, run, passed, result, now)


def pods_of_backup(run: CheckRun, pods_found: PodsFound) -> list[PodRow]:
    """Return the pods that must become ready: neither completed, nor being deleted, nor ours."""
    ours = (data_build.canary_name(run.id), data_build.assertion_name(run.id))
    return [
        pod for pod in pods_found.pods if pod.key.name not in ours and pod.phase != SUCCEEDED and not pod.is_terminating
    ]


def _assert(
    check: CheckRow, run: CheckRun, verdict: Verdict, result: ReadResult[Pods, PodsFound], now: datetime
) -> Step:
    wanted = check.spec.assertion
    sandboxes = dict(result.query.sandboxes)
    source = wanted.namespace if wanted is not None and wanted.namespace is not None else next(iter(sandboxes), "")
    if wanted is None or source not in sandboxes:
        return failed(Reason.ASSERTION_FAILED, f"there is no sandbox of namespace {source}")
    key = Key(sandboxes[source], data_build.assertion_name(run.id))
    row = next((pod for pod in result.answer.pods if pod.key == key), None)
    if row is None:
        left = rules.seconds_left(check, run, now)
        labels = labels_in_sandbox(check)
        mark = build.marks(check, run.id)
        return _created([data_build.assertion(wanted, labels, key, mark, left)], result, now)
    if not row.has_ended:
        return _again(result, now)
    if row.exit_code == 0:
        return msgspec.structs.replace(verdict, exit_code=0)
    failure = failed(Reason.ASSERTION_FAILED, f"the assertion {_how(row)}")
    return msgspec.structs.replace(
        verdict, problems=failure.problems, count=failure.count, exit_code=row.exit_code, digests=verdict.digests
    )


def overdue(view: CheckView, check: CheckRow, run: CheckRun) -> Verdict | None:
    """Return what a run with depth Data waited for at its deadline; None if for Velero."""
    if run.depth != "Data":
        return None
    within = f"within {check.spec.deadline}"
    result = view.pods_result
    pods_found = result.answer if result is not None and result.query.run == run.id else None
    if run.fence is None and pods_found is not None:
        return _overdue_canary(pods_found, within)
    restore = rules.restore_of(view, run)
    if restore is not None and restore.phase in _FILLS_VOLUMES:
        text = f"pods of the backup were not ready {within}: Velero was still restoring their volumes"
        return failed(Reason.PODS_NOT_READY, text)
    if restore is None or restore.phase != COMPLETED:
        return None
    verdict = kept_verdict(view, run) or Verdict()
    if run.ready_seconds is None:
        sandboxes = result.query.sandboxes if result is not None else ()
        return _overdue_pods(run, pods_found, sandboxes, verdict, within)
    why = failed(Reason.ASSERTION_FAILED, _overdue_assertion(run, pods_found, within))
    return msgspec.structs.replace(verdict, problems=why.problems, count=why.count)


def _overdue_canary(pods_found: PodsFound, within: str) -> Verdict:
    waits = next((row.waits for row in pods_found.pods if row.waits), "") or pods_found.problem
    return failed(Reason.CANARY_FAILED, f"the canary pod did not end {within}{_colon(waits)}")


def _overdue_pods(
    run: CheckRun, pods_found: PodsFound | None, sandboxes: Iterable[tuple[str, str]], verdict: Verdict, within: str
) -> Verdict:
    """Return which pods of the backup were not ready at the deadline, by their namespaces in the backup."""
    pods = pods_of_backup(run, pods_found) if pods_found is not None else []
    late = [row for row in pods if not row.is_ready]
    sources = {sandbox: source for source, sandbox in sandboxes}
    shown = [f"{sources.get(row.key.namespace, '')}/{row.key.name}{_waits(row)}" for row in late[:_SHOWN]]
    text = f"pods of the backup were not ready {within}{_colon(some(shown, _SHOWN, len(late)))}"
    why = failed(Reason.PODS_NOT_READY, text)
    return msgspec.structs.replace(verdict, problems=why.problems, count=why.count, pods_ready=len(pods) - len(late))


def _overdue_assertion(run: CheckRun, pods_found: PodsFound | None, within: str) -> str:
    name = data_build.assertion_name(run.id)
    if pods_found is None or any(pod.key.name == name for pod in pods_found.pods):
        return f"the assertion did not end {within}"
    return (
        f"the pod of the assertion was not created {within}: a ResourceQuota or LimitRange of the backup may refuse it"
    )


def message(verdict: Verdict, run: CheckRun) -> str:
    """Return a result in words."""
    text = verdict.message
    if not verdict.problems and verdict.pods_ready is not None:
        asserted = "; the assertion passed" if verdict.exit_code == 0 else ""
        text = f"{text}; {verdict.pods_ready} pods became ready{asserted}"
    return f"{UNFENCED}{text}" if run.fence == "NotEnforced" else text


def _colon(text: str) -> str:
    return f": {text}" if text else ""


def _waits(row: PodRow) -> str:
    return f" ({row.waits})" if row.waits else ""


def _how(row: PodRow) -> str:
    """Return how a pod of ours ended."""
    if row.exit_code is None:
        return f"did not run: {row.waits or row.phase}"
    return f"ended with exit code {row.exit_code}{_colon(row.message)}"


def _created(pods: Sequence[Create], result: ReadResult[Pods, PodsFound], now: datetime) -> Plan:
    """Create pods of ours that a fresh read has not found."""
    again = _again(result, now)
    return again if again.reads else msgspec.structs.replace(again, actions=tuple(pods))


def _again(result: ReadResult[Pods, PodsFound], now: datetime) -> Plan:
    at = result.started + POLL
    return Plan(reads=(result.query,)) if at <= now else Plan(wake_at=at)
