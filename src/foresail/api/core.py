"""Namespaces and claims of volumes as they come over the wire: who they are, and what is written on them."""

import msgspec

from foresail.api.velero import Metadata
from foresail.plan import Kind

NAMESPACE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
CLAIM = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)

BOUND = "pv.kubernetes.io/bind-completed"
"""The annotation of a claim that has its volume."""


class Claim(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: Metadata


class Namespace(msgspec.Struct, frozen=True):
    """A Namespace."""

    metadata: Metadata
