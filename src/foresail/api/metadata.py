"""The metadata that nearly every kind needs."""

from datetime import datetime

import msgspec


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """Name, UID, version, labels and annotations of an object."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
