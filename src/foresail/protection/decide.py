"""From what is observed to Plans: who is in which Schedule, the status of a class, the Protection of a namespace."""

from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from foresail.api.protection import PROTECTION, PROTECTION_CLASS
from foresail.plan import Action, Key, Patch, Plan, Subject
from foresail.protection.build import (
    create_protection,
    create_schedule,
    delete_schedule,
    patch_protection,
    patch_schedule,
)
from foresail.protection.groups import new_groups, regrouped
from foresail.protection.lateness import lateness
from foresail.protection.rows import ClassRow
from foresail.protection.rules import (
    choice,
    first_expiry,
    gaps,
    has_taken_over,
    invalid_expression,
    newest_good,
    restorable_points,
)
from foresail.protection.status import State, class_status, protection_status, report_of
from foresail.protection.view import AssignmentView, Choice, ClassView, NamespaceView
from foresail.reporting import merge_patch, note

# Who is in which Schedule


def decide_assignment(view: AssignmentView, now: datetime) -> Plan:
    """Return the Plan that brings every namespace into a Schedule of its class, and out of others when it may leave.

    It is one decision, by one worker at a time: if two decided, each could take a namespace out of the Schedule for
    whose sake the other one takes it out of its own.
    """
    choices = {name: choice(row, view.classes, now) for name, row in view.namespaces.items()}
    actions: list[Action] = []
    for name in sorted({*view.classes.rows, *(row.protection_class for row in view.schedules)} - {""}):
        if name not in view.held and name not in view.unread and name not in view.classes.unread:
            actions += _of_class(view, name, choices, now)
    ends = [chosen.exempt_until for chosen in choices.values() if chosen.exempt_until is not None]
    return Plan(tuple(actions), wake_at=min((*ends, *view.held.values()), default=None))


def _of_class(view: AssignmentView, name: str, choices: Mapping[str, Choice], now: datetime) -> Iterator[Action]:
    """Yield the writes for the Schedules of one class."""
    rows = {row.name: row for row in view.schedules if row.protection_class == name and not row.is_terminating}
    present = {member for row in rows.values() for member in row.members}
    of = view.classes.rows.get(name)
    capacity = of.spec.namespaces_per_backup if of is not None else 0
    wanted = _wanted(view, name, choices, present)
    staying = {member for member in present if _stays(view, name, member, choices, now)}
    groups, missing = regrouped({group: row.members for group, row in rows.items()}, wanted, staying, capacity)
    usable = _usable(of)
    for group, names in sorted(groups.items()):
        action = patch_schedule(rows[group], usable, names) if names else delete_schedule(rows[group])
        if action is not None:
            yield action
    if usable is not None:  # last: where no further Schedule is allowed, namespaces still leave groups
        yield from _created(view, usable, missing)


def _usable(of: ClassRow | None) -> ClassRow | None:
    """Return a class if its Schedules may be written by its spec."""
    return of if of is not None and invalid_expression(of, "UTC") is None else None


def _created(view: AssignmentView, of: ClassRow, missing: Sequence[str]) -> Iterator[Action]:
    """Yield the Schedules of further groups."""
    taken = {*(row.name for row in view.schedules), *view.unread_names}
    for group, names in new_groups(of.name, missing, taken, of.spec.namespaces_per_backup).items():
        yield create_schedule(Key(view.velero_namespace, group), of, names)


def _wanted(view: AssignmentView, of: str, choices: Mapping[str, Choice], present: Container[str]) -> list[str]:
    """Return the namespaces of a class; one that is being deleted comes into no group."""
    asking = (name for name, chosen in choices.items() if chosen.protection_class == of)
    return [name for name in asking if name in present or not view.namespaces[name].is_terminating]


def _stays(view: AssignmentView, of: str, member: str, choices: Mapping[str, Choice], now: datetime) -> bool:
    """Whether a namespace stays in a Schedule of a class that it should not have (any more)."""
    namespace = view.namespaces.get(member)
    chosen = choices.get(member)
    if member in view.unread_namespaces:
        return True
    if namespace is None or chosen is None or chosen.leaves:
        return False
    if chosen.protection_class in ("", of):
        return True
    others = (
        row
        for row in view.schedules
        if row.protection_class == chosen.protection_class and member in row.members and not row.is_terminating
    )
    return not any(has_taken_over(row, view.runs.get(row.name, ()), namespace, now) for row in others)


# One class


def decide_class(view: ClassView, now: datetime) -> Plan:
    """Return the Plan that brings the status of a class up to date."""
    row = view.row
    subject = Subject(PROTECTION_CLASS, row.key, row.uid)
    body = merge_patch(msgspec.to_builtins(row.status), msgspec.to_builtins(class_status(view, now)))
    known = {condition.reason for condition in row.status.conditions}
    is_new = view.problem is not None and view.problem.reason.value not in known
    return Plan(
        status=Patch(PROTECTION_CLASS, row.key, {"status": body}, subresource="status") if body else None,
        notes=(note(subject, view.problem),) if is_new and view.problem is not None else (),
        subject=subject,
    )


# One namespace


def decide_namespace(view: NamespaceView, now: datetime) -> Plan:
    """Return the Plan that brings the Protection of a namespace up to date; a namespace that is deleted needs none."""
    not_covered = gaps(view, now)
    report = report_of(view, not_covered, now)
    existing = view.protection
    wake_at = _next_change(view, now)
    if view.row.is_terminating or (existing is None and report.state is State.NOT_ASKED):
        return Plan(wake_at=wake_at, claims=(report,))
    status = protection_status(view, not_covered, now)
    action = create_protection(view.key, view.row, status) if existing is None else patch_protection(existing, status)
    subject = Subject(PROTECTION, view.key, existing.uid if existing is not None else "")
    known = {gap.reason for gap in existing.status.not_covered} if existing is not None else set()
    return Plan(
        (action,) if action is not None else (),
        notes=tuple(note(subject, because) for because in not_covered if because.reason.value not in known),
        wake_at=wake_at,
        subject=subject,
        claims=(report,),
    )


def _next_change(view: NamespaceView, now: datetime) -> datetime | None:
    """Return when the Protection of a namespace changes by itself; None if it does not."""
    good = newest_good(view, now)
    late = lateness(view, good)
    ends = (
        view.chosen.exempt_until,
        first_expiry([*restorable_points(view, now), *([good] if good is not None else [])]),
        late.at if late is not None and late.at > now else None,
    )
    return min((end for end in ends if end is not None), default=None)
