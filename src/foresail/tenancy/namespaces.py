"""Rows of namespaces, and the labels by which admission policies select namespaces with self-service."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

import msgspec

from foresail.api import core
from foresail.api.marks import FILE_SYSTEM_LABEL, VELERO_ANNOTATIONS_LABEL


class AdmissionLabels(msgspec.Struct, frozen=True):
    """The values of both labels; empty if a namespace does not have them."""

    velero_annotations: str = ""
    file_system: str = ""

    def by_key(self) -> dict[str, str]:
        """Return the values by the keys of the labels."""
        return {VELERO_ANNOTATIONS_LABEL: self.velero_annotations, FILE_SYSTEM_LABEL: self.file_system}


NOT_LABELLED = AdmissionLabels()


class NamespaceRow(msgspec.Struct, frozen=True, gc=False):
    """A namespace."""

    uid: str
    labels: dict[str, str]  # without those for admission: a policy that selected by them would change its own choice
    is_terminating: bool
    admission: AdmissionLabels = NOT_LABELLED
    created: datetime | None = None


def namespace_row(wire: core.Namespace) -> NamespaceRow:
    """Return what is kept of a namespace."""
    meta = wire.metadata
    labels = meta.labels or {}
    admission = _admission(labels)
    if admission is not NOT_LABELLED:
        labels = {key: value for key, value in labels.items() if key not in _KEYS}
    return NamespaceRow(
        meta.uid, labels, meta.deletion_timestamp is not None, admission, created=meta.creation_timestamp
    )


def _admission(labels: Mapping[str, str]) -> AdmissionLabels:
    if _KEYS.isdisjoint(labels):
        return NOT_LABELLED
    return _shared(labels.get(VELERO_ANNOTATIONS_LABEL, ""), labels.get(FILE_SYSTEM_LABEL, ""))


_KEYS = NOT_LABELLED.by_key().keys()
_shared = lru_cache(maxsize=64)(AdmissionLabels)  # ten thousand namespaces have the same few
