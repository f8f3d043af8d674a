"""CapacityBuffer, for which an autoscaler keeps spare capacity, and its PodTemplate."""

from datetime import datetime

import msgspec

from foresail.api.authorization import Discovery
from foresail.api.metadata import Metadata
from foresail.api.pods import PodTemplate
from foresail.plan import Kind

GROUP, PLURAL = "autoscaling.x-k8s.io", "capacitybuffers"
POD_TEMPLATE = Kind("", "v1", "podtemplates", "PodTemplate")
READY, PROVISIONING = "ReadyForProvisioning", "Provisioning"
_VERSIONS = ("v1beta1", "v1", "v1alpha1")  # the fields that are written are the same in all of them


def capacity_buffer(version: str = _VERSIONS[0]) -> Kind:
    """Return the kind in one version."""
    return Kind(GROUP, version, PLURAL, "CapacityBuffer")


def served_kind(discovery: Discovery) -> Kind | None:
    """Return the kind in the version that the API server serves; None if it serves none."""
    served = {
        version.version
        for group in discovery.items or ()
        if group.metadata.name == GROUP
        for version in group.versions or ()
        if any(resource.resource == PLURAL for resource in version.resources or ())
    }
    version = next((version for version in _VERSIONS if version in served), None)
    return None if version is None else capacity_buffer(version)


class BufferSpec(msgspec.Struct, frozen=True):
    """The spec: for how many pods to keep room."""

    replicas: int | None = None


class BufferCondition(msgspec.Struct, frozen=True, rename="camel"):
    """A condition that an autoscaler sets."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class BufferStatus(msgspec.Struct, frozen=True):
    """The status that an autoscaler sets."""

    replicas: int | None = None
    conditions: list[BufferCondition] | None = None


class CapacityBuffer(msgspec.Struct, frozen=True):
    """A CapacityBuffer."""

    metadata: Metadata
    spec: BufferSpec = BufferSpec()
    status: BufferStatus = BufferStatus()


class StoredTemplate(msgspec.Struct, frozen=True):
    """A PodTemplate: the shape of one pod of a buffer."""

    metadata: Metadata
    template: PodTemplate = PodTemplate()
