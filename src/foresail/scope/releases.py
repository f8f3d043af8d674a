"""The releases of Velero whose rules differ."""

import re
from enum import IntEnum


class Release(IntEnum):
    """A minor release of Velero 1."""

    V1_17 = 17
    V1_18 = 18

    @property
    def expands_patterns(self) -> bool:
        """Whether patterns of namespaces are expanded; before, Velero listed objects in a namespace of that name."""
        return self >= Release.V1_18

    @property
    def has_filter_policies(self) -> bool:
        """Whether resource policies filter objects, match claims by phase and have custom actions."""
        return self >= Release.V1_18

    @property
    def takes_excluded_namespaces(self) -> bool:
        """Whether an excluded namespace with objects is in a backup that lists all namespaces; its objects are not."""
        return self < Release.V1_18


LATEST = max(Release)


_VERSION = re.compile(r"v?1\.(\d+)(?:\.\d+)?(?:-[\w.]+)?")


def unknown_release(version: str) -> str:
    """Say that the rules of a version are not known; empty if they are, or if the text is no version."""
    match = _VERSION.fullmatch(version)
    if match is None or min(Release) <= int(match[1]) <= LATEST:
        return ""
    return f"Velero {version} is unknown: Foresail has the rules of 1.{min(Release)} and 1.{LATEST.value}"


def release_of(version: str) -> Release:
    """Return the release of a version such as `v1.17.2`; unknown ones are treated like the latest."""
    minor = version.removeprefix("v").split(".")[1:2]
    if not minor or not minor[0].isdigit():
        return LATEST
    return Release(min(max(int(minor[0]), min(Release)), LATEST))
