"""The CustomResourceDefinitions of the kinds that are ours, rendered from their types into the chart `foresail-crds`.

`python -m foresail.api.crds FOLDER` writes them, one file for each kind.
The CEL rules only compare fields and check their presence, so their cost does not grow with a spec.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from foresail.api import nonadmin, policy, primer, protection, requests, restore_check, rollback, schedule_policy
from foresail.api.schema import Schema, schema, with_defaults_told
from foresail.plan import Kind

_HEADER = "# Rendered from the types in src/foresail/api: change those, then `make crds`.\n"
_KEEP = {"helm.sh/resource-policy": "keep"}  # deleting a definition deletes all its objects, so uninstalling keeps it
_AGE = ("Age", "date", ".metadata.creationTimestamp")


@dataclass(frozen=True, slots=True)
class Definition:
    """What a definition has besides the schema of its type."""

    kind: Kind
    short_name: str
    type: type
    columns: tuple[tuple[str, str, str], ...]  # heading, type, path
    rules: tuple[tuple[str, str], ...] = ()  # CEL rules for every change, with their messages
    wide: tuple[tuple[str, str, str], ...] = ()  # more of them, for `kubectl get -o wide`
    is_one_part: bool = False  # the status is written with the object: nobody but the operator writes either


def _of_condition(heading: str, kind: str, field: str = "reason") -> tuple[str, str, str]:
    return heading, "string", f".status.conditions[?(@.type=='{kind}')].{field}"


_REASONS = (
    _of_condition("Accepted", "Accepted"),
    _of_condition("Queued", "Queued"),
    _of_condition("Succeeded", "Succeeded"),
    _of_condition("Message", "Accepted", "message"),
)


def _only_set(flag: str) -> tuple[str, str]:
    old = f"oldSelf.spec.{flag}"
    new = f"self.spec.{flag}"
    return (
        f"!has({old}) || !{old} || (has({new}) && {new})",
        f"spec.{flag} is already true, and a deletion cannot be undone: leave it true",
    )


def _fixed_once_accepted(spec: str, velero: str, kind: Kind, *, is_optional: bool = False) -> tuple[str, str]:
    new, old = f"self.spec.{spec}", f"oldSelf.spec.{spec}"
    same = f"(has({new}) ? has({old}) && {new} == {old} : !has({old}))" if is_optional else f"{new} == {old}"
    status = "oldSelf.status"
    accepted = f"has({status}) && has({status}.{velero}) && has({status}.{velero}.nacuuid)"
    return (
        f"{same} || !({accepted})",
        f"spec.{spec} was accepted and cannot change any more: create another {kind.name}",
    )


DEFINITIONS = (
    Definition(
        nonadmin.NON_ADMIN_BACKUP,
        "nab",
        requests.NonAdminBackup,
        (
            ("Request-Phase", "string", ".status.phase"),
            ("Velero-Phase", "string", ".status.veleroBackup.status.phase"),
            ("Queue", "integer", ".status.queueInfo.estimatedQueuePosition"),
            ("Errors", "integer", ".status.veleroBackup.status.errors"),
            # A string, because kubectl shows a date as its age, and this one is in the future.
            ("Expires", "string", ".status.veleroBackup.status.expiration"),
            _AGE,
        ),
        (
            _fixed_once_accepted("backupSpec", "veleroBackup", nonadmin.NON_ADMIN_BACKUP),
            _only_set("deleteBackup"),
            _only_set("forceDeleteBackup"),
        ),
        wide=_REASONS,
    ),
    Definition(
        nonadmin.NON_ADMIN_RESTORE,
        "nar",
        requests.NonAdminRestore,
        (
            ("Backup", "string", ".spec.restoreSpec.backupName"),
            ("Request-Phase", "string", ".status.phase"),
            ("Velero-Phase", "string", ".status.veleroRestore.status.phase"),
            ("Queue", "integer", ".status.queueInfo.estimatedQueuePosition"),
            ("Errors", "integer", ".status.veleroRestore.status.errors"),
            _AGE,
        ),
        (
            _fixed_once_accepted("restoreSpec", "veleroRestore", nonadmin.NON_ADMIN_RESTORE),
            _fixed_once_accepted("fromProtection", "veleroRestore", nonadmin.NON_ADMIN_RESTORE, is_optional=True),
        ),
        wide=_REASONS,
    ),
    Definition(
        nonadmin.NON_ADMIN_DOWNLOAD_REQUEST,
        "nadr",
        requests.NonAdminDownloadRequest,
        (("Request-Phase", "string", ".status.phase"), _AGE),
        (
            (
                "self.spec.target == oldSelf.spec.target",
                f"spec.target cannot change: create another {nonadmin.NON_ADMIN_DOWNLOAD_REQUEST.name}",
            ),
        ),
    ),
    Definition(
        nonadmin.NON_ADMIN_SCHEDULE,
        "nas",
        requests.NonAdminSchedule,
        (
            ("Request-Phase", "string", ".status.phase"),
            ("Velero-Phase", "string", ".status.veleroSchedule.status.phase"),
            # A string, for kubectl shows a date as the time that has passed since, and this one is to come.
            ("Next-Run", "string", ".status.nextRun"),
            ("Paused", "boolean", ".spec.paused"),
            _AGE,
        ),
        wide=(
            ("Schedule", "string", ".spec.schedule"),
            _of_condition("Accepted", "Accepted"),
            _of_condition("Ready", "Ready"),
            _of_condition("Message", "Ready", "message"),
        ),
    ),
    Definition(
        nonadmin.NON_ADMIN_LOCATION,
        "nabsl",
        requests.NonAdminBackupStorageLocation,
        (
            _of_condition("Request-Approved", "ClusterAdminApproved", "status"),
            ("Request-Phase", "string", ".status.phase"),
            ("Velero-Phase", "string", ".status.veleroBackupStorageLocation.status.phase"),
            _AGE,
        ),
        (
            _fixed_once_accepted(
                "backupStorageLocationSpec", "veleroBackupStorageLocation", nonadmin.NON_ADMIN_LOCATION
            ),
        ),
        wide=(_of_condition("Accepted", "Accepted"), _of_condition("Message", "Accepted", "message")),
    ),
    Definition(
        nonadmin.NON_ADMIN_LOCATION_REQUEST,
        "nabslrequest",
        requests.NonAdminBackupStorageLocationRequest,
        (
            ("Request-Phase", "string", ".status.phase"),
            ("Request-Namespace", "string", ".status.nonAdminBackupStorageLocation.namespace"),
            ("Request-Name", "string", ".status.nonAdminBackupStorageLocation.name"),
            _AGE,
        ),
        wide=(("Decision", "string", ".spec.approvalDecision"),),
    ),
    Definition(
        policy.SELF_SERVICE_POLICY,
        "ssp",
        policy.SelfServicePolicy,
        (
            ("Priority", "integer", ".spec.priority"),
            ("Weight", "integer", ".spec.weight"),
            ("Stored", "integer", ".spec.quotas.stored"),
            ("Active", "integer", ".spec.quotas.active"),
            ("Restores", "integer", ".spec.quotas.restores.stored"),
            _AGE,
        ),
        rules=policy.RULES,
    ),
    Definition(
        schedule_policy.SCHEDULE_POLICY,
        "sp",
        schedule_policy.SchedulePolicy,
        (
            ("Priority", "integer", ".spec.priority"),
            ("Zone", "string", ".spec.timeZone"),
            ("Spread", "string", ".spec.spread.within"),
            ("Deadline", "string", ".spec.startingDeadline"),
            ("Max", "integer", ".spec.concurrency.max"),
            ("Retries", "integer", ".spec.retry.attempts"),
            ("RPO", "string", ".spec.objective.rpo"),
            _AGE,
        ),
        wide=(
            ("Keep-Last", "integer", ".spec.retention.keepLast"),
            ("Hourly", "integer", ".spec.retention.hourly"),
            ("Daily", "integer", ".spec.retention.daily"),
            ("Weekly", "integer", ".spec.retention.weekly"),
            ("Monthly", "integer", ".spec.retention.monthly"),
            ("Yearly", "integer", ".spec.retention.yearly"),
            ("Keep-Within", "string", ".spec.retention.keepWithin"),
        ),
    ),
    Definition(
        primer.PRIMER,
        "prm",
        primer.Primer,
        (
            ("CronJobs", "integer", ".status.matched"),
            ("Warm-Up", "string", ".status.warmUp"),
            # Strings, because kubectl shows a date as its age, and these are in the future.
            ("Next Fire", "string", ".status.nextFire"),
            ("Next Warm-Up", "string", ".status.nextWarmUp"),
            ("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
            _AGE,
        ),
        (
            (
                "has(self.spec.cronJob) != has(self.spec.selector)",
                "name one CronJob in spec.cronJob, or select some by spec.selector: one of the two",
            ),
        ),
    ),
    Definition(
        restore_check.RESTORE_CHECK,
        "rck",
        restore_check.RestoreCheck,
        (
            ("Result", "string", ".status.last.result"),
            ("Reason", "string", ".status.last.reason"),
            ("Backup", "string", ".status.last.backup"),
            ("Checked", "date", ".status.last.completed"),
            ("Running", "string", ".status.run.backup"),
            _AGE,
        ),
        wide=(
            ("Expected", "integer", ".status.last.itemsExpected"),
            ("Found", "integer", ".status.last.itemsFound"),
            ("Seconds", "integer", ".status.last.restoreSeconds"),
            ("Message", "string", ".status.last.message"),
        ),
        rules=restore_check.RULES,
    ),
    Definition(
        protection.PROTECTION_CLASS,
        "pcl",
        protection.ProtectionClass,
        (
            ("Schedule", "string", ".spec.schedule"),
            ("Policy", "string", ".spec.schedulePolicy"),
            ("Default", "boolean", ".spec.default"),
            ("Namespaces", "integer", ".status.namespaces"),
            ("Schedules", "integer", ".status.schedules"),
            ("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
            _AGE,
        ),
        rules=protection.CLASS_RULES,
        wide=(_of_condition("Message", "Ready", "message"),),
    ),
    Definition(
        protection.PROTECTION,
        "prot",
        protection.Protection,
        (
            ("Class", "string", ".status.class"),
            ("Protected", "string", ".status.conditions[?(@.type=='Protected')].status"),
            _of_condition("Reason", "Protected"),
            ("Newest-Good", "date", ".status.newestGood.started"),
            # A string, for kubectl shows a date as the time that has passed since, and this one is to come.
            ("Next-Run", "string", ".status.nextRun"),
            _AGE,
        ),
        wide=(
            ("Schedule", "string", ".status.schedules[0]"),
            ("Backup", "string", ".status.newestGood.backup"),
            _of_condition("Message", "Protected", "message"),
        ),
        is_one_part=True,
    ),
    Definition(
        rollback.ROLLBACK,
        "rbk",
        rollback.Rollback,
        (
            ("To", "string", ".spec.to"),
            ("Phase", "string", ".status.phase"),
            _of_condition("Reason", "Succeeded"),
            # A string, for kubectl shows a date as the time that has passed since, and this one is to come.
            ("Undo-Until", "string", ".status.undoUntil"),
            _AGE,
        ),
        rules=rollback.RULES,
        wide=(
            ("Safety-Backup", "string", ".status.safetyBackup"),
            _of_condition("Message", "Succeeded", "message"),
        ),
    ),
)


def definition(of: Definition) -> Schema:
    """Return the CustomResourceDefinition."""
    kind = of.kind
    root = schema(of.type)
    root["properties"] = {
        "apiVersion": {"type": "string", "description": f"{kind.group}/{kind.version}"},
        "kind": {"type": "string", "description": kind.name},
        **{name: with_defaults_told(part, are_told=name == "spec") for name, part in root["properties"].items()},
        "metadata": {"type": "object"},
    }
    if "spec" in root["properties"]:
        root["required"] = ["spec"]
    if of.rules:
        root["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in of.rules]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}", "annotations": _KEEP},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [of.short_name],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    **({"subresources": {"status": {}}} if _has_subresource(of, root) else {}),
                    "additionalPrinterColumns": [
                        *({"name": name, "type": shown, "jsonPath": path} for name, shown, path in of.columns),
                        *(
                            {"name": name, "type": shown, "jsonPath": path, "priority": 1}
                            for name, shown, path in of.wide
                        ),
                    ],
                    "schema": {"openAPIV3Schema": root},
                }
            ],
        },
    }


def _has_subresource(of: Definition, root: Schema) -> bool:
    return "status" in root["properties"] and not of.is_one_part


def files() -> dict[str, str]:
    """Return the text of each file of the chart, by its name."""
    return {f"{one.kind.plural}.yaml": _HEADER + _text(definition(one)) for one in DEFINITIONS}


def _text(body: Schema) -> str:
    """Return YAML without anchors; a schema that is used twice is written twice."""
    dumper = type("_Dumper", (yaml.SafeDumper,), {"ignore_aliases": lambda *_: True})
    return yaml.dump(body, Dumper=dumper, sort_keys=False, width=120, allow_unicode=True)


def main(folder: Path) -> None:
    """Write the files, and delete those that are no longer needed."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.yaml"):
        old.unlink()
    for name, text in files().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
