"""The first step of a restore, which chooses a copy, and the pages of Velero's files."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from foresail.api.velero import COMPLETED
from foresail.cli.output.words import counted
from foresail.cli.tenant.advice import capital
from foresail.cli.tenant.get import until
from foresail.cli.tenant.held import HeldKind
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.console.layout import ROWS, Search, Site, cut, form, shell
from foresail.console.web.markup import Child, Html, element, joined
from foresail.console.web.parts import badge, data_table, section, words

LOG, CONTENTS = "log", "contents"
"""The files, as they are named in paths."""

MOST_LOG = 256 << 10
"""Bytes of a log that are shown: its end."""

LARGEST_LOG = 32 << 20
"""Bytes of a log that are read for its end."""

_MOST_KINDS = 500
_LONGEST_NAMES = 2000


def log(site: Site, request: TenantRequest, text: str) -> Html:
    """Return the end of a log."""
    shown = element("pre", text or "The log is empty.", class_="scroll", tabindex=0, role="region", aria_label="Log")
    note = element("p", f"At most the last {MOST_LOG >> 10} KiB are shown.", class_="note")
    return shell(
        site,
        f"Log of {request.key.name}",
        _command(request, "logs"),
        _back(site, request),
        section(LOG, "Log", note, shown),
    )


def contents(site: Site, request: TenantRequest, held: Sequence[HeldKind]) -> Html:
    """Return the objects of a backup by their kinds."""
    rows = [
        (cut(kind.title), cut(kind.api_version), str(len(kind.names)), cut(", ".join(kind.names), _LONGEST_NAMES))
        for kind in held[:_MOST_KINDS]
    ]
    more = len(held) - _MOST_KINDS
    rest = element("p", f"{more} more kinds: use the command line.", class_="note") if more > 0 else None
    table = data_table("Contents", ("kind", "API version", "count", "names"), rows, "The backup is empty.")
    count = sum(len(kind.names) for kind in held)
    told = element("p", f"{count} objects of {len(held)} kinds.")
    same = _command(request, "contents")
    title = f"Contents of {request.key.name}"
    return shell(site, title, same, _back(site, request), section(CONTENTS, "Contents", told, table, rest))


def _back(site: Site, request: TenantRequest) -> Html:
    path = site.link("ns", request.key.namespace, request.family.word, request.key.name)
    return element("p", element("a", f"{capital(request.family.word)} {request.key.name}", href=path))


def _command(request: TenantRequest, verb: str) -> str:
    return f"foresail {request.family.word} {verb} {request.key.name} -n {request.key.namespace}"


KEEP, UPDATE = "none", "update"
"""What a restore does with objects that exist, in the words of Velero."""

POLICIES = ((KEEP, "Keep them as they are"), (UPDATE, "Change them back to the backup"))
_MOST_ITEMS = 1000
_LONGEST_REASON = 400
_MOODS = {"create": "good", "unchanged": "", "differs": "warn", "exists": "warn", "refused": "bad"}


@dataclass(frozen=True, slots=True)
class Copies:
    """What can be restored in a namespace, and what the viewer may do with it."""

    backups: Sequence[TenantRequest]  # the newest first
    may_restore: bool
    may_plan: bool
    choices: tuple[str, ...] | None = None  # what the policy lets a restore do with objects that exist; None: unknown

    @property
    def problem(self) -> str:
        """Why no restore is offered; empty if one is."""
        if not self.may_restore:
            return "You may not create NonAdminRestores in this namespace."
        return "" if self.choices is None or self.choices else "Self-service is not enabled in this namespace."


def choose(site: Site, namespace: str, copies: Copies, chosen: str, search: Search, now: datetime) -> Html:
    """Return the copies of a namespace on a time line; one of them is chosen."""
    back = element("p", "In ", element("a", namespace, href=site.link("ns", namespace)), ".")
    same = f"foresail backup get -n {namespace}"
    content = _chooser(site, namespace, copies, chosen, search, now) if copies.backups else None
    empty = element("p", "No backup of this namespace can be restored.", class_="empty")
    return shell(site, "Restore", same, rail(0), back, section("copies", "Choose a backup", content or empty))


def _chooser(site: Site, namespace: str, copies: Copies, chosen: str, search: Search, now: datetime) -> Html:
    names = [request.key.name for request in copies.backups]
    place = names.index(chosen) if chosen in names else (max(search.page, 1) - 1) * ROWS
    pages = (len(names) + ROWS - 1) // ROWS
    at = min(place // ROWS, pages - 1)
    shown = copies.backups[at * ROWS : (at + 1) * ROWS]
    whole = [copy.key.name for copy in shown if copy.velero.phase == COMPLETED and _is_wanted(copy)]
    picked = chosen if chosen in names else next(iter(whole), "")
    line = element(
        "ol", *(_copy(request, now, is_chosen=request.key.name == picked) for request in shown), class_="timeline"
    )
    links = [
        element("a", label, href=site.link("ns", namespace, "restore", page=number))
        for label, number, is_there in (("newer", at, at > 0), ("older", at + 2, at + 1 < pages))
        if is_there
    ]
    note = element("p", f"{counted(len(names), 'backup')}, page {at + 1} of {pages} ", *links, class_="note paging")
    fields = element("fieldset", element("legend", "Copies, the newest first"), line)
    if copies.problem:
        return joined((element("p", copies.problem, class_="note"), fields, note))
    told = element("p", "You may not download contents, so there is no plan before the restore.", class_="note")
    label = "Show the plan" if copies.may_plan else "Continue without a plan"
    offer = form(site, site.link("ns", namespace, "plan"), label, joined((fields, _existing(copies.choices))))
    return joined((offer, note) if copies.may_plan else (told, offer, note))


def _is_wanted(copy: TenantRequest) -> bool:
    """Whether a copy may be chosen for whoever says nothing: it has all data, and is not what a Rollback took back."""
    return copy.incomplete is None and not copy.is_before_rollback


def _copy(request: TenantRequest, now: datetime, *, is_chosen: bool) -> Html:
    name = request.key.name
    velero = request.velero
    done = velero.progress.items_backed_up if velero.progress else 0
    facts: list[Child] = [
        element("strong", until(velero.start_timestamp, now)),
        name,
        badge(request.shown_phase, "" if request.shown_phase == COMPLETED else "warn"),
        counted(done, "item"),
        request.incomplete.message if request.incomplete is not None else None,
        "taken before a rollback, with what that took back" if request.is_before_rollback else None,
        counted(velero.errors, "error") if velero.errors else None,
        f"expires {until(velero.expiration, now)}",
    ]
    radio = element("input", type="radio", name="backup", value=name, checked=is_chosen, required=True)
    return element("li", element("label", radio, " ", words(fact for fact in facts if fact is not None)))


def _existing(choices: tuple[str, ...] | None) -> Html:
    """Return what can be done with objects that exist: what the policy allows, or both if it is unknown."""
    offered = [(value, text) for value, text in POLICIES if choices is None or value in choices]
    options = [
        element("label", element("input", type="radio", name="policy", value=value, checked=not place), f" {text}")
        for place, (value, text) in enumerate(offered)
    ]
    told = "You may not read the policy of this namespace. If it refuses your choice, nothing is restored."
    if choices is not None:
        told = "" if len(offered) == len(POLICIES) else "The policy of this namespace allows nothing else."
    return element(
        "fieldset",
        element("legend", "Objects that exist"),
        *options,
        element("p", told, class_="note") if told else None,
    )


_STEPS = ("Copy", "What", "Confirm")


def rail(at: int) -> Html:
    """Return the three steps of a restore, with the one that is shown."""
    steps = [
        element("li", name, aria_current="step" if place == at else None, class_="done" if place < at else None)
        for place, name in enumerate(_STEPS)
    ]
    return element("ol", *steps, class_="rail", aria_label="Steps of a restore")
