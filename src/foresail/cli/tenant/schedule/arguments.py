"""The words of `foresail backup schedule`; what they do is imported only when one of them is used."""

import argparse
from functools import partial
from typing import Any

from foresail.cli.options.parser import BooleanOption, add_dry_run, examples
from foresail.cli.options.shared import add_object_output, add_output, add_own_namespace, add_selection

_SKIP = "sets spec.skipImmediately: skip a run that is due at that moment"
_EXAMPLES = {
    "create": (
        "foresail backup schedule create nightly --schedule '0 3 * * *' --ttl 72h",
        "foresail backup schedule create db --schedule '@every 12h' -l app=db -o yaml",
    ),
    "get": ("foresail backup schedule get", "foresail backup schedule get -A -o wide"),
    "describe": ("foresail backup schedule describe nightly",),
    "explain": ("foresail backup schedule explain nightly", "foresail backup schedule explain -o json"),
    "retention": (
        "foresail backup schedule retention nightly",
        "foresail backup schedule retention nightly --approve 4f1d2c9a0b",
    ),
    "calendar": ("foresail backup schedule calendar", "foresail backup schedule calendar --weeks 2 --svg weeks.svg"),
    "pause": ("foresail backup schedule pause nightly", "foresail backup schedule pause --all --dry-run"),
    "unpause": (
        "foresail backup schedule unpause nightly",
        "foresail backup schedule unpause nightly --skip-immediately",
    ),
    "delete": ("foresail backup schedule delete nightly",),
}

_EVERY = "all schedules of the namespace, or with -A of the cluster"


def add_tenant_schedule(words: Any) -> None:  # noqa: ANN401 - argparse's own is private
    """Add `foresail backup schedule` to the words of `foresail backup`."""
    one = words.add_parser(
        "schedule",
        help="back up your namespace again and again",
        description="Manages your NonAdminSchedules. Each run creates a NonAdminBackup in your namespace, "
        "which your policy and quota apply to.",
        epilog=examples(*(_EXAMPLES[verb][0] for verb in ("create", "get", "explain"))),
    )
    one.fill = _fill


def _fill(schedule: argparse.ArgumentParser) -> None:
    words = schedule.add_subparsers(required=True, metavar="COMMAND")
    _add_create(words)
    _add_reports(words)
    _add_changes(words)


def _add_create(words: Any) -> None:  # noqa: ANN401
    from foresail.cli.tenant.spec_arguments import add_backup_spec

    one = _word(words, "create", "create a schedule of backups of the namespace")
    one.add_argument("name", metavar="NAME", help="name of the NonAdminSchedule")
    one.add_argument(
        "--schedule", metavar="CRON", required=True, help="cron expression as CronJobs have it; CRON_TZ= names a zone"
    )
    one.add_argument("--paused", action=BooleanOption, default=False, help="create it paused")
    one.add_argument("--skip-immediately", action=BooleanOption, help=_SKIP)
    add_object_output(one, "json, yaml, jsonpath: print the object and send nothing; needs no cluster")
    add_dry_run(one)
    add_backup_spec(one)


def _add_reports(words: Any) -> None:  # noqa: ANN401
    one = _word(words, "get", "list schedules with last run, next run and blocking reason")
    add_selection(one, "schedules")
    add_object_output(one)
    one = _word(words, "describe", "show details of schedules and their last runs")
    add_selection(one, "schedules")
    meaning = "evaluate the rules in order, and show the first that blocks a schedule"
    one = _word(words, "explain", meaning)
    add_selection(one, "schedules")
    add_output(one, "table", "json", "yaml")
    meaning = "show which runs keepLast deletes, when and why, and approve a long list"
    one = _word(words, "retention", meaning)
    add_selection(one, "schedules")
    one.add_argument("--approve", metavar="LIST", help="delete the backups of the list that was shown with this digest")
    add_output(one, "table", "json", "yaml")
    add_dry_run(one)
    one = _word(words, "calendar", "draw how many runs start when")
    add_selection(one, "schedules")
    one.add_argument("--from", dest="start", metavar="DATE", help="first day (default: today)")
    one.add_argument("--weeks", type=int, default=1, metavar="N", help="(%(default)s)")
    one.add_argument("--zone", default="UTC", help="time zone of the picture (%(default)s)")
    one.add_argument("--svg", metavar="FILE", help="write an SVG picture; - writes it to standard output")


def _add_changes(words: Any) -> None:  # noqa: ANN401
    for verb in ("pause", "unpause"):
        one = _word(words, verb, f"{verb} schedules")
        add_selection(one, "schedules", _EVERY)
        one.add_argument("--skip-immediately", action=BooleanOption, help=f"{_SKIP} (default: unchanged)")
        add_object_output(one)
        add_dry_run(one)
    one = _word(words, "delete", "delete schedules; their backups stay until they expire")
    add_selection(one, "schedules", _EVERY)
    one.add_argument("--confirm", action="store_true", help="do not ask for confirmation")
    add_object_output(one)
    add_dry_run(one)


def _word(words: Any, verb: str, meaning: str) -> argparse.ArgumentParser:  # noqa: ANN401
    one: argparse.ArgumentParser = words.add_parser(
        verb, help=meaning, description=meaning, epilog=examples(*_EXAMPLES[verb])
    )
    add_own_namespace(one)
    one.set_defaults(run=partial(_run, verb), all_namespaces=False)
    return one


def _run(verb: str, args: argparse.Namespace) -> int:
    match verb:
        case "create":
            from foresail.cli.tenant.schedule.change import create as command
        case "get":
            from foresail.cli.tenant.schedule.get import get as command
        case "describe":
            from foresail.cli.tenant.schedule.get import describe as command
        case "explain":
            from foresail.cli.tenant.schedule.explain import explain as command
        case "retention":
            from foresail.cli.tenant.schedule.retention import retention as command
        case "calendar":
            from foresail.cli.tenant.schedule.calendar import calendar as command
        case "pause":
            from foresail.cli.tenant.schedule.change import pause as command
        case "unpause":
            from foresail.cli.tenant.schedule.change import unpause as command
        case "delete":
            from foresail.cli.tenant.schedule.change import delete as command
        case _:
            raise NotImplementedError(verb)
    return command(args)
