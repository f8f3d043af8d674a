"""The words of `foresail cron`; what they do is imported only when one of them is used."""

import argparse
from functools import partial
from typing import Any

from foresail.cli.options.parser import examples
from foresail.cli.options.values import positive

_NOT_VALID = "Exit code 1 if the schedule is not valid or never fires."
_VERBS = {
    "next": (
        "list the next fires of a schedule",
        f"Lists the next fires of a schedule. {_NOT_VALID}",
        ("foresail cron next '0 3 * * *'", "foresail cron next '30 2 * * *' --zone Europe/Berlin --count 10 -o json"),
    ),
    "previous": (
        "list the latest fires of a schedule, newest first",
        f"Lists the latest fires of a schedule, newest first. {_NOT_VALID}",
        ("foresail cron previous '0 3 * * *'", "foresail cron previous '@weekly' --before 2026-03-29 --count 1"),
    ),
    "between": (
        "list the fires between two instants",
        f"Lists the fires from START on and before END. {_NOT_VALID}",
        ("foresail cron between '*/30 8-18 * * 1-5' 2026-03-02 2026-03-03",),
    ),
    "shift": (
        "find the schedule that fires earlier by a given time",
        "Finds the schedule that fires LEAD earlier, as one or more CronJobs. Exit code 1 if there is no exact one.",
        ("foresail cron shift '0 3 * * *' 10m", "foresail cron shift '0 0 1 * *' 1h30m --zone Europe/Berlin"),
    ),
    "explain": (
        "explain a schedule field by field, with notes",
        "Explains a schedule field by field, with notes on clock changes, day fields and upgrades of Velero.",
        ("foresail cron explain '0 3 1 * 1'", "foresail cron explain '30 2 * * *' --zone Europe/Berlin"),
    ),
    "check": (
        "check that a schedule is valid and fires",
        f"Checks that a schedule is valid and fires. {_NOT_VALID}",
        ("foresail cron check '0 3 * * *'", "foresail cron check '0 0 30 2 *' -o json"),
    ),
    "diff-dialects": (
        "show what changes for a schedule when Velero is upgraded to 1.18.3",
        "Compares how Velero up to 1.18.2 (robfig) and from 1.18.3 on (go-cron) read schedules.",
        (
            "foresail cron diff-dialects '0 3 1 * 1'",
            "foresail schedule get -A -o json | foresail cron diff-dialects -f -",
        ),
    ),
    "calendar": (
        "draw weeks or months of fires, in the terminal or as SVG",
        "Draws when schedules fire: days down, hours across, one letter for each schedule. Bold is today.",
        (
            "foresail cron calendar '0 3 * * *' '*/30 8-18 * * 1-5'",
            "foresail cron calendar '0 3 * * 0' --months 3 --svg fires.svg",
        ),
    ),
}
_INSTANT = "such as 2026-03-29, 2026-03-29T02:30 (read in --zone) or 2026-03-29T00:30:00Z"


def add_cron(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the words of `foresail cron` to the command line."""
    cron = commands.add_parser(
        "cron",
        help="show when a schedule fires, without a cluster",
        description="Shows when a schedule fires, exactly as the controller that runs it. Needs no cluster.",
        epilog=examples("foresail cron next '0 3 * * *'", "foresail cron explain '0 3 1 * 1' --zone Europe/Berlin"),
    )
    words = cron.add_subparsers(required=True, metavar="COMMAND")

    one = _word(words, "next")
    one.add_argument("--after", metavar="INSTANT", help=f"reference time (default: now), {_INSTANT}")
    one.add_argument("--count", type=positive, default=5, metavar="N", help="number of fires (%(default)s)")

    one = _word(words, "previous")
    one.add_argument("--before", metavar="INSTANT", help=f"reference time (default: now), {_INSTANT}")
    one.add_argument("--count", type=positive, default=5, metavar="N", help="number of fires (%(default)s)")

    one = _word(words, "between")
    one.add_argument("start", metavar="START", help=_INSTANT)
    one.add_argument("end", metavar="END", help=_INSTANT)

    one = _word(words, "shift")
    one.add_argument("lead", metavar="LEAD", help="how much earlier: 10m, 1h30m, or a number of minutes")
    one.add_argument("--at", metavar="INSTANT", help="start of the checked period (default: now)")

    one = _word(words, "explain")
    one.add_argument("--at", metavar="INSTANT", help="reference time (default: now)")

    one = _word(words, "check")
    one.add_argument("--at", metavar="INSTANT", help="reference time (default: now)")

    one = _parser(words, "diff-dialects")
    one.add_argument("expression", nargs="?", metavar="EXPR", help="a cron schedule in quotes")
    one.add_argument(
        "-f", "--file", metavar="FILE", help="Schedules or CronJobs as YAML or JSON; - reads standard input"
    )
    one.add_argument("--at", metavar="INSTANT", help="start of the five compared years (default: now)")
    _add_zone(one)
    _add_output(one)
    one.set_defaults(run=partial(_run, "upgrade"))

    one = _parser(words, "calendar")
    one.add_argument("expressions", nargs="+", metavar="EXPR", help="cron schedules in quotes")
    one.add_argument("--from", dest="start", metavar="DATE", help="first day (default: today)")
    span = one.add_mutually_exclusive_group()
    span.add_argument("--weeks", type=positive, metavar="N", help="hours of N weeks (2)")
    span.add_argument("--months", type=positive, metavar="N", help="days of N months, with the number of fires on each")
    one.add_argument("--svg", metavar="FILE", help="write an SVG picture; - writes it to standard output")
    _add_dialect(one)
    _add_zone(one)
    one.set_defaults(run=partial(_run, "calendar"))


def _parser(words: Any, name: str) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse's own is private
    meaning, description, shown = _VERBS[name]
    one: argparse.ArgumentParser = words.add_parser(
        name, help=meaning, description=description, epilog=examples(*shown)
    )
    return one


def _word(words: Any, name: str) -> argparse.ArgumentParser:  # noqa: ANN401
    one = _parser(words, name)
    one.add_argument("expression", metavar="EXPR", help="a cron schedule in quotes, such as '0 3 * * *'")
    _add_dialect(one)
    _add_zone(one)
    _add_output(one)
    one.set_defaults(run=partial(_run, name))
    return one


def _add_dialect(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--dialect",
        choices=["robfig", "go-cron"],
        default="robfig",
        help="robfig: CronJobs and Velero up to 1.18.2; go-cron: Velero from 1.18.3 on (%(default)s)",
    )


def _add_zone(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--zone", default="UTC", help="time zone of the schedule, unless it has a TZ= prefix (%(default)s)"
    )


def _add_output(one: argparse.ArgumentParser) -> None:
    one.add_argument("-o", "--output", choices=["table", "json"], default="table", help="(%(default)s)")


def _run(verb: str, args: argparse.Namespace) -> int:
    match verb:
        case "next":
            from foresail.cli.cron.fires import following as command
        case "previous":
            from foresail.cli.cron.fires import preceding as command
        case "between":
            from foresail.cli.cron.fires import between as command
        case "shift":
            from foresail.cli.cron.shifted import shift_earlier as command
        case "explain":
            from foresail.cli.cron.explain import explain as command
        case "check":
            from foresail.cli.cron.explain import check as command
        case "upgrade":
            from foresail.cli.cron.upgrade import diff_dialects as command
        case "calendar":
            from foresail.cli.cron.calendar import calendar as command
        case _:
            raise NotImplementedError(verb)
    return command(args)
