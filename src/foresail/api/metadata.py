"""Who an object is, of whichever kind: what nearly everybody reads of its metadata."""

from datetime import datetime

import msgspec


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """Who an object is, at which version, and what is written on it."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
