"""Kinds that come back with a Rollback and are not listed: what the restore created of them, an undo deletes unread."""

from collections.abc import Iterable, Iterator, Mapping

from foresail.api import core
from foresail.api.authorization import Discovery
from foresail.api.nonadmin import RestoredItems
from foresail.api.rollback import RollbackStatus
from foresail.plan import DeleteLabelled, Key, Kind
from foresail.rollback.kinds import full_name
from foresail.rollback.rows import RESTORED_BY
from foresail.rollback.view import Findings, Unlisted

_CORE = (
    core.SECRET,
    Kind("", "v1", "limitranges", "LimitRange"),
    Kind("", "v1", "podtemplates", "PodTemplate"),
    Kind("", "v1", "replicationcontrollers", "ReplicationController"),
    Kind("", "v1", "resourcequotas", "ResourceQuota"),
)
"""Those of the core group, which discovery leaves out."""

OTHERS = "others"
"""Stands for kinds that a plan has and does not name."""


def words_of(status: RollbackStatus) -> tuple[str, ...]:
    """Return the kinds that an undo changes back, and of which it deletes what the restore has created."""
    group = status.plan.not_compared if status.plan is not None else None
    is_due = status.phase == "Completed" or (status.phase == "Undoing" and not status.undo_restored)
    if group is None or not is_due or status.restore_started is None:
        return ()
    return (*group.names, *((OTHERS,) if group.count > len(group.names) else ()))


def kinds_by_word(discovery: Discovery) -> Mapping[str, Kind]:
    """Return the kinds that the API server serves, by Kind.group and plural.group."""
    served = (*_CORE, *_served(discovery))
    by_word: dict[str, Kind] = {}
    for kind in served:
        by_word.setdefault(full_name(kind), kind)
        by_word.setdefault(f"{kind.name}.{kind.group}" if kind.group else kind.name, kind)
    return by_word


def _served(discovery: Discovery) -> Iterator[Kind]:
    for group in discovery.items or ():
        for version in group.versions or ():
            for resource in version.resources or ():
                if resource.response_kind is not None and resource.scope == "Namespaced":
                    yield Kind(group.metadata.name, version.version, resource.resource, resource.response_kind.kind)


def to_delete(findings: Findings) -> tuple[Kind, ...]:
    """Return the kinds of which an undo deletes what the restore has created."""
    return tuple(unlisted.kind for unlisted in _created(findings) if unlisted.kind is not None)


def not_deletable(findings: Findings) -> tuple[str, ...]:
    """Return the kinds of which the restore has created something, or may have, that an undo may not delete."""
    return tuple(unlisted.word for unlisted in _created(findings) if unlisted.kind is None)


def _created(findings: Findings) -> Iterator[Unlisted]:
    restored = findings.restore.restored if findings.restore is not None else None
    kinds = _created_kinds(restored)
    for unlisted in findings.unlisted:
        if kinds is None or not unlisted.name or unlisted.name in kinds:
            yield unlisted


def _created_kinds(restored: RestoredItems | None) -> frozenset[str] | None:
    """Return the kinds of the objects that a restore has created; None if not all of them are known."""
    if restored is None or restored.created.count > len(restored.created.names):
        return None
    return frozenset(name.partition(" ")[0] for name in restored.created.names)


def deletions(kinds: Iterable[Kind], namespace: str, restore: str) -> Iterator[DeleteLabelled]:
    """Return the deletions of what a Velero Restore has created: what was there before has the label of the undo."""
    return (DeleteLabelled(kind, Key(namespace, ""), RESTORED_BY, restore) for kind in kinds)


def command(words: Iterable[str], namespace: str, restore: str) -> str:
    """Return the command that deletes what a Velero Restore has created."""
    return f"kubectl delete {','.join(words)} -n {namespace} -l {RESTORED_BY}={restore}"
