"""What an installation consists of, composed from the manifest that Helm rendered when this package was built.

Each object of the manifest is marked with the switches that must be on or off for it. Names of the cluster fill its
blanks; arguments of containers and variables of fences get the values of the options.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from foresail.api.apps import DEPLOYMENT
from foresail.api.core import DEFINITION
from foresail.api.marks import RETIRED_LEASE, SELF_SERVICE_LEASE
from foresail.api.monitoring import PROMETHEUS_RULE, SERVICE_MONITOR
from foresail.api.pods import PAUSE_IMAGE, PRIORITY_CLASS
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.cli.errors import UsageError
from foresail.plan import Key, Kind

CAPABILITIES = ("schedules", "self-service", "primers", "restore-checks", "protection", "rollback")
TENANT_LOCATIONS = "tenant-locations"
"""The part of self-service that is switched on its own, and holds objects of tenants."""

_MONITORING, _WITH_HOOKS = "monitoring", "schedules-with-hooks"
_HOOKED_SCHEDULE = "schedule.with.hooks"
"""The name of the one Schedule with hooks for which the chart was rendered."""

_BLANK = re.compile(f"VELERO-NAMESPACE|VELERO-SERVICE-ACCOUNT|FORESAIL-IMAGE:TAG|PAUSE-IMAGE|{_HOOKED_SCHEDULE}")
HOOKS_BINDING = "foresail-schedule-hooks-"
SELF_SERVICE_FENCE = f"{SELF_SERVICE_LEASE}-fence"

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_PAGE = re.compile(r"(https?://[^#\s]+)?")
_CORE, _RBAC, _ADMISSION = "", "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"
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
    Kind(_FLOW, "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", namespaced=False),
    Kind(_FLOW, "v1", "flowschemas", "FlowSchema", namespaced=False),
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
_BY_NAME: Mapping[tuple[str, str], Kind] = {(kind.api_version, kind.name): kind for kind in _KINDS}


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
    runbook_url: str = ""
    velero_time_zone: str = "UTC"
    tenant_locations: bool = False
    download_contents: bool = False
    hooks: bool = False  # of tenants
    other_namespaces: bool = False  # for their restores
    from_protection: bool = False  # the same
    rollback_volumes: bool = False
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
    if not _PAGE.fullmatch(options.runbook_url):
        hint = "pass the page of the alerts, such as https://docs.example.com/runbooks.html"
        raise UsageError(f"--runbook-url: {options.runbook_url!r} is no address of a page", hint)
    if not options.capabilities:
        others = "--self-service, --primers, --restore-checks, --protection or --rollback"
        raise UsageError("no capability is enabled", f"leave out --schedules=false, or add {others}")
    for option, is_on in (
        ("--tenant-locations", options.tenant_locations),
        ("--download-contents", options.download_contents),
        ("--self-service-hooks", options.hooks),
        ("--self-service-other-namespaces", options.other_namespaces),
        ("--self-service-from-protection", options.from_protection),
        ("--rollback", "rollback" in options.capabilities),
    ):
        if is_on and "self-service" not in options.capabilities:
            raise UsageError(
                f"{option} is part of self-service, which is off", f"add --self-service, or {option}=false"
            )
    if options.rollback_volumes and "rollback" not in options.capabilities:
        hint = "add --rollback, or --rollback-volumes=false"
        raise UsageError("--rollback-volumes is part of rollback, which is off", hint)
    return options


def definitions() -> list[Piece]:
    """Return the definitions of our kinds."""
    return [_piece(body) for body in _documents("crds")]


def defined(definition: Piece) -> Kind:
    """Return the kind that a definition defines."""
    spec = definition.body["spec"]
    version = next(item["name"] for item in spec["versions"] if item["storage"])
    names = spec["names"]
    namespaced = spec["scope"] == "Namespaced"
    return Kind(spec["group"], version, names["plural"], names["kind"], namespaced=namespaced)


def operators(options: InstallOptions) -> list[Piece]:
    """Return everything but the definitions, with what runs at its end."""
    switches = _switches(options)
    bodies = [
        body
        for shipped in _manifest()
        if shipped.on <= switches and not shipped.off & switches
        for body in _composed(shipped.body, options)
    ]
    return sorted(map(_piece, bodies), key=lambda piece: piece.is_operator)


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
    pieces = [Piece(kinds[kind], Key(namespace, name), {}) for kind, name in names.items()]
    fences = ("foresail-fence", "foresail-location-fence", "foresail-credentials-fence")
    kinds_of_fences = (ADMISSION_BINDING.name, ADMISSION_POLICY.name)
    return [*pieces, *(Piece(kinds[kind], Key("", name), {}) for name in fences for kind in kinds_of_fences)]


@dataclass(frozen=True, slots=True)
class _Shipped:
    """One object of the manifest, and the switches that must be on or off for it."""

    on: frozenset[str]
    off: frozenset[str]
    body: Mapping[str, Any]


@cache
def _manifest() -> tuple[_Shipped, ...]:
    return tuple(
        _Shipped(frozenset(marked["for"]), frozenset(marked.get("without", ())), marked["object"])
        for marked in _documents("foresail")
    )


def _documents(name: str) -> Iterator[dict[str, Any]]:
    import yaml  # noqa: PLC0415 - it costs more than the rest of the command line

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (files("foresail") / "manifests" / f"{name}.yaml").read_text()
    yield from filter(None, yaml.load_all(text, loader))


def _piece(body: Mapping[str, Any]) -> Piece:
    kind = _BY_NAME[body["apiVersion"], body["kind"]]
    meta = body["metadata"]
    return Piece(kind, Key(meta["namespace"] if kind.namespaced else "", meta["name"]), body)


def _switches(options: InstallOptions) -> frozenset[str]:
    """Return what is on: the capabilities, and the parts that have a switch of their own."""
    parts = {
        _MONITORING: options.monitoring,
        TENANT_LOCATIONS: options.tenant_locations,
        _WITH_HOOKS: bool(options.schedules_with_hooks),
    }
    return frozenset((*options.capabilities, *(name for name, is_on in parts.items() if is_on)))


def _composed(body: Mapping[str, Any], options: InstallOptions) -> Iterator[dict[str, Any]]:
    """Yield an object with the values of the options; the binding about hooks once for each Schedule with hooks."""
    is_per_schedule = _HOOKED_SCHEDULE in body["metadata"]["name"]
    for schedule in options.schedules_with_hooks if is_per_schedule else ("",):
        filled = _filled(body, _names(options, schedule))
        kind = filled["kind"]
        if kind == DEPLOYMENT.name:
            for container in filled["spec"]["template"]["spec"]["containers"]:
                container["args"] = _with_values(container["args"], _arguments(options))
        elif kind == ADMISSION_POLICY.name:
            _set_variables(filled["spec"].get("variables", ()), _variables(options))
        elif kind in (PROMETHEUS_RULE.name, SERVICE_MONITOR.name):  # a Prometheus selects them by labels
            filled["metadata"]["labels"] = {**options.monitoring_labels, **filled["metadata"]["labels"]}
            if options.runbook_url and kind == PROMETHEUS_RULE.name:
                _link_runbooks(filled["spec"]["groups"], options.runbook_url)
        yield filled


def _names(options: InstallOptions, schedule: str) -> dict[str, str]:
    """Return the names for the blanks; in CEL a blank is always inside a string."""
    return {
        "VELERO-NAMESPACE": options.namespace,
        "VELERO-SERVICE-ACCOUNT": options.velero_account,
        "FORESAIL-IMAGE:TAG": options.image,
        "PAUSE-IMAGE": options.pause_image,
        _HOOKED_SCHEDULE: schedule,
    }


def _filled(value: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401 - whatever YAML has
    """Return a copy with names instead of blanks."""
    if isinstance(value, dict):
        return {key: _filled(below, names) for key, below in value.items()}
    if isinstance(value, list):
        return [_filled(below, names) for below in value]
    if isinstance(value, str):
        return _BLANK.sub(lambda blank: names[blank[0]], value)
    return value


def _arguments(options: InstallOptions) -> dict[str, str]:
    """Return the arguments of the operators that the options decide."""
    return {
        "--schedule-skip-immediately": _text(options.skip_immediately),
        "--velero-time-zone": options.velero_time_zone,
        "--schedules-with-hooks": ",".join(options.schedules_with_hooks),
        "--tenant-locations": _text(options.tenant_locations),
        "--self-service-hooks": _text(options.hooks),
        "--self-service-other-namespaces": _text(options.other_namespaces),
        "--self-service-from-protection": _text(options.from_protection),
        "--rollback-volumes": _text(options.rollback_volumes),
    }


def _with_values(words: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """Return the arguments of a container, those of these names with these values."""
    names = [(word, word.partition("=")[0]) for word in words]
    return [f"{name}={values[name]}" if name in values else word for word, name in names]


def _variables(options: InstallOptions) -> dict[str, str]:
    """Return the variables of fences that the options decide, as CEL."""
    return {
        "allowsContents": _text(options.download_contents),
        "allowsHooks": _text(options.hooks),
        "allowsOtherNamespaces": _text(options.other_namespaces),
        "allowsFromProtection": _text(options.from_protection),
        "allowsVolumes": _text(options.rollback_volumes),
        "withHooks": _text(options.schedules_with_hooks),
    }


def _set_variables(variables: Iterable[dict[str, str]], values: Mapping[str, str]) -> None:
    for variable in variables:
        variable["expression"] = values.get(variable["name"], variable["expression"])


def _link_runbooks(groups: Iterable[Mapping[str, Any]], page: str) -> None:
    """Link each alert to its section of the page, as the chart does."""
    for rule in (rule for group in groups for rule in group["rules"]):
        rule["annotations"]["runbook_url"] = f"{page}#{rule['alert'].lower()}"


def _text(value: bool | tuple[str, ...]) -> str:  # noqa: FBT001 - a value
    """Return a value as the chart writes it: JSON, which is CEL too."""
    return json.dumps(value, separators=(",", ":"))
