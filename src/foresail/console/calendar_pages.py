"""The pages of the calendar: the week of all schedules, and what a SchedulePolicy would change in it."""

from collections.abc import Sequence

from foresail.cli.errors import CommandError
from foresail.cli.policy.preview import Preview, change_cells
from foresail.cli.schedule.get import short_cells
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from foresail.console.layout import Site, cut, form, shell
from foresail.console.pages import SCHEDULES
from foresail.console.report.figures import Figures
from foresail.console.report.page import calendar_section
from foresail.console.web.markup import Html, element, joined
from foresail.console.web.parts import command, data_table, pile_list, section, week

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
_MOST = 200


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
        section("without", "Without it", week(preview.without), pile_list(preview.without)),
        section("with", "With it", week(preview.with_them), pile_list(preview.with_them)),
        _wished(site, text),
    )


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
