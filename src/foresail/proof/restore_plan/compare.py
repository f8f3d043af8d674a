"""How an item differs from the object in the cluster, as Velero compares them."""

import copy
from dataclasses import dataclass
from typing import Any

from foresail.api.differences import ABSENT, differences
from foresail.api.velero import BACKUP_NAME_LABEL, RESTORE_NAME_LABEL
from foresail.proof.restore_plan.items import Document, mapping, metadata, sequence
from foresail.reporting import merge_patch

_CLUSTERS_OWN = (
    "generateName",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
)
RESTORE_LABELS = (BACKUP_NAME_LABEL, RESTORE_NAME_LABEL)
_WITH_VALUES = ("data", "stringData", "metadata.annotations")  # kubectl apply copies a Secret into an annotation
_LONGEST = 60
_MOST_FIELDS = 20


@dataclass(frozen=True, slots=True)
class Change:
    """A field that differs; None stands for an absent one."""

    path: str
    in_backup: str | None
    in_cluster: str | None


def stripped(body: Document) -> Document:
    """Return an object without the metadata that the cluster sets, and without its status."""
    document = {name: value for name, value in body.items() if name != "status"}
    document["metadata"] = {name: value for name, value in metadata(body).items() if name not in _CLUSTERS_OWN}
    return document


def labelled(body: Document, backup: str, restore: str) -> Document:
    """Return an object with the labels that Velero gives to what it restores."""
    about = dict(metadata(body))
    about["labels"] = {**mapping(about.get("labels")), BACKUP_NAME_LABEL: backup, RESTORE_NAME_LABEL: restore}
    return {**body, "metadata": about}


def is_same(prepared: Document, live: Document) -> bool:
    """Whether Velero takes the object in the cluster for the same as the item."""
    return _unlabelled(prepared) == _unlabelled(stripped(live))


def plain_patch(prepared: Document, live: Document) -> Document:
    """Return the merge patch with which somebody else than Velero changes the object to the item."""
    return mapping(merge_patch(plain(stripped(live)), plain(prepared)))


def update_patch(prepared: Document, live: Document) -> Document:
    """Return the merge patch with which Velero updates the object to the item."""
    patch = merge_patch(_unlabelled(stripped(live)), prepared)
    return mapping(patch)


def account_patch(prepared: Document, live: Document) -> Document:
    """Return the merge patch with which Velero adds the item's entries to an existing ServiceAccount."""
    current = _unlabelled(stripped(live))
    desired = copy.deepcopy(current)
    for name in ("secrets", "imagePullSecrets"):
        known = {mapping(item).get("name") for item in sequence(current.get(name))}
        added = [item for item in sequence(prepared.get(name)) if mapping(item).get("name") not in known]
        if added:
            desired[name] = [*sequence(current.get(name)), *added]
    source = metadata(_unlabelled(prepared))
    for name in ("labels", "annotations"):
        both = {**mapping(source.get(name)), **mapping(metadata(current).get(name))}
        if both:
            desired["metadata"][name] = both
    return mapping(merge_patch(current, desired))


def changes(prepared: Document, live: Document) -> tuple[Change, ...]:
    """Return the fields that differ, for people: without owners of fields, and never a value of a Secret."""
    is_secret = prepared.get("kind") == "Secret"
    differing: list[Change] = []
    for path, ours, theirs in differences(plain(prepared), plain(stripped(live))):
        if len(differing) == _MOST_FIELDS:
            differing.append(Change("…", None, None))
            break
        hidden = is_secret and path.startswith(_WITH_VALUES)
        differing.append(Change(path, _text(ours, is_hidden=hidden), _text(theirs, is_hidden=hidden)))
    return tuple(differing)


def _text(value: Any, *, is_hidden: bool) -> str | None:  # noqa: ANN401
    if value is ABSENT:
        return None
    text = "(not shown)" if is_hidden else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def plain(body: Document) -> Document:
    """Return an object without the labels of a restore and without who owns which field."""
    document = _unlabelled(body)
    metadata(document).pop("managedFields", None)
    return document


def _unlabelled(body: Document) -> Document:
    about = dict(metadata(body))
    if isinstance(about.get("labels"), dict):
        about["labels"] = {name: value for name, value in about["labels"].items() if name not in RESTORE_LABELS}
        if not about["labels"]:
            del about["labels"]
    return {**body, "metadata": about}
