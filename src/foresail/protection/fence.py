"""What the ServiceAccount of protection writes, as its fence holds it to."""

from foresail.api import velero
from foresail.api.fence import (
    ANNOTATIONS,
    CREATE,
    DELETE,
    LABELS,
    NAME,
    NAMESPACE,
    OLD_ANNOTATIONS,
    OLD_SPEC,
    OLD_STATUS,
    SPEC,
    STATUS,
    TENANTS_LOCATION,
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
    only,
    plain,
    quoted,
    same,
    unchanged,
    value,
)
from foresail.api.marks import (
    NAMESPACE_UID,
    NOT_BACKED_UP,
    PROTECTION_CLASS,
    PROTECTION_LEASE,
    SCHEDULE_POLICY_LABEL,
)
from foresail.api.protection import MOST_TOGETHER, NOT_IN_TEMPLATE, PROTECTION, PROTECTION_NAME
from foresail.api.protection import PROTECTION_CLASS as CLASS
from foresail.api.specs import BackupSpec
from foresail.kube.events import EVENT
from foresail.kube.lease import LEASE

_FIELDS = [field for field in BackupSpec.__struct_encode_fields__ if field not in NOT_IN_TEMPLATE]
_TEMPLATE = value(SPEC, "template", "{}")
_INCLUDED = f'{_TEMPLATE}[?"includedNamespaces"].orValue([])'
_OWNS = "useOwnerReferencesInBackup"
_LABELS = (PROTECTION_CLASS, SCHEDULE_POLICY_LABEL)
_GROUP = (
    Condition(
        all_of(
            f"{_INCLUDED}.size() > 0",
            f"{_INCLUDED}.size() <= {MOST_TOGETHER}",
            f"{_INCLUDED}.all(each, each.matches({quoted(f'^{NAMESPACE}$')}))",
        ),
        f"a Schedule names 1 to {MOST_TOGETHER} namespaces, and no patterns",
    ),
    Condition(only(_TEMPLATE, (*_FIELDS, "includedNamespaces")), "a template has no hooks and no unknown fields"),
    Condition(
        f"!{value(_TEMPLATE, 'storageLocation')}.matches({quoted(TENANTS_LOCATION)})",
        "a Schedule never stores in the location of a tenant",
    ),
)
_OWN = Condition(has_all(OLD_ANNOTATIONS, (PROTECTION_CLASS,)), "it touches Schedules of classes only")
_SCHEDULE = Rule(
    velero.SCHEDULE,
    CREATE,
    (
        plain("spec"),
        Condition(
            all_of(
                only(LABELS, _LABELS),
                only(ANNOTATIONS, (PROTECTION_CLASS,)),
                has_all(ANNOTATIONS, (PROTECTION_CLASS,)),
                f'{NAME}.startsWith({value(ANNOTATIONS, PROTECTION_CLASS)} + "-")',
                f'{NAME}.matches("-[1-9][0-9]*$")',
            ),
            "it creates only Schedules of classes, named after their class",
        ),
        Condition(only(SPEC, ("schedule", "template")), "a Schedule has an expression and a template only"),
        *_GROUP,
    ),
)
_CHANGE = Rule(
    velero.SCHEDULE,
    UPDATE,
    (
        _OWN,
        *unchanged(labels=_LABELS),
        Condition(
            same(SPEC, OLD_SPEC, ("schedule", "template", _OWNS)), "it changes the expression and the template only"
        ),
        Condition(
            any_of(f"!{value(SPEC, _OWNS, 'false')}", f"{SPEC}[?{quoted(_OWNS)}] == {OLD_SPEC}[?{quoted(_OWNS)}]"),
            "it lets no Backups be deleted with their Schedule",
        ),
        Condition(same(STATUS, OLD_STATUS), "it changes no status of a Schedule"),
        *_GROUP,
    ),
)
_REPORT = Rule(
    PROTECTION,
    CREATE,
    (
        plain("status"),
        Condition(
            all_of(
                f"{NAME} == {quoted(PROTECTION_NAME)}",
                only(LABELS, (NOT_BACKED_UP,)),
                only(ANNOTATIONS, (NAMESPACE_UID,)),
                has_all(ANNOTATIONS, (NAMESPACE_UID,)),
            ),
            "it creates the one Protection of a namespace",
        ),
    ),
)

FENCE = Fence(
    PROTECTION_LEASE,
    "protection.enabled",
    "The token of protection, fenced: Velero backs up whatever a Schedule names, so which Schedules it writes is held\n"
    "here. Written by `make fences` from src/foresail/protection/fence.py: change that.",
    (
        _SCHEDULE,
        _CHANGE,
        Rule(velero.SCHEDULE, DELETE, (_OWN,)),
        _REPORT,
        Rule(PROTECTION, UPDATE, (*unchanged(),)),
        Rule(CLASS, UPDATE, (*unchanged(), UNCHANGED_SPEC), subresource="status"),
        events(EVENT),
        lease(LEASE, PROTECTION_LEASE),
    ),
    {},
)
