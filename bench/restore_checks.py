"""RestoreChecks on a real cluster with Velero: planted faults, side effects, kills, many namespaces.

`make restore-checks`; the last line that it prints is one JSON object.
"""

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import MeasurementError
from testbed import Cluster, Options, TestbedError
from testbed.build import program
from tests.cluster.operators import Operator
from tests.worlds.check_scene import false_alarms_of_a_month

CHARTS = Path(__file__).parents[1] / "charts"
NAMESPACES, KILLS = 200, 200
FLAGS = ("--schedules=false", "--restore-checks", "--lease-name=foresail-checks")
LABEL = "foresail.dev/restore-check"
API = "foresail.dev/v1alpha1"
GROUP = "drill.example.com"
SEED = 20261116
USER = "system:serviceaccount:velero:foresail-checks"
_RESUMED = '{"spec":{"suspend":false}}'
_PATIENCE = 600.0
Body = dict[str, Any]


def install(cluster: Cluster) -> None:
    """Install both charts with restore checks as the only capability."""
    for chart, values in (
        ("foresail-crds", "veleroNamespace=velero"),
        ("foresail", "proof.restoreChecks=true,schedules.enabled=false"),
    ):
        command = [str(program("helm", "helm")), "template", "foresail", str(CHARTS / chart), "--namespace=velero"]
        settings = [f"--set={values}"] if chart == "foresail" else []
        rendered = subprocess.run([*command, *settings], capture_output=True, text=True, check=True).stdout
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=rendered)
        cluster.wait_for_kinds()


@dataclass(frozen=True, slots=True)
class Drill:
    """A cluster on which checks run."""

    cluster: Cluster

    # Backups

    def make(self, namespace: str, *objects: Body) -> None:
        """Create a namespace with objects."""
        self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        if objects:
            placed = [{**each, "metadata": {"namespace": namespace, **each["metadata"]}} for each in objects]
            self.cluster.apply(*placed)

    def back_up(self, name: str, *words: str) -> None:
        """Back up with Velero, labelled with the name of the backup."""
        flags = ("--snapshot-volumes=false", f"--labels=drill={name}", "--wait")
        self.cluster.velero("backup", "create", name, *words, *flags)
        phase = self.cluster.get("backups.velero.io", name, "--namespace=velero")["status"]["phase"]
        if phase != "Completed":
            raise MeasurementError(f"Backup {name} is {phase}")

    def file(self, backup: str, suffix: str) -> Path:
        """Return a file of a backup in the bucket."""
        return self.cluster.site.bucket / "backups" / backup / f"{backup}{suffix}"

    def add_to_list(self, backup: str, gvk: str, *places: str) -> None:
        """Pretend that a backup has more objects than its archive."""
        file = self.file(backup, "-resource-list.json.gz")
        lists = json.loads(gzip.decompress(file.read_bytes()))
        lists.setdefault(gvk, []).extend(places)
        file.write_bytes(gzip.compress(json.dumps(lists).encode()))

    # Checks

    def ask(self, name: str, backup: str, **spec: object) -> None:
        """Create a RestoreCheck of one backup."""
        chosen = {"selector": {"matchLabels": {"drill": backup}}}
        body = {"backups": chosen, "deadline": "5m", **spec}
        self.cluster.apply(
            {"apiVersion": API, "kind": "RestoreCheck", "metadata": {"name": name, "namespace": "velero"}, "spec": body}
        )

    def result(self, name: str) -> Body | None:
        """Return the last result of a check."""
        found: Body = self.cluster.get("restorechecks", name, "--namespace=velero")
        last: Body | None = found.get("status", {}).get("last")
        return last

    def check(self, backup: str, **spec: object) -> Body:
        """Check a backup and return the result."""
        self.ask(backup, backup, **spec)
        wait(lambda: self.result(backup) is not None, f"the check of {backup}")
        return self.result(backup) or {}

    def forget(self, name: str) -> None:
        """Delete a RestoreCheck."""
        self.cluster.kubectl("delete", "restorecheck", name, "--namespace=velero")

    def sandboxes(self) -> list[str]:
        """Return the sandboxes that exist."""
        return [each["metadata"]["name"] for each in self.cluster.get("namespaces", f"--selector={LABEL}")["items"]]

    def leftovers(self) -> list[str]:
        """Return what checks have left beside their evidence."""
        found = self.sandboxes()
        names = [each["metadata"]["name"] for each in self.cluster.get("namespaces")["items"]]
        found += [each for each in names if each.startswith("foresail-check-") and each not in found]
        for kind in ("restores.velero.io", "downloadrequests.velero.io", "configmaps"):
            items = self.cluster.get(kind, "--namespace=velero", f"--selector={LABEL}")["items"]
            rest = [each["metadata"]["name"] for each in items]
            found += [f"{kind}/{each}" for each in rest if not each.endswith("-evidence")]
        return found

    def is_refused(self, *arguments: str, text: str | None = None) -> bool:
        """Whether the API server refuses a kubectl command of a cluster administrator."""
        try:
            self.cluster.kubectl(*arguments, text=text)
        except TestbedError:
            return True
        return False


# Planted faults


def config_map(name: str, **labels: str) -> Body:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"a": "b"}}


def usual() -> tuple[Body, ...]:
    """Return what a usual namespace has."""
    pods = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    of_web = {"matchLabels": {"app": "web"}}
    return (
        config_map("settings"),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "stringData": {"a": "b"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web"}},
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": of_web, "template": pods},
        },
        {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        },
        {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": of_web},
        },
    )  # fmt: skip


def widgets(*, required: str = "") -> Body:
    """Return a custom resource definition; with a field that every object must have."""
    spec: Body = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if required:
        spec["required"] = [required]
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def widget(name: str) -> Body:
    """Return a custom resource."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}}


def define(drill: Drill, definition: Body) -> None:
    """Define a kind, wait until it is served, and let Velero discover it: it looks every five minutes only."""
    drill.cluster.apply(definition)
    wait(lambda: not drill.is_refused("get", f"widgets.{GROUP}", "--all-namespaces"), "the kind Widget")
    drill.cluster.restart_velero()


def undefine(drill: Drill) -> None:
    """Delete the kind, and let Velero notice it: its backups would partially fail."""
    drill.cluster.kubectl("delete", "customresourcedefinition", f"widgets.{GROUP}")
    drill.cluster.restart_velero()


@contextmanager
def refusing(drill: Drill, *objects: Body) -> Iterator[None]:
    """Refuse ConfigMaps with a label for a while."""
    drill.cluster.apply(*objects)
    probe = json.dumps(
        {**config_map("probe", drill="refused"), "metadata": {"name": "probe", "labels": {"drill": "refused"}}}
    )
    words = ("create", "--namespace=default", "--dry-run=server", "--filename=-")
    wait(lambda: drill.is_refused(*words, text=probe), "the refusal")
    try:
        yield
    finally:
        for each in objects:
            drill.cluster.kubectl("delete", each["kind"], each["metadata"]["name"])
        wait(lambda: not drill.is_refused(*words, text=probe), "the end of the refusal")


def webhook() -> Body:
    """Return a webhook that nobody answers."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "drill"},
        "webhooks": [
            {
                "name": f"refuse.{GROUP}",
                "clientConfig": {"url": "https://127.0.0.1:9/refuse"},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": 1,
                "admissionReviewVersions": ["v1"],
                "objectSelector": {"matchLabels": {"drill": "refused"}},
                "rules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ],
            }
        ],
    }


def policy() -> tuple[Body, Body]:
    """Return an admission policy that refuses ConfigMaps with a label."""
    api, name = "admissionregistration.k8s.io/v1", {"name": "drill"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    expression = "object.metadata.?labels[?'drill'].orValue('') != 'refused'"
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]}
    binding = {"policyName": "drill", "validationActions": ["Deny"]}
    return (
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": name, "spec": spec},
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": name, "spec": binding},
    )


def missing_definition(drill: Drill) -> Body:
    """Lose the definition of a listed custom resource."""
    define(drill, widgets())
    drill.make("no-kind", *usual(), widget("one"))
    drill.back_up("no-kind", "--include-namespaces=no-kind")
    drill.cluster.kubectl("delete", "customresourcedefinition", f"widgets.{GROUP}")
    result = drill.check("no-kind", customResources=[f"widgets.{GROUP}"])  # Velero still believes in the kind
    drill.cluster.restart_velero()
    return result


def tightened_schema(drill: Drill) -> Body:
    """Require a field that the objects of the backup have not."""
    define(drill, widgets())
    drill.make("tight", *usual(), widget("one"))
    drill.back_up("tight", "--include-namespaces=tight")
    drill.cluster.apply(widgets(required="color"))
    try:
        return drill.check("tight", customResources=[f"widgets.{GROUP}"])
    finally:
        undefine(drill)


def refusing_webhook(drill: Drill) -> Body:
    """Refuse an object by a webhook that nobody answers."""
    drill.make("webhook", *usual(), config_map("refused", drill="refused"))
    drill.back_up("webhook", "--include-namespaces=webhook")
    with refusing(drill, webhook()):
        return drill.check("webhook")


def refusing_policy(drill: Drill) -> Body:
    """Refuse an object by an admission policy."""
    drill.make("policy", *usual(), config_map("refused", drill="refused"))
    drill.back_up("policy", "--include-namespaces=policy")
    with refusing(drill, *policy()):
        return drill.check("policy")


def small_quota(drill: Drill) -> Body:
    """Have a quota in the backup that the objects after it exceed."""
    of_db = {"matchLabels": {"app": "db"}}
    pods = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": "db:1"}]}}
    spec = {"replicas": 0, "serviceName": "db", "selector": of_db, "template": pods}
    drill.make(
        "quota", *usual(), {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
    )
    hard = {"hard": {"count/statefulsets.apps": "0"}}
    drill.make("quota", {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": hard})
    drill.back_up("quota", "--include-namespaces=quota")
    return drill.check("quota")


def removed_api(drill: Drill) -> Body:
    """Have an object of an API that this cluster has removed."""
    drill.make("old-api", *usual())
    drill.back_up("old-api", "--include-namespaces=old-api")
    drill.add_to_list("old-api", "extensions/v1beta1/Ingress", "old-api/web")
    return drill.check("old-api")


def empty_backup(drill: Drill) -> Body:
    """Back up nothing."""
    drill.make("empty", *usual())
    drill.back_up("empty", "--include-namespaces=empty", "--selector=drill=nothing")
    return drill.check("empty")


def truncated_archive(drill: Drill) -> Body:
    """Lose the end of the archive."""
    drill.make("truncated", *usual())
    drill.back_up("truncated", "--include-namespaces=truncated")
    file = drill.file("truncated", ".tar.gz")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return drill.check("truncated")


def missing_item(drill: Drill) -> Body:
    """Have an object in the list of the backup that its archive lacks."""
    drill.make("ghost", *usual())
    drill.back_up("ghost", "--include-namespaces=ghost")
    drill.add_to_list("ghost", "v1/ConfigMap", "ghost/ghost")
    return drill.check("ghost")


def missing_namespace(drill: Drill) -> Body:
    """Want a namespace that the backup has not."""
    drill.make("partial", *usual())
    drill.back_up("partial", "--include-namespaces=partial")
    return drill.check("partial", namespaces=["partial", "elsewhere"])


def lost_list(drill: Drill) -> Body:
    """Lose the list of the backup's objects."""
    drill.make("unlisted", *usual())
    drill.back_up("unlisted", "--include-namespaces=unlisted")
    drill.file("unlisted", "-resource-list.json.gz").unlink()
    return drill.check("unlisted")


FAULTS: dict[str, tuple[Callable[[Drill], Body], tuple[str, ...], str]] = {
    "missing definition": (missing_definition, ("KindNotServed",), "Widget"),
    "tightened schema": (tightened_schema, ("ItemsRefused",), "spec.color"),
    "refusing webhook": (refusing_webhook, ("ItemsRefused",), "webhook"),
    "refusing policy": (refusing_policy, ("ItemsRefused",), "ValidatingAdmissionPolicy"),
    "small quota": (small_quota, ("ItemsRefused",), "quota"),
    "removed API": (removed_api, ("KindNotServed",), "extensions/v1beta1/Ingress"),
    "empty backup": (empty_backup, ("BackupEmpty",), "no object"),
    "truncated archive": (truncated_archive, ("RestoreFailed", "RestorePartiallyFailed"), ""),
    "missing item": (missing_item, ("ItemsMissing",), "ghost/ghost"),
    "missing namespace": (missing_namespace, ("NamespaceMissing",), "elsewhere"),
    "lost list": (lost_list, ("ContentsUnreadable",), ""),
}


def is_found(fault: str, result: Body) -> bool:
    """Whether a check reports a planted fault with the right reason."""
    _, reasons, words = FAULTS[fault]
    return result["result"] == "Fail" and result["reason"] in reasons and words in result["message"]


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


def wait(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            if holds():
                return
        except (TestbedError, LookupError):
            pass
        if time.monotonic() > until:
            raise MeasurementError(f"waited {_PATIENCE:g} s for {what}")
        time.sleep(0.3)


def main() -> int:
    """Run everything, and print the figures as JSON on the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=float(os.environ.get("SIZE") or 1))
    args = parser.parse_args()
    options = Options(velero="velero", nodes=1)
    with (
        Cluster.create(f"restore-checks-{os.getpid()}", options, owned=True) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        install(cluster)
        figures = measure(Drill(cluster), Operator(cluster, Path(folder), *FLAGS), args.size)
    print(json.dumps(figures))
    is_good = figures["found"] == figures["faults"] and not (
        figures["false_alarms"] or figures["escapes"] or figures["leftovers"]
    )
    return 0 if is_good else 1


def measure(drill: Drill, operator: Operator, size: float) -> Body:
    """Plant faults and side effects, kill, and count."""
    operator.start()
    try:
        found = []
        for name, (plant, _, _) in FAULTS.items():
            result = plant(drill)
            say(f"{name}: {result['result']} {result['reason']}: {result['message']}")
            found.append(is_found(name, result))
        out, result = escapes(drill)
        say(f"side effects: {result['reason']}: {result['message']}; escaped: {out}")
        whole = many(drill, max(round(NAMESPACES * size), 1))
        say(f"many namespaces: {whole['result']} {whole['message']} in {whole.get('restoreSeconds')} s")
        results = killed(drill, operator, max(round(KILLS * size), 1))
        good = [whole, *results]
        for each in good:
            if each["result"] != "Pass":
                say(f"false alarm: {each['reason']}: {each['message']}")
        wait(lambda: not drill.leftovers(), "the removal of everything")
        month = false_alarms_of_a_month()
    finally:
        operator.kill()
    return {
        "faults": len(FAULTS),
        "found": sum(found),
        "false_alarms": sum(each["result"] != "Pass" for each in good) + month,
        "escapes": len(out),
        "leftovers": len(drill.leftovers()),
        "namespaces": whole["namespaces"],
        "restore_seconds": whole.get("restoreSeconds"),
        "kills": max(round(KILLS * size), 1),
    }


def say(line: str) -> None:
    """Report progress."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
