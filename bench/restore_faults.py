"""Faults that are planted in backups and clusters, and what a RestoreCheck must say about each."""

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.restore_drill import GROUP, Body, Drill, config_map, define, undefine, usual, wait, widget, widgets
from foresail.api.restore_check import MOST_OBJECTS

Fault = Callable[[Drill], Body]


@contextmanager
def refusing(drill: Drill, message: str, *objects: Body, refused: Body | None = None) -> Iterator[None]:
    """Refuse ConfigMaps with a label, or another object, for a while, with a message."""
    drill.cluster.apply(*objects)
    probe = json.dumps(refused or config_map("probe", drill="refused"))
    words = ("create", "--namespace=default", "--dry-run=server", "--filename=-")
    wait(lambda: drill.is_refused(message, *words, text=probe), "the refusal")
    try:
        yield
    finally:
        for each in objects:
            drill.cluster.kubectl("delete", each["kind"], each["metadata"]["name"])
        wait(lambda: not drill.problem(*words, text=probe), "the end of the refusal")


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


LABELLED = "object.metadata.?labels[?'drill'].orValue('') != 'refused'"


def policy(
    expression: str = LABELLED, group: str = "", resource: str = "configmaps", message: str = "refused by the drill"
) -> tuple[Body, Body]:
    """Return an admission policy; one that refuses ConfigMaps with a label if nothing else is said."""
    api, name = "admissionregistration.k8s.io/v1", {"name": "drill"}
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
    validation = {"expression": expression, "message": message}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]}
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
    with refusing(drill, f"refuse.{GROUP}", webhook()):
        return drill.check("webhook")


def refusing_policy(drill: Drill) -> Body:
    """Refuse an object by an admission policy."""
    drill.make("policy", *usual(), config_map("refused", drill="refused"))
    drill.back_up("policy", "--include-namespaces=policy")
    with refusing(drill, "refused by the drill", *policy()):
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


def missing_class(drill: Drill) -> Body:
    """Lose the StorageClass of a claim."""
    fast = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    drill.cluster.apply({**fast, "provisioner": f"{GROUP}/none"})
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "fast",
    }
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim}
    drill.make("class", *usual(), body)
    drill.back_up("class", "--include-namespaces=class", "--include-cluster-scoped-resources=storageclasses")
    drill.cluster.kubectl("delete", "storageclass", "fast")
    return drill.check("class")


def unreadable_list(drill: Drill) -> Body:
    """Have a list of objects that is not one."""
    drill.make("garbled", *usual())
    drill.back_up("garbled", "--include-namespaces=garbled")
    drill.file("garbled", "-resource-list.json.gz").write_bytes(gzip.compress(b'["settings"]'))
    return drill.check("garbled")


def lost_archive(drill: Drill) -> Body:
    """Lose the archive, and keep the list."""
    drill.make("lost", *usual())
    drill.back_up("lost", "--include-namespaces=lost")
    drill.file("lost", ".tar.gz").unlink()
    return drill.check("lost")


def unreadable_object(drill: Drill) -> Body:
    """Have half an object in the archive."""
    drill.make("half", *usual())
    drill.back_up("half", "--include-namespaces=half")
    drill.rewrite("half", "resources/configmaps/namespaces/half/settings.json", b'{"apiVersion": "v1", "ki')
    return drill.check("half")


def host_network(drill: Drill) -> Body:
    """Refuse workloads in the network of their node by an admission policy, as Pod Security does with pods."""
    on_host = workload("host", hostNetwork=True)
    drill.make("host", *usual(), on_host)
    drill.back_up("host", "--include-namespaces=host")
    expression = "!object.spec.template.spec.?hostNetwork.orValue(false)"
    rules = policy(expression, "apps", "deployments", message="hostNetwork is not allowed")
    with refusing(drill, "hostNetwork is not allowed", *rules, refused=on_host):
        return drill.check("host")


def dropped_version(drill: Drill) -> Body:
    """Serve a custom resource in a newer version only."""
    define(drill, widgets(version="v1alpha1"))
    drill.make("old-version", *usual(), widget("one", "v1alpha1"))
    drill.back_up("old-version", "--include-namespaces=old-version")
    drill.cluster.kubectl("delete", "customresourcedefinition", f"widgets.{GROUP}")
    define(drill, widgets())
    try:
        return drill.check("old-version", customResources=[f"widgets.{GROUP}"])
    finally:
        undefine(drill)


def lost_conversion(drill: Drill) -> Body:
    """Store a custom resource in another version, with a conversion webhook that nobody answers."""
    define(drill, widgets())
    drill.make("conversion", *usual(), widget("one"))
    drill.back_up("conversion", "--include-namespaces=conversion")
    drill.cluster.kubectl("delete", f"widgets.{GROUP}", "one", "--namespace=conversion")
    changed = widgets()
    (first,) = changed["spec"]["versions"]
    changed["spec"]["versions"] = [{**first, "storage": False}, {**first, "name": "v2"}]
    client = {"url": "https://127.0.0.1:9/convert"}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    changed["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    drill.cluster.apply(changed)
    probe = json.dumps(widget("probe"))
    words = ("create", "--namespace=default", "--dry-run=server", "--filename=-")
    wait(lambda: drill.is_refused("conversion webhook", *words, text=probe), "the refused conversion")
    try:
        return drill.check("conversion", customResources=[f"widgets.{GROUP}"])
    finally:
        undefine(drill)


def planted(namespace: str, resource: str, body: Body) -> Fault:
    """Return a fault: an object in the backup that another cluster took and this one refuses."""

    def plant(drill: Drill) -> Body:
        drill.make(namespace, *usual())
        drill.back_up(namespace, f"--include-namespaces={namespace}")
        placed = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
        drill.add_to_archive(namespace, resource, placed)
        return drill.check(namespace)

    return plant


def cron_job(name: str, schedule: str) -> Body:
    """Return a CronJob."""
    pods = {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x:1"}]}}
    spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": pods}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}


def workload(name: str, label: str = "", *, privileged: bool = False, **pod: object) -> Body:
    """Return a Deployment; its selector does not match its pods if they have another label."""
    container = {"name": "x", "image": "x:1", "securityContext": {"privileged": privileged}}
    template = {"metadata": {"labels": {"app": label or name}}, "spec": {"containers": [container], **pod}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def limit_range() -> Body:
    """Return a LimitRange whose least is more than its most."""
    limit = {"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": {"limits": [limit]}}


def other_family() -> Body:
    """Return a Service of an address family that the cluster does not have."""
    spec = {"ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack", "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "six"}, "spec": spec}


def without_certificate() -> Body:
    """Return a TLS Secret without its certificate."""
    metadata = {"name": "certificate"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": {}}


def many_namespaces(drill: Drill) -> Body:
    """Have more namespaces in a backup than one check takes."""
    drill.make("crowd", *usual())
    drill.back_up("crowd", "--include-namespaces=crowd")
    drill.add_to_list("crowd", "v1/ConfigMap", *(f"crowd-{number}/settings" for number in range(250)))
    return drill.check("crowd")


def many_objects(drill: Drill) -> Body:
    """Have more objects in a backup than one check takes."""
    drill.make("heap", *usual())
    drill.back_up("heap", "--include-namespaces=heap")
    drill.add_to_list("heap", "v1/ConfigMap", *(f"heap/{number}" for number in range(MOST_OBJECTS)))
    return drill.check("heap")


def frozen_velero(drill: Drill) -> Body:
    """Freeze Velero, so that nothing is restored before the deadline."""
    drill.make("frozen", *usual())
    drill.back_up("frozen", "--include-namespaces=frozen")
    drill.cluster.fault.stop("velero")
    try:
        return drill.check("frozen", deadline="1m")
    finally:
        drill.cluster.fault.cont("velero")


def partial_backups(drill: Drill) -> Body:
    """Have only backups that partially failed, because they name a namespace that does not exist."""
    drill.make("partially", *usual())
    drill.back_up("partially", "--include-namespaces=partially,absent", ends="PartiallyFailed")
    return drill.check_without_backup("partially")


FAULTS: dict[str, tuple[Fault, tuple[str, ...], str]] = {
    "missing definition": (missing_definition, ("KindNotServed",), "Widget"),
    "dropped version": (dropped_version, ("KindNotServed",), f"{GROUP}/v1alpha1/Widget"),
    "removed API": (removed_api, ("KindNotServed",), "extensions/v1beta1/Ingress"),
    "missing StorageClass": (missing_class, ("StorageClassMissing",), "StorageClass fast"),
    "tightened schema": (tightened_schema, ("ItemsRefused",), "spec.color"),
    "lost conversion": (lost_conversion, ("ItemsRefused",), "conversion webhook"),
    "refusing webhook": (refusing_webhook, ("ItemsRefused",), "webhook"),
    "refusing policy": (refusing_policy, ("ItemsRefused",), "ValidatingAdmissionPolicy"),
    "host network": (host_network, ("ItemsRefused",), "hostNetwork is not allowed"),
    "privileged workload": (
        planted("privileged", "deployments.apps", workload("root", privileged=True)), ("ItemsRefused",), "privileged",
    ),
    "small quota": (small_quota, ("ItemsRefused",), "quota"),
    "too long name": (
        planted("long-name", "cronjobs.batch", cron_job("a" * 60, "0 3 * * *")), ("ItemsRefused",), "52 characters",
    ),
    "time zone in a CronJob": (
        planted("zone", "cronjobs.batch", cron_job("zoned", "TZ=Europe/Rome 0 3 * * *")), ("ItemsRefused",), "TZ",
    ),
    "invalid LimitRange": (planted("limits", "limitranges", limit_range()), ("ItemsRefused",), "LimitRange"),
    "selector without pods": (
        planted("selector", "deployments.apps", workload("app", "other")), ("ItemsRefused",), "selector",
    ),
    "other address family": (planted("family", "services", other_family()), ("ItemsRefused",), "ipFamilies"),
    "Secret without its key": (planted("tls", "secrets", without_certificate()), ("ItemsRefused",), "tls.crt"),
    "empty backup": (empty_backup, ("BackupEmpty",), "no object"),
    "missing item": (missing_item, ("ItemsMissing",), "ghost/ghost"),
    "missing namespace": (missing_namespace, ("NamespaceMissing",), "elsewhere"),
    "truncated archive": (truncated_archive, ("RestoreFailed", "RestorePartiallyFailed"), ""),
    "lost archive": (lost_archive, ("RestoreFailed",), ""),
    "unreadable object": (unreadable_object, ("RestorePartiallyFailed", "ItemsRefused"), "settings"),
    "lost list": (lost_list, ("ContentsUnreadable",), ""),
    "unreadable list": (unreadable_list, ("ContentsUnreadable",), "format"),
    "many namespaces": (many_namespaces, ("TooManyNamespaces",), "251 namespaces"),
    "many objects": (many_objects, ("TooManyObjects",), f"one check takes {MOST_OBJECTS}"),
    "frozen Velero": (frozen_velero, ("DeadlineExceeded",), "1m"),
    "only partial backups": (partial_backups, ("NoBackup",), "No Completed Backup"),
}  # fmt: skip


def is_found(fault: str, result: Body) -> bool:
    """Whether a check reports a planted fault with the right reason."""
    _, reasons, words = FAULTS[fault]
    return result["result"] in ("Fail", "NotReady") and result["reason"] in reasons and words in result["message"]
