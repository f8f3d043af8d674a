"""Rollbacks: the list, and the page of one with its plan, its steps and their times, and the way back."""

from collections.abc import Sequence
from datetime import datetime

from foresail.api.rollback import NamedGroup, RollbackPlan, RollbackSpec
from foresail.cli.output.words import counted, moment
from foresail.cli.rollback.advice import next_step
from foresail.cli.rollback.get import short_cells
from foresail.cli.rollback.plan import summary
from foresail.cli.rollback.rollbacks import Seen
from foresail.cli.rollback.steps import FAILED, OK, RUNS, rows
from foresail.console.layout import Search, Site, act, cut, searched, shell
from foresail.console.live import version_digest
from foresail.console.running import rollback_elapsed
from foresail.console.web.markup import Child, Html, element
from foresail.console.web.parts import badge, data_table, section
from foresail.plan import Key

WORD = "rollback"
_HEADER = ("name", "namespace", "to backup", "phase", "age", "undo until", "why")
_STATES = {OK: "", FAILED: "bad", RUNS: "warn"}
_MOODS = {"Refused": "warn", "Undoing": "warn"}
_EMPTY = (
    "A rollback brings the objects of a namespace back to a backup, in place, and can be undone. There is none yet. "
    "The first step: open a backup of a team and choose Roll back."
)


def path_of(key: Key) -> tuple[str, ...]:
    """Return the path of the page of a Rollback."""
    return "ns", key.namespace, WORD, key.name


def rollbacks(site: Site, seen_rollbacks: Sequence[Seen], search: Search, now: datetime) -> Html:
    """Return each Rollback, searched and paged; the newest first."""

    def cells(place: int) -> tuple[Child, ...]:
        seen = seen_rollbacks[place]
        name, to, _, *rest = map(cut, short_cells(seen, now))
        link = element("a", name, href=site.link(*path_of(seen.key)))
        space = element("a", seen.key.namespace, href=site.link("ns", seen.key.namespace))
        return link, space, to, _phase(seen), *rest

    table = searched(site, "rollbacks", "Rollbacks", _HEADER, [str(seen.key) for seen in seen_rollbacks], cells, search)
    where = "-A" if site.is_administrator else f"-n {site.namespace}"
    empty = element("p", _EMPTY, class_="empty")
    listed = section("rollbacks", "Rollbacks", table if seen_rollbacks else empty)
    return shell(site, "Rollbacks", f"foresail rollback get {where} -o wide", listed)


def _phase(seen: Seen) -> Html:
    """Return the phase with its colour: good only if the result was compared with the backup."""
    phase = seen.status.phase
    is_proven = phase == "Completed" and seen.reason == "Completed"
    mood = "good" if is_proven else _MOODS.get(phase, "warn" if phase == "Completed" else "")
    return badge(cut(phase), mood)


def rollback(
    site: Site, seen: Seen, now: datetime, others: Sequence[Seen] = (), *, may_change: bool, may_create: bool
) -> Html:
    """Return one Rollback: how it goes, its plan, its steps with their times, and what can be done."""
    key = seen.key
    status = seen.status
    until = status.undo_until
    facts = [
        ("phase", _phase(seen)),
        ("status", cut(f"{seen.reason}: {seen.message}" if seen.reason else "no operator has seen it")),
        ("next", cut(next_step(seen, now))),
        ("to backup", element("a", cut(seen.spec.to), href=site.link("ns", key.namespace, "backup", seen.spec.to))),
        ("only", cut(", ".join(seen.spec.only or ()) or "all kinds")),
        ("deletes what is not in the backup", "yes" if seen.spec.prune else "no"),
        ("requester", cut(status.requester or "unknown")),
        ("elapsed", cut(rollback_elapsed(seen, others, now))),
        ("safety backup", _safety(site, seen)),
        ("undo until", moment(until, now) if until is not None else "n/a"),
    ]
    ended = seen.has_ended
    now_part = section("facts", "Now", data_table("Now", ("what", "value"), facts, ""))
    plan = _plan(seen.spec, status.plan) if status.plan is not None else None
    parts = (plan, now_part) if seen.spec.dry_run else (now_part, _steps(seen, now), plan)
    return shell(
        site,
        f"{'Plan of rollback' if seen.spec.dry_run else 'Rollback'} {key.name}",
        f"foresail rollback describe {key.name} -n {key.namespace}",
        element("p", "In ", element("a", key.namespace, href=site.link("ns", key.namespace)), "."),
        _offers(site, seen, now, may_change=may_change, may_create=may_create),
        *parts,
        _changed(seen),
        live="" if ended else site.link("live", *path_of(key), seen=version_digest([seen.content])),
    )


def _offers(site: Site, seen: Seen, now: datetime, *, may_change: bool, may_create: bool) -> Html | None:
    plan = seen.status.plan
    path = path_of(seen.key)
    is_plan = seen.status.phase == "Planned" and plan is not None and not plan.in_the_way
    offers = []
    if may_create and is_plan:
        offers.append(act(site, "Roll back exactly as planned", *path, "run"))
    if may_change and can_be_undone(seen, now):
        offers.append(act(site, "Undo", *path, "undo"))
    return element("div", *offers, class_="acts") if offers else None


def _safety(site: Site, seen: Seen) -> Child:
    """Return the safety backup, whose page has its bytes while it runs."""
    name = seen.status.safety_backup
    return element("a", cut(name), href=site.link("ns", seen.key.namespace, "backup", name)) if name else "none"


def can_be_undone(seen: Seen, now: datetime) -> bool:
    """Whether an undo would still begin."""
    status = seen.status
    if status.phase == "Completed":
        return status.undo_until is None or now <= status.undo_until
    return not seen.spec.undo and status.phase not in ("Refused", "Planned", "Undone") and not seen.spec.dry_run


def _steps(seen: Seen, now: datetime) -> Html:
    lines = [
        (name, badge(state, _STATES[state]), f"{step.started:%H:%M:%S} UTC", took, cut(message))
        for (state, name, took, message), step in zip(rows(seen.status, now), seen.status.steps, strict=True)
    ]
    header = ("step", "state", "began", "took", "what")
    return section("steps", "Steps", data_table("Steps", header, lines, "No step has begun."))


def _plan(spec: RollbackSpec, plan: RollbackPlan) -> Html:
    groups = (
        ("Brought back", plan.created),
        ("Changed back, if they differ", plan.existing),
        ("Deleted" if spec.prune else "New since then, and stay", plan.extra),
        ("Suspended meanwhile", plan.suspended),
        ("Restored without comparing", plan.not_compared),
        ("Left as they are", plan.left_out),
    )
    ways = [element("li", cut(way)) for way in plan.in_the_way]
    shown = [_group(title, group, place) for place, (title, group) in enumerate(groups) if group.count]
    told = element("p", f"{summary(spec, plan)}.".capitalize())
    barred = element("div", element("h3", "In the way"), element("ul", *ways), class_="problem") if ways else None
    return section("plan", "The plan", told, barred, *shown)


def _group(title: str, group: NamedGroup, place: int) -> Html:
    more = group.count - len(group.names)
    listed = [element("li", cut(name)) for name in group.names]
    rest = element("p", f"and {more} more.", class_="note") if more > 0 else None
    return element(
        "details", element("summary", f"{title} ({group.count})"), element("ul", *listed), rest, open=not place
    )


def _changed(seen: Seen) -> Html | None:
    """Return what was suspended and deleted, as long as there is anything."""
    status = seen.status
    stopped = [
        (cut(f"{record.kind}/{record.name}"), cut(record.former or "unset"), "yes" if record.resumed else "not yet")
        for record in status.stopped
    ]
    pruned = [element("li", cut(f"{deleted.kind}/{deleted.name}")) for deleted in status.pruned]
    if not stopped and not pruned:
        return None
    table = data_table("Suspended", ("object", "before", "resumed"), stopped, "Nothing was suspended.")
    told = element("p", f"{counted(len(pruned), 'object')} deleted, which the safety backup has:") if pruned else None
    return section("changed", "Suspended and deleted", table, told, element("ul", *pruned) if pruned else None)
