"""RestoreChecks on a real cluster with Velero: planted faults, side effects, kills, many namespaces.

`make restore-checks`; the last line that it prints is one JSON object.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import MeasurementError
from bench.restore_drill import API, GROUP, LABEL, Body, Drill, define, install, undefine, usual, wait, widget, widgets
from bench.restore_faults import FAULTS, is_found
from foresail.api.marks import CHECK, CHECK_RUN
from testbed import Cluster, Options
from testbed.audit import Request
from tests.cluster.operators import Operator
from tests.worlds.check_scene import false_alarms_of_a_month

NAMESPACES, KILLS = 200, 200
FLAGS = ("--schedules=false", "--restore-checks", "--lease-name=foresail-checks")
SEED = 20261116
USER = "system:serviceaccount:velero:foresail-checks"
_RESUMED = '{"spec":{"suspend":false}}'


# Side effects


def hostile() -> tuple[Body, ...]:
    """Return objects that would start, reach or block something."""
    pods = {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x:1"}]}}
    labelled = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x:1"}]}}
    of_x = {"matchLabels": {"app": "x"}}
    replicated = {"name": "copied", "annotations": {"reflector.v1.k8s.emberstack.com/reflection-auto-enabled": "true"}}
    subject = {"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "admin", "apiGroup": "rbac.authorization.k8s.io"}
    ports = [{"port": 80, "nodePort": 31999}]
    rule = {
        "http": {
            "paths": [
                {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "a", "port": {"number": 80}}}}
            ]
        }
    }
    return (
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "every-minute"},
         "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pods}}}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {"template": pods}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "three"},
         "spec": {"replicas": 3, "selector": of_x, "template": labelled}},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "everywhere"},
         "spec": {"selector": of_x, "template": labelled}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": pods["spec"]},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "balanced"},
         "spec": {"type": "LoadBalancer", "ports": ports}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hijack"},
         "spec": {"externalIPs": ["192.0.2.1"], "ports": [{"port": 80}]}},
        {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "allow-all"},
         "spec": {"podSelector": {}, "ingress": [{}], "egress": [{}], "policyTypes": ["Ingress", "Egress"]}},
        {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "front"},
         "spec": {"rules": [rule]}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stuck", "finalizers": [f"{GROUP}/never"]}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": replicated, "stringData": {"a": "b"}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
         "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "mallory"},
         "subjects": [subject], "roleRef": role},
        widget("reconciled"),
    )  # fmt: skip


def escapes(drill: Drill) -> tuple[list[str], Body]:
    """Check a hostile backup, look into its sandbox, and return what got out, and the result."""
    define(drill, widgets())
    drill.make("hostile", *hostile())
    drill.back_up("hostile", "--include-namespaces=hostile")
    result = drill.check(
        "hostile", namespaces=["hostile", "elsewhere"], keepFailed="1h"
    )  # it fails, so the sandbox stays
    (name,) = drill.sandboxes()
    found = list(_escaped(drill, name))
    drill.forget("hostile")
    settle(drill)
    body = {"metadata": {"finalizers": None}}
    drill.cluster.kubectl(
        "patch", "configmap", "stuck", "--namespace=hostile", "--type=merge", f"--patch={json.dumps(body)}"
    )
    undefine(drill)
    return found, result


def _escaped(drill: Drill, name: str) -> Iterator[str]:
    def listed(kind: str) -> list[Body]:
        return list(drill.cluster.get(kind, f"--namespace={name}")["items"])

    for kind in ("pods", "persistentvolumeclaims", "ingresses", f"widgets.{GROUP}"):
        yield from (f"{kind}/{each['metadata']['name']}" for each in listed(kind))
    policies = [each["metadata"]["name"] for each in listed("networkpolicies")]
    yield from (f"networkpolicies/{each}" for each in policies if not each.startswith("foresail-fence-"))
    for kind in ("cronjobs", "jobs"):
        yield from (f"{kind}/{each['metadata']['name']}" for each in listed(kind) if not each["spec"].get("suspend"))
    yield from (f"deployments/{each['metadata']['name']}" for each in listed("deployments") if each["spec"]["replicas"])
    for each in listed("services"):
        if each["spec"]["type"] != "ClusterIP" or each["spec"].get("externalIPs"):
            yield f"services/{each['metadata']['name']}"
    for each in (*listed("configmaps"), *listed("secrets")):
        if each["metadata"].get("finalizers") or "reflector" in json.dumps(each["metadata"].get("annotations", {})):
            yield f"{each['kind']}/{each['metadata']['name']}"
    yield from (f"rolebindings/{each['metadata']['name']}" for each in listed("rolebindings") if each.get("subjects"))
    yield from accepted(drill, name)


def accepted(drill: Drill, sandbox: str) -> Iterator[str]:
    """Return the attacks that the fence does not refuse with its own message."""
    here = f"--namespace={sandbox}"
    for target in (("cronjobs", "every-minute", here), ("deployments", "three", here), ("namespaces", "hostile")):
        problem = drill.problem("get", *target)
        if problem:
            yield f"there is no {target[0]}/{target[1]} to attack: {problem}"
    for what, attack in attacks(sandbox).items():
        problem = drill.problem(*attack.words, text=attack.text)
        if not problem or attack.message not in problem:
            yield f"{what}: {problem or 'accepted'}"


class Attack(NamedTuple):
    """A kubectl command that the fence must refuse with its own message: any other error tests nothing."""

    message: str
    words: tuple[str, ...]
    text: str | None = None


def attacks(sandbox: str) -> dict[str, Attack]:
    """Return writes by hand, as an administrator and as the operator."""
    create, by_operator = ("create", "--filename=-"), ("--dry-run=server", f"--as={USER}")
    here = f"--namespace={sandbox}"
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "by-hand"},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "x", "image": "x:1", "securityContext": restricted}],
        },
    }  # fmt: skip  # it meets the Pod Security Standard, so that the policy decides
    check = {
        "apiVersion": API, "kind": "RestoreCheck", "metadata": {"name": "t", "namespace": "hostile"},
        "spec": {"backups": {"schedule": "x"}},
    }  # fmt: skip
    restore = {
        "apiVersion": "velero.io/v1", "kind": "Restore",
        "metadata": {"name": "check-0123456789", "namespace": "velero", "labels": {LABEL: "x"},
                     "annotations": {CHECK: "x", CHECK_RUN: "x"}},
        "spec": {"backupName": "hostile", "includedNamespaces": ["hostile"]},
    }  # fmt: skip

    def namespace(name: str, **labels: str) -> str:
        return json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

    own, other, only = "foresail-check-0123456789-abcdef", "foresail-check-mine", "it creates only sandboxes"
    mine = {LABEL: "mine"}
    resume = ("patch", "cronjob", "every-minute", here, f"--patch={_RESUMED}")
    return {
        "a pod by hand": Attack("pods and volumes with depth Data only", (*create, here), json.dumps(pod)),
        "a resumed CronJob": Attack("suspended Jobs and CronJobs only", resume),
        "a scaled Deployment": Attack("0 replicas only", ("scale", "deployment", "three", here, "--replicas=1")),
        "a sandbox of somebody else": Attack("are sandboxes of RestoreChecks", create, namespace(own)),
        "a namespace with the label": Attack(
            "are written by RestoreChecks alone", ("label", "namespace", "hostile", f"{LABEL}=mine")
        ),
        "a RestoreCheck of a tenant": Attack("only if self-service is on", create, json.dumps(check)),
        "the deletion of another namespace by the operator": Attack(
            "it deletes only what it made for a check", ("delete", "namespace", "hostile", *by_operator)
        ),
        "a sandbox without the label by the operator": Attack(only, (*create, *by_operator), namespace(own)),
        "a sandbox of another name by the operator": Attack(only, (*create, *by_operator), namespace(other, **mine)),
        "a namespace with the label by the operator": Attack(
            only, (*create, *by_operator), namespace("elsewhere", **mine)
        ),
        "a restore in place by the operator": Attack(
            "it restores only into sandboxes", (*create, *by_operator), json.dumps(restore)
        ),
    }


# Many namespaces, and kills


def many(drill: Drill, count: int) -> tuple[Body, set[str]]:
    """Check a backup of many namespaces in one run, and return the result and the pods seen in sandboxes."""
    names = [f"many-{number}" for number in range(count)]
    for each in names:
        drill.make(each, *usual())
    drill.back_up("many", f"--include-namespaces={','.join(names)}")
    drill.ask("many", "many", deadline="1h")
    pods: set[str] = set()

    def has_ended() -> bool:
        pods.update(drill.pods())
        return drill.result("many") is not None

    wait(has_ended, "the check of many")
    return drill.result("many") or {}, pods


def killed(drill: Drill, operator: Operator, count: int) -> list[Body]:
    """Kill the operator at random moments of checks, and return the results."""
    dice = random.Random(SEED)  # noqa: S311 - moments, not secrets
    drill.make("killed", *usual())
    drill.back_up("killed", "--include-namespaces=killed")
    results: list[Body] = []
    kills = 0
    while kills < count:
        name = f"killed-{len(results)}"
        drill.ask(name, "killed")
        for _ in range(min(4, count - kills)):
            time.sleep(dice.uniform(0.1, 2.5))
            operator.kill()
            kills += 1
            operator.start()
        wait(lambda name=name: drill.result(name) is not None, f"the check {name}")  # type: ignore[misc]
        results.append(drill.result(name) or {})
    return results


# Parts


def faults(drill: Drill, _operator: Operator, _size: float) -> Body:
    """Plant each fault, and count those that are found with the right reason."""
    found = 0
    for name, (plant, _, _) in FAULTS.items():
        result = plant(drill)
        say(f"{name}: {result['result']} {result['reason']}: {result['message']}")
        found += is_found(name, result)
    return {"faults": len(FAULTS), "found": found}


def side_effects(drill: Drill, _operator: Operator, _size: float) -> Body:
    """Check a hostile backup, and count what got out."""
    out, result = escapes(drill)
    say(f"side effects: {result['reason']}: {result['message']}; escaped: {out}")
    return {"escapes": len(out)}


def namespaces(drill: Drill, _operator: Operator, size: float) -> Body:
    """Check many namespaces in one run."""
    whole, pods = many(drill, max(round(NAMESPACES * size), 1))
    say(f"many namespaces: {whole['result']} {whole['message']} in {whole.get('restoreSeconds')} s")
    figures = {"namespaces": whole["namespaces"], "restore_seconds": whole.get("restoreSeconds")}
    return {"false_alarms": int(whole["result"] != "Pass"), "pods_started": len(pods), **figures}


def kills(drill: Drill, operator: Operator, size: float) -> Body:
    """Kill the operator at random moments of checks."""
    count = max(round(KILLS * size), 1)
    failed = [each for each in killed(drill, operator, count) if each["result"] != "Pass"]
    for each in failed:
        say(f"false alarm: {each['reason']}: {each['message']}")
    return {"false_alarms": len(failed), "kills": count}


def month(_drill: Drill, _operator: Operator, _size: float) -> Body:
    """Simulate a month without faults."""
    return {"false_alarms": false_alarms_of_a_month()}


PARTS: dict[str, Callable[[Drill, Operator, float], Body]] = {
    "faults": faults,
    "side-effects": side_effects,
    "namespaces": namespaces,
    "kills": kills,
    "month": month,
}


def main() -> int:
    """Run everything, or some parts, and print the figures as JSON on the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=float(os.environ.get("SIZE") or 1))
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    args = parser.parse_args()
    options = Options(velero="velero", nodes=1, audit=True)
    with (
        Cluster.create(f"restore-checks-{os.getpid()}", options, owned=True) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        install(cluster)
        operator = Operator(cluster, Path(folder), *FLAGS)
        figures = measure(Drill(cluster), operator, args.size, args.part or list(PARTS))
    print(json.dumps(figures))
    return 0 if is_good(figures) else 1


def is_good(figures: Body) -> bool:
    """Whether every fault is found, and nothing is wrong, gets out, starts or stays."""
    bad = (figures.get(each, 0) for each in ("false_alarms", "escapes", "pods_started", "leftovers"))
    return figures.get("found") == figures.get("faults") and not any(bad)


def measure(drill: Drill, operator: Operator, size: float, parts: Collection[str]) -> Body:
    """Run the parts, and add up their figures."""
    figures: Body = {}
    operator.start()
    try:
        for part in parts:
            for name, value in PARTS[part](drill, operator, size).items():
                figures[name] = figures[name] + value if name in figures else value
        settle(drill)
        left = drill.leftovers()
    finally:
        operator.kill()
    if set(parts) - {"month"}:
        figures["pods_started"] = max(figures.get("pods_started", 0), pods_created(drill.created()))
    return {**figures, "leftovers": len(left)}


def settle(drill: Drill) -> None:
    """Wait until everything of checks is removed, and report what is not."""
    try:
        wait(lambda: not drill.leftovers(), "the removal of everything")
    except MeasurementError as error:
        say(f"{error}: {', '.join(drill.leftovers())}")


def pods_created(created: Sequence[Request]) -> int:
    """Return how many pods there ever were in sandboxes, from what was created in them."""
    if not created:
        raise MeasurementError("the audit log has no object in a sandbox, so it says nothing about pods")
    return sum(each.resource == "pods" for each in created)


def say(line: str) -> None:
    """Report progress."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
