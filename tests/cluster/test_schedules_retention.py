"""Retention on the real Velero and S3: what goes leaves the bucket, what stays restores, and nothing goes in doubt."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from foresail.api.instants import instant, stamp
from foresail.kube.clock import now
from testbed import Cluster, TestbedError
from tests.cluster.operators import Operator, running
from tests.cluster.schedules import Eventually, clear, put_status, reasons, schedule

ROOT = Path(__file__).parents[2]
CRD = ROOT / "charts" / "foresail-crds" / "templates" / "schedulepolicies.yaml"
NAMESPACE = "lagoon"
NEVER = "0 0 1 1 *"
TEMPLATE = {"includedNamespaces": [NAMESPACE], "ttl": "24h0m0s"}


@pytest.fixture(scope="module")
def cluster(schedule_cluster: Cluster) -> Iterator[Cluster]:
    clear(schedule_cluster)
    schedule_cluster.kubectl("apply", "--server-side", f"--filename={CRD}")
    schedule_cluster.wait_for_kinds()
    schedule_cluster.kubectl("create", "namespace", NAMESPACE)
    schedule_cluster.kubectl("create", "configmap", "cargo", "--from-literal=tons=40", f"--namespace={NAMESPACE}")
    yield schedule_cluster
    schedule_cluster.kubectl("delete", "schedulepolicies.foresail.dev", "--all")
    clear(schedule_cluster)


@pytest.fixture(scope="module", autouse=True)
def operator(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with running(cluster, tmp_path_factory.mktemp("operator")) as found:
        yield found


def policy(name: str, schedule: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a SchedulePolicy for one Schedule."""
    return {
        "apiVersion": "foresail.dev/v1alpha1",
        "kind": "SchedulePolicy",
        "metadata": {"name": name},
        "spec": {"selector": {"names": [schedule]}, **_at_once(spec)},
    }


def _at_once(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a policy whose retention has no grace period."""
    return {**spec, "retention": {"gracePeriod": "0s", **spec["retention"]}} if "retention" in spec else spec


def foresail(cluster: Cluster, *words: str, group: str = "schedule") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "foresail", group, *words]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def back_up(cluster: Cluster, schedule: str, count: int) -> list[str]:
    """Make that many Backups of a Schedule, named as Velero names them, and return their names."""
    names = [f"{schedule}-2026010100000{number}" for number in range(count)]
    for name in names:
        cluster.velero("backup", "create", name, f"--from-schedule={schedule}", "--wait")
    record_run(cluster, schedule)
    return names


def record_run(cluster: Cluster, schedule: str) -> None:
    """Record a run as Velero does: what has a name of its pattern later than that was made by hand."""
    put_status(cluster, "schedules", schedule, lastBackup=stamp(now()))


def existing(cluster: Cluster, schedule: str) -> set[str]:
    items = cluster.listed(
        f"/apis/velero.io/v1/namespaces/velero/backups?labelSelector=velero.io%2Fschedule-name%3D{schedule}"
    )
    return {each["metadata"]["name"] for each in items}


def in_bucket(cluster: Cluster) -> set[str]:
    return {path.split("/")[1] for path in cluster.bucket_objects() if path.startswith("backups/")}


def test_what_goes_leaves_the_bucket_after_approval_and_what_stays_restores(
    cluster: Cluster, eventually: Eventually
) -> None:
    cluster.apply(schedule("tides", NEVER, TEMPLATE))
    names = back_up(cluster, "tides", 5)
    assert "pinned" in foresail(cluster, "pin", names[0], group="backup").stderr
    cluster.apply(policy("tides", "tides", retention={"keepLast": 2}))
    eventually(lambda: "RetentionNotApproved" in reasons(cluster, "tides"), 60)
    assert existing(cluster, "tides") == set(names)
    shown = foresail(cluster, "retention", "tides")
    assert "SchedulePolicy tides keeps 3 and deletes 2 Backups" in shown.stdout, shown
    assert "would delete 2 of 5 Backups" in shown.stdout
    assert "kept: pinned" in shown.stdout
    assert foresail(cluster, "retention", "tides", "--approve", "another").returncode
    approved = foresail(cluster, "retention", "tides", "--approve", shown.stdout.split("--approve ")[1].split()[0])
    assert "deletion of 2 Backups approved" in approved.stderr, approved
    stay = {names[0], *names[3:]}
    eventually(lambda: existing(cluster, "tides") == stay, 120)
    eventually(lambda: in_bucket(cluster) & set(names) == stay, 60)
    assert reasons(cluster, "tides")["RetentionDeleted"].startswith("deleted Backup tides-")
    cluster.kubectl("delete", "configmap", "cargo", f"--namespace={NAMESPACE}")
    cluster.velero("restore", "create", "tides-back", f"--from-backup={names[3]}", "--wait")
    tons = cluster.kubectl("get", "configmap", "cargo", f"--namespace={NAMESPACE}", "-o=jsonpath={.data.tons}")
    assert tons == "40"


def test_rules_in_effect_delete_without_approval_and_in_doubt_nothing_goes(
    cluster: Cluster, eventually: Eventually
) -> None:
    cluster.apply(policy("ebb", "ebb", retention={"keepLast": 1}), schedule("ebb", NEVER, TEMPLATE))
    first = back_up(cluster, "ebb", 1)[0]
    cluster.kubectl(
        "patch", "backupstoragelocations.velero.io", "default", "--namespace=velero", "--type=merge",
        '--patch={"spec":{"accessMode":"ReadOnly"}}',
    )  # fmt: skip
    try:
        copy_of(cluster, first, "ebb-20260101000009", eventually)
        record_run(cluster, "ebb")
        eventually(lambda: "RetentionInDoubt" in reasons(cluster, "ebb"), 60)
        assert existing(cluster, "ebb") == {first, "ebb-20260101000009"}
    finally:
        cluster.kubectl(
            "patch", "backupstoragelocations.velero.io", "default", "--namespace=velero", "--type=merge",
            '--patch={"spec":{"accessMode":"ReadWrite"}}',
        )  # fmt: skip
    eventually(lambda: existing(cluster, "ebb") == {"ebb-20260101000009"}, 120)


def test_deletion_that_velero_fails_amid_it_is_reported_and_requested_again(
    cluster: Cluster, eventually: Eventually
) -> None:
    """Velero waits a minute for a Restore that a finalizer keeps, and leaves the Backup in phase Deleting."""
    cluster.apply(policy("neap", "neap", retention={"keepLast": 1}), schedule("neap", NEVER, TEMPLATE))
    (first,) = back_up(cluster, "neap", 1)
    cluster.velero("restore", "create", "anchored", f"--from-backup={first}", "--wait")
    finalize(cluster, "anchored", ["example.com/anchor"])
    try:
        cluster.velero("backup", "create", "neap-20260101000009", "--from-schedule=neap", "--wait")
        record_run(cluster, "neap")
        eventually(lambda: "RetentionFailed" in reasons(cluster, "neap"), 180)
        assert f"Velero could not delete Backup {first}: " in reasons(cluster, "neap")["RetentionFailed"]
        shown = foresail(cluster, "retention", "neap").stdout
        assert "not counted: Velero has begun to delete it" in shown
        assert "RetentionFailed: Velero could not delete" in shown
        assert existing(cluster, "neap") == {first, "neap-20260101000009"}
    finally:
        finalize(cluster, "anchored", None)
    cluster.kubectl("delete", "deletebackuprequests.velero.io", f"{first}-retention", "--namespace=velero")  # as Velero
    eventually(lambda: existing(cluster, "neap") == {"neap-20260101000009"}, 120)


def test_what_was_made_by_hand_before_the_first_run_neither_counts_nor_goes(
    cluster: Cluster, eventually: Eventually
) -> None:
    cluster.apply(schedule("slack", NEVER, TEMPLATE), policy("slack", "slack", retention={"keepLast": 1}))
    names = [f"slack-2026010100000{number}" for number in range(2)]
    for name in names:
        cluster.velero("backup", "create", name, "--from-schedule=slack", "--wait")
    assert foresail(cluster, "retention", "slack").stdout.count("not a run of this Schedule") == 2
    assert existing(cluster, "slack") == set(names)
    record_run(cluster, "slack")
    eventually(lambda: existing(cluster, "slack") == {names[1]}, 120)


def test_an_extended_backup_outlives_its_ttl_and_others_do_not(cluster: Cluster, eventually: Eventually) -> None:
    """Velero looks for what has expired when it starts; the bucket keeps the expiration of the beginning."""
    cluster.apply(schedule("swell", NEVER, {**TEMPLATE, "ttl": "3m0s"}))
    cluster.apply(policy("swell", "swell", retention={"keepLast": 2}))
    names = back_up(cluster, "swell", 2)
    cluster.velero("backup", "create", "by-hand", "--from-schedule=swell", "--wait")
    assert "Velero deletes 2 by their ttl while a rule would" in foresail(cluster, "retention", "swell").stdout
    assert "expiration of 2 Backups extended" in foresail(cluster, "retention", "swell", "--extend").stderr
    assert "by their ttl" not in foresail(cluster, "retention", "swell").stdout
    eventually(lambda: expiration(cluster, "by-hand") < now(), 240)
    cluster.fault.kill("velero")
    cluster.fault.start("velero")
    eventually(lambda: existing(cluster, "swell") == set(names), 180)
    eventually(lambda: in_bucket(cluster) & {*names, "by-hand"} == set(names), 60)
    again = foresail(cluster, "retention", "swell", "--extend").stderr
    assert "expiration of 0 Backups extended" in again


def expiration(cluster: Cluster, backup: str) -> datetime:
    """Return when Velero deletes a Backup."""
    found = instant(cluster.get("backups.velero.io", backup, "--namespace=velero")["status"]["expiration"])
    assert found is not None
    return found


def finalize(cluster: Cluster, restore: str, finalizers: list[str] | None) -> None:
    """Give a Restore these finalizers, or none."""
    patch = json.dumps({"metadata": {"finalizers": finalizers}})
    cluster.kubectl("patch", "restores.velero.io", restore, "--namespace=velero", "--type=merge", f"--patch={patch}")


def copy_of(cluster: Cluster, name: str, copy: str, eventually: Eventually) -> None:
    """Make a Completed Backup like another one, a moment later, as far as the cluster's objects are concerned.

    Velero refuses it, for the location is read-only, and must have done so before its phase is overwritten.
    """
    found = cluster.get("backups.velero.io", name, "--namespace=velero")
    labels = found["metadata"]["labels"]
    metadata = {"name": copy, "namespace": "velero", "labels": labels}
    cluster.apply({**{key: found[key] for key in ("apiVersion", "kind", "spec")}, "metadata": metadata})

    def phase() -> str:
        return str(cluster.get("backups.velero.io", copy, "--namespace=velero").get("status", {}).get("phase", ""))

    eventually(lambda: phase() == "FailedValidation", 60)
    cluster.kubectl(
        "patch", "backups.velero.io", copy, "--namespace=velero", "--type=merge",
        '--patch={"status":{"phase":"Completed"}}',
    )  # fmt: skip


NIGHT = {"schedule": "0 22 * * *", "duration": "8h"}


def windows(**changed: object) -> dict[str, object]:
    """Return windows of which the one that is allowed has other values."""
    return {"windows": {"allowed": [{**NIGHT, **changed}]}}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (windows(), ""),
        ({"retention": {"keepGood": 2}}, "no rule keeps anything"),
        ({"retention": {"keepLast": 1, "keepGood": 0}}, "keepGood"),
        ({"timeZone": "Mars/Phobos"}, "not a time zone of the IANA database"),
        ({"spread": {"within": "25h"}}, "must be from 1s to 24h"),
        ({"spread": {"within": "0s"}}, "must be from 1s to 24h"),
        ({"windows": {}}, "no window: set allowed or excluded"),
        (windows(duration="745h"), "must be from 1m to 744h"),
        (windows(timeZone="Mars/Phobos"), "not a time zone of the IANA database"),
        ({"windows": {"excluded": [{**NIGHT, "duration": "30s"}]}}, "must be from 1m to 744h"),
        ({"windows": {"excluded": [{**NIGHT, "timeZone": "Mars/Phobos"}]}}, "not a time zone of the IANA database"),
        ({"windows": {"allowed": [NIGHT] * 9}}, "must have at most 8 items"),
        ({"startingDeadline": "8761h"}, "must be from 1m to 8760h"),
        ({"startingDeadline": "1d"}, "startingDeadline"),
        ({"priority": 1_000_001}, "priority"),
    ],
)
def test_policy_that_could_never_work_is_refused_with_its_reason(
    cluster: Cluster, spec: dict[str, object], said: str
) -> None:
    text = json.dumps(policy("broken", "none", **spec))
    words = ("create", "--dry-run=server", "--filename=-")
    if not said:
        cluster.kubectl(*words, text=text)
        return
    with pytest.raises(TestbedError, match=said):
        cluster.kubectl(*words, text=text)
