"""What self-service writes on the requests of tenants, in their namespaces."""

from foresail.api import nonadmin
from foresail.api.fence import (
    ANNOTATIONS,
    CREATE,
    DELETE,
    LABELS,
    NAME,
    OLD_SPEC,
    SPEC,
    UNCHANGED_SPEC,
    UPDATE,
    Condition,
    Rule,
    all_of,
    has_all,
    matches,
    only,
    plain,
    quoted,
    same,
    unchanged,
    words,
)
from foresail.api.marks import ADOPTED, DELETE_AFTER, DELETE_REASON, REQUESTER, REQUESTER_GROUPS, SCHEDULE_UID, SLOT
from foresail.selfservice.families import BACKUPS, RESTORES

_IS_RUN = f"{quoted(SCHEDULE_UID)} in {ANNOTATIONS}"
_NEW_REQUEST = (
    plain("spec", metadata=("finalizers",)),
    Condition("variables.isReachable", "selfService.namespaces and excludedNamespaces do not allow this namespace"),
    Condition(only(SPEC, ("backupSpec",)), "it creates NonAdminBackups that ask for a backup and nothing else"),
)
_SLOT_OF_SCHEDULE = Rule(
    nonadmin.NON_ADMIN_BACKUP,
    CREATE,
    (
        *_NEW_REQUEST,
        Condition(
            all_of(
                only(ANNOTATIONS, (REQUESTER, REQUESTER_GROUPS, SCHEDULE_UID, SLOT)),
                has_all(ANNOTATIONS, (SCHEDULE_UID, SLOT)),
                f"{LABELS} == {{}}",
                "variables.finalizers == []",
                matches(NAME, ".+-[0-9]{14}"),
            ),
            "it creates NonAdminBackups as runs of a NonAdminSchedule, named after the slot",
        ),
    ),
    when=_IS_RUN,
)
_ADOPTION = Rule(
    nonadmin.NON_ADMIN_BACKUP,
    CREATE,
    (
        *_NEW_REQUEST,
        Condition(
            all_of(
                only(ANNOTATIONS, (ADOPTED, REQUESTER, REQUESTER_GROUPS)),
                has_all(ANNOTATIONS, (ADOPTED,)),
                only(LABELS, (nonadmin.SYNCED_FROM,)),
                has_all(LABELS, (nonadmin.SYNCED_FROM,)),
                f"variables.finalizers == {words((BACKUPS.finalizer,))}",
            ),
            "it creates NonAdminBackups for backups that are adopted",
        ),
    ),
    when=f"!({_IS_RUN})",
)
_FLAGS = ("deleteBackup", "forceDeleteBackup")
_REQUEST_CHANGED = Rule(
    nonadmin.NON_ADMIN_BACKUP,
    UPDATE,
    (
        *unchanged((nonadmin.SYNCED_FROM,), (ADOPTED, DELETE_AFTER, DELETE_REASON), (BACKUPS.finalizer,)),
        Condition(
            all_of(
                f"({same(SPEC, OLD_SPEC, _FLAGS)})",
                f"{words(_FLAGS)}.all(key, {SPEC}[?key] == {OLD_SPEC}[?key] || {SPEC}[?key].orValue(false))",
            ),
            "it changes nothing in the spec of a request, but asks for the deletion of a backup",
        ),
    ),
)
_RESTORE_CHANGED = Rule(
    nonadmin.NON_ADMIN_RESTORE, UPDATE, (*unchanged(finalizers=(RESTORES.finalizer,)), UNCHANGED_SPEC)
)
_SKIP = "skipImmediately"
_SCHEDULE_CHANGED = Rule(
    nonadmin.NON_ADMIN_SCHEDULE,
    UPDATE,
    (
        *unchanged(),
        Condition(
            all_of(f"({same(SPEC, OLD_SPEC, (_SKIP,))})", f'!("{_SKIP}" in {SPEC}) || {SPEC} == {OLD_SPEC}'),
            "it changes nothing in the spec of a NonAdminSchedule but skipImmediately, which it removes",
        ),
    ),
)
_WITH_STATUS = (
    nonadmin.NON_ADMIN_BACKUP,
    nonadmin.NON_ADMIN_RESTORE,
    nonadmin.NON_ADMIN_SCHEDULE,
    nonadmin.NON_ADMIN_DOWNLOAD_REQUEST,
)
_DELETED = (nonadmin.NON_ADMIN_BACKUP, nonadmin.NON_ADMIN_RESTORE, nonadmin.NON_ADMIN_DOWNLOAD_REQUEST)

RULES = (
    _SLOT_OF_SCHEDULE,
    _ADOPTION,
    _REQUEST_CHANGED,
    _RESTORE_CHANGED,
    _SCHEDULE_CHANGED,
    *(Rule(kind, DELETE) for kind in _DELETED),
    *(Rule(kind, UPDATE, subresource="status") for kind in _WITH_STATUS),
)
