import json
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from foresail.cli.coverage import show
from foresail.cli.coverage.closing_commands import nightly
from foresail.cli.coverage.fix import first_backups, fixes, text_of
from foresail.cli.coverage.show import summary
from foresail.cli.main import main
from foresail.kube import connect
from foresail.kube.clock import now
from foresail.proof.claims import ClaimCoverage
from foresail.proof.coverage import NamespaceCoverage
from foresail.proof.reasons import Gap, Reason, Remedy
from foresail.scope.volumes import Method
from tests.unit.cli.canned import canned

VELERO = "/apis/velero.io/v1/namespaces/velero"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/velero/leases/foresail-schedules"
SELF_SERVICE_LEASE = "/apis/coordination.k8s.io/v1/namespaces/velero/leases/foresail-self-service"
FORBIDDEN = {"kind": "Status", "apiVersion": "v1", "reason": "Forbidden", "message": "not for you", "code": 403}


def listed(*items: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": list(items)}


def named(name: str, namespace: str = "", **rest: object) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {}}
    return {"metadata": metadata | ({"namespace": namespace} if namespace else {}), **rest}


def deployment(*flags: str) -> dict[str, Any]:
    server = {"name": "velero", "image": "velero/velero:v1.18.3", "args": ["server", *flags]}
    spec = {"template": {"spec": {"containers": [server]}}}
    return named("velero", "velero", spec=spec, status={"readyReplicas": 1, "replicas": 1})


def answers(phase_of_tenant: str = "Completed", **more: object) -> dict[str, Any]:
    template = {"includedNamespaces": ["shop", "gone"], "snapshotVolumes": False, **more}
    started = (now() - timedelta(hours=3)).isoformat()
    nightly = named(
        "nightly-1",
        "velero",
        spec=template,
        status={"phase": "Completed", "startTimestamp": started, "progress": {"itemsBackedUp": 7}},
    )
    nightly["metadata"]["labels"]["velero.io/schedule-name"] = "nightly"
    mine = named(
        "mine",
        "lab",
        spec={"schedule": "0 3 * * *", "template": {"backupSpec": {"includedNamespaces": ["shop"]}}},
        status={"nextRun": "2099-01-01T03:00:00Z"},
    )
    mine["metadata"]["uid"] = "of-mine"
    request = named("mine-1", "lab", spec={})
    request["metadata"] |= {"uid": "of-mine-1", "annotations": {"foresail.dev/schedule-uid": "of-mine"}}
    forged = named("forged", "shop", spec={})
    forged["metadata"] |= {"uid": "of-forged", "annotations": {"foresail.dev/schedule-uid": "of-mine"}}
    own = {"phase": phase_of_tenant, "startTimestamp": started, "progress": {"itemsBackedUp": 3}}
    of_tenant = named("lab-mine-1", "velero", spec={"includedNamespaces": ["lab"]}, status=own)
    of_tenant["metadata"]["annotations"] = {"foresail.dev/request-uid": "of-mine-1"}
    of_forged = named("shop-forged", "velero", spec={"includedNamespaces": ["shop"]}, status={**own, "phase": "Failed"})
    of_forged["metadata"]["annotations"] = {"foresail.dev/request-uid": "of-forged"}
    policy = named(
        "all",
        spec={
            "selector": {},
            "objective": {"rpo": "2h"},
            "windows": {"allowed": [{"schedule": "0 4 * * *", "duration": "30m"}]},
        },
    )
    claim = named("data", "shop", spec={"volumeName": "pv"}, status={"phase": "Bound"})
    return {
        "/api/v1/namespaces": listed(named("shop"), named("bank"), named("lab"), named("kube-system")),
        "/api/v1/persistentvolumeclaims": listed(claim),
        "/api/v1/persistentvolumes": listed(named("pv", spec={"awsElasticBlockStore": {}})),
        "/api/v1/pods": listed(),
        f"{VELERO}/backups": listed(nightly, of_tenant, of_forged),
        f"{VELERO}/backupstoragelocations": listed(
            named("default", "velero", spec={"default": True}, status={"phase": "Available"})
        ),
        f"{VELERO}/volumesnapshotlocations": listed(named("default", "velero", spec={"provider": "aws"})),
        "/apis/apps/v1/namespaces/velero/deployments": listed(deployment()),
        LEASE: {"spec": {"holderIdentity": "foresail-1", "renewTime": now().isoformat()}},
        "/apis/foresail.dev/v1alpha1/schedulepolicies": listed(policy),
        "/apis/oadp.openshift.io/v1alpha1/nonadminbackups": listed(request, forged),
        f"{VELERO}/schedules": listed(
            named(
                "nightly",
                "velero",
                spec={"schedule": "@daily", "template": template},
                status={"lastBackup": now().isoformat()},
            )
        ),
        "/apis/oadp.openshift.io/v1alpha1/nonadminschedules": listed(mine),
    }


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def command(*options: str, **changes: Any) -> tuple[int, str, str]:  # noqa: ANN401
        with canned(tmp_path, answers(**changes)) as server:
            code = main(["coverage", "--kubeconfig", str(server.kubeconfig), *options])
            assert server.writes == []
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def test_each_namespace_shows_what_covers_it_and_what_does_not(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = run("-A", "--rpo", "26h", "--fail-on", "gaps")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert code == 1
    assert list(lines) == ["NAMESPACE", "bank", "gone", "lab", "shop"]
    assert "NoSchedule,ObjectiveMissed" in lines["bank"]
    assert "NamespaceAbsent" in lines["gone"]
    assert "lab/mine" in lines["lab"]
    assert "nightly-1 (3h ago, without the data of data)" in lines["shop"]
    assert "0/1" in lines["shop"]
    assert lines["shop"].endswith("VolumeLeftOut")
    fields = '{"spec":{"template":{"snapshotVolumes":true}}}'
    assert err.splitlines() == [
        "1 of 4 namespaces are safe, 1 AtRisk, 2 Unsafe.",
        "What closes the gaps, or shows their cause (--fix runs those that change something):",
        f"  foresail schedule create bank-daily --schedule '{nightly('bank')}' --include-namespaces bank -n velero",
        f"  kubectl patch schedules.velero.io nightly --type merge -p '{fields}' -n velero",
        "  kubectl edit schedules.velero.io nightly -n velero",
    ]


def test_of_a_velero_whose_rules_are_not_known_nothing_is_called_safe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = answers()
    newer = deployment()
    newer["spec"]["template"]["spec"]["containers"][0]["image"] = "velero/velero:v1.19.0"
    cluster["/apis/apps/v1/namespaces/velero/deployments"] = listed(newer)
    with canned(tmp_path, cluster) as server:
        main(["coverage", "-A", "-o", "json", "--kubeconfig", str(server.kubeconfig)])
    found = {each["namespace"]: each for each in json.loads(capsys.readouterr().out)["namespaces"]}
    assert "Safe" not in {each["verdict"] for each in found.values()}
    assert found["lab"]["verdict"] == "Unknown"
    assert "Velero v1.19.0 is unknown: Foresail has the rules of 1.17 and 1.18" in found["lab"]["message"]


def test_where_foresail_is_not_installed_the_last_lines_say_what_it_would_add(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = answers()
    del cluster["/apis/foresail.dev/v1alpha1/schedulepolicies"], cluster[LEASE]
    with canned(tmp_path, cluster) as server:
        main(["coverage", "-A", "--kubeconfig", str(server.kubeconfig)])
        shown = capsys.readouterr()
        main(["coverage", "-A", "-o", "json", "--kubeconfig", str(server.kubeconfig)])
        data = capsys.readouterr()
    gaps, _, rest = shown.err.partition("Foresail is not installed, and nothing above needs it.")
    assert "foresail schedule create bank-daily" in gaps
    assert all(word in rest for word in ("`foresail install --dry-run`", "--self-service", "--restore-checks"))
    assert "not installed" not in data.err


SCHEDULES = "/apis/velero.io/v1/namespaces/velero/schedules"


def fixed(folder: Path, *options: str, **replaced: Any) -> tuple[int, list[str], dict[str, Any]]:  # noqa: ANN401
    """Return the exit code of `coverage --fix`, what it wrote and the bodies of it."""
    made = named("bank-daily", "velero", spec={"schedule": "7 3 * * *", "template": {}})
    made["metadata"] |= {"uid": "of-bank", "resourceVersion": "1"}
    cluster = answers()
    schedules = cluster[SCHEDULES]
    cluster[SCHEDULES] = lambda _, sent: made if sent else schedules
    cluster[f"{SCHEDULES}/bank-daily"] = made
    cluster[f"{SCHEDULES}/nightly"] = schedules["items"][0]
    cluster[f"{VELERO}/backups"] = lambda _, sent: (
        {**sent, "metadata": {**sent["metadata"], "uid": "b"}} if sent else (listed())
    )
    with canned(folder, cluster | replaced) as server:
        code = main(["coverage", "-A", "--fix", "--kubeconfig", str(server.kubeconfig), *options])
    return code, server.writes, server.bodies


def test_fix_runs_what_closes_gaps_and_a_first_backup_once_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, writes, bodies = fixed(tmp_path, "--confirm")
    err = capsys.readouterr().err
    assert {f"POST {SCHEDULES}", f"PATCH {SCHEDULES}/nightly"} < set(writes)
    assert bodies[f"POST {SCHEDULES}"]["spec"]["schedule"] == nightly("bank")
    assert bodies[f"PATCH {SCHEDULES}/nightly"] == {"spec": {"template": {"snapshotVolumes": True}}}
    assert "To close the gaps of 2 namespaces:" in err
    assert "To make a backup now of " in err
    assert "$ foresail schedule run bank-daily -n velero" in err
    assert f"POST {VELERO}/backups" in writes
    assert code in (0, 1)


UNREADY = {"/apis/apps/v1/namespaces/velero/deployments": listed({**deployment(), "status": {}})}
UNAVAILABLE = {
    f"{VELERO}/backupstoragelocations": listed(
        named("default", "velero", spec={"default": True}, status={"phase": "Unavailable"})
    )
}


@pytest.mark.parametrize(
    ("replaced", "first", "why"),
    [
        (UNREADY, "foresail doctor -n velero", "0 of 1 pods of Velero's Deployment velero are ready"),
        (UNAVAILABLE, "velero backup-location get -n velero", "BackupStorageLocation velero/default is Unavailable"),
    ],
    ids=["Velero does not run", "the location is gone"],
)
def test_fix_makes_no_backup_that_fails_and_shows_the_outage_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], replaced: dict[str, Any], first: str, why: str
) -> None:
    _, writes, _ = fixed(tmp_path, "--confirm", **replaced)
    err = capsys.readouterr().err
    assert f"POST {VELERO}/backups" not in writes
    assert f"POST {SCHEDULES}" in writes  # it closes its gap now as later
    assert "make a backup now" not in err
    assert f"First see: {first}" in err
    assert f"No backup is offered now: {why}" in err
    with canned(tmp_path, answers() | replaced) as server:
        main(["coverage", "-A", f"--kubeconfig={server.kubeconfig}"])
    listed_commands = capsys.readouterr().err.partition("What closes the gaps")[2].splitlines()[1:]
    assert listed_commands[0].strip() == first
    assert not any("schedule run" in command for command in listed_commands)


def test_fix_changes_nothing_without_a_yes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fixed(tmp_path)[:2] == (2, [])
    assert "refusing to change the cluster without confirmation (no terminal)" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdin.readline", lambda: "n\n")
    assert fixed(tmp_path)[:2] == (0, [])
    assert capsys.readouterr().err.count("Nothing was run.") == 2


def test_the_commands_for_many_namespaces_do_not_pile_up_and_are_bounded() -> None:
    gap = Gap(Reason.NO_SCHEDULE, "none")
    many = [NamespaceCoverage(f"team-{number}", gaps=(gap,)) for number in range(100)]
    listed_fixes = fixes(many, "velero", now(), is_tenant=False)
    minutes = Counter(fix.words[fix.words.index("--schedule") + 1] for fix in listed_fixes)
    assert max(minutes.values()) <= 3
    assert all(0 <= int(minute.split()[1]) < 6 for minute in minutes)
    assert len(text_of(listed_fixes).splitlines()) == 22
    assert text_of(listed_fixes).endswith("and 80 more: foresail report --html FILE lists all of them")
    assert text_of([]) == ""


def test_a_tenant_gets_commands_of_the_own_namespace() -> None:
    bare = NamespaceCoverage("shop", gaps=(Gap(Reason.NO_SCHEDULE, "none"),))
    (create,) = fixes([bare], "velero", now(), is_tenant=True)
    assert create.command == f"foresail backup schedule create daily --schedule '{nightly('shop')}' -n shop"
    assert create.changes
    (backup,) = first_backups([bare], "velero", now(), is_tenant=True)
    assert backup.command.startswith("foresail backup create first-")
    text = "no VolumeSnapshotLocation"
    left_out = Gap(Reason.VOLUME_LEFT_OUT, text, "shop/nightly", remedy=Remedy.FILE_SYSTEM)
    missed = Gap(Reason.OBJECTIVE_MISSED, "no good backup has the data of claim data", "shop/daily")
    claim = ClaimCoverage("data", Method.NONE, (), (left_out, missed))  # one more run would leave it out too
    (patch,) = fixes([NamespaceCoverage("shop", claims=(claim,))], "velero", now(), is_tenant=True)
    fields = '{"spec":{"template":{"backupSpec":{"defaultVolumesToFsBackup":true}}}}'
    assert patch.words[2:8] == ["nonadminschedules", "nightly", "--type", "merge", "-p", fields]


def test_gaps_alone_are_no_failure_unless_asked_for(run: Callable[..., tuple[int, str, str]]) -> None:
    assert run("-A")[0] == 0
    code, out, err = run("-n", "lab", "--fail-on", "gaps")
    assert code == 0
    assert err.startswith("Safe: the newest good backup, lab-mine-1, started ")
    assert "bank" not in out
    assert run("-n", "lab", "--fail-on", "not-safe")[0] == 0
    assert run("-n", "shop", "--fail-on", "not-safe", "--rpo", "26h")[0] == 1


@pytest.mark.parametrize(("days", "verdict"), [(0, "Safe: the newest good backup, lab-mine-1"), (3, "Unknown: ")])
def test_nothing_is_safe_by_a_clock_that_is_not_the_api_servers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, days: int, verdict: str
) -> None:
    """The last backup started three hours ago by this machine, and three days ago by everybody else."""
    right = now
    lease = {"spec": {"holderIdentity": "foresail-1", "renewTime": right().isoformat()}}
    for module in (sys.modules[__name__], show, connect):
        monkeypatch.setattr(module, "now", lambda: right() - timedelta(days=days))
    with canned(tmp_path, {**answers(), LEASE: lease}) as server:
        main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "lab"])
    err = capsys.readouterr().err
    assert err.startswith(verdict)
    assert ("the clock of this machine is" in err) is (days > 0)


def test_the_verdicts_of_the_summary_add_up(run: Callable[..., tuple[int, str, str]]) -> None:
    first = run("-A", "--rpo", "26h")[2].splitlines()[0]
    safe, total, *others = (int(word) for word in first.replace(",", "").split() if word.isdecimal())
    assert safe + sum(others) == total


def test_an_excluded_namespace_is_not_counted() -> None:
    out = NamespaceCoverage("out", is_excluded=True)
    assert summary([out]) == "0 of 0 namespaces are safe."
    shop = NamespaceCoverage("shop", ("nightly",), gaps=(Gap(Reason.PAUSED, "nightly is paused"),), is_new=True)
    assert summary([out, shop]) == "AtRisk: nightly is paused."


def test_json_has_every_gap_with_its_message(run: Callable[..., tuple[int, str, str]]) -> None:
    found = json.loads(run("-n", "shop", "-o", "json", "--rpo", "26h")[1])
    (shop,) = found["namespaces"]
    assert found["gaps"] == 1
    assert found["objectiveSeconds"] == 26 * 3600
    assert shop["newestGoodBackup"]["name"] == "nightly-1"
    assert shop["claims"][0]["gaps"][0]["message"] == (
        "no schedule saves the data of claim data: nightly: snapshotVolumes is false and no pod mounts it"
    )


def test_the_wide_table_has_a_line_for_each_claim(run: Callable[..., tuple[int, str, str]]) -> None:
    assert "VolumeLeftOut: no schedule saves the data of claim data" in run("-n", "shop", "-o", "wide")[1]


def test_a_namespace_that_does_not_exist_is_an_error(run: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = run("-n", "nowhere")
    assert code == 1
    assert "namespace nowhere does not exist" in err


def test_an_objective_that_is_no_duration_is_wrong_usage(run: Callable[..., tuple[int, str, str]]) -> None:
    assert run("-A", "--rpo", "soon")[0] == 2


def test_the_policy_of_a_schedule_has_the_objective_and_moves_the_next_run(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    (shop,) = json.loads(run("-n", "shop", "-o", "json")[1])["namespaces"]
    assert shop["objectiveSeconds"] == 2 * 3600
    assert [each["reason"] for each in shop["gaps"]] == ["ObjectiveMissed"]
    assert shop["nextRun"].endswith("T04:00:00+00:00")  # at midnight by the schedule, from four on by the window


def test_the_runs_of_a_tenants_schedule_count_and_those_that_pretend_to_be_do_not(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    (lab,) = json.loads(run("-n", "lab", "-o", "json")[1])["namespaces"]
    assert (lab["gaps"], lab["nextRun"]) == ([], "2099-01-01T03:00:00+00:00")
    assert lab["newestGoodBackup"]["name"] == "lab-mine-1"
    (lab,) = json.loads(run("-n", "lab", "-o", "json", phase_of_tenant="PartiallyFailed")[1])["namespaces"]
    assert [each["reason"] for each in lab["gaps"]] == ["RunsNotComplete"]
    assert "the last 1 of 1 runs of lab/mine" in lab["gaps"][0]["message"]


def answers_with(template: dict[str, Any]) -> dict[str, Any]:
    """Return the answers of a cluster whose tenant's schedule has this template."""
    found = answers()
    (mine,) = found["/apis/oadp.openshift.io/v1alpha1/nonadminschedules"]["items"]
    mine["spec"]["template"]["backupSpec"] = template
    return found


@pytest.mark.parametrize(
    ("template", "method"),
    [
        ({"includedResources": ["pods", "persistentvolumeclaims"]}, "Snapshot"),
        ({"includeClusterResources": False}, "None"),
    ],
)
def test_the_volumes_of_a_tenants_template_come_with_their_claims_unless_excluded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], template: dict[str, Any], method: str
) -> None:
    found = answers_with(template)
    claim = named("data", "lab", spec={"volumeName": "pv"}, status={"phase": "Bound"})
    found["/api/v1/persistentvolumeclaims"] = listed(claim)
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "lab", "-o", "json"]) == 0
    (lab,) = json.loads(capsys.readouterr().out)["namespaces"]
    assert lab["claims"][0]["method"] == method


def test_a_config_map_that_a_tenant_names_without_leave_is_not_read(tmp_path: Path) -> None:
    found = answers_with({"resourcePolicy": {"kind": "configmap", "name": "any"}})
    policy = named("tenants", spec={"namespaceSelector": {}})
    found["/apis/foresail.dev/v1alpha1/selfservicepolicies"] = listed(policy)
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-A"]) == 0
    asked = [each.rpartition("/")[2] for each in server.asked if "/configmaps/" in each]
    assert asked == ["foresail-snapshot-volumes"], "the operator's own, instead of the one that it refuses"


def mounting(namespace: str) -> dict[str, Any]:
    pod = named(
        "db",
        namespace,
        spec={
            "nodeName": "worker",
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
            "containers": [{"volumeMounts": [{"name": "v"}]}],
        },
    )
    return {**pod, "status": {"phase": "Running"}}


@pytest.mark.parametrize(("flags", "method"), [([], "None"), (["--default-volumes-to-fs-backup=true"], "FileSystem")])
def test_a_flag_of_velero_is_the_default_of_a_template(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], method: str
) -> None:
    found = answers()
    found["/api/v1/pods"] = listed(mounting("shop"))
    found["/apis/apps/v1/namespaces/velero/deployments"] = listed(deployment(*flags))
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "-o", "json"]) == 0
    (shop,) = json.loads(capsys.readouterr().out)["namespaces"]
    assert shop["claims"][0]["method"] == method


def test_without_a_deployment_of_velero_it_is_said_that_its_flags_are_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answers()
    found["/apis/apps/v1/namespaces/velero/deployments"] = listed()
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "-o", "json"]) == 0
    assert "no Deployment in namespace velero runs Velero: the defaults of its flags" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rules", "template", "method"),
    [
        ({"fileSystem": "Allowed", "defaults": {"defaultVolumesToFsBackup": True}}, {}, "FileSystem"),
        ({"defaults": {"defaultVolumesToFsBackup": True}}, {"defaultVolumesToFsBackup": False}, "Snapshot"),
        ({"required": {"snapshotVolumes": False}}, {}, "None"),
        ({"defaults": {"resourcePolicy": {"kind": "configmap", "name": "rules"}}}, {}, "None"),
    ],
)
def test_a_self_service_policy_settles_how_a_tenants_volumes_are_saved(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rules: dict[str, Any],
    template: dict[str, Any],
    method: str,
) -> None:
    found = answers_with(template)
    claim = named("data", "lab", spec={"volumeName": "pv"}, status={"phase": "Bound"})
    found["/api/v1/persistentvolumeclaims"] = listed(claim)
    found["/api/v1/pods"] = listed(mounting("lab"))
    policy = named("tenants", spec={"namespaceSelector": {}, "backup": rules})
    found["/apis/foresail.dev/v1alpha1/selfservicepolicies"] = listed(policy)
    skips = "{version: v1, volumePolicies: [{action: {type: skip}}]}"
    snaps = skips.replace("skip", "snapshot")
    texts = {"rules": skips, "foresail-skip-volumes": skips, "foresail-snapshot-volumes": snaps}
    for name, text in texts.items():
        found[f"/api/v1/namespaces/velero/configmaps/{name}"] = named(name, "velero", data={"policy": text})
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "lab", "-o", "json"]) == 0
    (lab,) = json.loads(capsys.readouterr().out)["namespaces"]
    assert lab["claims"][0]["method"] == method


def resource(name: str, kind: str, scope: str) -> dict[str, Any]:
    verbs = ["create", "delete", "get", "list"]
    return {"resource": name, "responseKind": {"kind": kind}, "scope": scope, "verbs": verbs}


@pytest.mark.parametrize(
    ("included", "is_covered"),
    [(["clusterroles"], False), (["roles"], True), (["cm"], True), (["clusterroles", "widgets"], False)],
)
def test_a_template_of_cluster_scoped_kinds_covers_no_namespace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], included: list[str], is_covered: bool
) -> None:
    found = answers(includedResources=included)
    rows = [resource("clusterroles", "ClusterRole", "Cluster"), resource("roles", "Role", "Namespaced")]
    group = {"metadata": {"name": "rbac.authorization.k8s.io"}, "versions": [{"version": "v1", "resources": rows}]}
    found["/apis"] = {"kind": "APIGroupDiscoveryList", "items": [group]}
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "-o", "json"]) == 0
    printed = capsys.readouterr()
    (shop,) = json.loads(printed.out)["namespaces"]
    assert (shop["schedules"] == ["nightly"]) == is_covered
    assert printed.err == ""


def test_without_discovery_it_is_said_that_kinds_are_not_judged(run: Callable[..., tuple[int, str, str]]) -> None:
    _, out, err = run("-n", "shop", "-o", "json", includedResources=["clusterroles"])
    assert json.loads(out)["namespaces"][0]["schedules"] == ["nightly"]
    assert "not judged is whether a template includes cluster-scoped kinds only" in err


@pytest.mark.parametrize(
    ("config_map", "reason", "message"),
    [
        ({"policy": "{version: v1, volumePolicies: [{action: {type: skip}}]}"}, "VolumeLeftOut", "policy skips it"),
        ({"policy": "{version: v2}"}, "SpecRefused", "the global volume policies: "),
        (None, "SpecRefused", "the global volume policies: ConfigMap baseline does not exist"),
    ],
)
def test_global_volume_policies_hold_for_every_schedule(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    config_map: dict[str, str] | None,
    reason: str,
    message: str,
) -> None:
    found = answers(snapshotVolumes=True)
    flags = ["--global-backup-volume-policies-configmap=baseline"]
    found["/apis/apps/v1/namespaces/velero/deployments"] = listed(deployment(*flags))
    if config_map is not None:
        found["/api/v1/namespaces/velero/configmaps/baseline"] = named("baseline", "velero", data=config_map)
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "-o", "json"]) == 0
    (shop,) = json.loads(capsys.readouterr().out)["namespaces"]
    gaps = {gap["reason"]: gap["message"] for each in (shop, *shop["claims"]) for gap in each["gaps"]}
    assert message in gaps[reason]


def test_a_namespace_list_longer_than_a_tenants_may_be_is_judged(run: Callable[..., tuple[int, str, str]]) -> None:
    names = ["shop", *(f"team-{number}" for number in range(600))]
    selector = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}
    (shop,) = json.loads(run("-n", "shop", "-o", "json", includedNamespaces=names)[1])["namespaces"]
    assert shop["schedules"] == ["nightly"]
    (shop,) = json.loads(run("-n", "shop", "-o", "json", orLabelSelectors=[selector])[1])["namespaces"]
    assert "'Near' is no operator" in shop["gaps"][0]["message"]


def test_without_a_volume_snapshot_location_native_snapshots_are_a_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answers(snapshotVolumes=True)
    found[f"{VELERO}/volumesnapshotlocations"] = listed()
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "-o", "json"]) == 0
    (shop,) = json.loads(capsys.readouterr().out)["namespaces"]
    assert "Velero has no VolumeSnapshotLocation" in shop["claims"][0]["gaps"][0]["message"]
    assert shop["claims"][0]["saved"] is False


@pytest.mark.parametrize(("is_tenants", "newest"), [(False, "by-hand"), (True, "nightly-1")])
def test_a_backup_in_a_tenants_bucket_is_none_of_the_administrators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_tenants: bool, newest: str
) -> None:
    found = answers()
    location = named("other", "velero", spec={}, status={"phase": "Available"})
    location["metadata"]["annotations"] = {"openshift.io/oadp-nabsl-origin-namespace": "x"} if is_tenants else {}
    status = {"phase": "Completed", "startTimestamp": now().isoformat(), "progress": {"itemsBackedUp": 9}}
    by_hand = named("by-hand", "velero", spec={"storageLocation": "other"}, status=status)
    for path, more in ((f"{VELERO}/backupstoragelocations", location), (f"{VELERO}/backups", by_hand)):
        found[path] = listed(*found[path]["items"], more)
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "-o", "json"]) == 0
    (shop,) = json.loads(capsys.readouterr().out)["namespaces"]
    assert shop["newestGoodBackup"]["name"] == newest


def test_a_resource_policy_that_cannot_be_read_proves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answers(snapshotVolumes=True, resourcePolicy={"kind": "configmap", "name": "rules"})
    found["/api/v1/namespaces/velero/configmaps/rules"] = FORBIDDEN
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "-o", "json"]) == 0
    (shop,) = json.loads(capsys.readouterr().out)["namespaces"]
    assert "the policies in ConfigMap rules cannot be read" in shop["claims"][0]["gaps"][0]["message"]


def test_a_missing_resource_policy_is_a_gap(run: Callable[..., tuple[int, str, str]]) -> None:
    rules = {"kind": "configmap", "name": "rules"}
    (shop,) = json.loads(run("-n", "shop", "-o", "json", resourcePolicy=rules)[1])["namespaces"]
    assert [each["reason"] for each in shop["gaps"]] == ["SpecRefused", "ObjectiveMissed"]
    assert "ConfigMap rules does not exist" in shop["gaps"][0]["message"]


def test_metrics_have_at_most_six_series_for_each_namespace(run: Callable[..., tuple[int, str, str]]) -> None:
    families = list(text_string_to_metric_families(run("-A", "-o", "metrics")[1]))
    samples = [sample for family in families for sample in family.samples]
    per_namespace = Counter(sample.labels["namespace"] for sample in samples if sample.labels)
    assert set(per_namespace) == {"shop", "bank", "lab", "gone"}
    assert max(per_namespace.values()) == 6
    values = {(sample.name, sample.labels.get("namespace")): sample.value for sample in samples}
    assert values["foresail_namespace_good_backup_timestamp_seconds", "bank"] == 0
    assert ("foresail_namespace_good_backup_timestamp_seconds", "gone") not in values
    started = values["foresail_namespace_good_backup_timestamp_seconds", "shop"]
    assert abs(now().timestamp() - 3 * 3600 - started) < 60
    assert values["foresail_namespace_objective_seconds", "shop"] == 2 * 3600
    assert (values["foresail_namespace_claims", "shop"], values["foresail_namespace_claims_saved", "shop"]) == (1, 0)
    assert values["foresail_namespace_gaps", "shop"] == 2
    assert abs(values["foresail_coverage_timestamp_seconds", None] - now().timestamp()) < 60


def refused(message: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Accepted", "status": "False", "reason": "PolicyViolation", "message": message}]}


@pytest.mark.parametrize(
    ("status", "cause"),
    [(refused("spec.schedule fires within 1m"), "spec.schedule fires within 1m"), ({}, "has not processed it")],
)
def test_a_tenants_schedule_that_never_runs_protects_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: dict[str, Any], cause: str
) -> None:
    found = answers()
    (mine,) = found["/apis/oadp.openshift.io/v1alpha1/nonadminschedules"]["items"]
    mine["status"] = status
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "lab", "-o", "json"]) == 0
    (lab,) = json.loads(capsys.readouterr().out)["namespaces"]
    assert [each["reason"] for each in lab["gaps"]] == ["ScheduleNotRunning"]
    assert cause in lab["gaps"][0]["message"]


def test_a_schedule_that_never_fires_protects_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answers()
    (nightly,) = found[f"{VELERO}/schedules"]["items"]
    nightly["spec"]["schedule"] = "0 3 31 2 *"
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "-o", "wide"]) == 0
    assert "ScheduleNotRunning: nightly does not run: '0 3 31 2 *' never fires" in capsys.readouterr().out


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
TENANTS = "/apis/oadp.openshift.io/v1alpha1/namespaces/lab"


def test_schedules_that_nobody_runs_are_a_gap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    off = {"/apis/apps/v1/namespaces/velero/deployments": listed(deployment("--disable-controllers=schedule"))}
    found = {name: value for name, value in answers().items() if name != LEASE} | off
    with canned(tmp_path, found) as server:
        code = main(["coverage", "--kubeconfig", str(server.kubeconfig), "-A", "--fail-on", "gaps", "-o", "json"])
    spaces = {each["namespace"]: each for each in json.loads(capsys.readouterr().out)["namespaces"]}
    assert code == 1
    assert [each["reason"] for each in spaces["shop"]["gaps"]][:1] == ["NobodyRuns"]
    assert [each["reason"] for each in spaces["lab"]["gaps"]] == ["NobodyRuns"]
    assert spaces["shop"]["nextRun"] is None


def operator(name: str, *flags: str) -> dict[str, Any]:
    container = {"name": "operator", "image": "foresail", "args": ["operator", "run", f"--lease-name={name}", *flags]}
    found = named(name, "velero", spec={"template": {"spec": {"containers": [container]}}})
    found["metadata"]["labels"] = {"app.kubernetes.io/name": name}
    return found


SELF_SERVICE = operator("foresail-self-service", "--schedules=false", "--self-service=true")


@pytest.mark.parametrize(
    ("operators", "lab"),
    [
        ([operator("foresail-schedules")], ["NobodyRuns"]),
        ([operator("foresail-schedules"), SELF_SERVICE], ["NobodyRuns"]),
        ([operator("foresail-schedules", "--self-service")], []),
        ([], []),  # it runs outside of the cluster, or its Deployment may not be listed
    ],
)
def test_a_tenants_schedule_needs_the_replica_that_runs_self_service(
    operators: list[dict[str, Any]], lab: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    off = deployment("--disable-controllers=schedule")
    found = answers() | {"/apis/apps/v1/namespaces/velero/deployments": listed(off, *operators)}
    with canned(tmp_path, found) as server:
        main(["coverage", "--kubeconfig", str(server.kubeconfig), "-A", "-o", "json", "--rpo", "26h"])
    spaces = {each["namespace"]: each for each in json.loads(capsys.readouterr().out)["namespaces"]}
    assert [each["reason"] for each in spaces["lab"]["gaps"]] == lab
    assert "NobodyRuns" not in [each["reason"] for each in spaces["shop"]["gaps"]]


def test_expressions_are_read_in_the_zone_of_the_operators_deployment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zoned = operator("foresail-schedules", "--velero-time-zone=Asia/Tokyo")
    found = answers() | {
        "/apis/apps/v1/namespaces/velero/deployments": listed(deployment(), zoned),
        "/apis/foresail.dev/v1alpha1/schedulepolicies": listed(),
    }
    with canned(tmp_path, found) as server:
        main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "-o", "json"])
    (shop,) = json.loads(capsys.readouterr().out)["namespaces"]
    assert "T15:00:00" in shop["nextRun"]


def test_a_velero_server_that_is_not_recognised_leaves_it_unknown_who_runs_the_schedules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server_of = {"name": "backup", "image": "registry.example/backup:1", "args": ["server"]}
    renamed = named("backup", "velero", spec={"template": {"spec": {"containers": [server_of]}}})
    found = answers() | {"/apis/apps/v1/namespaces/velero/deployments": listed(renamed)}
    with canned(tmp_path, found) as server:
        main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "-o", "json"])
    (shop,) = json.loads(capsys.readouterr().out)["namespaces"]
    assert [each["reason"] for each in shop["gaps"]][:1] == ["RunnerUnknown"]


@pytest.mark.parametrize("phase", ["Unavailable", ""])
def test_a_location_that_is_not_available_is_a_gap(
    phase: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location = named("default", "velero", spec={"default": True}, status={"phase": phase})
    found = answers(storageLocation="default") | {f"{VELERO}/backupstoragelocations": listed(location)}
    with canned(tmp_path, found) as server:
        code = main(
            ["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "--fail-on", "gaps", "-o", "json"]
        )
    (shop,) = json.loads(capsys.readouterr().out)["namespaces"]
    assert code == 1
    assert [each["reason"] for each in shop["gaps"]][:1] == ["LocationUnavailable"]


@pytest.mark.parametrize(
    ("uid", "reasons"), [("of-another-cluster", ["ObjectiveMissed"]), ("", ["ObjectiveMissed", "OriginUnknown"])]
)
def test_a_backup_of_another_cluster_proves_nothing(
    uid: str, reasons: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = (now() - timedelta(hours=1)).isoformat()
    status = {
        "phase": "Completed",
        "startTimestamp": ended,
        "completionTimestamp": ended,
        "progress": {"itemsBackedUp": 7},
    }
    synced = named("nightly-1", "velero", spec={"includedNamespaces": ["shop"]}, status=status)
    synced["metadata"] |= {
        "creationTimestamp": now().isoformat(),
        "labels": {"velero.io/schedule-name": "nightly"},
        "annotations": {"foresail.dev/schedule-uid": uid} if uid else {},
    }
    with canned(tmp_path, answers() | {f"{VELERO}/backups": listed(synced)}) as server:
        main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "--rpo", "26h", "-o", "json"])
        main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "shop", "--rpo", "26h", "-o", "metrics"])
    out = capsys.readouterr().out
    (shop,) = json.loads(out[: out.index("# HELP")])["namespaces"]
    assert shop["newestGoodBackup"] is None
    assert [each["reason"] for each in shop["gaps"]] == reasons
    assert 'foresail_namespace_good_backup_timestamp_seconds{namespace="shop"} 0' in out


def test_a_tenant_sees_their_own_namespace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = answers()
    (mine,) = cluster["/apis/oadp.openshift.io/v1alpha1/nonadminschedules"]["items"]
    found = {
        REVIEWS: {"status": {"allowed": False}},
        f"{TENANTS}/nonadminschedules": listed(mine),
        f"{TENANTS}/nonadminbackups": listed(),
    }
    with canned(tmp_path, found) as server:
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "lab"]) == 0
        printed = capsys.readouterr()
        assert "lab/mine" in printed.out
        assert "Schedules of administrators, which you may not list, may cover it as well" in printed.err
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-A"]) == 1
    assert "hint: name your own namespace with -n" in capsys.readouterr().err


def verdicts(folder: Path, capsys: pytest.CaptureFixture[str], found: dict[str, Any], *options: str) -> dict[str, Any]:
    """Return what is said of each namespace of a cluster."""
    with canned(folder, found) as server:
        main(["coverage", "--kubeconfig", str(server.kubeconfig), "-o", "json", *(options or ("-A", "--rpo", "26h"))])
    return {each["namespace"]: each for each in json.loads(capsys.readouterr().out)["namespaces"]}


def test_each_namespace_has_one_verdict_with_its_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = verdicts(tmp_path, capsys, answers())
    assert {name: each["verdict"] for name, each in found.items()} == {
        "bank": "Unsafe", "gone": "AtRisk", "lab": "Safe", "shop": "Unsafe"
    }  # fmt: skip
    assert found["lab"]["message"].startswith("the newest good backup, lab-mine-1, started ")
    assert found["shop"]["message"].startswith("no schedule saves the data of claim data: nightly: ")


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        (1, "lab/mine: 0 of 1 pods of Velero's Deployment velero are ready"),
        (0, "lab/mine: Velero's Deployment velero is scaled to 0 pods"),
    ],
)
def test_without_a_pod_of_velero_nothing_is_safe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], replicas: int, message: str
) -> None:
    stopped = deployment() | {"status": {}}
    stopped["spec"]["replicas"] = replicas
    found = answers() | {"/apis/apps/v1/namespaces/velero/deployments": listed(stopped)}
    lab = verdicts(tmp_path, capsys, found)["lab"]
    assert (lab["verdict"], lab["message"]) == ("AtRisk", message)
    with canned(tmp_path, found) as server:
        assert main(["schedule", "get", "--kubeconfig", str(server.kubeconfig), "-n", "velero"]) == 0
        assert capsys.readouterr().out.rstrip().endswith("VeleroNotReady")
        assert main(["coverage", "--kubeconfig", str(server.kubeconfig), "-A", "-o", "metrics"]) == 0
    assert 'foresail_namespace_safety{namespace="lab",verdict="AtRisk"} 1' in capsys.readouterr().out


@pytest.mark.parametrize(("age", "verdict"), [(40, "Safe"), (240, "AtRisk")])
def test_a_server_outside_of_its_deployment_shows_by_its_locations_that_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], age: int, verdict: str
) -> None:
    beside = deployment() | {"status": {}}
    beside["spec"]["replicas"] = 0
    scaled = {"time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    beside["metadata"]["managedFields"] = [scaled]
    status = {"phase": "Available", "lastValidationTime": (now() - timedelta(seconds=age)).isoformat()}
    location = named("default", "velero", spec={"default": True}, status=status)
    found = answers() | {
        "/apis/apps/v1/namespaces/velero/deployments": listed(beside),
        f"{VELERO}/backupstoragelocations": listed(location),
    }
    assert verdicts(tmp_path, capsys, found)["lab"]["verdict"] == verdict


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("/apis/foresail.dev/v1alpha1/schedulepolicies", ("-A",), "unknown is the objective that a SchedulePolicy"),
        (f"{VELERO}/volumesnapshotlocations", (), "unknown is whether Velero's plugins can snapshot"),
        ("/apis/foresail.dev/v1alpha1/selfservicepolicies", (), "unknown is which defaults SelfServicePolicies set"),
    ],
)
def test_what_the_reader_may_not_see_is_unknown_and_no_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, options: tuple[str, ...], message: str
) -> None:
    (claim,) = answers()["/api/v1/persistentvolumeclaims"]["items"]
    claim["metadata"]["namespace"] = "lab"
    found = answers() | {path: FORBIDDEN, "/api/v1/persistentvolumeclaims": listed(claim)}
    (_, of_tenant, _) = found[f"{VELERO}/backups"]["items"]
    of_tenant["status"]["volumeSnapshotsCompleted"] = 1
    lab = verdicts(tmp_path, capsys, found, *options)["lab"]
    assert (lab["verdict"], lab["gaps"], lab["claims"][0]["gaps"]) == ("Unknown", [], [])
    assert lab["message"].startswith(message)
    assert lab["unknown"]


LEFT_OUT = {
    "type": "DataIncomplete",
    "status": "True",
    "reason": "VolumesLeftOut",
    "message": "in any words",
}
DATA = {"count": 1, "claims": ["data"]}


def test_an_administrator_hears_what_the_operator_says_a_backup_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (claim,) = answers()["/api/v1/persistentvolumeclaims"]["items"]
    claim["metadata"]["namespace"] = "lab"
    found = answers() | {"/api/v1/persistentvolumeclaims": listed(claim)}
    (_, of_tenant, _) = found[f"{VELERO}/backups"]["items"]
    of_tenant["status"]["volumeSnapshotsCompleted"] = 1
    assert verdicts(tmp_path, capsys, found)["lab"]["verdict"] == "Safe"
    (request, _) = found["/apis/oadp.openshift.io/v1alpha1/nonadminbackups"]["items"]
    request["status"] = {"conditions": [LEFT_OUT], "volumesLeftOut": DATA}
    lab = verdicts(tmp_path, capsys, found)["lab"]
    assert lab["verdict"] == "Unsafe"
    assert "mine, lab-mine-1, has no snapshot of claim data" in lab["message"]


@pytest.mark.parametrize("volumes", [{}, {"volumesLeftOut": {"count": 2, "claims": ["other"]}}])
def test_claims_that_a_backup_left_out_and_does_not_all_name_are_not_taken_for_saved(
    volumes: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (claim,) = answers()["/api/v1/persistentvolumeclaims"]["items"]
    claim["metadata"]["namespace"] = "lab"
    found = answers() | {"/api/v1/persistentvolumeclaims": listed(claim)}
    (_, of_tenant, _) = found[f"{VELERO}/backups"]["items"]
    of_tenant["status"]["volumeSnapshotsCompleted"] = 1
    (request, _) = found["/apis/oadp.openshift.io/v1alpha1/nonadminbackups"]["items"]
    request["status"] = {"conditions": [LEFT_OUT], **volumes}
    assert verdicts(tmp_path, capsys, found)["lab"]["verdict"] != "Safe"


def own_cluster(*conditions: dict[str, str]) -> dict[str, Any]:
    """Return what a team sees of its namespace with a volume, a schedule and a backup with these conditions."""
    cluster = answers()
    (mine,) = cluster["/apis/oadp.openshift.io/v1alpha1/nonadminschedules"]["items"]
    (request, _) = cluster["/apis/oadp.openshift.io/v1alpha1/nonadminbackups"]["items"]
    (_, of_tenant, _) = cluster[f"{VELERO}/backups"]["items"]
    left_out = {"volumesLeftOut": DATA} if LEFT_OUT in conditions else {}
    status = of_tenant["status"] | {"volumeSnapshotsCompleted": 0 if left_out else 1}
    request["status"] = {"conditions": [*conditions], **left_out, "veleroBackup": {"status": status}}
    claim = named("data", "lab", spec={"volumeName": "pv"}, status={"phase": "Bound"})
    own = {("namespaces", ""), ("persistentvolumeclaims", "lab"), ("pods", "lab")}

    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        asked = sent["spec"]["resourceAttributes"]
        allowed = (asked["resource"], asked.get("namespace", "")) in own - {("namespaces", "")}
        return {"status": {"allowed": allowed}}

    return {
        REVIEWS: review,
        SELF_SERVICE_LEASE: FORBIDDEN,
        f"{TENANTS}/nonadminschedules": listed(mine),
        f"{TENANTS}/nonadminbackups": listed(request),
        "/api/v1/namespaces/lab/persistentvolumeclaims": listed(claim),
        "/api/v1/namespaces/lab/pods": listed(),
    }


def test_a_team_is_never_told_that_it_is_safe_while_it_cannot_see_velero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = verdicts(tmp_path, capsys, own_cluster(), "-n", "lab")["lab"]
    assert (lab["verdict"], lab["gaps"]) == ("Unknown", [])
    assert lab["message"].startswith("unknown is whether Velero and its storage location work now")
    assert lab["claims"][0]["gaps"] == []


def test_a_team_hears_that_its_volume_is_in_no_backup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab = verdicts(tmp_path, capsys, own_cluster(LEFT_OUT), "-n", "lab")["lab"]
    assert lab["verdict"] == "Unsafe"
    assert "lab/mine, mine-1, has no snapshot of claim data" in lab["message"]
    assert lab["claims"][0]["newestGoodBackup"] is None
    with canned(tmp_path, own_cluster(LEFT_OUT)) as server:
        main(["coverage", "--kubeconfig", str(server.kubeconfig), "-n", "lab"])
    assert "\nUnsafe: the last run of lab/mine" in capsys.readouterr().err
