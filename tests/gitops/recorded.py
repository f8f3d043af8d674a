"""Objects as a real cluster had them, and what Argo CD and Flux must think of each.

They were recorded on the testbed, with a real Velero and the operator at work.
"""

import copy
import json
from pathlib import Path
from typing import Any

from yaml import safe_load

FOLDER = Path(__file__).parent / "objects"
HEALTH = Path(__file__).parents[2] / "docs" / "how-to" / "gitops"

EXPECTED = {
    "backup-unseen": ("Progressing", "waits"),
    "backup-without-policy": ("Progressing", "InProgress"),
    "backup-refused": ("Degraded", "Failed"),
    "backup-corrected": ("Progressing", "InProgress"),
    "backup-queued": ("Progressing", "InProgress"),
    "backup-underway": ("Progressing", "InProgress"),
    "backup-complete": ("Healthy", "Current"),
    "backup-failed": ("Degraded", "Failed"),
    "backup-deleting": ("Progressing", "InProgress"),
    "restore-underway": ("Progressing", "InProgress"),
    "restore-complete": ("Healthy", "Current"),
    "restore-refused": ("Degraded", "Failed"),
    "location-unseen": ("Progressing", "waits"),
    "location-pending": ("Progressing", "InProgress"),
    "location-refused": ("Degraded", "Failed"),
    "location-restored": ("Progressing", "InProgress"),
    "location-refused-while-pending": ("Degraded", "Failed"),
    "location-without-credentials": ("Degraded", "Failed"),
    "location-with-changed-keys": ("Progressing", "InProgress"),
    "location-rejected": ("Degraded", "Failed"),
    "location-available": ("Healthy", "Current"),
    "location-unavailable": ("Degraded", "Failed"),
    "primer-unseen": ("Progressing", "waits"),
    "primer-without-cronjob": ("Progressing", "InProgress"),
    "primer-ready": ("Healthy", "Current"),
    "primer-edited": ("Progressing", "InProgress"),
    "primer-hindered": ("Degraded", "Failed"),
    "primer-suspended": ("Suspended", "Current"),
    "tenant-schedule-unseen": ("Progressing", "waits"),
    "tenant-schedule-without-policy": ("Progressing", "InProgress"),
    "tenant-schedule-invalid": ("Degraded", "Failed"),
    "tenant-schedule-too-often": ("Degraded", "Failed"),
    "tenant-schedule-ready": ("Healthy", "Current"),
    "tenant-schedule-paused": ("Suspended", "Current"),
    "schedule-unseen": ("Progressing", "waits"),
    "schedule-enabled": ("Healthy", "Current"),
    "schedule-invalid": ("Degraded", "Failed"),
    "schedule-paused": ("Suspended", "Current"),
}
"""What Flux cannot judge, for there is no status yet, it waits for."""


def recorded(name: str) -> dict[str, Any]:
    """Return an object; one of another moment is made of those that were recorded."""
    if name == "location-refused-while-pending":
        found = copy.deepcopy(recorded("location-pending"))
        found["status"]["conditions"][0] = recorded("location-refused")["status"]["conditions"][0]
        return found
    if name == "primer-edited":
        found = copy.deepcopy(recorded("primer-ready"))
        found["metadata"]["generation"] += 1
        return found
    body: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return body


def health_checks() -> dict[tuple[str, str], str]:
    """Return Argo CD's Lua scripts, by group and kind."""
    data = safe_load((HEALTH / "argocd-cm.yaml").read_text())["data"]
    names = {name: name.removeprefix("resource.customizations.health.").rpartition("_") for name in data}
    return {(group, kind): data[name] for name, (group, _, kind) in names.items()}


def health_expressions() -> dict[tuple[str, str], dict[str, str]]:
    """Return Flux's expressions in CEL, by API version and kind."""
    found = safe_load((HEALTH / "flux-kustomization.yaml").read_text())["spec"]["healthCheckExprs"]
    return {(each.pop("apiVersion"), each.pop("kind")): each for each in found}
