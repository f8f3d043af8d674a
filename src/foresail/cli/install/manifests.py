"""The manifests that Helm rendered when this package was built, with the words of this cluster in their blanks."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from foresail.api.apps import DEPLOYMENT
from foresail.api.core import DEFINITION
from foresail.api.images import PAUSE_IMAGE
from foresail.api.marks import RETIRED_LEASE, SELF_SERVICE_LEASE
from foresail.api.monitoring import PROMETHEUS_RULE, SERVICE_MONITOR
from foresail.api.pods import PRIORITY_CLASS
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.cli.errors import UsageError
from foresail.plan import Key, Kind

CAPABILITIES = ("schedules", "self-service", "primers", "restore-checks")
TENANT_LOCATIONS = "tenant-locations"
"""The part of self-service that is switched on its own, and holds objects of tenants."""

_MONITORING = ("monitoring.yaml", "service-monitor.yaml")
_LOCATIONS = ("self-service-locations.yaml",)
_HOOKS = "schedules-hooks.yaml"
_HOOKED_SCHEDULE = "schedule.with.hooks"
"""The name of the one Schedule with hooks for which the chart was rendered."""

_WITH_HOOKS = "--schedules-with-hooks="
HOOKS_BINDING = "foresail-schedule-hooks-"
SELF_SERVICE_FENCE = f"{SELF_SERVICE_LEASE}-fence"

_SOURCE = re.compile(r"^# Source: [^/]+/templates/(.+)$", re.MULTILINE)
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_CORE, _RBAC, _ADMISSION = "", "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
ADMISSION_POLICY = Kind(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False)
ADMISSION_BINDING = Kind(
    _ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
STAMP = Kind(_ADMISSION, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", namespaced=False)
STAMP_BINDING = Kind(
    _ADMISSION, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", namespaced=False
)
_KINDS = (
    DEFINITION,
    Kind(_CORE, "v1", "serviceaccounts", "ServiceAccount"),
    Kind(_CORE, "v1", "services", "Service"),
    Kind(_CORE, "v1", "configmaps", "ConfigMap"),
    Kind(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
    Kind(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    Kind(_RBAC, "v1", "roles", "Role"),
    Kind(_RBAC, "v1", "rolebindings", "RoleBinding"),
    PRIORITY_CLASS,
    Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
    Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    DEPLOYMENT,
    ADMISSION_POLICY,
    ADMISSION_BINDING,
    STAMP,
    STAMP_BINDING,
    SELF_SERVICE_POLICY,
    PROMETHEUS_RULE,
    SERVICE_MONITOR,
)
_BY_NAME: Mapping[tuple[str, str], Kind] = {(each.api_version, each.name): each for each in _KINDS}


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """What the cluster or the user says, and no chart could know."""

    capabilities: tuple[str, ...]
    namespace: str
    velero_account: str
    image: str
    pause_image: str = PAUSE_IMAGE
    skip_immediately: bool = False
    monitoring: bool = False
    monitoring_labels: Mapping[str, str] = field(default_factory=dict)
    velero_time_zone: str = "UTC"
    tenant_locations: bool = False
    download_contents: bool = False
    hooks: bool = False  # of tenants
    schedules_with_hooks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """One object that is to be in the cluster."""

    kind: Kind
    key: Key
    body: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.kind.name} {self.key}"

    @property
    def is_operator(self) -> bool:
        """Whether it is that what runs."""
        return self.kind is DEPLOYMENT


def checked(options: InstallOptions) -> InstallOptions:
    """Return the options; what cannot be put into a manifest as it is written is an error."""
    for text, pattern, option in (
        (options.namespace, _NAMESPACE, "--velero-namespace"),
        (options.image, _IMAGE, "--image"),
        (options.pause_image, _IMAGE, "--primer-pause-image"),
    ):
        if not pattern.fullmatch(text):
            raise UsageError(f"{option}: {text!r} is not a valid name", "write it as kubectl shows it")
    if not options.capabilities:
        hint = "leave out --schedules=false, or add --self-service, --primers or --restore-checks"
        raise UsageError("no capability is enabled", hint)
    for option, is_on in (
        ("--tenant-locations", options.tenant_locations),
        ("--download-contents", options.download_contents),
        ("--self-service-hooks", options.hooks),
    ):
        if is_on and "self-service" not in options.capabilities:
            raise UsageError(
                f"{option} is part of self-service, which is off", f"add --self-service, or {option}=false"
            )
    return options


def definitions() -> list[Piece]:
    """Return the definitions of our kinds."""
    return [piece for _, piece in _pieces(_shipped("crds"))]


def defined(definition: Piece) -> Kind:
    """Return the kind that a definition defines."""
    spec = definition.body["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    names, namespaced = spec["names"], spec["scope"] == "Namespaced"
    return Kind(spec["group"], version, names["plural"], names["kind"], namespaced=namespaced)


def operators(options: InstallOptions) -> list[Piece]:
    """Return everything but the definitions, with what runs at its end."""
    name = "+".join(each for each in CAPABILITIES if each in options.capabilities)
    found = _pieces(_filled(_shipped(name), options))
    left_out = (*(() if options.monitoring else _MONITORING), *(() if options.tenant_locations else _LOCATIONS))
    wanted = [
        _labelled(piece, options)
        for source, one in found
        if source not in left_out
        for piece in (_for_schedules(one, options.schedules_with_hooks) if source == _HOOKS else [one])
    ]
    return sorted(wanted, key=lambda piece: piece.is_operator)


def _for_schedules(piece: Piece, names: Sequence[str]) -> list[Piece]:
    """Return the policy about hooks once if there are such Schedules, and its binding for each of them."""
    if piece.kind is ADMISSION_POLICY:
        return [piece] if names else []
    return [_renamed(piece, _HOOKED_SCHEDULE, name) for name in names]


def _renamed(piece: Piece, old: str, new: str) -> Piece:
    body = json.loads(json.dumps(piece.body).replace(old, new))
    return Piece(piece.kind, Key(piece.key.namespace, piece.key.name.replace(old, new)), body)


def retired(namespace: str) -> list[Piece]:
    """Return the objects that earlier versions had, with what ran first; this version has none of these names."""
    kinds = {kind.name: kind for kind in _KINDS}
    names = {
        "Deployment": RETIRED_LEASE,
        "PodDisruptionBudget": RETIRED_LEASE,
        "NetworkPolicy": RETIRED_LEASE,
        "Service": RETIRED_LEASE,
        "ServiceMonitor": RETIRED_LEASE,
        "RoleBinding": f"{RETIRED_LEASE}-leadership",
        "Role": f"{RETIRED_LEASE}-leadership",
        "ServiceAccount": RETIRED_LEASE,
    }
    found = [Piece(kinds[kind], Key(namespace, name), {}) for kind, name in names.items()]
    fences = ("foresail-fence", "foresail-location-fence", "foresail-credentials-fence")
    kinds_of_fences = (ADMISSION_BINDING.name, ADMISSION_POLICY.name)
    return [*found, *(Piece(kinds[kind], Key("", name), {}) for name in fences for kind in kinds_of_fences)]


def _labelled(piece: Piece, options: InstallOptions) -> Piece:
    """Return an object with the labels by which a Prometheus selects its rules and ServiceMonitors."""
    if piece.kind not in (PROMETHEUS_RULE, SERVICE_MONITOR):
        return piece
    meta = piece.body["metadata"]
    labels = {**options.monitoring_labels, **meta["labels"]}
    return replace(piece, body={**piece.body, "metadata": {**meta, "labels": labels}})


def _filled(text: str, options: InstallOptions) -> str:
    for blank, word in (
        ("VELERO-NAMESPACE", options.namespace),
        ("VELERO-SERVICE-ACCOUNT", options.velero_account),
        ("FORESAIL-IMAGE:TAG", options.image),
        ("PAUSE-IMAGE", options.pause_image),
        ("--schedule-skip-immediately=false", f"--schedule-skip-immediately={str(options.skip_immediately).lower()}"),
        ("--tenant-locations=true", f"--tenant-locations={str(options.tenant_locations).lower()}"),
        (_variable("allowsContents", "false"), _variable("allowsContents", _text(options.download_contents))),
        (_variable("allowsHooks", "false"), _variable("allowsHooks", _text(options.hooks))),
        ("--self-service-hooks=false", f"--self-service-hooks={_text(options.hooks)}"),
        (f'["{_HOOKED_SCHEDULE}"]', json.dumps([*options.schedules_with_hooks])),
        (f"{_WITH_HOOKS}{_HOOKED_SCHEDULE}", _WITH_HOOKS + ",".join(options.schedules_with_hooks)),
        ("--velero-time-zone=UTC", f"--velero-time-zone={options.velero_time_zone}"),
        ("app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: foresail"),
    ):
        text = text.replace(blank, word)
    return text


def _variable(name: str, expression: str) -> str:
    """Return a variable of a fence, as it is written in the chart."""
    return f"- name: {name}\n      expression: >-\n        {expression}\n"


def _text(is_on: bool) -> str:  # noqa: FBT001 - one switch
    return str(is_on).lower()


def _shipped(name: str) -> str:
    return (files("foresail") / "manifests" / f"{name}.yaml").read_text()


def _pieces(text: str) -> Iterator[tuple[str, Piece]]:
    """Yield each object with the template that it comes from, as Helm wrote above it."""
    import yaml  # noqa: PLC0415 - it costs more than the rest of the command line

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for document in text.split("\n---\n"):
        source, body = _SOURCE.search(document), yaml.load(document, loader)  # noqa: S506 - a safe one
        if source is None or not body:
            continue
        kind = _BY_NAME[body["apiVersion"], body["kind"]]
        meta = body["metadata"]
        yield source[1], Piece(kind, Key(meta["namespace"] if kind.namespaced else "", meta["name"]), body)
