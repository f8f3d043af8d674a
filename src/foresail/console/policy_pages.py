"""The page of policies and approvals: which policy holds where, and what waits for an administrator."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from foresail.api.nonadmin import Approval, Location
from foresail.cli.location.request import APPROVE, REJECT, asked_for, request_cells, requested, unrequested_cells
from foresail.cli.output.words import ago
from foresail.cli.policy.get import Applied, policy_cells, selector_text
from foresail.cli.policy.schedule_policies import AppliedSchedulePolicy
from foresail.cli.tenant.adoptable import Adoptable
from foresail.console.layout import Site, act, cut, shell
from foresail.console.web.markup import Child, Html, element
from foresail.console.web.parts import badge, command, data_table, section, words

_POLICIES = ("name", "priority", "namespaces", "stored", "active", "restores", "age", "selector", "where")
_LOCATIONS = ("location", "namespace", "phase", "decision", "asks for", "request", "decide")
_UNREQUESTED = ("location", "namespace", "phase", "bucket", "why there is no request")
_ADOPTIONS = ("backup", "namespace", "record", "made for", "state", "started", "Velero Backup", "decide")
_MOODS = {"verified": "good", "unverified": "warn"}
_MOST = 100
_NAMES = 10
_PARTS, _LONGEST_PART = 30, 600


@dataclass(frozen=True, slots=True)
class Approvals:
    """What tenants ask an administrator for, and whether the viewer may decide."""

    locations: Sequence[Approval]
    adoptions: Sequence[Adoptable]
    may_decide: bool
    may_adopt: bool
    unread_key: str = ""  # the Secret that verifies records, if the viewer may not get it
    unrequested: Sequence[Location] = ()  # locations that cannot be decided about yet
    deletions: Sequence[tuple[str, Sequence[str]]] = ()  # by Schedule, the Backups whose deletion waits
    may_delete: bool = False


def policies(
    site: Site,
    applied: Sequence[Applied],
    schedules: Sequence[AppliedSchedulePolicy],
    approvals: Approvals,
    now: datetime,
) -> Html:
    """Return which policy holds where, and the requests with their buttons."""
    rows = [
        (*map(cut, policy_cells(policy, now)), cut(selector_text(policy)), _some(policy.namespaces))
        for policy in applied[:_MOST]
    ]
    other = [
        (
            schedule.name,
            "cannot be read" if schedule.priority is None else str(schedule.priority),
            _some(schedule.schedules or ()),
        )
        for schedule in schedules[:_MOST]
    ]
    return shell(
        site,
        "Policies",
        "foresail policy get -o wide",
        section("locations", "Requests for storage locations", *_locations(site, approvals)),
        _deletions(site, approvals),
        section("adoptions", "Backups to adopt", *_adoptions(site, approvals, now)),
        section(
            "policies",
            "SelfServicePolicies",
            data_table("SelfServicePolicies", _POLICIES, rows, "No SelfServicePolicy."),
            _rest(len(applied)),
        ),
        section(
            "schedules",
            "SchedulePolicies",
            data_table("SchedulePolicies", ("name", "priority", "Schedules"), other, "No SchedulePolicy."),
            _rest(len(schedules)),
        ),
    )


def _locations(site: Site, approvals: Approvals) -> list[Child]:
    rows = []
    for location in sorted(approvals.locations, key=lambda location: bool(location.spec.approval_decision))[:_MOST]:
        namespace, name, phase, decision, _, request = map(cut, request_cells(location))
        asks = requested(location)
        more = [f"and {len(asks) - _PARTS} more: use the command line"] if len(asks) > _PARTS else []
        parts = element("ul", *(element("li", cut(part, _LONGEST_PART)) for part in (*asks[:_PARTS], *more)))
        asked = asked_for(location)
        forms = [
            act(
                site, f"{verb.capitalize()} {asked.namespace}/{asked.name}",
                "approvals", "location", asked.namespace, asked.name, verb, request=asked.request_hash,
            )
            for verb in (APPROVE, REJECT)
            if approvals.may_decide and location.spec.approval_decision != verb
        ]  # fmt: skip
        rows.append((name, namespace, phase, decision, parts, request, words(forms)))
    table = data_table("Requests for storage locations", _LOCATIONS, rows, "No request.")
    rest = _rest(len(approvals.locations))
    same = element("p", command("foresail location request get -o yaml"))
    return [table, rest, *_unrequested(approvals.unrequested), same]


def _unrequested(locations: Sequence[Location]) -> list[Child]:
    """Return the locations of tenants that wait for something else before anybody can approve them."""
    if not locations:
        return []
    rows = []
    for location in locations[:_MOST]:
        namespace, name, phase, _, bucket, _, why = map(cut, unrequested_cells(location, in_full=True))
        rows.append((name, namespace, phase, bucket, why))
    title = "Storage locations without a request"
    return [element("h3", title), data_table(title, _UNREQUESTED, rows, ""), _rest(len(locations))]


def _deletions(site: Site, approvals: Approvals) -> Html | None:
    """Return the Schedules whose retention waits for an administrator; nothing without any."""
    deletions = [(name, waiting) for name, waiting in approvals.deletions if waiting]
    rows = [
        (
            name,
            str(len(waiting)),
            _some(waiting),
            act(site, "See and approve", "approvals", "deletion", name, APPROVE, about=name)
            if approvals.may_delete
            else None,
        )
        for name, waiting in deletions[:_MOST]
    ]
    if not rows:
        return None
    table = data_table("Deletions", ("Schedule", "count", "Backups", "decide"), rows, "")
    same = element("p", command("foresail schedule retention -A"))
    return section("deletions", "Deletions that wait for approval", table, _rest(len(deletions)), same)


def _adoptions(site: Site, approvals: Approvals, now: datetime) -> list[Child]:
    rows = []
    for adoption in approvals.adoptions[:_MOST]:
        backup = adoption.view.backup
        is_offered = approvals.may_adopt and adoption.state == "Adoptable"
        seen = {"uid": backup.uid, "namespace": adoption.namespace.uid, "record": adoption.record}
        path = ("approvals", "backup", backup.key.name, APPROVE)
        change = act(site, f"Approve {backup.key.name}", *path, **seen) if is_offered else None
        rows.append(
            (
                cut(adoption.view.owner.name),
                cut(adoption.view.owner.namespace),
                badge("not verifiable" if approvals.unread_key else adoption.record, _MOODS[adoption.record]),
                adoption.made_for,
                adoption.state,
                ago(adoption.started, now),
                backup.key.name,
                change,
            )
        )
    table = data_table("Backups to adopt", _ADOPTIONS, rows, "No backup to adopt.")
    unread = approvals.unread_key
    told = element("p", f"Records are not verifiable: you may not get Secret {unread}.", class_="note")
    rest = _rest(len(approvals.adoptions))
    return [told if unread and rows else None, table, rest, element("p", command("foresail backup adopt -A"))]


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "") or "nowhere"


def _rest(number: int) -> Html | None:
    more = number - _MOST
    return element("p", f"{more} more: use the command line.", class_="note") if more > 0 else None
