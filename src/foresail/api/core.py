"""Namespaces, Events, volumes and claims of them as they come over the wire: who they are, and to whom they belong."""

import msgspec

from foresail.api.metadata import Metadata
from foresail.plan import Kind

NAMESPACE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
EVENT = Kind("", "v1", "events", "Event")
CLAIM = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUME = Kind("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)

BOUND = "pv.kubernetes.io/bind-completed"
"""The annotation of a claim that has its volume."""


class ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Which volume a claim has, or wants."""

    volume_name: str = ""


class Claim(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: Metadata
    spec: ClaimSpec = ClaimSpec()


class ClaimReference(msgspec.Struct, frozen=True):
    """The claim that has a volume."""

    uid: str = ""


class VolumeAffinity(msgspec.Struct, frozen=True):
    """From which nodes a volume can be reached; passed on as it is, so it is not read here."""

    required: msgspec.Raw = msgspec.Raw(b"null")


class VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Whose a volume is, and where it is."""

    claim_ref: ClaimReference | None = None
    node_affinity: VolumeAffinity | None = None


class Volume(msgspec.Struct, frozen=True):
    """A PersistentVolume."""

    metadata: Metadata
    spec: VolumeSpec = VolumeSpec()


class Namespace(msgspec.Struct, frozen=True):
    """A Namespace."""

    metadata: Metadata
