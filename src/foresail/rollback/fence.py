"""What the ServiceAccount of rollbacks writes, as its fence holds it to.

The fence has the shapes, and admits changes only in namespaces with the label of a Rollback in progress. Policies of
the chart have what depends on the Rollback: that there is one, its requester, and the objects in its status.
"""

import msgspec

from foresail.api import core
from foresail.api.fence import (
    ANNOTATIONS,
    CREATE,
    DELETE,
    LABELS,
    NAME,
    OLD_ANNOTATIONS,
    OLD_LABELS,
    OLD_SPEC,
    OLD_STATUS,
    SPEC,
    STATUS,
    UID,
    UNCHANGED_SPEC,
    UPDATE,
    Condition,
    Fence,
    Rule,
    all_of,
    any_of,
    events,
    has_all,
    lease,
    matches,
    only,
    plain,
    quoted,
    same,
    unchanged,
    value,
    words,
)
from foresail.api.marks import (
    KEPT_VOLUME,
    REQUESTER,
    REQUESTER_GROUPS,
    ROLLBACK_FINALIZER,
    ROLLBACK_IN_PROGRESS,
    ROLLBACK_LEASE,
    ROLLBACK_UID,
)
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_RESTORE
from foresail.api.rollback import ROLLBACK
from foresail.kube.events import EVENT
from foresail.kube.lease import LEASE
from foresail.plan import Kind
from foresail.rollback.kinds import ACCOUNT, CLAIMS, LISTED, PAUSED, SCALED_OBJECT, STOPPED, SUSPENDED, SUSPENDED_BY
from foresail.rollback.volumes import Record

_BACKUP = value(SPEC, "backupSpec", "{}")
_RESTORE = value(SPEC, "restoreSpec", "{}")
_TARGET = value(SPEC, "target", "{}")
_GATE = Condition(
    f"namespaceObject.metadata.?labels[?{quoted(ROLLBACK_IN_PROGRESS)}].orValue({quoted('')}) == {quoted('true')}",
    "no Rollback is in progress in this namespace",
)
_STAYS = any_of(
    f"{value(LABELS, ROLLBACK_IN_PROGRESS)} != {quoted('')}",
    f"namespaceObject.metadata.?labels[?{quoted(ROLLBACK_IN_PROGRESS)}].orValue({quoted('')}) == {quoted('')}",
)
_OWN = Condition(has_all(OLD_ANNOTATIONS, (ROLLBACK_UID,)), "it deletes only what a Rollback has asked for")


_VOLUMES_ON = Condition("variables.allowsVolumes", "rollback.volumes of the chart is false")
"""What begins with volumes. The way back does not ask for it: the switch may be turned off amid a Rollback."""


def _request(kind: Kind, names: str, annotations: tuple[str, ...], *conditions: Condition, when: str = "") -> Rule:
    """Return the rule for a request: named after the Rollback and its UID, and with nothing but its record."""
    gate = (_GATE,) if REQUESTER in annotations else ()
    recorded = all_of(
        f"{LABELS} == {{}}",
        only(ANNOTATIONS, annotations),
        matches(value(ANNOTATIONS, ROLLBACK_UID), UID),
        matches(NAME, f".+-{names}-[0-9a-f]{{8}}(-[0-9]+)?"),
    )
    return Rule(
        kind,
        CREATE,
        (*gate, plain("spec"), Condition(recorded, "it makes requests of a Rollback, named after it"), *conditions),
        when=when,
    )


_AS_REQUESTER = (ROLLBACK_UID, REQUESTER, REQUESTER_GROUPS)
_SAFETY = _request(
    NON_ADMIN_BACKUP,
    "before",
    _AS_REQUESTER,
    Condition(
        all_of(
            only(SPEC, ("backupSpec",)),
            only(_BACKUP, ("snapshotVolumes", "snapshotMoveData")),
            any_of(
                f"{value(_BACKUP, 'snapshotVolumes', 'true')} == false",
                f"variables.allowsVolumes && {value(_BACKUP, 'snapshotMoveData', 'false')} == true",
            ),
        ),
        "a safety backup has all objects, and volumes only with their data",
    ),
)
_OF_CLAIMS = matches(NAME, ".+-claims-[0-9a-f]{8}")
_CLAIMS = _request(
    NON_ADMIN_RESTORE,
    "claims",
    _AS_REQUESTER,
    _VOLUMES_ON,
    Condition(
        all_of(
            only(SPEC, ("restoreSpec",)),
            only(_RESTORE, ("backupName", "includedResources", "restorePVs")),
            f"{value(_RESTORE, 'includedResources', '[]')} == {words((CLAIMS,))}",
            f"{value(_RESTORE, 'restorePVs', 'false')} == true",
        ),
        "a restore of claims brings back nothing else",
    ),
    when=_OF_CLAIMS,
)
_OBJECTS = _request(
    NON_ADMIN_RESTORE,
    "(restore|undo)",
    _AS_REQUESTER,
    Condition(
        all_of(
            only(SPEC, ("restoreSpec",)),
            only(
                _RESTORE,
                (
                    *("backupName", "includedResources", "excludedResources", "existingResourcePolicy", "restorePVs"),
                    "preserveNodePorts",
                ),
            ),
            f"{value(_RESTORE, 'existingResourcePolicy')} == {quoted('update')}",
            f"{value(_RESTORE, 'restorePVs', 'true')} == false",
        ),
        "a restore brings back objects in place, and no volumes",
    ),
    when=f"!{_OF_CLAIMS}",
)
_LIST = _request(
    NON_ADMIN_DOWNLOAD_REQUEST,
    "list",
    (ROLLBACK_UID,),
    Condition(
        all_of(only(SPEC, ("target",)), f"{value(_TARGET, 'kind')} == {quoted('BackupResourceList')}"),
        "it asks for names of objects, and never for contents",
    ),
)


def _fewer(part: str) -> str:
    return f"object.?{part}.orValue([]).all(each, each in oldObject.?{part}.orValue([]))"


_ONLY_LESS = Condition(
    all_of(
        f"{LABELS}.all(key, {LABELS}[?key] == {OLD_LABELS}[?key])",
        f"{ANNOTATIONS}.all(key, {ANNOTATIONS}[?key] == {OLD_ANNOTATIONS}[?key])",
        "variables.finalizers == variables.oldFinalizers",
        "variables.owners == variables.oldOwners",
        _fewer("imagePullSecrets"),
        _fewer("secrets"),
        "object.?automountServiceAccountToken == oldObject.?automountServiceAccountToken",
    ),
    "it only takes labels, annotations and names of Secrets away",
)


def _suspended(kind: Kind) -> Rule:
    """Return the rule for what is suspended: by one field, or for KEDA by one annotation."""
    if kind == SCALED_OBJECT:
        return Rule(kind, UPDATE, (_GATE, *unchanged(annotations=(PAUSED,)), UNCHANGED_SPEC))
    field = Condition(same(SPEC, OLD_SPEC, ("suspend",)), "it changes spec.suspend only")
    return Rule(kind, UPDATE, (_GATE, *unchanged(), field))


def _stopped(resource: str, kind: Kind) -> Rule:
    """Return the rule for what is stopped while the claims are replaced that it uses."""
    name = SUSPENDED_BY.get(resource, "replicas")
    field = Condition(same(SPEC, OLD_SPEC, (name,)), f"it changes spec.{name} only")
    return Rule(kind, UPDATE, (_GATE, *unchanged(annotations=(ROLLBACK_UID,)), field))


_REFERENCE, _OLD_REFERENCE = value(SPEC, "claimRef", "{}"), value(OLD_SPEC, "claimRef", "{}")
_POLICY = "persistentVolumeReclaimPolicy"
_FORMER, _END = msgspec.json.encode(Record("*", "", "")).decode().split("*")[0], '",'
"""What a record on a volume has before and after the former reclaim policy."""

_NEW_POLICY, _OLD_POLICY = value(SPEC, _POLICY), value(OLD_SPEC, _POLICY)
_MARKED, _WAS_MARKED = has_all(LABELS, (ROLLBACK_UID,)), has_all(OLD_LABELS, (ROLLBACK_UID,))
_SAME_CLAIM = f"{value(_REFERENCE, 'uid')} == {value(_OLD_REFERENCE, 'uid')}"


def _records(annotations: str, policy: str) -> str:
    """Return whether the record among these annotations has this former reclaim policy."""
    return f"{value(annotations, KEPT_VOLUME)}.startsWith({quoted(_FORMER)} + {policy} + {quoted(_END)})"


_BEGINS_TO_KEEP = all_of(
    "variables.allowsVolumes",
    _MARKED,
    _SAME_CLAIM,
    f"{_NEW_POLICY} == {quoted('Retain')}",
    _records(ANNOTATIONS, _OLD_POLICY),
)
_KEEPS = all_of(
    _MARKED,
    f"{value(LABELS, ROLLBACK_UID)} == {value(OLD_LABELS, ROLLBACK_UID)}",
    any_of(f"{_NEW_POLICY} == {_OLD_POLICY}", f"{_NEW_POLICY} == {quoted('Retain')}"),
    f"{words(('Delete', 'Retain', 'Recycle'))}.exists(policy,"
    f" {all_of(_records(OLD_ANNOTATIONS, 'policy'), _records(ANNOTATIONS, 'policy'))})",
    any_of(
        _SAME_CLAIM,
        all_of(f"{_OLD_POLICY} == {quoted('Retain')}", f"{value(OLD_STATUS, 'phase')} == {quoted('Released')}"),
    ),
)
_RELEASES = all_of(
    f"!({_MARKED})",
    _SAME_CLAIM,
    f"{value(ANNOTATIONS, KEPT_VOLUME)} == {quoted('')}",
    _records(OLD_ANNOTATIONS, _NEW_POLICY),
)
_OLD_VOLUME = (
    *unchanged((ROLLBACK_UID,), (KEPT_VOLUME,)),
    Condition(
        all_of(
            same(SPEC, OLD_SPEC, (_POLICY, "claimRef")),
            same(_REFERENCE, _OLD_REFERENCE, ("uid", "resourceVersion")),
            matches(value(_REFERENCE, "uid"), UID),
            matches(value(_OLD_REFERENCE, "uid"), UID),
        ),
        "it changes no more of a volume than its reclaim policy and the UID of its claim, which keeps its name",
    ),
    Condition(
        f"{_WAS_MARKED} || ({_BEGINS_TO_KEEP})",
        "it begins to keep a volume with Retain and a record of the reclaim policy that it had, and for the same claim;"
        " rollback.volumes of the chart must be true",
    ),
    Condition(
        f"!({_WAS_MARKED}) || ({_KEEPS}) || ({_RELEASES})",
        "it gives a volume to another claim only if it keeps it and its claim is deleted,"
        " and releases it with the reclaim policy that it had",
    ),
)
_NEW_CLAIM = (
    _GATE,
    plain("spec", "status", metadata=("finalizers",)),
    Condition(
        all_of(
            matches(value(ANNOTATIONS, ROLLBACK_UID), UID),
            f"{value(SPEC, 'volumeName')} != {quoted('')}",
        ),
        "it creates only claims that get an old volume back",
    ),
)


FENCE = Fence(
    ROLLBACK_LEASE,
    "rollback.enabled",
    "The token of rollbacks, fenced: it asks self-service for backups and restores in the name of others, suspends\n"
    "what fights a rollback, and deletes. Written by `make fences` from src/foresail/rollback/fence.py: change that.",
    (
        _SAFETY,
        _OBJECTS,
        _LIST,
        Rule(NON_ADMIN_RESTORE, DELETE, (_GATE, _OWN)),
        Rule(NON_ADMIN_DOWNLOAD_REQUEST, DELETE, (_OWN,)),
        Rule(
            ROLLBACK,
            UPDATE,
            (
                *unchanged((ROLLBACK_IN_PROGRESS,), (), (ROLLBACK_FINALIZER,)),
                UNCHANGED_SPEC,
                Condition(_STAYS, "a Rollback keeps its label while its namespace has one"),
            ),
        ),
        Rule(
            core.NAMESPACE,
            UPDATE,
            (
                *unchanged((ROLLBACK_IN_PROGRESS,)),
                UNCHANGED_SPEC,
                Condition(same(STATUS, OLD_STATUS), "it changes no status"),
            ),
        ),
        Rule(ROLLBACK, UPDATE, (*unchanged(), UNCHANGED_SPEC), subresource="status"),
        *map(_suspended, SUSPENDED),
        *(Rule(kind, DELETE, (_GATE,)) for kind in LISTED),
        Rule(core.SECRET, DELETE, (_GATE,)),
        Rule(ACCOUNT, UPDATE, (_GATE, _ONLY_LESS)),
        _CLAIMS,
        *(_stopped(resource, kind) for resource, kind in STOPPED.items()),
        Rule(core.VOLUME, UPDATE, _OLD_VOLUME),
        Rule(core.CLAIM, CREATE, _NEW_CLAIM),
        Rule(core.CLAIM, DELETE, (_GATE,)),
        events(EVENT),
        lease(LEASE, ROLLBACK_LEASE),
    ),
    {"allowsVolumes": "{{ .Values.rollback.volumes }}"},
)
