"""The Prometheus operator's kinds, which no testbed has: the fields that its documentation names and we might use.

Others are unknown to them, so that a strict dry run finds what is misspelt or stands at the wrong place.
"""

from typing import Any

from foresail.api.monitoring import PROMETHEUS_RULE, SERVICE_MONITOR
from foresail.plan import Kind

TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}


def _object(required: tuple[str, ...] = (), **fields: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": fields}
    return {**found, "required": list(required)} if required else found


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


_RULE = _object(
    ("expr",),
    alert=TEXT,
    record=TEXT,
    expr=TEXT,
    keep_firing_for=TEXT,
    labels=TEXTS,
    annotations=TEXTS,
    **{"for": TEXT},
)
_GROUP = _object(("name",), name=TEXT, interval=TEXT, labels=TEXTS, rules=_list(_RULE))
_FLAG = {"type": "boolean"}
_SELECTOR = _object(matchLabels=TEXTS)
_ENDPOINT = _object(port=TEXT, path=TEXT, scheme=TEXT, interval=TEXT, scrapeTimeout=TEXT, honorLabels=_FLAG)
_SPECS = {
    PROMETHEUS_RULE: _object(groups=_list(_GROUP)),
    SERVICE_MONITOR: _object(
        ("selector", "endpoints"),
        selector=_SELECTOR,
        endpoints=_list(_ENDPOINT),
        jobLabel=TEXT,
        namespaceSelector=_object(matchNames=_list(TEXT)),
    ),
}


def definitions() -> list[dict[str, Any]]:
    """Return the definitions of both kinds."""
    return [_definition(kind, spec) for kind, spec in _SPECS.items()]


def _definition(kind: Kind, spec: dict[str, Any]) -> dict[str, Any]:
    schema = {"openAPIV3Schema": _object(("spec",), spec=spec)}
    names = {"plural": kind.plural, "singular": kind.name.lower(), "kind": kind.name}
    version = {"name": kind.version, "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {"group": kind.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }
