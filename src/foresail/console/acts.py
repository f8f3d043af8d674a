"""What the pages can do beside restoring: each act is an object, shown before it is written.

An act is built again from the fields of its form when it is confirmed: no object ever comes from the browser.
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import islice
from shlex import join
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.apps import DEPLOYMENT
from foresail.api.instants import instant, stamp, whole
from foresail.api.marks import CHECK_NOW
from foresail.api.restore_check import RESTORE_CHECK
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.cli.access.cluster import Cluster, may, may_all
from foresail.cli.access.self_service import require
from foresail.cli.errors import CommandError, ExistsError, NotAllowedError, UnreachableError
from foresail.cli.output.words import counted
from foresail.cli.policy.preview import policy_objects
from foresail.cli.schedule.run import backup_object, namespaces_of
from foresail.cli.schedule.snapshot import row_of
from foresail.cli.schedule.upcoming import upcoming_runs
from foresail.cli.tenant.new_request import stamped
from foresail.cli.tenant.schedule.change import checked
from foresail.kube.lease import LEASE
from foresail.plan import Key, Kind

Fields = Mapping[str, str]
AHEAD = timedelta(days=7)
LONGEST_PREVIEW = timedelta(minutes=15)
"""An act that was shown longer ago is shown again, with the names of now, before it is written."""

MOST_RUNS = 50
LONGEST_CRON = 256
LONGEST_NAME = 253


@dataclass(frozen=True, slots=True)
class Choice:
    """A field of the form of an act: a text, one of several values with their labels, or one that is not shown."""

    name: str
    label: str
    value: str
    options: tuple[tuple[str, str], ...] = ()
    is_required: bool = True
    is_hidden: bool = False


def seen(uid: str) -> Choice:
    """Return the field with the UID of the object that the viewer has seen."""
    return Choice("uid", "", uid[:LONGEST_NAME], is_hidden=True)


def replaced(kind: Kind, key: Key, uid: str, seen_uid: str) -> str:
    """Return the problem with an object that took the place of the one that the viewer has seen, or an empty text."""
    return "" if uid == seen_uid else f"{kind.name} {key} is another one than you have seen: open its page again"


@dataclass(frozen=True, slots=True)
class Runs:
    """When something would run in the next week, and by which rules that was found out."""

    starts: tuple[datetime, ...]
    rules: str = "before spread and windows of a policy"

    def __str__(self) -> str:
        more = " or more" if len(self.starts) == MOST_RUNS else ""
        return f"{counted(len(self.starts), 'run')}{more} in the next 7 days, {self.rules}."


@dataclass(frozen=True, slots=True)
class Act:
    """One write with everything that its page shows."""

    title: str
    does: str
    label: str  # of the button
    kind: Kind
    key: Key
    body: dict[str, Any]
    command: str  # that does the same
    after: tuple[str, ...]  # the page that follows
    creates: bool = True  # rather than changing an object
    way_out: str = "Cancel"  # what the link says that leads away from it
    deletes: bool = False  # the object with the UID of the precondition in the body
    choices: tuple[Choice, ...] = ()
    runs: Runs | None = None
    effects: tuple[tuple[str, str], ...] = ()  # what it would do, each with its title, if it has one
    is_stamped: bool = False  # names its requester
    typed: str = ""  # what has to be typed, because it overwrites or deletes
    problem: str = ""  # why it cannot be confirmed as it is
    hint: str = ""
    is_refused: bool = False  # for lack of permissions, which the hint names
    place: tuple[str, ...] = field(default=())  # its own page

    @property
    def chosen(self) -> dict[str, str]:
        """The fields from which it is built again."""
        return {choice.name: choice.value for choice in self.choices}

    @property
    def is_a_form(self) -> bool:
        """Whether there is something to fill in."""
        return any(not choice.is_hidden for choice in self.choices)

    @property
    def digest(self) -> str:
        """What its page has shown, so that nothing else is written: the fields, the sentence and the object."""
        shown = json.dumps([self.chosen, self.does, self.body], sort_keys=True, default=str)
        return sha256(shown.encode()).hexdigest()[:32]

    def refused(self, error: CommandError) -> "Act":
        """Return it with the reason for which it was not written."""
        is_refused = isinstance(error, NotAllowedError)
        return replace(self, problem=error.problem, hint=error.hint or "", is_refused=is_refused)


async def apply_policies(cluster: Cluster, text: str) -> None:
    """Apply the SchedulePolicies of a text, and nothing else that it may have."""
    for body in policy_objects(text):
        await cluster.apply(SCHEDULE_POLICY, Key("", body["metadata"]["name"]), body)


def asked_at(fields: Fields, now: datetime) -> datetime:
    """Return when the form of an act was made, which is in the names of what it creates; now if that is long ago."""
    at = instant(fields.get("at", ""))
    return at if at is not None and timedelta() <= now - at <= LONGEST_PREVIEW else whole(now)


async def create_once(cluster: Cluster, kind: Kind, key: Key, body: Mapping[str, Any], at: datetime) -> None:
    """Create what a form asks for that was made then; the same form may come twice, as after a double click."""
    try:
        await cluster.create(kind, key, dict(body))
    except ExistsError:
        existing = await cluster.if_there(kind, key, dict[str, Any]) or {}
        created = instant(str((existing.get("metadata") or {}).get("creationTimestamp", "")))
        is_new = created is not None and created >= whole(at - (cluster.client.skew or timedelta()))
        stored = existing.get("spec") or {}
        if not is_new or any(stored.get(name) != value for name, value in body["spec"].items()):
            raise


async def perform(cluster: Cluster, act: Act, at: datetime, typed: str = "") -> None:
    """Write what the page has shown that was made then; the API server decides whether the viewer may."""
    if act.problem:
        raise CommandError(act.problem, act.hint or "correct the form")
    if act.typed and typed.strip() != act.typed:
        raise CommandError(f"{act.typed} was not typed, so nothing is written", f"type {act.typed} to confirm")
    if act.is_stamped:
        await require(cluster, act.kind, act.key.namespace)
    body = await stamped(cluster, act.body) if act.is_stamped else act.body
    if act.deletes:
        await cluster.delete(act.kind, act.key, act.body["preconditions"]["uid"])
    elif act.creates:
        await create_once(cluster, act.kind, act.key, body, at)
    else:
        await cluster.merge(act.kind, act.key, body)


async def run_now(cluster: Cluster, velero_namespace: str, place: Key, now: datetime) -> Act:
    """Return a Backup from a Schedule; `place` has the namespace whose page follows, and the Schedule."""
    key = Key(velero_namespace, place.name)
    schedule = row_of(await cluster.read(velero.SCHEDULE, key, msgspec.Raw))
    args = argparse.Namespace(backup_name="", labels=[], annotations=[])
    body = backup_object(schedule, args, now, await namespaces_of(cluster, schedule))
    included = ", ".join(schedule.included) or "all namespaces"
    return Act(
        f"Run {place.name} now",
        f"Creates one Velero Backup from Schedule {place.name}, of {included}. The next planned run stays.",
        "Run it now",
        velero.BACKUP,
        Key(velero_namespace, body["metadata"]["name"]),
        body,
        join(["foresail", "schedule", "run", place.name, "-n", velero_namespace]),
        ("ns", place.namespace),
        place=("ns", place.namespace, "run", place.name),
    )


async def check_now(cluster: Cluster, key: Key, now: datetime) -> Act:
    """Return the annotation that starts a RestoreCheck."""
    check = await cluster.read(RESTORE_CHECK, key, dict[str, Any])
    is_suspended = bool((check.get("spec") or {}).get("suspend"))
    return Act(
        f"Run check {key.name}",
        "Restores the newest backup into a fenced sandbox, compares it with what was backed up, and deletes it again.",
        "Run the check",
        RESTORE_CHECK,
        key,
        {"metadata": {"annotations": {CHECK_NOW: stamp(now)}}},
        join(["foresail", "check", "run", key.name, "-n", key.namespace]),
        ("ns", key.namespace, "check", key.name),
        creates=False,
        problem="the RestoreCheck is suspended: set spec.suspend to false" if is_suspended else "",
        place=("ns", key.namespace, "check", key.name, "run"),
    )


def runs_of(cron: str, at: datetime) -> tuple[Runs | None, str]:
    """Return the runs of the next week by an expression alone, or why it cannot be used."""
    try:
        schedule = checked(cron)
    except CommandError as error:
        said = error.problem.partition("\n")[0].removeprefix("--schedule: ")  # the pointer below it needs a terminal
        return None, f"When: {said}. {error.hint or ''}".strip()
    return Runs(tuple(islice(schedule.between(at, at + AHEAD), MOST_RUNS))), ""


async def runs_under_policies(cluster: Cluster, body: Mapping[str, Any], at: datetime) -> tuple[Runs | None, str]:
    """Return the runs of a Velero Schedule as the operator would place them, as far as the viewer may know them."""
    runs, problem = runs_of(body["spec"]["schedule"], at)
    if problem or not await _may_know(cluster, body["metadata"]["namespace"]):
        return runs, problem
    try:
        upcoming = await upcoming_runs(cluster, body, at, AHEAD, MOST_RUNS)
    except UnreachableError:
        raise
    except CommandError as error:
        return None, error.sentence
    rules = f"by SchedulePolicy {upcoming.policy}" if upcoming.policy else "and no SchedulePolicy applies"
    return Runs(upcoming.starts, rules), ""


async def _may_know(cluster: Cluster, namespace: str) -> bool:
    """Whether the viewer may read what decides when a Schedule runs; nothing is asked for that RBAC refuses."""
    needed = [(velero.BACKUP, namespace), (velero.LOCATION, namespace), (DEPLOYMENT, namespace), (SCHEDULE_POLICY, "")]
    return await may_all(cluster, "list", needed) and await may(cluster, "get", LEASE, namespace)


def object_of(kind: Kind, key: Key, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object to create."""
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}
