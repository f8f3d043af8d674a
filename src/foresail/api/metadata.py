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


class SpecMetadata(Metadata, frozen=True, rename="camel"):
    """Metadata with the generation of the spec."""

    generation: int = 0


class Write(msgspec.Struct, frozen=True):
    """When an object was last written."""

    time: datetime | None = None


class Named(msgspec.Struct, frozen=True):
    """An object of which only the metadata count."""

    metadata: Metadata


class Written(Metadata, frozen=True, rename="camel"):
    """Who an object is, and when it was written to."""

    managed_fields: tuple[Write, ...] = ()

    @property
    def last_write(self) -> datetime | None:
        """When anybody last wrote to it; its creation, if that is not known."""
        times = [field.time for field in self.managed_fields if field.time is not None]
        return max(times, default=self.creation_timestamp)
