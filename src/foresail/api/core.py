"""Namespaces as they come over the wire: who they are, and whether they go."""

import msgspec

from foresail.api.velero import Metadata
from foresail.plan import Kind

NAMESPACE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)


class Namespace(msgspec.Struct, frozen=True):
    """A Namespace."""

    metadata: Metadata
