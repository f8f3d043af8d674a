"""Pages about the whole cluster: the queue, Primers, and the calendar of Schedules."""

from collections.abc import Sequence
from datetime import datetime

from foresail.cli.errors import CommandError
from foresail.cli.policy.get import share
from foresail.cli.policy.preview import Preview, change_cells
from foresail.cli.policy.usage import TenantShare, is_running
from foresail.cli.primer.get import HEADER, WIDE, wide_cells
from foresail.cli.primer.get import short_cells as primer_cells
from foresail.cli.primer.selection import Document, key_of
from foresail.cli.schedule.get import short_cells
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from foresail.cli.tenant.explain import summary
from foresail.cli.tenant.get import why
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.console.layout import Search, Site, cut, form, searched, shell
from foresail.console.live import digest
from foresail.console.pages import SCHEDULES, namespace_link, request_link, status_badge
from foresail.console.report.figures import Figures
from foresail.console.report.page import calendar_section
from foresail.console.web.markup import Html, element, joined
from foresail.console.web.parts import badge, command, data_table, pile_list, section, tile, tiles, week

_ROWS = ("name", "namespace", "kind", "state", "status", "queue", "why")
_SHARES = ("namespace", "policy", "weight", "share", "running", "waiting", "backups")
_MOST = 200


def queue(site: Site, requests: Sequence[TenantRequest], shares: Sequence[TenantShare], search: Search) -> Html:
    """Return the open requests in the order in which they are served, and the share of each namespace."""
    running = sum(map(is_running, requests))
    names = [str(request.key) for request in requests]
    cells = [
        (
            request_link(site, request),
            namespace_link(site, request.key.namespace),
            request.family.word,
            badge("runs", "good") if is_running(request) else badge("waits", "warn"),
            status_badge(request),
            str(request.position) if request.position else "n/a",
            cut(why(request, in_full=True) or summary(request)),
        )
        for request in requests
    ]
    told = element("p", "Weights come from the SelfServicePolicy: ", command("foresail policy usage -A"), class_="note")
    more = len(shares) - _MOST
    rest = element("p", f"{more} more namespaces.", class_="note") if more > 0 else None
    rows = [_share(site, tenant_share) for tenant_share in shares[:_MOST]]
    return shell(
        site,
        "Queue",
        "foresail backup get -A",
        tiles(
            tile("Running", str(running), "backups and restores"),
            tile(
                "Waiting",
                str(len(requests) - running),
                "backups and restores",
                "warn" if len(requests) > running else "",
            ),
            tile("Namespaces", str(len(shares)), "with open requests"),
        ),
        section("requests", "Requests", searched(site, "queue", "Requests", _ROWS, names, cells.__getitem__, search)),
        section("shares", "Shares", data_table("Shares", _SHARES, rows, "No namespace waits."), rest, told),
        live=site.link("live", seen=digest(requests)),
    )


def _share(site: Site, tenant_share: TenantShare) -> tuple[Html | str, ...]:
    return (
        namespace_link(site, tenant_share.namespace),
        tenant_share.policy or "none",
        str(tenant_share.weight),
        f"{tenant_share.share:.0%}",
        str(tenant_share.running),
        str(tenant_share.waiting),
        share(*tenant_share.stored),
    )


def primers(site: Site, documents: Sequence[Document], search: Search, now: datetime) -> Html:
    """Return each Primer, and each CronJob that is primed by annotations."""
    header = (HEADER[0].lower(), "namespace", *(column.lower() for column in (*HEADER[1:], *WIDE)))
    cells = []
    for item in documents:
        name, *rest = map(cut, (*primer_cells(item, now), *wide_cells(item, now)))
        cells.append((name, namespace_link(site, key_of(item).namespace), *rest))
    names = [str(key_of(item)) for item in documents]
    told = element("p", "Cold and warm are the medians of the last start delays.", class_="note")
    where = "-A" if site.is_administrator else f"-n {site.namespace}"
    table = searched(site, "primers", "Primers", header, names, cells.__getitem__, search)
    return shell(site, "Primers", f"foresail primer get {where} -o wide", section("primers", "Primers", told, table))


MOST_TEXT = 12_000
"""Characters of a policy that a form takes."""

_EXAMPLE = """apiVersion: foresail.dev/v1alpha1
kind: SchedulePolicy
metadata:
  name: preview
spec:
  selector: {}
  priority: 100
  spread:
    within: 1h
"""


def calendar(site: Site, figures: Figures, schedules: Sequence[EvaluatedSchedule]) -> Html:
    """Return the week of all schedules, and for administrators each Schedule with why it waits."""
    rows = [tuple(map(cut, short_cells(schedule, figures.instant))) for schedule in schedules]
    listed = section("schedules", "Schedules", data_table("Schedules", SCHEDULES, rows, "No Schedule."))
    same = "foresail schedule calendar" if site.is_administrator else "foresail backup schedule calendar"
    further = (_wished(site, _EXAMPLE), listed) if site.is_administrator else ()
    return shell(site, "Calendar", same, calendar_section(figures), *further)


def previewed(site: Site, text: str, preview: Preview) -> Html:
    """Return the days without and with the policies of a form, and what changes for each Schedule."""
    reach = preview.reach
    rows = [tuple(map(cut, change_cells(change))) for change in reach.changes[:_MOST]]
    more = len(reach.changes) - _MOST
    return shell(
        site,
        "Policy preview",
        "foresail policy test -f FILE; foresail schedule simulate --policy FILE",
        element("p", "Nothing is applied. ", element("a", "Calendar", href=site.link("calendar"))),
        section(
            "changes",
            "Schedule by Schedule",
            element("p", f"These policies {reach.summary}."),
            element("p", preview.assumptions, class_="note"),
            data_table("Changes", preview.columns, rows, "Nothing changes."),
            element("p", f"{more} more: use the command line.", class_="note") if more > 0 else None,
        ),
        _apply(site, text) if "apply-policies" in site.offered else None,
        section("without", "Without it", week(preview.without), pile_list(preview.without)),
        section("with", "With it", week(preview.with_them), pile_list(preview.with_them)),
        _wished(site, text),
    )


def _apply(site: Site, text: str) -> Html:
    """Return the button that applies what was previewed."""
    hidden = element("input", type="hidden", name="manifest", value=text)
    button = form(site, site.link("calendar", "apply"), "Apply these policies", hidden)
    same = element("p", command("kubectl apply --server-side -f FILE"))
    return section("apply", "Apply them", button, same)


def refused(site: Site, text: str, error: CommandError) -> Html:
    """Return why a text cannot be previewed, and the form with the text to correct it."""
    told = element("p", " ".join(filter(None, (f"{error.problem}.", error.hint))))
    return shell(
        site,
        "Policy preview",
        "foresail policy test -f FILE",
        section("problem", "This policy cannot be used", told),
        _wished(site, text),
    )


def _wished(site: Site, text: str) -> Html:
    """Return the form of a policy that is not applied."""
    label = element("label", "A SchedulePolicy in YAML. Nothing is applied.", for_="policy")
    lines = text.count("\n") + 1
    field = element(
        "textarea", text, id="policy", name="manifest", rows=min(lines, 30), maxlength=MOST_TEXT, spellcheck="false"
    )
    whole = form(site, site.link("calendar", "preview"), "Show what it would change", joined((label, field)))
    return section(
        "preview", "What a SchedulePolicy would change", whole, element("p", command("foresail policy test -f FILE"))
    )
