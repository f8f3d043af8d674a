"""What Velero's built-in restore item actions change in an item before it is created."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from foresail.api.specs import RestoreSpec
from foresail.proof.restore_plan.items import MUST_INCLUDE, Document, at, mapping, metadata, sequence, texts

CHANGE_STORAGE_CLASS = "change-storage-class"
CHANGE_IMAGE_NAME = "change-image-name"

_CONTROLLER_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_CLAIM_ANNOTATIONS = (
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    "velero.io/volume-snapshot-name",
    "velero.io/data-upload-name",
)
_WAITING = ("restore-wait", "restic-wait")  # init containers of an earlier restore
_DRY_RUN_SAFE = ("None", "NoneOnDryRun")
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secret
_ALWAYS_REWRITTEN = frozenset(
    {
        "pods",
        "services",
        "jobs.batch",
        "persistentvolumeclaims",
        "customresourcedefinitions.apiextensions.k8s.io",
    }
)
_BINDINGS = frozenset({"rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"})


@dataclass(frozen=True, slots=True)
class Settings:
    """What the actions depend on beside the item: the restore, and the ConfigMaps that configure them."""

    spec: RestoreSpec
    storage_classes: Mapping[str, str] = field(default_factory=dict)
    image_names: tuple[str, ...] = ()
    ambiguous: frozenset[str] = frozenset()
    """The actions that more than one ConfigMap configures, so that Velero fails every item they apply to."""

    @property
    def namespaces(self) -> Mapping[str, str]:
        """The new name of each namespace that the restore renames."""
        return self.spec.namespace_mapping or {}


def act(resource: str, body: Document, settings: Settings) -> None:
    """Change an item as the actions for its resource do, and Velero itself after the first of them."""
    actions = _ACTIONS.get(resource, ())
    if actions:
        mapping(metadata(body).get("annotations")).pop(MUST_INCLUDE, None)
    for action in actions:
        action(body, settings)


def ambiguous_action(resource: str, settings: Settings) -> str:
    """Return the action with more than one ConfigMap that applies to a resource; empty if there is none."""
    actions = _ACTIONS.get(resource, ())
    configured = {CHANGE_STORAGE_CLASS: _storage_class, CHANGE_IMAGE_NAME: _images}
    return next((name for name in sorted(settings.ambiguous) if configured.get(name) in actions), "")


def new_storage_classes(resource: str, body: Document, settings: Settings) -> tuple[str, ...]:
    """Return the storage classes that an item gets in place of others: Velero fails it if one does not exist."""
    if _storage_class not in _ACTIONS.get(resource, ()):
        return ()
    names = [str(mapping(item.get("spec")).get("storageClassName")) for item in _with_storage_class(body)]
    return tuple(settings.storage_classes[name] for name in names if name in settings.storage_classes)


def is_rewritten(resource: str, body: Document, settings: Settings) -> bool:
    """Whether an action writes an item anew, with fields that no existing object has, so that none is the same."""
    if resource in _BINDINGS:
        return bool(settings.namespaces)
    if resource == "statefulsets.apps":
        return bool(settings.storage_classes and at(body, "spec", "volumeClaimTemplates"))
    return resource in _ALWAYS_REWRITTEN or (resource == "secrets" and body.get("type") == _TOKEN)


def _service(body: Document, settings: Settings) -> None:
    spec = mapping(body.get("spec"))
    if spec.get("clusterIP") != "None":
        spec.pop("clusterIP", None)
        spec.pop("clusterIPs", None)
    if settings.spec.preserve_node_ports or spec.get("type") == "ExternalName":
        return
    asked = _asked_ports(body)
    for port in sequence(spec.get("ports")):
        if isinstance(port, dict) and not asked(port):
            port.pop("nodePort", None)
    is_local = spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
    if is_local and not _asked_health_port(body):
        spec.pop("healthCheckNodePort", None)


def _asked_ports(body: Document) -> Callable[[Document], bool]:
    """Return which ports have a node port that somebody asked for."""
    applied = _last_applied(body)
    if applied is not None:
        ports = [item for item in sequence(at(applied, "spec", "ports")) if isinstance(item, dict)]
        asked = [item for item in ports if _number(item.get("nodePort")) > 0]
        names = {item["name"] for item in asked if isinstance(item.get("name"), str)}
        numbers = {_number(item["nodePort"]) for item in asked if "name" not in item}
        return lambda port: port["name"] in names if port.get("name") else _number(port.get("nodePort")) in numbers
    owned = {
        name
        for entry in sequence(metadata(body).get("managedFields"))
        for name, fields in mapping(at(mapping(entry), "fieldsV1", "f:spec", "f:ports")).items()
        if "f:nodePort" in mapping(fields)
    }
    return lambda port: f'k:{{"port":{port.get("port")},"protocol":"{port.get("protocol", "")}"}}' in owned


def _asked_health_port(body: Document) -> bool:
    applied = _last_applied(body)
    if applied is not None and _number(at(applied, "spec", "healthCheckNodePort")) > 0:
        return True
    entries = sequence(metadata(body).get("managedFields"))
    return any(at(mapping(entry), "fieldsV1", "f:spec", "f:healthCheckNodePort") is not None for entry in entries)


def _last_applied(body: Document) -> Document | None:
    text = texts(metadata(body).get("annotations")).get(_LAST_APPLIED)
    if text is None:
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return mapping(document)


def _number(value: object) -> int:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return int(value) if isinstance(value, int | float) else 0


def _job(body: Document, _: Settings) -> None:
    selected = mapping(at(body, "spec", "selector", "matchLabels"))
    labels = mapping(at(body, "spec", "template", "metadata", "labels"))
    for name in _CONTROLLER_LABELS:
        selected.pop(name, None)
        labels.pop(name, None)


def _pod(body: Document, _: Settings) -> None:
    spec = mapping(body.get("spec"))
    spec.pop("nodeName", None)
    spec.pop("priority", None)
    prefix = f"{spec.get('serviceAccountName', '')}-token-"
    lists = [(spec, "volumes")]
    for field_name in ("containers", "initContainers"):
        lists += [(item, "volumeMounts") for item in sequence(spec.get(field_name)) if isinstance(item, dict)]
    for owner, name in lists:
        if name in owner:
            kept = [item for item in sequence(owner[name]) if not str(mapping(item).get("name", "")).startswith(prefix)]
            owner[name] = kept
    starting = [item for item in sequence(spec.get("initContainers")) if mapping(item).get("name") not in _WAITING]
    if starting != sequence(spec.get("initContainers")):
        spec["initContainers"] = starting


def _service_account(body: Document, _: Settings) -> None:
    prefix = f"{metadata(body).get('name', '')}-token-"
    secrets = sequence(body.get("secrets"))
    tokens = [secret for secret in secrets if str(mapping(secret).get("name", "")).startswith(prefix)]
    if tokens:
        secrets.remove(tokens[-1])


def _secret(body: Document, _: Settings) -> None:
    if body.get("type") == _TOKEN:
        mapping(metadata(body).get("annotations")).pop("kubernetes.io/service-account.uid", None)
        for name in ("token", "ca.crt"):
            mapping(body.get("data")).pop(name, None)


def _claim(body: Document, _: Settings) -> None:
    for name in _CLAIM_ANNOTATIONS:
        mapping(metadata(body).get("annotations")).pop(name, None)


def _binding(body: Document, settings: Settings) -> None:
    for item in sequence(body.get("subjects")):
        if isinstance(item, dict) and item.get("namespace") in settings.namespaces:
            item["namespace"] = settings.namespaces[item["namespace"]]


def _storage_class(body: Document, settings: Settings) -> None:
    for item in _with_storage_class(body):
        spec = mapping(item.get("spec"))
        if spec.get("storageClassName") in settings.storage_classes:
            spec["storageClassName"] = settings.storage_classes[spec["storageClassName"]]


def _with_storage_class(body: Document) -> list[Document]:
    templates = [mapping(item) for item in sequence(at(body, "spec", "volumeClaimTemplates"))]
    return templates if body.get("kind") == "StatefulSet" else [body]


def _images(body: Document, settings: Settings) -> None:
    path = {"Pod": ("spec",), "CronJob": ("spec", "jobTemplate", "spec", "template", "spec")}
    pod = mapping(at(body, *path.get(str(body.get("kind")), ("spec", "template", "spec"))))
    for name in ("containers", "initContainers"):
        for item in sequence(pod.get(name)):
            if isinstance(item, dict) and isinstance(item.get("image"), str):
                item["image"] = _renamed_image(item["image"], settings.image_names)


def _renamed_image(image: str, rules: tuple[str, ...]) -> str:
    for rule in rules:
        old, comma, new = rule.partition(",")
        if comma and new and old.strip() in image:
            return image.replace(old.strip(), new.strip())
    return image


def _webhooks(body: Document, _: Settings) -> None:
    for item in sequence(body.get("webhooks")):
        if isinstance(item, dict) and item.get("sideEffects") not in _DRY_RUN_SAFE:
            item["sideEffects"] = "None"


def _definition(body: Document, _: Settings) -> None:
    spec = mapping(body.get("spec"))
    if body.get("apiVersion") == "apiextensions.k8s.io/v1" and spec.get("preserveUnknownFields"):
        spec["preserveUnknownFields"] = False
        for version in sequence(spec.get("versions")):
            schema = at(mapping(version), "schema", "openAPIV3Schema")
            if isinstance(schema, dict):
                schema["x-kubernetes-preserve-unknown-fields"] = True


_Action = Callable[[Document, Settings], None]
_ACTIONS: dict[str, tuple[_Action, ...]] = {
    "jobs.batch": (_job, _images),
    "pods": (_pod, _images),
    "services": (_service,),
    "serviceaccounts": (_service_account,),
    "secrets": (_secret,),
    "persistentvolumeclaims": (_storage_class, _claim),
    "persistentvolumes": (_storage_class,),
    "statefulsets.apps": (_storage_class, _images),
    "deployments.apps": (_images,),
    "daemonsets.apps": (_images,),
    "replicasets.apps": (_images,),
    "replicationcontrollers": (_images,),
    "cronjobs.batch": (_images,),
    "rolebindings.rbac.authorization.k8s.io": (_binding,),
    "clusterrolebindings.rbac.authorization.k8s.io": (_binding,),
    "customresourcedefinitions.apiextensions.k8s.io": (_definition,),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": (_webhooks,),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": (_webhooks,),
}
