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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bench.restore_drill import API, GROUP, LABEL, Body, Drill, define, install, undefine, usual, wait, widget, widgets
from bench.restore_faults import FAULTS, is_found
from testbed import Cluster, Options
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
    wait(lambda: not drill.leftovers(), "the removal of the hostile sandbox")
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
    if not {"every-minute"} <= {each["metadata"]["name"] for each in listed("cronjobs")}:
        yield "the sandbox has no CronJob, so nothing was tried"
    pod = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "by-hand"},
            "spec": {"containers": [{"name": "x", "image": "x:1"}]},
        }
    )
    attempts = {
        "a pod by hand": (("create", f"--namespace={name}", "--filename=-"), pod),
        "a resumed CronJob": (("patch", "cronjob", "every-minute", f"--namespace={name}", f"--patch={_RESUMED}"), None),
        "a scaled Deployment": (("scale", "deployment", "three", f"--namespace={name}", "--replicas=1"), None),
        "a sandbox of somebody else": (("create", "namespace", "foresail-check-0123456789-abcdef"), None),
        "a namespace with the label": (("label", "namespace", "hostile", f"{LABEL}=mine"), None),
        "a RestoreCheck of a tenant": (
            ("create", "--filename=-"),
            json.dumps({"apiVersion": API, "kind": "RestoreCheck", "metadata": {"name": "t", "namespace": "hostile"},
                        "spec": {"backups": {"schedule": "x"}}}),
        ),
        "another namespace by the operator": (
            ("delete", "namespace", "hostile", "--dry-run=server", f"--as={USER}"), None,
        ),
        "a restore in place by the operator": (
            ("create", "--dry-run=server", f"--as={USER}", "--filename=-"),
            json.dumps({"apiVersion": "velero.io/v1", "kind": "Restore",
                        "metadata": {"name": "check-0123456789", "namespace": "velero", "labels": {LABEL: "x"}},
                        "spec": {"backupName": "hostile", "includedNamespaces": ["hostile"]}}),
        ),
    }  # fmt: skip
    yield from (name for name, (words, text) in attempts.items() if not drill.is_refused(*words, text=text))


# Many namespaces, and kills


def many(drill: Drill, count: int) -> Body:
    """Check a backup of many namespaces in one run."""
    names = [f"many-{number}" for number in range(count)]
    for each in names:
        drill.make(each, *usual())
    drill.back_up("many", f"--include-namespaces={','.join(names)}")
    return drill.check("many", deadline="1h")


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
    whole = many(drill, max(round(NAMESPACES * size), 1))
    say(f"many namespaces: {whole['result']} {whole['message']} in {whole.get('restoreSeconds')} s")
    figures = {"namespaces": whole["namespaces"], "restore_seconds": whole.get("restoreSeconds")}
    return {"false_alarms": int(whole["result"] != "Pass"), **figures}


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
    options = Options(velero="velero", nodes=1)
    with (
        Cluster.create(f"restore-checks-{os.getpid()}", options, owned=True) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        install(cluster)
        operator = Operator(cluster, Path(folder), *FLAGS)
        figures = measure(Drill(cluster), operator, args.size, args.part or list(PARTS))
    print(json.dumps(figures))
    bad = (figures.get(each, 0) for each in ("false_alarms", "escapes", "leftovers"))
    return 0 if figures.get("found") == figures.get("faults") and not any(bad) else 1


def measure(drill: Drill, operator: Operator, size: float, parts: Iterable[str]) -> Body:
    """Run the parts, and add up their figures."""
    figures: Body = {}
    operator.start()
    try:
        for part in parts:
            for name, value in PARTS[part](drill, operator, size).items():
                figures[name] = figures[name] + value if name in figures else value
        wait(lambda: not drill.leftovers(), "the removal of everything")
    finally:
        operator.kill()
    return {**figures, "leftovers": len(drill.leftovers())}


def say(line: str) -> None:
    """Report progress."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
