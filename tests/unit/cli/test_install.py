"""What `foresail install` decides before it writes: Velero's arguments, who keeps an object, and what is applied."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from foresail import __version__
from foresail.api.marks import LEASES
from foresail.api.monitoring import PROMETHEUS_RULE, SERVICE_MONITOR
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.access.managed_by import ManagedMetadata, ManagingTool, Owner, Writer, is_ours, managing_tool
from foresail.cli.doctor.permissions import FORECAST, Permission, needed
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.install.hand_over import change, others_off, switch, switched_off, switched_on, velero_server
from foresail.cli.install.install import capabilities_switched_off, install_options, what_is_off, without_stamp
from foresail.cli.install.installed import Installed, find_installed, installed
from foresail.cli.install.manifests import (
    CAPABILITIES,
    HOOKS_BINDING,
    STAMP,
    STAMP_BINDING,
    InstallOptions,
    Piece,
    checked,
    definitions,
    operators,
)
from foresail.cli.install.objects import Patience
from foresail.cli.install.start import way_back
from foresail.cli.main import main, parser
from foresail.kube.clock import now
from foresail.schedules.velero_server import schedule_controller_is_off
from tests.unit.cli.canned import canned

NONE: dict[str, Any] = {"metadata": {}, "items": []}
OPTIONS = InstallOptions(("schedules",), "velero", "velero", f"foresail:{__version__}")


@pytest.mark.parametrize(
    ("before", "off"),
    [
        (["server"], ["server", "--disable-controllers=schedule"]),
        (["server", "--disable-controllers=gc"], ["server", "--disable-controllers=gc,schedule"]),
        (["server", "--disable-controllers", "gc, x"], ["server", "--disable-controllers", "gc,x,schedule"]),
        (["server", "--disable-controllers=gc", "-v"], ["server", "--disable-controllers=gc,schedule", "-v"]),
        (["server", "--disable-controllers="], ["server", "--disable-controllers=schedule"]),
    ],
)
def test_schedules_are_switched_off_beside_what_is_off_already_and_on_again(before: list[str], off: list[str]) -> None:
    assert switched_off(before) == off
    assert switched_off(off) == off
    on = switched_on(off)
    assert not schedule_controller_is_off(on)
    assert others_off(on) == others_off(before)
    assert [each for each in on if "gc" not in each] == [
        each for each in before if "gc" not in each and "=" not in each
    ]


WORDS = st.sampled_from(
    ["server", "--disable-controllers=", "--disable-controllers=schedule", "--disable-controllers=gc,schedule",
     "--disable-controllers schedule", "--disable-controllers gc", "--disable-controllers gc,schedule", "-v"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=6))
def test_the_schedule_controller_is_switched_off_and_on_and_other_arguments_stay(flags: list[str]) -> None:
    words = " ".join(flags).split()
    assert schedule_controller_is_off(switched_off(words))
    assert not schedule_controller_is_off(switched_on(words))
    assert others_off(switched_on(words)) == others_off(switched_off(words)) == others_off(words)


BY_CHART = {"helm.sh/chart": "velero-10.0.1", "app.kubernetes.io/managed-by": "Helm"}
RELEASE = {"meta.helm.sh/release-name": "velero", "meta.helm.sh/release-namespace": "backup"}


@pytest.mark.parametrize(
    ("metadata", "said", "values"),
    [
        (ManagedMetadata("velero", "velero", annotations=RELEASE), "Helm (release velero in namespace backup)", True),
        (ManagedMetadata("velero", "velero", labels=BY_CHART), "Helm", True),
        (
            ManagedMetadata("velero", "velero", labels={**BY_CHART, "argocd.argoproj.io/instance": "backups"}),
            "Argo CD (Application backups)",
            True,
        ),
        (
            ManagedMetadata(
                "velero", annotations={"argocd.argoproj.io/tracking-id": "app:apps/Deployment:velero/velero"}
            ),
            "Argo CD (Application app)",
            False,
        ),
        (ManagedMetadata("velero", managed_fields=(Writer("argocd-controller", "Apply"),)), "Argo CD", False),
        (
            ManagedMetadata(
                "velero",
                labels={"helm.toolkit.fluxcd.io/name": "velero", "helm.toolkit.fluxcd.io/namespace": "flux"},
                annotations=RELEASE,
            ),
            "Flux (HelmRelease flux/velero)",
            True,
        ),
        (
            ManagedMetadata(
                "velero",
                labels={"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux"},
            ),
            "Flux (Kustomization flux/apps)",
            False,
        ),
        (
            ManagedMetadata("velero", owner_references=(Owner("ClusterServiceVersion", "velero.v1"),)),
            "OLM (ClusterServiceVersion velero.v1)",
            False,
        ),
        (ManagedMetadata("velero", labels={"olm.owner": "velero.v1"}), "OLM (velero.v1)", False),
        (
            ManagedMetadata("velero", owner_references=(Owner("DataProtectionApplication", "dpa"),)),
            "OLM (DataProtectionApplication dpa of the OADP operator)",
            False,
        ),
        (
            ManagedMetadata("velero", owner_references=(Owner("Backup", "mine"),)),
            "an operator (Backup mine)",
            False,
        ),
    ],
)
def test_the_tool_that_manages_velero_is_found_by_labels_and_annotations(
    metadata: ManagedMetadata, said: str, values: bool
) -> None:
    found = managing_tool(metadata)
    assert found is not None
    assert str(found) == said
    assert found.has_values is values


def test_what_velero_install_or_kubectl_has_created_is_managed_by_no_tool() -> None:
    assert (
        managing_tool(ManagedMetadata("velero", labels={"component": "velero"}, managed_fields=(Writer("velero"),)))
        is None
    )
    assert not is_ours(ManagedMetadata("velero", managed_fields=(Writer("foresail-cli", "Update"),)))
    assert is_ours(ManagedMetadata("foresail", managed_fields=(Writer("foresail-cli", "Apply"),)))


@pytest.mark.parametrize(
    ("by", "off", "on"),
    [
        (
            ManagingTool("Helm", "release velero in namespace velero", has_values=True),
            'configuration:\n  disableControllers: "gc,schedule"',
            'configuration:\n  disableControllers: "gc"',
        ),
        (
            ManagingTool("Flux", "HelmRelease flux/velero", has_values=True),
            'spec:\n  values:\n    configuration:\n      disableControllers: "gc,schedule"',
            'spec:\n  values:\n    configuration:\n      disableControllers: "gc"',
        ),
        (
            ManagingTool("OLM", "DataProtectionApplication dpa of the OADP operator", is_oadp=True),
            "spec:\n  configuration:\n    velero:\n      args:\n        disabled-controllers: [gc, schedule]",
            "spec:\n  configuration:\n    velero:\n      args:\n        disabled-controllers: [gc]",
        ),
        (
            ManagingTool("Argo CD", "Application backups"),
            "let the container have the argument --disable-controllers=gc,schedule, and no other --disable-controllers",
            "let the container have the argument --disable-controllers=gc, and no other --disable-controllers",
        ),
    ],
)
def test_the_change_that_is_asked_for_is_exact(by: ManagingTool, off: str, on: str) -> None:
    assert change(by, ["gc"], off=True) == off
    assert change(by, ["gc"], off=False) == on
    assert "schedule" in change(by, [], off=True)


def test_the_operator_comes_last_and_the_definitions_are_all_of_ours() -> None:
    pieces = operators(OPTIONS)
    assert [each.is_operator for each in pieces] == [False] * (len(pieces) - 1) + [True]
    assert {each.kind.name for each in definitions()} == {"CustomResourceDefinition"}


@pytest.mark.parametrize(
    ("capabilities", "names"),
    [
        (CAPABILITIES[:1], ["foresail-schedules"]),
        (CAPABILITIES[1:2], ["foresail-self-service"]),
        (CAPABILITIES[2:3], ["foresail-primers"]),
        (CAPABILITIES[3:4], ["foresail-checks"]),
        (CAPABILITIES[4:5], ["foresail-protection"]),
        (CAPABILITIES[5:], ["foresail-rollback"]),
        (CAPABILITIES, [*LEASES]),
    ],
)
def test_each_capability_has_a_deployment_and_an_account_of_its_own(
    capabilities: tuple[str, ...], names: list[str]
) -> None:
    pieces = operators(InstallOptions(capabilities, "velero", "velero", "foresail", "pause"))
    running = [each for each in pieces if each.is_operator]
    assert sorted(each.key.name for each in running) == sorted(names)
    assert pieces[-len(running) :] == running
    accounts = [each.body["spec"]["template"]["spec"]["serviceAccountName"] for each in running]
    assert accounts == [each.key.name for each in running]


def test_no_blank_is_left_in_what_is_applied() -> None:
    options = InstallOptions(CAPABILITIES, "backup", "sails", "a.example/f@sha256:0", "b.example/pause", True, True)  # noqa: FBT003
    text = repr([each.body for each in operators(options)])
    assert not [blank for blank in ("VELERO-", "IMAGE", "TAG", "Helm'") if blank in text]
    for word in ("backup:sails", "a.example/f@sha256:0", "b.example/pause", "--schedule-skip-immediately=true"):
        assert word in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            [f"--{name}=false" for name in CAPABILITIES],
            "no capability is enabled",
        ),
        (["--primers", "--primer-pause-image="], "--primer-pause-image"),
        (["--image", "a\nb: c"], "--image"),
        (["--velero-namespace", "Velero"], "--velero-namespace"),
        (["--timeout", "soon"], "--timeout"),
    ],
)
def test_what_cannot_be_installed_is_refused_before_anything_is_asked(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "--kubeconfig=missing", "--image=foresail:1", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "hint: " in error


RULES = "/apis/monitoring.coreos.com/v1/prometheusrules"


@pytest.mark.parametrize(
    ("known", "missing"),
    [
        ({}, "prometheusrules.monitoring.coreos.com and servicemonitors.monitoring.coreos.com"),
        ({RULES: NONE}, "servicemonitors.monitoring.coreos.com"),
    ],
)
def test_kinds_that_monitoring_needs_are_looked_for_before_anything_is_written(
    known: dict[str, Any], missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    container = {"name": "velero", "image": "velero/velero:v1.18.3", "command": ["/velero"], "args": ["server"]}
    deployment = {
        "metadata": {"name": "velero", "namespace": "velero", "uid": "1"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    answers = {"/apis/apps/v1/namespaces/velero/deployments": {**NONE, "items": [deployment]}, **known}
    with canned(tmp_path, answers) as server:
        assert main(["install", f"--kubeconfig={server.kubeconfig}", "--image=foresail:1", "--monitoring"]) == 1
    error = capsys.readouterr().err
    assert f"--monitoring: the cluster does not serve {missing}; nothing was written" in error
    assert "hint: install the Prometheus operator" in error
    assert server.writes == []


@pytest.mark.parametrize("is_served", [True, False])
def test_where_the_api_server_cannot_set_the_requester_the_rest_is_installed_and_this_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_served: bool
) -> None:
    wanted = operators(InstallOptions(("self-service",), "velero", "velero", "foresail"))
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    with canned(tmp_path, {path: NONE} if is_served else {}) as server:
        args = argparse.Namespace(kubeconfig=str(server.kubeconfig), context=None)
        kept = on_cluster(args, lambda cluster: without_stamp(cluster, wanted))
    left_out = [each.kind for each in wanted if each not in kept]
    assert left_out == ([] if is_served else [STAMP, STAMP_BINDING])
    said = "has no MutatingAdmissionPolicies, which Kubernetes has from 1.36 on"
    assert (said in capsys.readouterr().err) == (not is_served)


def test_rules_and_service_monitors_get_the_labels_by_which_a_prometheus_selects_them() -> None:
    options = replace(OPTIONS, monitoring=True, monitoring_labels={"release": "kube-prometheus-stack"})
    found = [each for each in operators(options) if each.kind in (PROMETHEUS_RULE, SERVICE_MONITOR)]
    assert len(found) == 4
    for each in found:
        assert each.body["metadata"]["labels"]["release"] == "kube-prometheus-stack"
        assert each.body["metadata"]["labels"]["app.kubernetes.io/part-of"] == "foresail"


RUNBOOKS = "https://docs.example.com/runbooks.html"


def alerts_of(options: InstallOptions) -> list[dict[str, Any]]:
    rules = [piece.body for piece in operators(options) if piece.kind is PROMETHEUS_RULE]
    return [alert for rule in rules for group in rule["spec"]["groups"] for alert in group["rules"]]


def test_every_alert_links_to_its_section_of_the_page_that_the_option_names() -> None:
    options = replace(OPTIONS, capabilities=CAPABILITIES, monitoring=True)
    assert [alert for alert in alerts_of(options) if "runbook_url" in alert["annotations"]] == []
    linked = alerts_of(replace(options, runbook_url=RUNBOOKS))
    assert len(linked) > 30
    for alert in linked:
        assert alert["annotations"]["runbook_url"] == f"{RUNBOOKS}#{alert['alert'].lower()}"


@pytest.mark.parametrize("url", ["runbooks.html", f"{RUNBOOKS}#alerts", "https://a b"])
def test_a_page_of_runbooks_that_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"--runbook-url: .* is no address of a page"):
        checked(replace(OPTIONS, runbook_url=url))


def test_the_page_of_runbooks_stays_as_installed_until_the_option_names_another() -> None:
    before = Installed(("schedules",), "a", monitoring=True, runbook_url=RUNBOOKS)
    assert install_options(parsed(), before).runbook_url == RUNBOOKS
    assert install_options(parsed("--runbook-url=https://b"), before).runbook_url == "https://b"
    assert install_options(parsed("--runbook-url="), before).runbook_url == ""


def test_the_alerts_of_a_release_lead_to_its_runbooks_unless_an_option_names_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("foresail.cli.install.install.RUNBOOKS", RUNBOOKS)
    assert install_options(parsed("--image=a"), None).runbook_url == RUNBOOKS
    assert install_options(parsed("--image=a", "--runbook-url=https://b"), None).runbook_url == "https://b"


def test_a_label_that_is_none_is_an_error_that_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "--image=a", "--dry-run=client", "--monitoring", "--monitoring-label=release"]) == 2
    assert "error: --monitoring-label: 'release' is no label" in capsys.readouterr().err


def test_install_refuses_to_enable_no_capability() -> None:
    with pytest.raises(CommandError, match="no capability is enabled"):
        checked(InstallOptions((), "velero", "velero", "foresail"))


@pytest.mark.parametrize("capabilities", [CAPABILITIES[:1], CAPABILITIES[1:2], CAPABILITIES[2:], CAPABILITIES])
def test_the_doctor_asks_for_exactly_the_permissions_that_are_installed(capabilities: tuple[str, ...]) -> None:
    pieces = operators(InstallOptions(capabilities, "velero", "velero", "foresail", "pause"))
    bound = _roles_of_accounts(pieces)
    installed = _permissions([each for each in pieces if each.key.name in bound])
    switches = {each.replace("-", "_"): each in capabilities for each in CAPABILITIES}
    tenant_checks = {"self-service", "restore-checks"} <= set(capabilities)
    records = {"schedules", "protection"} <= set(capabilities)
    assert set(needed(**switches, tenant_checks=tenant_checks, records_namespaces=records)) == installed


def test_the_doctor_asks_for_the_permissions_of_tenants_locations_where_they_are_on() -> None:
    options = InstallOptions(("self-service",), "velero", "velero", "foresail", tenant_locations=True)
    pieces = operators(options)
    bound = _roles_of_accounts(pieces)
    wanted = needed(schedules=False, self_service=True, locations=True)
    assert set(wanted) == _permissions([each for each in pieces if each.key.name in bound])


@pytest.mark.parametrize("is_on", [False, True])
def test_the_doctor_asks_for_the_permissions_by_which_a_rollback_gives_volumes_back(is_on: bool) -> None:
    options = InstallOptions(("self-service", "rollback"), "velero", "velero", "foresail", rollback_volumes=is_on)
    pieces = operators(options)
    bound = _roles_of_accounts(pieces)
    wanted = needed(schedules=False, self_service=True, rollback=True)
    assert set(wanted) == _permissions([each for each in pieces if each.key.name in bound])


def test_each_account_is_bound_to_exactly_what_the_doctor_asks_for_its_work() -> None:
    pieces = operators(InstallOptions(CAPABILITIES, "velero", "velero", "foresail", "pause"))
    for account, wanted in (
        ("foresail-schedules", needed(schedules=True, self_service=False, records_namespaces=True)),
        ("foresail-protection", needed(schedules=False, self_service=False, protection=True)),
        ("foresail-rollback", needed(schedules=False, self_service=False, rollback=True)),
        ("foresail-self-service", [*needed(schedules=False, self_service=True), *FORECAST]),
        ("foresail-primers", needed(schedules=False, self_service=False, primers=True)),
        ("foresail-checks", needed(schedules=False, self_service=False, restore_checks=True, tenant_checks=True)),
    ):
        bindings = [each.body for each in pieces if each.kind.name.endswith("RoleBinding")]
        bound = {each["roleRef"]["name"] for each in bindings if each["subjects"][0]["name"] == account}
        assert set(wanted) == _permissions([each for each in pieces if each.key.name in bound])


def _roles_of_accounts(pieces: Sequence[Piece]) -> set[str]:
    bindings = [piece.body for piece in pieces if piece.kind.name.endswith("RoleBinding")]
    return {body["roleRef"]["name"] for body in bindings if body["subjects"][0]["kind"] == "ServiceAccount"}


def _permissions(pieces: Sequence[Piece]) -> set[Permission]:
    return {
        Permission(group, resource, verb, everywhere=role.kind.name == "ClusterRole")
        for role in pieces
        if role.kind.name.endswith("Role")
        for rule in role.body["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PRIMERS = "/apis/foresail.dev/v1alpha1/primers"


def _defined(manager: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "primers.foresail.dev",
            "uid": "7",
            "managedFields": [{"manager": manager, "operation": "Apply"}],
        }
    }


@pytest.mark.parametrize("phase", ["", "New", "Queued", "ReadyToStart", "InProgress"])
def test_velero_is_not_restarted_while_a_backup_waits_or_runs(phase: str, tmp_path: Path) -> None:
    container = {"name": "velero", "command": ["/velero"], "args": ["server"]}
    template = {"spec": {"containers": [container], "serviceAccountName": "velero"}}
    meta = {"name": "velero", "namespace": "velero"}
    velero = "/apis/velero.io/v1/namespaces/velero"
    answers = {
        "/apis/apps/v1/namespaces/velero/deployments": {
            **NONE,
            "items": [{"metadata": meta, "spec": {"template": template}}],
        },
        f"{velero}/backups": {**NONE, "items": [{"metadata": meta, "status": {"phase": phase}}]},
        f"{velero}/restores": NONE,
    }

    async def switched(cluster: Cluster) -> None:
        server = await velero_server(cluster, "velero")
        assert server is not None
        await switch(cluster, server, Patience(now()), off=True, dry_run=False)

    with canned(tmp_path, answers) as server:
        args = argparse.Namespace(kubeconfig=str(server.kubeconfig), context=None)
        with pytest.raises(
            CommandError, match="Backups or Restores have not ended, and a restart of Velero would lose"
        ):
            on_cluster(args, switched)
    assert server.writes == []


def test_kinds_are_deleted_only_if_somebody_confirms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {f"{DEFINITIONS}/primers.foresail.dev": _defined("foresail-cli"), PRIMERS: {**NONE, "items": [{}, {}]}}
    with canned(tmp_path, answers) as server:
        assert main(["uninstall", f"--kubeconfig={server.kubeconfig}", "--crds"]) == 2
    error = capsys.readouterr().err
    assert "error: refusing to delete without confirmation (no terminal): " in error
    assert "CustomResourceDefinition primers.foresail.dev with its 2 objects" in error
    assert server.writes == []


@pytest.mark.parametrize(
    ("words", "manager", "said"),
    [
        ([], "foresail-cli", "Foresail's kinds and their objects stay; --crds deletes both.\n"),
        (["--crds"], "foresail-cli", ""),
        (["--crds"], "helm", "These kinds stay, with their objects: primers.foresail.dev.\n"),
    ],
)
def test_after_its_end_uninstall_says_which_kinds_stay(
    words: list[str], manager: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {
        f"{DEFINITIONS}/primers.foresail.dev": _defined(manager),
        "/apis/apps/v1/namespaces/velero/deployments": NONE,
        "/api/v1/pods": NONE,
        "/apis/batch/v1/cronjobs": NONE,
        "/version": {},
    }
    with canned(tmp_path, answers) as server:
        assert main(["uninstall", f"--kubeconfig={server.kubeconfig}", "--dry-run", *words]) == 0
    shown = capsys.readouterr()
    lines = [f"{line}\n" for line in shown.err.splitlines() if "kinds" in line]
    assert lines == ([said] if said else [])
    done = [line for line in shown.out.splitlines() if line.startswith(("deleted", "released"))]
    assert all(line.endswith("(dry run)") for line in done)
    assert ("deleted     CustomResourceDefinition" in shown.out) == (words != [] and manager == "foresail-cli")


def test_where_there_are_no_kinds_uninstall_does_not_say_that_they_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    none = {"/apis/apps/v1/namespaces/velero/deployments": NONE, "/api/v1/pods": NONE, "/apis/batch/v1/cronjobs": NONE}
    with canned(tmp_path, none) as server:
        assert main(["uninstall", f"--kubeconfig={server.kubeconfig}", "--dry-run"]) == 0
    assert "stay" not in capsys.readouterr().err


def test_uninstall_says_that_the_recovery_key_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {
        "/apis/apps/v1/namespaces/velero/deployments": NONE,
        "/api/v1/pods": NONE,
        "/apis/batch/v1/cronjobs": NONE,
        "/api/v1/namespaces/velero/secrets/foresail-record-key": {"metadata": {"name": "foresail-record-key"}},
    }
    with canned(tmp_path, answers) as server:
        assert main(["uninstall", f"--kubeconfig={server.kubeconfig}", "--dry-run"]) == 0
    said = capsys.readouterr().err
    assert "Secret velero/foresail-record-key stays: it verifies the records of tenants' backups." in said
    assert "kubectl delete secret foresail-record-key -n velero" in said


BUFFER = "/apis/autoscaling.x-k8s.io/v1alpha1/namespaces/reports/capacitybuffers/daily-warm"
TEMPLATE = "/api/v1/namespaces/reports/podtemplates/daily-warm"


def _with_buffers() -> dict[str, Any]:
    """Return the answers of a cluster with one CapacityBuffer of a Primer, in the oldest version, and its template."""
    one = {"metadata": {"namespace": "reports", "name": "daily-warm", "uid": "8"}}
    listed = {**NONE, "items": [one]}
    served = [{"version": "v1alpha1", "resources": [{"resource": "capacitybuffers"}]}]
    return {
        "/apis": {"kind": "x", "items": [{"metadata": {"name": "autoscaling.x-k8s.io"}, "versions": served}]},
        "/apis/apps/v1/namespaces/velero/deployments": NONE,
        "/api/v1/pods": NONE,
        "/apis/batch/v1/cronjobs": NONE,
        "/apis/autoscaling.x-k8s.io/v1alpha1/capacitybuffers": listed,
        BUFFER: one,
        "/api/v1/podtemplates": listed,
        TEMPLATE: one,
        "/version": {},
    }


def test_uninstall_releases_the_nodes_of_capacity_buffers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with canned(tmp_path, _with_buffers()) as server:
        assert main(["uninstall", f"--kubeconfig={server.kubeconfig}"]) == 0
    assert server.writes == [f"PATCH {BUFFER}", f"DELETE {BUFFER}", f"DELETE {TEMPLATE}"]
    assert server.bodies[f"PATCH {BUFFER}"] == {"spec": {"replicas": 0}}
    assert server.bodies[f"DELETE {BUFFER}"]["preconditions"] == {"uid": "8"}
    asked = zip(server.asked, server.queries, strict=True)
    selected = [
        query["labelSelector"] for path, query in asked if path.endswith(("buffers", "templates")) and len(query) > 1
    ]
    assert selected == [["foresail.dev/primer"]] * 2, "those of others stay"
    assert "deleted     CapacityBuffer reports/daily-warm" in capsys.readouterr().out


def test_a_dry_run_of_uninstall_stores_nothing_in_capacity_buffers(tmp_path: Path) -> None:
    with canned(tmp_path, _with_buffers()) as server:
        assert main(["uninstall", f"--kubeconfig={server.kubeconfig}", "--dry-run"]) == 0
    assert server.writes == [f"DELETE {BUFFER}", f"DELETE {TEMPLATE}"]
    assert all(server.bodies[each]["dryRun"] == ["All"] for each in server.writes)


def test_where_capacity_buffers_are_not_served_uninstall_asks_for_none(tmp_path: Path) -> None:
    answers = {**_with_buffers(), "/apis": {"kind": "x", "items": []}}
    with canned(tmp_path, answers) as server:
        assert main(["uninstall", f"--kubeconfig={server.kubeconfig}"]) == 0
    assert server.writes == []


ARGUMENTS = [
    "--schedules=true",
    "--schedule-skip-immediately=true",
    "--self-service=true",
    "--primers=false",
    "--primers=true",
    "--primer-pause-image=pause:3",
    "--restore-checks=true",
    "--protection=true",
    "--rollback=true",
]
BEFORE = installed(ARGUMENTS, "example.com/foresail:1", {"release": "kps", "app.kubernetes.io/name": "foresail"})


def parsed(*words: str) -> argparse.Namespace:
    return parser().parse_args(["install", *words])


def test_an_upgrade_keeps_what_is_installed() -> None:
    options = install_options(parsed("--image=example.com/foresail:2"), BEFORE)
    assert options == InstallOptions(
        CAPABILITIES,
        "velero",
        "velero",
        "example.com/foresail:2",
        "pause:3",
        skip_immediately=True,
        monitoring=True,
        monitoring_labels={"release": "kps"},
    )
    assert install_options(parsed(), BEFORE).image == "example.com/foresail:1"
    assert capabilities_switched_off(BEFORE, options, is_confirmed=False) == []


@pytest.mark.parametrize("option", ["--tenant-locations", "--download-contents", "--self-service-hooks"])
def test_parts_of_self_service_are_off_at_first_stay_as_installed_and_go_with_it(option: str) -> None:
    name = "hooks" if option.endswith("hooks") else option.removeprefix("--").replace("-", "_")
    assert not getattr(install_options(parsed("--image=a", "--self-service"), None), name)
    options = install_options(parsed("--image=a", "--self-service", option), None)
    assert getattr(options, name)
    pieces = operators(options)
    pods = [each.body["spec"]["template"]["spec"] for each in pieces if each.is_operator]
    words = [word for pod in pods for word in pod["containers"][0]["args"]]
    fence = next(
        each.body
        for each in pieces
        if each.key.name == "foresail-self-service-fence" and "validations" in each.body["spec"]
    )
    switched_on = [each["name"] for each in fence["spec"]["variables"] if each["expression"] == "true"]
    before = installed(words, "a", None, switched_on)
    assert getattr(before, name)
    assert before == installed_with(**{name: True})
    assert getattr(install_options(parsed(), before), name)
    assert not getattr(install_options(parsed(f"{option}=false"), before), name)
    assert not getattr(install_options(parsed("--self-service=false"), before), name)
    with pytest.raises(UsageError, match=f"{option} is part of self-service, which is off"):
        checked(install_options(parsed("--self-service=false", option), before))


def test_rollback_goes_with_self_service_unless_it_is_asked_for() -> None:
    before = replace(BEFORE, capabilities=("schedules", "self-service", "rollback"))
    assert install_options(parsed(), before).capabilities == ("schedules", "self-service", "rollback")
    assert install_options(parsed("--self-service=false"), before).capabilities == ("schedules",)
    with pytest.raises(UsageError, match="--rollback is part of self-service, which is off"):
        checked(install_options(parsed("--self-service=false", "--rollback"), before))


def test_volumes_of_rollbacks_are_off_at_first_stay_as_installed_and_go_with_rollback() -> None:
    on = ("--image=a", "--self-service", "--rollback")
    assert not install_options(parsed(*on), None).rollback_volumes
    options = install_options(parsed(*on, "--rollback-volumes"), None)
    pieces, without = operators(options), operators(replace(options, rollback_volumes=False))
    assert [each.key for each in pieces] == [each.key for each in without]  # a Rollback amid its work needs them
    assert [_volumes_of_fence(each) for each in (pieces, without)] == ["true", "false"]
    pods = [each.body["spec"]["template"]["spec"] for each in pieces if each.is_operator]
    words = [word for pod in pods for word in pod["containers"][0]["args"]]
    before = installed(words, "a", None)
    assert before.rollback_volumes
    assert install_options(parsed(), before).rollback_volumes
    assert not install_options(parsed("--rollback-volumes=false"), before).rollback_volumes
    for off in ("--rollback=false", "--self-service=false"):
        assert not install_options(parsed(off), before).rollback_volumes
    with pytest.raises(UsageError, match="--rollback-volumes is part of rollback, which is off"):
        checked(install_options(parsed("--rollback=false", "--rollback-volumes"), before))


def _volumes_of_fence(pieces: Sequence[Piece]) -> str:
    name = "foresail-rollback-fence"
    (fence,) = (each.body for each in pieces if each.key.name == name and "variables" in each.body["spec"])
    variables = {each["name"]: each["expression"] for each in fence["spec"]["variables"]}
    return str(variables["allowsVolumes"])


def installed_with(**parts: bool) -> Installed:
    return Installed(("schedules", "self-service"), "a", **parts)  # type: ignore[arg-type]


def test_without_the_option_there_is_no_permission_for_locations_of_tenants() -> None:
    closed = InstallOptions(("self-service",), "velero", "velero", "foresail")
    opened = operators(replace(closed, tenant_locations=True))
    more = {each.key.name for each in opened} - {each.key.name for each in operators(closed)}
    assert more == {
        "foresail-tenant-locations",
        "foresail-tenant-locations-edit",
        "foresail-tenant-locations-view",
        "foresail-location-deletion",
    }
    rules = [rule for each in operators(closed) for rule in each.body.get("rules", [])]
    assert [each for each in rules if "secrets" in each.get("resources", []) and "resourceNames" not in each] == []


def test_switching_locations_of_tenants_off_is_confirmed() -> None:
    before = installed_with(tenant_locations=True)
    options = install_options(parsed("--tenant-locations=false"), before)
    assert capabilities_switched_off(before, options, is_confirmed=True) == ["tenant-locations"]
    with pytest.raises(UsageError, match="capability tenant-locations with its permissions and what it holds"):
        capabilities_switched_off(before, options, is_confirmed=False)


def test_a_capability_is_switched_off_only_if_the_option_says_so_and_somebody_confirms() -> None:
    options = install_options(parsed("--primers=false", "--monitoring=false"), BEFORE)
    left = tuple(name for name in CAPABILITIES if name != "primers")
    assert (options.capabilities, options.monitoring) == (left, False)
    assert capabilities_switched_off(BEFORE, options, is_confirmed=True) == ["primers"]
    others = install_options(parsed("--restore-checks=false"), BEFORE)
    assert capabilities_switched_off(BEFORE, others, is_confirmed=True) == ["restore-checks"]
    with pytest.raises(UsageError, match="capability primers with its permissions and what it holds"):
        capabilities_switched_off(BEFORE, options, is_confirmed=False)


def test_the_first_installation_needs_an_image_and_has_schedules_alone() -> None:
    with pytest.raises(UsageError, match="--image is missing"):
        install_options(parsed(), None)
    options = install_options(parsed("--image=foresail:1"), None)
    assert options == InstallOptions(("schedules",), "velero", "velero", "foresail:1")
    assert capabilities_switched_off(None, options, is_confirmed=False) == []
    with pytest.raises(UsageError, match="no capability is enabled"):
        checked(install_options(parsed("--image=foresail:1", "--schedules=false"), None))


@pytest.mark.parametrize("name", ["foresail-schedules", "foresail"])  # the latter in earlier versions
@pytest.mark.parametrize("has_rule", [True, False])
def test_what_is_installed_is_read_from_the_deployments_and_a_rule(
    tmp_path: Path, name: str, *, has_rule: bool
) -> None:
    def deployment(name: str, *words: str) -> dict[str, Any]:
        container = {"name": "operator", "image": "foresail:1", "args": ["operator", "run", *words]}
        return {"metadata": {"name": name}, "spec": {"template": {"spec": {"containers": [container]}}}}

    where = "/apis/apps/v1/namespaces/velero/deployments"
    rule = "/apis/monitoring.coreos.com/v1/namespaces/velero/prometheusrules/foresail-runtime"
    alerts = {"rules": [{"alert": "A", "annotations": {"runbook_url": f"{RUNBOOKS}#a"}}]}
    answers = {
        f"{where}/{name}": deployment(name, "--schedules=true"),
        f"{where}/foresail-primers": deployment("foresail-primers", "--schedules=false", "--primers=true"),
        f"{where}/foresail-checks": deployment("foresail-checks", "--schedules=false", "--restore-checks=true"),
        **({rule: {"metadata": {"labels": {"release": "kps"}}, "spec": {"groups": [alerts]}}} if has_rule else {}),
    }
    with canned(tmp_path, answers) as server:
        args = argparse.Namespace(kubeconfig=str(server.kubeconfig), context=None)
        found = on_cluster(args, lambda cluster: find_installed(cluster, "velero"))
        nothing = on_cluster(args, lambda cluster: find_installed(cluster, "elsewhere"))
    labels = {"release": "kps"} if has_rule else {}
    capabilities = ("schedules", "primers", "restore-checks")
    page = RUNBOOKS if has_rule else ""
    assert found == Installed(
        capabilities, "foresail:1", monitoring=has_rule, monitoring_labels=labels, runbook_url=page
    )
    assert nothing is None


def test_an_installation_ends_with_what_is_off() -> None:
    options = InstallOptions(("schedules",), "velero", "velero", "foresail")
    assert what_is_off(options) == (
        "Off: self-service (--self-service), primers (--primers), restore-checks (--restore-checks), "
        "protection (--protection), rollback (--rollback), "
        "alerts and metrics for Prometheus (--monitoring). "
        "To switch one on, run the same command again with its option added."
    )
    everything = replace(options, capabilities=CAPABILITIES, monitoring=True)
    assert what_is_off(everything) == (
        "Off: buckets of teams (--tenant-locations), hooks of teams (--self-service-hooks), restores into other"
        " namespaces (--self-service-other-namespaces), restores from backups of classes"
        " (--self-service-from-protection), downloads of contents (--download-contents), volumes of rollbacks"
        " (--rollback-volumes). "
        "To switch one on, run the same command again with its option added."
    )
    extras = replace(everything, tenant_locations=True, download_contents=True, hooks=True, other_namespaces=True)
    extras = replace(extras, from_protection=True, rollback_volumes=True)
    assert what_is_off(extras) == "Everything is on."


def test_only_the_schedules_that_have_hooks_may_run_some() -> None:
    options = InstallOptions(("schedules",), "velero", "velero", "foresail", schedules_with_hooks=("db", "mail"))
    pieces = operators(options)
    bindings = {each.key.name: each.body["spec"] for each in pieces if each.key.name.startswith(HOOKS_BINDING)}
    assert bindings.keys() == {f"{HOOKS_BINDING}db", f"{HOOKS_BINDING}mail"}
    chosen = bindings[f"{HOOKS_BINDING}db"]
    assert chosen["paramRef"] == {"name": "db", "namespace": "velero", "parameterNotFoundAction": "Deny"}
    assert chosen["matchResources"]["objectSelector"]["matchLabels"] == {"velero.io/schedule-name": "db"}
    running = next(each.body for each in pieces if each.is_operator)
    assert "--schedules-with-hooks=db,mail" in running["spec"]["template"]["spec"]["containers"][0]["args"]
    fence = next(each.body for each in pieces if each.key.name == "foresail-schedules-fence")
    assert {"name": "withHooks", "expression": '["db","mail"]'} in fence["spec"]["variables"]
    without = repr([each.body for each in operators(replace(options, schedules_with_hooks=()))])
    assert "foresail-schedule-hooks" not in without
    assert "'expression': '[]'" in without


def test_a_dry_run_of_the_client_prints_every_manifest_and_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--image=example.com/foresail:1", "--self-service", "--dry-run=client", "-n", "backup"]
    assert main(["install", "--kubeconfig=missing", *words]) == 0
    found = list(yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader))
    options = InstallOptions(("schedules", "self-service"), "backup", "velero", "example.com/foresail:1")
    assert found == [each.body for each in (*definitions(), *operators(options))]


def test_a_dry_run_alone_asks_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["install", "--dry-run"], ["install", "--dry-run=server"], ["uninstall", "--dry-run"]):
        assert main([*words, "--kubeconfig=missing"]) == 3
        assert "there is no kubeconfig at missing" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["uninstall", "--dry-run=client"])


def test_the_way_back_is_a_whole_command() -> None:
    assert way_back("backup", "old") == "; to go back: foresail install -n backup --image old"
    assert way_back("backup", "") == ""
