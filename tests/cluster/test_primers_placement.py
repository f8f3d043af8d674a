"""Where placeholders go on a real API server with a real scheduler: where the pods of the run would go."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster import operators, primers
from tests.cluster.operators import Operator
from tests.cluster.schedules import Eventually

HOME = "placement"
HOSTNAME = "kubernetes.io/hostname"
NODES = [f"placement-{number}" for number in range(3)]
GOLD = "placement-gold"
TAINT = {"key": "placement", "value": "gold", "effect": "NoSchedule"}
COUNT = len(NODES)
WORK = {"name": "work", "image": "work:1"}
POLICY = "placement-sends-to-gold"
_ADMISSION = "admissionregistration.k8s.io/v1"


def node(name: str, pool: str, *taints: dict[str, str]) -> dict[str, Any]:
    labels = {"pool": pool, HOSTNAME: name}
    kind = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    return {**kind, "spec": {"taints": list(taints)}}


def sends_to_gold() -> list[dict[str, Any]]:
    """Return a policy by which the API server itself sends the pods of one team to one pool, and no others."""
    toleration = '{"key": "placement", "operator": "Equal", "value": "gold"}'
    place = 'JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"pool": "gold"}}'
    tolerate = f'JSONPatch{{op: "add", path: "/spec/tolerations", value: [{toleration}]}}'
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    ours = f'request.namespace == "{HOME}" && object.metadata.?labels["team"].orValue("") == "gold"'
    about = {"name": POLICY}
    return [
        {
            "apiVersion": _ADMISSION,
            "kind": "MutatingAdmissionPolicy",
            "metadata": about,
            "spec": {
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "matchConstraints": {"resourceRules": [pods]},
                "matchConditions": [{"name": "of-the-team", "expression": ours}],
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{place}, {tolerate}]"}}],
            },
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": about,
            "spec": {"policyName": POLICY},
        },
    ]


def cron_job(name: str, labels: dict[str, str], **pod: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a CronJob of several pods that is due once a day, and next in half an hour."""
    due = now() + timedelta(minutes=30)
    found = primers.cron_job(name, f"{due.minute} {due.hour} * * *", "none", HOME, **pod)
    job = found["spec"]["jobTemplate"]["spec"]
    job["parallelism"] = job["completions"] = COUNT
    job["template"]["metadata"]["labels"] = labels
    return found


def around(name: str, kind: str) -> dict[str, Any]:
    """Return an affinity that selects pods like itself, and would rather have all of them on the first node."""
    term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": HOSTNAME}
    first = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": NODES[:1]}]}
    rather = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": first}]}
    return {"nodeAffinity": rather, kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(name: str) -> list[dict[str, Any]]:
    where = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
    return [{**where, "labelSelector": {"matchLabels": {"app": name}}}]


def is_sent(cluster: Cluster) -> bool:
    """Whether the API server acts on the policy yet."""
    metadata = {"name": "probe", "namespace": HOME, "labels": {"team": "gold"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [WORK]}}
    create = ("create", "--dry-run=server", "--output=json", "--filename=-")
    found: dict[str, Any] = json.loads(cluster.kubectl(*create, text=json.dumps(pod)))
    return bool(found["spec"].get("nodeSelector") == {"pool": "gold"})


@pytest.fixture(scope="module")
def operator(
    karpenter_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, eventually: Eventually
) -> Iterator[Operator]:
    """The operator, in a cluster with four nodes that Karpenter did not make, and the CronJobs of these tests."""
    cluster = karpenter_cluster
    primers.install(cluster)
    plain = {"nodeSelector": {"pool": "plain"}, "tolerations": []}
    rather, prefers = around("spread", "podAffinity")["nodeAffinity"], "nodeAffinity"
    jobs = [
        cron_job("sent", {"team": "gold"}, nodeSelector={}, tolerations=[]),
        cron_job("apart", {"app": "apart"}, affinity=around("apart", "podAntiAffinity"), **plain),
        cron_job("together", {"app": "together"}, affinity=around("together", "podAffinity"), **plain),
        cron_job(
            "spread",
            {"app": "spread"},
            affinity={prefers: rather},
            topologySpreadConstraints=spread("spread"),
            **plain,
        ),
    ]
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}},
        *[node(name, "plain") for name in NODES],
        node(GOLD, "gold", TAINT),
        *sends_to_gold(),
    )
    names = [*NODES, GOLD]
    try:
        cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", *(f"node/{name}" for name in names))
        eventually(lambda: is_sent(cluster), 60)
        with operators.running(cluster, tmp_path_factory.mktemp("placement"), *primers.FLAGS) as begun:
            cluster.apply(*jobs)
            cluster.apply(
                *[primers.primer(each["metadata"]["name"], "1h", HOME, method="Placeholder") for each in jobs]
            )
            yield begun
    finally:
        for kind in ("mutatingadmissionpolicy", "mutatingadmissionpolicybinding"):
            cluster.kubectl("delete", kind, POLICY, "--ignore-not-found")
        cluster.kubectl("delete", "namespace", HOME, "--ignore-not-found", "--wait=false")
        cluster.kubectl("delete", "node", *names, "--ignore-not-found", "--wait=false")


@pytest.fixture
def held(operator: Operator, karpenter_cluster: Cluster) -> "Held":
    del operator  # it holds what is looked at
    return Held(karpenter_cluster)


class Held:
    """The placeholders of the Primers here."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def by(self, primer: str) -> list[dict[str, Any]]:
        """Return the placeholders of a Primer that have a node."""
        pods = [each for each in primers.placeholders(self._cluster) if each["metadata"]["namespace"] == HOME]
        mine = [each for each in pods if each["metadata"]["labels"]["foresail.dev/primer"] == primer]
        return [each for each in mine if each["spec"].get("nodeName")]

    def nodes(self, primer: str) -> list[str]:
        """Return the nodes of a Primer's placeholders."""
        return sorted(each["spec"]["nodeName"] for each in self.by(primer))


def test_a_placeholder_goes_where_an_admission_policy_sends_the_pods_of_the_run(
    held: Held, eventually: Eventually
) -> None:
    eventually(lambda: len(held.by("sent")) == COUNT, 60)
    assert held.nodes("sent") == [GOLD] * COUNT
    for pod in held.by("sent"):
        assert "team" not in pod["metadata"]["labels"], "the policy did not change the placeholder itself"
        assert pod["spec"]["nodeSelector"] == {"pool": "gold"}
        assert "placement" in {each.get("key") for each in pod["spec"]["tolerations"]}


def test_placeholders_of_pods_that_keep_apart_or_are_spread_have_a_node_each(
    held: Held, eventually: Eventually
) -> None:
    for name in ("apart", "spread"):
        eventually(lambda name=name: len(held.by(name)) == COUNT, 60)  # type: ignore[misc]
        assert held.nodes(name) == NODES, name


def test_placeholders_of_pods_that_stay_together_share_a_node(held: Held, eventually: Eventually) -> None:
    eventually(lambda: len(held.by("together")) == COUNT, 60)
    assert len(set(held.nodes("together"))) == 1
