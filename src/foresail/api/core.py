"""Wire types of Namespaces, Events, PersistentVolumes and their claims."""

import msgspec

from foresail.api.metadata import Metadata
from foresail.plan import Kind

NAMESPACE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
EVENT = Kind("", "v1", "events", "Event")
SECRET = Kind("", "v1", "secrets", "Secret")
CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
CLAIM = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUME = Kind("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)

BOUND = "pv.kubernetes.io/bind-completed"
"""The annotation of a bound claim."""


class ConfigMap(msgspec.Struct, frozen=True):
    """The data of a ConfigMap."""

    data: dict[str, str] | None = None


class ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The volume that a claim is bound to or requests."""

    volume_name: str = ""


class Claim(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: Metadata
    spec: ClaimSpec = ClaimSpec()


class ClaimReference(msgspec.Struct, frozen=True):
    """The claim that a volume is bound to."""

    namespace: str = ""
    uid: str = ""


class VolumeAffinity(msgspec.Struct, frozen=True):
    """The node affinity of a volume; passed on undecoded."""

    required: msgspec.Raw = msgspec.Raw(b"null")


class VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Whose a volume is, where it can be reached, and what happens to it when its claim is deleted."""

    claim_ref: ClaimReference | None = None
    node_affinity: VolumeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""


class VolumeStatus(msgspec.Struct, frozen=True):
    """Whether a claim can take a volume."""

    phase: str = ""


class Volume(msgspec.Struct, frozen=True):
    """A PersistentVolume."""

    metadata: Metadata
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class Namespace(msgspec.Struct, frozen=True):
    """A Namespace."""

    metadata: Metadata


class Secret(msgspec.Struct, frozen=True):
    """A Secret; `repr` does not show what is in it."""

    data: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        return "Secret(...)"
