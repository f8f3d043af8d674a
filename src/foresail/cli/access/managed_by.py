"""Which tool manages an object: it would undo our change, so the change belongs there."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from foresail.api.metadata import Metadata
from foresail.cli.access.cluster import MANAGER

HELM_RELEASE = "HelmRelease"
_ARGO = ("argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance")
_ARGO_MANAGER = "argocd-controller"
_OLM_LABEL = "olm.owner"
_OADP = "DataProtectionApplication"


class Owner(msgspec.Struct, frozen=True):
    """The owner of an object."""

    kind: str = ""
    name: str = ""


class Writer(msgspec.Struct, frozen=True):
    """A field manager of an object."""

    manager: str = ""
    operation: str = ""


class ManagedMetadata(Metadata, frozen=True, rename="camel"):
    """Metadata that show which tool manages the object."""

    owner_references: tuple[Owner, ...] = ()
    managed_fields: tuple[Writer, ...] = ()
    generation: int = 0


@dataclass(frozen=True, slots=True)
class ManagingTool:
    """A tool that manages an object, and the source from which it makes it."""

    tool: str
    source: str
    has_values: bool = False  # it is made by Velero's chart, or by the like of it
    is_oadp: bool = False

    def __str__(self) -> str:
        return f"{self.tool} ({self.source})" if self.source else self.tool


def is_ours(metadata: ManagedMetadata) -> bool:
    """Return whether `foresail install` created an object."""
    return Writer(MANAGER, "Apply") in metadata.managed_fields


def managing_tool(metadata: ManagedMetadata) -> ManagingTool | None:
    """Return the tool that manages an object; of several, the outermost."""
    tools = (look(metadata) for look in (_owner, _flux, _argo_cd, _helm))
    return next((tool for tool in tools if tool is not None), None)


def _owner(metadata: ManagedMetadata) -> ManagingTool | None:
    olm = (metadata.labels or {}).get(_OLM_LABEL, "")
    owner = metadata.owner_references[0] if metadata.owner_references else None
    if owner is None:
        return ManagingTool("OLM", olm) if olm else None
    if owner.kind == _OADP:
        return ManagingTool("OLM", f"{_OADP} {owner.name} of the OADP operator", is_oadp=True)
    is_olm = bool(olm) or owner.kind == "ClusterServiceVersion"
    return ManagingTool("OLM" if is_olm else "an operator", f"{owner.kind} {owner.name}")


def _flux(metadata: ManagedMetadata) -> ManagingTool | None:
    labels = metadata.labels or {}
    for group, kind in (("helm", HELM_RELEASE), ("kustomize", "Kustomization")):
        mark = f"{group}.toolkit.fluxcd.io"
        if f"{mark}/name" in labels:
            source = f"{kind} {labels.get(f'{mark}/namespace', '')}/{labels[f'{mark}/name']}"
            return ManagingTool("Flux", source, has_values=kind == HELM_RELEASE or _is_of_chart(labels))
    return None


def _argo_cd(metadata: ManagedMetadata) -> ManagingTool | None:
    labels = metadata.labels or {}
    marks = {**labels, **(metadata.annotations or {})}
    marked = [marks[key] for key in _ARGO if key in marks]
    if not marked and all(field.manager != _ARGO_MANAGER for field in metadata.managed_fields):
        return None
    name = marked[0].partition(":")[0] if marked else labels.get("app.kubernetes.io/instance", "")
    return ManagingTool("Argo CD", f"Application {name}" if name else "", has_values=_is_of_chart(labels))


def _helm(metadata: ManagedMetadata) -> ManagingTool | None:
    labels = metadata.labels or {}
    annotations = metadata.annotations or {}
    name = annotations.get("meta.helm.sh/release-name", "")
    if not name and labels.get("app.kubernetes.io/managed-by") != "Helm":
        return None
    name = name or labels.get("app.kubernetes.io/instance", "")
    space = annotations.get("meta.helm.sh/release-namespace", metadata.namespace)
    return ManagingTool("Helm", f"release {name} in namespace {space}" if name else "", has_values=True)


def _is_of_chart(labels: Mapping[str, str]) -> bool:
    return labels.get("helm.sh/chart", "").startswith("velero-")
