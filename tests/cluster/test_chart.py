"""The chart of the operator, rendered by Helm and judged by a real API server."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from foresail import __version__
from foresail.api.marks import LEASES
from foresail.cli.doctor.permissions import needed
from foresail.cli.install.manifests import CAPABILITIES, InstallOptions, definitions, operators
from testbed import Cluster, TestbedError, charts
from testbed.build import program
from tests.cluster import monitoring
from tests.cluster.operators import CHART, PRIMERS_USER, SELF_SERVICE_USER, USER
from tests.cluster.test_selfservice_api import may

_IN_THE_LANE = r'apiserver_flowcontrol_dispatched_requests_total\{flow_schema="(\S+)",priority_level="foresail"\} [1-9]'
MONITORING = ("monitoring.rules=true", "monitoring.dashboards=true")


def every_switch(schema: dict[str, Any], path: str = "") -> list[str]:
    """Return the values of the chart that are on or off, as its schema has them."""
    found = [] if schema.get("type") != "boolean" else [path]
    for name, below in schema.get("properties", {}).items():
        found += every_switch(below, f"{path}.{name}".strip("."))
    return found


EVERY_SWITCH = every_switch(json.loads((CHART / "values.schema.json").read_text()))
EVERYTHING = (
    *(f"{each}=true" for each in EVERY_SWITCH),
    "primers.pauseImage=pause:3",
    "primers.heldBudget.cpu=48",
    "console.publicUrl=https://console.example.com",
)
PRIMERS = ("primers.enabled=true", "primers.pauseImage=pause:3")
SWITCHES = [
    (),
    ("selfService.enabled=true",),
    ("selfService.enabled=true", "selfService.defaultPolicy=false", "schedules.enabled=false", *PRIMERS),
    ("selfService.enabled=true", "selfService.requesterStamp=Always"),
    (*PRIMERS, "primers.flags={--primer-longest-warm-up=2h}"),
    (*PRIMERS, "primers.namespaces={default,velero}", "primers.annotations=true"),
    ("selfService.enabled=true", *PRIMERS, "replicas=1", "networkPolicy.enabled=false"),
    ("schedules.veleroDialect=robfig", "schedules.notCopied={example.com/*,team}", "schedules.skipImmediately=true"),
    (
        "tracing.enabled=true",
        "tracing.endpoint=http://collector:4318",
        "tracing.variables.OTEL_TRACES_SAMPLER=always_on",
    ),
    (
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key=a",
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator=Exists",
        "topologySpreadConstraints[0].maxSkew=1",
        "topologySpreadConstraints[0].topologyKey=topology.kubernetes.io/zone",
        "topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway",
        "tolerations[0].operator=Exists",
        "podLabels.team=platform",
        "podAnnotations.note=kept",
        "extraArgs={--log-level=debug}",
        "extraEnv[0].name=ZONE",
        "extraEnv[0].value=b",
        "schedules.serviceAccount.annotations.role=arn",
        "podSecurityContext.fsGroup=2000",
        "securityContext.runAsUser=2000",
        "revisionHistoryLimit=1",
        f"image.digest=sha256:{'a' * 64}",
    ),
    ("proof.restoreChecks=true", "proof.data.enabled=true", "proof.data.canaryTargets={192.0.2.1:443}"),
    ("protection.enabled=true",),
    ("selfService.enabled=true", "rollback.enabled=true"),
    ("priorityClassName=high", "nodeSelector.disk=fast", "image.tag=1.2.3", "imagePullSecrets[0].name=registry"),
]


def helm(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(program("helm", "helm")), *words], capture_output=True, text=True, check=False)


def rendered(*switches: str) -> str:
    words = [f"--set={switch}" for switch in switches]
    done = helm("template", "foresail", str(CHART), "--namespace=velero", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(*switches: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(rendered(*switches)) if each]


@pytest.fixture(scope="module")
def prepared(cluster: Cluster) -> Cluster:
    """A cluster with the kinds, ours and those of monitoring, and Velero's namespace as strict as one can be."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "velero", "labels": labels}})
    done = helm("template", "crds", str(CHART.parent / "foresail-crds"))
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=done.stdout)
    cluster.apply(*monitoring.definitions())
    cluster.wait_for_kinds()
    return cluster


@pytest.mark.parametrize("chart", ["foresail", "foresail-crds"])
def test_helm_finds_nothing_wrong(chart: str) -> None:
    done = helm("lint", "--strict", str(CHART.parent / chart))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("switches", SWITCHES, ids=",".join)
def test_whatever_is_chosen_the_api_server_takes_it(prepared: Cluster, switches: tuple[str, ...]) -> None:
    try_out(prepared, rendered(*switches))


@pytest.mark.full
@pytest.mark.parametrize("off", EVERY_SWITCH)
def test_whatever_is_switched_off_the_api_server_takes_the_rest(prepared: Cluster, off: str) -> None:
    try_out(prepared, rendered(*EVERYTHING, f"{off}=false"))


def test_with_everything_on_the_api_server_takes_alerts_dashboards_and_the_service_monitor_too(
    prepared: Cluster,
) -> None:
    assert {"PrometheusRule", "ServiceMonitor", "ConfigMap"} <= {each["kind"] for each in objects(*EVERYTHING)}
    try_out(prepared, rendered(*EVERYTHING))


@pytest.mark.parametrize(("right", "wrong"), [("alert", "alarm"), ("endpoints", "endpunkte")])
def test_a_misspelt_field_of_monitoring_is_noticed(prepared: Cluster, right: str, wrong: str) -> None:
    text = rendered(*EVERYTHING)
    assert f" {right}:" in text
    with pytest.raises(TestbedError, match=wrong):
        try_out(prepared, text.replace(f" {right}:", f" {wrong}:"))


def try_out(cluster: Cluster, text: str) -> None:
    """Let the API server take everything as far as it can without writing it; an unknown field is an error."""
    cluster.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename=-", text=text)


def test_the_operators_pods_may_run_where_only_restricted_ones_may(prepared: Cluster) -> None:
    (deployment,) = (each for each in objects() if each["kind"] == "Deployment")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", "namespace": "velero"}}
    pod["spec"] = {**deployment["spec"]["template"]["spec"], "serviceAccountName": "default"}
    text = json.dumps(pod)
    prepared.kubectl("create", "--dry-run=server", "--validate=strict", "--filename=-", text=text)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("replica=3", "replica"),
        ("replicas=two", "replicas"),
        ("schedules.veleroDialect=quartz", "veleroDialect"),
        ("selfService.enabled=maybe", "enabled"),
        ("logLevel=loud", "logLevel"),
        ("image.repository=", "repository"),
        ("image.digest=latest", "digest"),
        ("extraArgs={debug}", "extraArgs"),
        ("primers.pauseImage=", "pauseImage"),
    ],
)
def test_a_misspelt_or_impossible_value_is_refused_by_its_name(wrong: str, named: str) -> None:
    done = helm("template", "foresail", str(CHART), f"--set={wrong}")
    assert done.returncode != 0
    assert named in done.stderr


def pods(*switches: str) -> dict[str, Any]:
    (deployment,) = (each for each in objects(*switches) if each["kind"] == "Deployment")
    found: dict[str, Any] = deployment["spec"]["template"]
    return found


def test_the_notes_say_what_is_on_and_what_to_do_next() -> None:
    words = ("--namespace=velero", "--dry-run=client", "--set=selfService.enabled=true")
    done = helm("install", "foresail", str(CHART), *words, "--kubeconfig=/dev/null")
    assert done.returncode == 0, done.stderr
    notes = done.stdout.partition("NOTES:")[2]
    assert "On: schedules, self-service." in notes
    assert "velero server --disable-controllers=schedule" in notes
    assert "kubectl label namespace NAME foresail.dev/self-service=enabled" in notes
    assert "foresail doctor --velero-namespace=velero" in notes


def test_a_platform_team_places_labels_and_extends_the_pods() -> None:
    (placed,) = (each for each in SWITCHES if "podLabels.team=platform" in each)
    found, usual = pods(*placed), pods()
    assert found["metadata"]["labels"] == {**usual["metadata"]["labels"], "team": "platform"}
    assert found["metadata"]["annotations"] == {"note": "kept"}
    spec = found["spec"]
    assert list(spec["affinity"]) == ["nodeAffinity"]
    assert list(usual["spec"]["affinity"]) == ["podAntiAffinity"]
    selector = {"app.kubernetes.io/name": "foresail-schedules", "app.kubernetes.io/instance": "foresail"}
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == {"matchLabels": selector}
    assert spec["securityContext"] == {**usual["spec"]["securityContext"], "fsGroup": 2000}
    (container,) = spec["containers"]
    assert container["image"] == f"foresail:{__version__}@sha256:{'a' * 64}"
    assert container["args"][-2:] == ["--log-level=info", "--log-level=debug"]
    assert container["env"][-1] == {"name": "ZONE", "value": "b"}
    assert container["securityContext"]["runAsUser"] == 2000
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_a_label_of_a_team_cannot_take_the_place_of_one_that_the_selector_needs() -> None:
    name = pods("podLabels.app\\.kubernetes\\.io/name=mine")["metadata"]["labels"]["app.kubernetes.io/name"]
    assert name == "foresail-schedules"


def test_an_account_of_somebody_else_is_used_and_not_made() -> None:
    found = objects("schedules.serviceAccount.create=false", "schedules.serviceAccount.name=theirs")
    assert [each for each in found if each["kind"] == "ServiceAccount"] == []
    theirs = pods("schedules.serviceAccount.create=false", "schedules.serviceAccount.name=theirs")
    assert theirs["spec"]["serviceAccountName"] == "theirs"
    bound = [subject["name"] for each in found if each["kind"] == "RoleBinding" for subject in each["subjects"]]
    assert set(bound) == {"theirs"}


def test_a_prometheus_that_selects_by_labels_finds_rules_and_service_monitors() -> None:
    labelled = objects(*EVERYTHING, "monitoring.labels.release=kube-prometheus-stack")
    found = [each for each in labelled if each["apiVersion"] == "monitoring.coreos.com/v1"]
    assert {each["kind"] for each in found} == {"PrometheusRule", "ServiceMonitor"}
    operators_of = [
        each for each in labelled if each["kind"] == "Deployment" and "console" not in str(each["metadata"])
    ]
    assert len([each for each in found if each["kind"] == "ServiceMonitor"]) == len(operators_of)
    assert {each["metadata"]["labels"]["release"] for each in found} == {"kube-prometheus-stack"}


def test_a_start_is_probed_first_when_the_operator_can_answer() -> None:
    (container,) = pods()["spec"]["containers"]
    probe = container["startupProbe"]
    assert (probe["httpGet"]["path"], probe["initialDelaySeconds"], probe["periodSeconds"]) == ("/readyz", 3, 1)


def test_no_role_has_a_wildcard_or_reads_secrets_other_than_its_own_key() -> None:
    roles = [
        each
        for each in objects("selfService.enabled=true", *PRIMERS, "proof.restoreChecks=true", "proof.data.enabled=true")
        if each["kind"] in {"Role", "ClusterRole"}
    ]
    assert roles
    for rule in (rule for role in roles for rule in role["rules"]):
        words = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not [word for word in words if "*" in word], rule
        if "secrets" in rule["resources"]:
            assert rule.get("resourceNames") == ["foresail-record-key"], rule


def test_the_doctor_asks_for_the_permissions_of_depth_data_where_it_is_on() -> None:
    role = next(
        each
        for each in objects("proof.restoreChecks=true", "proof.data.enabled=true")
        if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "foresail-checks"
    )
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    wanted = needed(schedules=False, self_service=False, restore_checks=True, check_data=True)
    assert {(each.group, each.resource, each.verb) for each in wanted if each.everywhere} == granted


@pytest.mark.parametrize("switches", SWITCHES, ids=",".join)
def test_the_arguments_are_those_that_the_operator_takes(switches: tuple[str, ...], tmp_path: Path) -> None:
    """The operator reads them all, and fails only because there is no cluster where the kubeconfig says."""
    missing = tmp_path / "missing"
    for each in arguments(*switches).values():
        done = subprocess.run(
            [sys.executable, "-m", "foresail", *each, f"--kubeconfig={missing}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert str(missing) in done.stderr, done.stderr


def arguments(*switches: str) -> dict[str, list[str]]:
    """Return the arguments of each Deployment."""
    found = {each["metadata"]["name"]: each for each in objects(*switches) if each["kind"] == "Deployment"}
    return {name: each["spec"]["template"]["spec"]["containers"][0]["args"] for name, each in found.items()}


@pytest.mark.parametrize(
    ("switches", "watched"),
    [
        ((), set[str]()),
        (MONITORING, {"schedules"}),
        ((*MONITORING, "selfService.enabled=true"), {"schedules", "selfservice"}),
        ((*MONITORING, "selfService.enabled=true", "schedules.enabled=false"), {"selfservice"}),
        ((*MONITORING, *PRIMERS, "schedules.enabled=false"), {"primers"}),
        ((*MONITORING, "proof.restoreChecks=true"), {"schedules", "checks"}),
        ((*MONITORING, "protection.enabled=true"), {"schedules", "protection"}),
        ((*MONITORING, "rollback.enabled=true"), {"schedules", "rollback"}),
    ],
)
def test_alerts_and_dashboards_come_with_what_is_on(switches: tuple[str, ...], watched: set[str]) -> None:
    found = objects(*switches)
    rules = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "PrometheusRule"}
    alone = {"unattended"} if "schedules" in watched else set[str]()  # it stays when the rest is uninstalled
    alone |= {"runtime"} if switches else set()
    assert rules == {
        f"foresail-{each}": yaml.safe_load((CHART / "rules" / f"{each}.yaml").read_text()) for each in watched | alone
    }
    maps = [each["data"] for each in found if "grafana_dashboard" in each["metadata"].get("labels", {})]
    assert {name: json.loads(text) for data in maps for name, text in data.items()} == {
        f"foresail-{each}.json": json.loads((CHART / "dashboards" / f"{each}.json").read_text()) for each in watched
    }


def test_a_budget_of_primers_is_what_its_alert_compares_with() -> None:
    switches = (*MONITORING, *PRIMERS, "primers.heldBudget.cpu=48", "primers.heldBudget.memory=1000000000000")
    rules = {each["metadata"]["name"]: each["spec"] for each in objects(*switches) if each["kind"] == "PrometheusRule"}
    (group,) = rules["foresail-primers-budget"]["groups"]
    budgets = {each["labels"]["resource"]: each["expr"] for each in group["rules"]}
    assert {name: float(expr[len("vector(") : -1]) for name, expr in budgets.items()} == {"cpu": 48, "memory": 1e12}
    (compared,) = [each for each in rules["foresail-primers"]["groups"][0]["rules"] if "Budget" in each["alert"]]
    assert {each["record"] for each in group["rules"]} == set(re.findall(r"foresail:[\w:]+", compared["expr"]))


def random_options() -> list[InstallOptions]:
    """Return options for each set of capabilities; with this seed, a wrong mark on any object shows in one of them."""
    random, made = Random(23), []  # noqa: S311 - no secret
    for capabilities in charts.sets():
        skips, monitoring, locations, contents, hooks, is_abroad, volumes = (random.random() < 0.5 for _ in range(7))
        has_tenants = "self-service" in capabilities
        options = InstallOptions(
            capabilities,
            "backup",
            "sails",
            "example.com/f:v1",
            "example.com/pause:3",
            skip_immediately=skips,
            monitoring=monitoring,
            monitoring_labels={"release": "prometheus"},
            runbook_url="https://example.com/operations.html" if len(capabilities) % 2 else "",
            velero_time_zone="Europe/Berlin" if is_abroad else "UTC",
            tenant_locations=has_tenants and locations,
            download_contents=has_tenants and contents,
            hooks=has_tenants and hooks,
            rollback_volumes="rollback" in capabilities and volumes,
            schedules_with_hooks=("db", "mail")[: random.randrange(3)],
        )
        made.append(options)
    return made


@pytest.mark.parametrize("options", random_options(), ids=lambda options: "+".join(options.capabilities))
def test_the_command_installs_what_helm_would_for_each_set_of_capabilities(options: InstallOptions) -> None:
    text = charts.rendered_for(options.capabilities, values_of(options))
    by_helm = {name_of(each): each for each in yaml.load_all(text, yaml.CSafeLoader) if each}
    ours = [each.body for each in operators(options)]
    assert sorted(map(name_of, ours)) == sorted(by_helm), "run `make manifests`"
    for body in ours:
        assert body == by_helm[name_of(body)], f"{name_of(body)}: run `make manifests`"


def values_of(options: InstallOptions) -> dict[str, str]:
    """Return the values of the chart that say the same as the options."""
    switches = {
        "schedules.skipImmediately": options.skip_immediately,
        "selfService.locations.enabled": options.tenant_locations,
        "selfService.downloadContents": options.download_contents,
        "selfService.hooks": options.hooks,
        "rollback.volumes": options.rollback_volumes,
        "monitoring.rules": options.monitoring,
        "monitoring.serviceMonitor": options.monitoring,
    }
    image, _, tag = options.image.partition(":")
    names = ",".join(options.schedules_with_hooks)
    return {
        "veleroNamespace": options.namespace,
        "veleroServiceAccount": options.velero_account,
        "image.repository": image,
        "image.tag": tag,
        "primers.pauseImage": options.pause_image,
        "schedules.veleroTimeZone": options.velero_time_zone,
        "schedules.withHooks": f"{{{names}}}" if names else "null",
        "selfService.requesterStamp": "Always",
        "monitoring.runbookUrl": options.runbook_url,
        **{name: str(is_on).lower() for name, is_on in switches.items()},
        **{f"monitoring.labels.{name}": value for name, value in options.monitoring_labels.items()},
    }


def name_of(body: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return which object this is."""
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


def test_the_command_installs_the_definitions_of_the_chart() -> None:
    text = charts.rendered("foresail-crds", "default", {})
    assert [dict(each.body) for each in definitions()] == [each for each in yaml.safe_load_all(text) if each]


def test_finding_9_metrics_are_read_by_nobody_but_whom_the_values_name() -> None:
    """The testbed has no network of pods that could enforce it."""
    (closed,) = (each["spec"] for each in objects() if each["kind"] == "NetworkPolicy")
    assert (closed["policyTypes"], closed.get("ingress")) == (["Ingress"], None)
    switch = "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=monitoring"
    (opened,) = (each["spec"] for each in objects(switch) if each["kind"] == "NetworkPolicy")
    peers = [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]
    assert opened["ingress"] == [{"from": peers, "ports": [{"port": "metrics"}]}]


def test_finding_9_the_namespace_of_the_operator_reaches_it() -> None:
    (deployment,) = (each for each in objects() if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    fields = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]}
    assert fields["POD_NAMESPACE"] == "metadata.namespace"


OFF = ("schedules.enabled=false",)
REST = ("selfService.enabled=true", "proof.restoreChecks=true", "protection.enabled=true", "rollback.enabled=true")


@pytest.mark.parametrize(
    ("switches", "names"),
    [
        ((), {"foresail-schedules"}),
        (PRIMERS, {"foresail-schedules", "foresail-primers"}),
        ((*PRIMERS, *OFF), {"foresail-primers"}),
        ((*PRIMERS, *OFF, "selfService.enabled=true"), {"foresail-self-service", "foresail-primers"}),
        ((*PRIMERS, *REST), {*LEASES}),
    ],
)
def test_finding_9_each_capability_runs_apart_with_its_own_account_lease_and_selectors(
    switches: tuple[str, ...], names: set[str]
) -> None:
    found = objects(*switches, "monitoring.serviceMonitor=true")
    kinds = ("Deployment", "ServiceAccount", "PodDisruptionBudget", "NetworkPolicy", "Service", "ServiceMonitor")
    for kind in kinds:
        assert {each["metadata"]["name"] for each in found if each["kind"] == kind} == names, kind
    for each in (each for each in found if each["kind"] == "Deployment"):
        name, pod = each["metadata"]["name"], each["spec"]["template"]
        words = set(pod["spec"]["containers"][0]["args"])
        assert pod["spec"]["serviceAccountName"] == name
        assert f"--lease-name={name}" in words
        on = [capability for capability in CAPABILITIES if f"--{capability}=true" in words]
        assert on == [name.removeprefix("foresail-").replace("checks", "restore-checks")]
        assert name == "foresail-schedules" or "--schedules=false" in words
    for each in (each for each in found if each["kind"] in kinds):
        assert f"app.kubernetes.io/name': '{each['metadata']['name']}'" in repr(each)
        assert len(set(re.findall(r"app.kubernetes.io/name': '([^']+)'", repr(each)))) == 1, "it finds its own alone"


def test_without_any_capability_the_chart_refuses() -> None:
    done = helm("template", "foresail", str(CHART), "--set=schedules.enabled=false")
    assert "nothing is enabled" in done.stderr


def test_finding_9_only_the_account_of_primers_is_bound_to_their_role() -> None:
    found = objects(*PRIMERS, "selfService.enabled=true", "primers.serviceAccount.name=warm")
    bound: dict[str, set[str]] = {}
    for each in (each for each in found if each["kind"].endswith("RoleBinding")):
        for subject in each["subjects"]:
            bound.setdefault(subject["name"], set()).add(each["roleRef"]["name"])
    assert bound["warm"] == {"foresail-primers", "foresail-primers-leadership"}
    assert not any(names & bound["warm"] for account, names in bound.items() if account != "warm")
    roles = {each["metadata"]["name"]: each["rules"] for each in found if each["kind"] in {"Role", "ClusterRole"}}
    makes_pods = [
        rule for name in bound["foresail-self-service"] for rule in roles[name] if "pods" in rule["resources"]
    ]
    assert all("create" not in rule["verbs"] for rule in makes_pods)
    assert not [rule for name in bound["warm"] for rule in roles[name] if "velero.io" in rule["apiGroups"]]


def test_finding_9_either_token_is_of_no_use_for_the_work_of_the_other(prepared: Cluster) -> None:
    kinds = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    wanted = [each for each in objects(*PRIMERS, "selfService.enabled=true") if each["kind"] in kinds]
    text = yaml.safe_dump_all(wanted)
    prepared.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=text)
    try:
        makes = [f"{verb} {kind}" for kind in ("pods", "cronjobs.batch") for verb in ("create", "delete")]
        by_primers = [*makes, "patch primers.foresail.dev/status"]
        by_schedules = ["create backups.velero.io velero", "patch schedules.velero.io velero"]
        by_main = [
            *(
                f"{verb} {kind}.velero.io velero"
                for kind in ("backups", "restores")
                for verb in ("get", "list", "create")
            ),
            *(f"create {kind}.velero.io velero" for kind in ("deletebackuprequests", "downloadrequests")),
            "patch nonadminbackups.oadp.openshift.io",
        ]
        in_velero = [f"{each} velero" for each in by_primers]
        assert may(prepared, SELF_SERVICE_USER, by_main) == dict.fromkeys(by_main, True)
        assert may(prepared, USER, by_schedules) == dict.fromkeys(by_schedules, True)
        not_theirs = ["create restores.velero.io velero", "create downloadrequests.velero.io velero", by_main[-1]]
        assert may(prepared, USER, not_theirs) == dict.fromkeys(not_theirs, False)
        assert not may(prepared, SELF_SERVICE_USER, by_schedules[1:])[by_schedules[1]]
        for user in (USER, SELF_SERVICE_USER):
            assert may(prepared, user, by_primers + in_velero) == dict.fromkeys(by_primers + in_velero, False)
        assert may(prepared, PRIMERS_USER, by_primers) == dict.fromkeys(by_primers, True)
        foreign = [*by_main, "patch leases.coordination.k8s.io velero", "get secrets velero"]
        assert may(prepared, PRIMERS_USER, foreign) == dict.fromkeys(foreign, False)
    finally:
        prepared.kubectl("delete", "--filename=-", text=text)


@pytest.mark.parametrize("annotations", [False, True])
def test_primers_create_pods_in_the_namespaces_of_the_list_alone(prepared: Cluster, annotations: bool) -> None:
    kinds = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    found = objects(*PRIMERS, "primers.namespaces={default}", f"primers.annotations={str(annotations).lower()}")
    text = yaml.safe_dump_all([each for each in found if each["kind"] in kinds])
    prepared.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=text)
    try:
        makes = [f"{verb} {kind}" for kind in ("pods", "cronjobs.batch") for verb in ("create", "delete")]
        here, elsewhere = [f"{each} default" for each in makes], [f"{each} velero" for each in makes]
        patches = ["patch cronjobs.batch default", "patch cronjobs.batch velero"]
        reads = ["list pods", "watch cronjobs.batch", "patch primers.foresail.dev/status"]
        asked = may(prepared, PRIMERS_USER, [*makes, *here, *elsewhere, *patches, *reads])
        assert {each for each, is_granted in asked.items() if is_granted} == {
            *here,
            *reads,
            *(patches[:1] if annotations else ()),
        }
    finally:
        prepared.kubectl("delete", "--filename=-", text=text)


def test_the_operators_and_velero_have_a_lane_of_the_api_server_for_themselves(
    prepared: Cluster, eventually: Callable[[Callable[[], object], float], None]
) -> None:
    lane = [each for each in objects(*EVERYTHING) if each["apiVersion"].startswith("flowcontrol.")]
    prepared.apply(*lane)
    schemas = [each for each in lane if each["kind"] == "FlowSchema"]
    assert {each["metadata"]["name"] for each in schemas} == {*LEASES, "foresail-velero"}
    for schema in schemas:
        account = schema["spec"]["rules"][0]["subjects"][0]["serviceAccount"]
        user = f"system:serviceaccount:{account['namespace']}:{account['name']}"
        who = (f"--as={user}", "--as-group=system:serviceaccounts", "--as-group=system:authenticated")

        def is_served_by(name: str = schema["metadata"]["name"], who: tuple[str, ...] = who) -> bool:
            prepared.kubectl("get", "--raw=/api", *who)
            return name in re.findall(_IN_THE_LANE, prepared.kubectl("get", "--raw=/metrics"))

        eventually(is_served_by, 30)


def test_finding_9_one_account_for_both_is_refused() -> None:
    words = [f"--set={each}" for each in (*PRIMERS, "primers.serviceAccount.name=foresail-schedules")]
    done = helm("template", "foresail", str(CHART), *words)
    assert "schedules.serviceAccount.name: must differ from primers.serviceAccount.name" in done.stderr
