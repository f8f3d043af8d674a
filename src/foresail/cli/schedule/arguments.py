"""The words of `foresail schedule`; what they do is imported only when one of them is used."""

import argparse
from functools import partial
from typing import Any

from foresail.cli.options.parser import BooleanOption, CommandParser, add_dry_run, examples
from foresail.cli.options.shared import add_object_output, add_output, add_selection, add_velero_and_cluster
from foresail.cli.options.values import spelled

LISTS = {
    "include_namespaces": "includedNamespaces",
    "exclude_namespaces": "excludedNamespaces",
    "include_resources": "includedResources",
    "exclude_resources": "excludedResources",
    "include_cluster_scoped_resources": "includedClusterScopedResources",
    "exclude_cluster_scoped_resources": "excludedClusterScopedResources",
    "include_namespace_scoped_resources": "includedNamespaceScopedResources",
    "exclude_namespace_scoped_resources": "excludedNamespaceScopedResources",
    "volume_snapshot_locations": "volumeSnapshotLocations",
}
"""Options that take several values, with commas or repeated, and the field of the template that each fills."""

SWITCHES = {
    "include_cluster_resources": "includeClusterResources",
    "snapshot_volumes": "snapshotVolumes",
    "snapshot_move_data": "snapshotMoveData",
    "default_volumes_to_fs_backup": "defaultVolumesToFsBackup",
}
"""Options that say yes or no, and leave their field out if they are not given."""

DURATIONS = {
    "ttl": "ttl",
    "csi_snapshot_timeout": "csiSnapshotTimeout",
    "item_operation_timeout": "itemOperationTimeout",
}
"""Options that take a length of time; 0s lets Velero choose."""


def add_template(one: argparse.ArgumentParser) -> None:
    """Add every option with which a Backup is described."""
    what = one.add_argument_group("what to back up")
    what.add_argument("-l", "--selector", metavar="SELECTOR", help="only objects with these labels")
    what.add_argument(
        "--or-selector", metavar="SELECTORS", help="objects that match one of these: 'app=web or app=shop'"
    )
    for option in LISTS:
        what.add_argument(spelled(option), action="append", metavar="NAME,...", help=_of_list(option))
    what.add_argument(
        "--ordered-resources", metavar="KINDS", help="order of resources: 'pods=ns/a,ns/b;persistentvolumeclaims=ns/c'"
    )
    what.add_argument("--resource-policies-configmap", metavar="NAME", help="the ConfigMap with resource policies")
    how = one.add_argument_group("how to back up")
    for option in SWITCHES:
        how.add_argument(spelled(option), action=BooleanOption, help=_of_switch(option))
    how.add_argument("--storage-location", default="", metavar="NAME", help="storage location of the Backups")
    for option in DURATIONS:
        how.add_argument(spelled(option), default="0s", metavar="DURATION", help="such as 72h (default: Velero's)")
    how.add_argument("--data-mover", default="", metavar="NAME", help="(default: Velero's)")
    how.add_argument(
        "--parallel-files-upload",
        type=int,
        default=0,
        metavar="N",
        help="number of files to upload in parallel, with kopia",
    )
    marks = one.add_argument_group("metadata")
    for option, word in (("--labels", "labels"), ("--annotations", "annotations")):
        marks.add_argument(
            option,
            action="append",
            default=[],
            metavar="K=V,...",
            help=f"{word} of the Schedule and its Backups",
        )


def _of_list(option: str) -> str:
    verb, _, things = option.partition("_")
    all_of_them = "; * for all" if "resources" in option or option == "include_namespaces" else ""
    if verb == "volume":
        return "volume snapshot locations, one for each provider"
    return f"{things.replace('_', ' ')} to {'exclude' if verb == 'exclude' else 'back up'}{all_of_them}"


def _of_switch(option: str) -> str:
    return {
        "include_cluster_resources": "include cluster-scoped resources",
        "snapshot_volumes": "take snapshots of volumes",
        "snapshot_move_data": "move snapshot data to the storage location",
        "default_volumes_to_fs_backup": "back up volumes through the file system by default",
    }[option]


_INSTANT = "such as 2026-03-29, 2026-03-29T02:30 (read in --zone) or 2026-03-29T00:30:00Z"
_SEND_NOTHING = "json, yaml, jsonpath: send nothing, and need no cluster"
_SKIP = "sets spec.skipImmediately: skip a run that is due at that moment"


_EXAMPLES = {
    "create": (
        "foresail schedule create daily --schedule '0 3 * * *' --ttl 72h",
        "foresail schedule create daily --schedule '0 3 * * *' --ttl 72h -o yaml",
    ),
    "get": ("foresail schedule get", "foresail schedule get -A -o wide", "foresail schedule get -l team=web -o name"),
    "describe": ("foresail schedule describe daily",),
    "explain": ("foresail schedule explain daily", "foresail schedule explain -A -o json"),
    "pause": ("foresail schedule pause daily", "foresail schedule pause --all --dry-run"),
    "unpause": ("foresail schedule unpause daily", "foresail schedule unpause daily --skip-immediately"),
    "delete": ("foresail schedule delete daily", "foresail schedule delete -l team=web --confirm"),
    "run": ("foresail schedule run daily --wait",),
    "retention": ("foresail schedule retention daily", "foresail schedule retention daily --approve 3f2a91c0de"),
    "simulate": (
        "foresail schedule simulate --backups-take 45m",
        "foresail schedule simulate daily --until 2027-01-01 -o wide",
        "foresail schedule simulate --policy nights.yaml --zone Europe/Berlin",
    ),
    "calendar": ("foresail schedule calendar", "foresail schedule calendar -A --zone Europe/Berlin --svg week.svg"),
    "spread": ("foresail schedule spread", "foresail schedule spread --most 2 -o patch"),
}


def add_schedule(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the words of `foresail schedule` to the command line."""
    schedule = commands.add_parser(
        "schedule",
        help="manage Velero's Schedules: next run, last result, blocking reason",
        description="Manages Velero's Schedules, in addition to Velero's own command line. Shows the next run, "
        "the last result and the blocking reason of each, with or without a running operator.",
        epilog=examples(*(_EXAMPLES[verb][0] for verb in ("get", "explain", "create"))),
    )
    schedule.fill = _fill


def _fill(schedule: argparse.ArgumentParser) -> None:
    words = schedule.add_subparsers(required=True, metavar="COMMAND")
    _add_create(words)
    _add_reports(words)
    _add_changes(words)
    _add_retention(words)
    _add_pictures(words)


def _add_create(words: Any) -> None:  # noqa: ANN401 - argparse's own is private
    one = _word(words, "create", "create a Schedule; accepts the options of `velero schedule create`")
    one.add_argument("name", metavar="NAME", help="name of the Schedule, at most 63 characters")
    one.add_argument(
        "--schedule",
        metavar="CRON",
        required=True,
        help="cron expression, checked by the rules of the cluster's Velero",
    )
    one.add_argument("--paused", action=BooleanOption, default=False, help="create it paused")
    one.add_argument("--skip-immediately", action=BooleanOption, help=_SKIP)
    one.add_argument(
        "--use-owner-references-in-backup",
        action=BooleanOption,
        default=False,
        help="delete its Backups with the Schedule",
    )
    add_object_output(one, _SEND_NOTHING)
    add_dry_run(one)
    _add_reading(one)
    add_template(one)


def _add_reports(words: Any) -> None:  # noqa: ANN401
    one = _word(words, "get", "list Schedules with next run, last result and blocking reason")
    add_selection(one, "Schedules")
    add_object_output(one)
    one.add_argument("--show-labels", action="store_true", help="show labels in the last column")
    one.add_argument(
        "-L", "--label-columns", action="append", default=[], metavar="LABEL", help="labels to show as columns"
    )
    _add_reading(one)

    one = _word(words, "describe", "show details of Schedules")
    add_selection(one, "Schedules")
    _add_reading(one)

    one = _word(words, "explain", "evaluate the rules in order, and show the first that blocks a Schedule")
    add_selection(one, "Schedules")
    add_output(one, "table", "json", "yaml")
    _add_reading(one)


def _add_changes(words: Any) -> None:  # noqa: ANN401
    for name, meaning in (("pause", "pause Schedules"), ("unpause", "unpause Schedules")):
        one = _word(words, name, meaning)
        add_selection(one, "Schedules", "all Schedules of the namespace")
        one.add_argument("--skip-immediately", action=BooleanOption, help=f"{_SKIP} (default: unchanged)")
        add_object_output(one)
        add_dry_run(one)

    one = _word(words, "delete", "delete Schedules; their Backups stay")
    add_selection(one, "Schedules", "all Schedules of the namespace")
    one.add_argument("--confirm", action="store_true", help="do not ask for confirmation")
    add_object_output(one)
    add_dry_run(one)

    one = _word(words, "run", "create a Backup from a Schedule now, paused or not")
    one.add_argument("name", metavar="NAME", help="name of the Schedule")
    one.add_argument(
        "--backup-name", metavar="NAME", help="name of the Backup (default: from the Schedule and the time)"
    )
    one.add_argument(
        "--labels", action="append", default=[], metavar="K=V,...", help="additional labels for the Backup"
    )
    one.add_argument(
        "--annotations", action="append", default=[], metavar="K=V,...", help="additional annotations for the Backup"
    )
    one.add_argument(
        "-w", "--wait", action="store_true", help="wait until it finishes; exit code 1 unless it completes"
    )
    add_object_output(one)
    add_dry_run(one)


def _add_retention(words: Any) -> None:  # noqa: ANN401
    one = _word(words, "retention", "show which Backups the SchedulePolicy keeps, which it deletes, and why")
    add_selection(one, "Schedules")
    acts = one.add_mutually_exclusive_group()
    acts.add_argument(
        "--approve",
        metavar="LIST",
        help="approve the deletion of the listed Backups, and of no others, by the digest that was printed with them",
    )
    acts.add_argument(
        "--undo",
        action="store_true",
        help="keep the Backups that are marked for deletion: pin them",
    )
    acts.add_argument(
        "--extend",
        action="store_true",
        help="extend the expiration of Backups that Velero would delete by their ttl while a rule keeps them",
    )
    add_output(one, "table", "json", "yaml")
    add_dry_run(one)
    _add_reading(one)


def _add_pictures(words: Any) -> None:  # noqa: ANN401
    one = _word(words, "simulate", "predict which slots run on time, late or not at all")
    add_selection(one, "Schedules")
    one.add_argument("--from", dest="start", metavar="INSTANT", help=f"start (default: now), {_INSTANT}")
    one.add_argument(
        "--until", dest="end", metavar="INSTANT", help="end (default: a week after --from; a month with --policy)"
    )
    one.add_argument(
        "--policy",
        metavar="FILE",
        help="SchedulePolicies, YAML or JSON: simulate without and with them, with calendars",
    )
    one.add_argument(
        "--backups-take", default="0s", metavar="DURATION", help="duration of each Backup, such as 45m (%(default)s)"
    )
    one.add_argument("--zone", default="UTC", help="time zone of the output, --from and --until (%(default)s)")
    add_output(one, "table", "wide", "json", "yaml")
    _add_reading(one)

    one = _word(words, "calendar", "draw how many runs start when, with pile-ups")
    add_selection(one, "Schedules")
    one.add_argument("--from", dest="start", metavar="DATE", help="first day (default: today)")
    one.add_argument("--weeks", type=int, default=1, metavar="N", help="(%(default)s)")
    one.add_argument("--zone", default="UTC", help="time zone of the picture (%(default)s)")
    one.add_argument("--svg", metavar="FILE", help="write an SVG picture; - writes it to standard output")
    _add_reading(one)

    one = _word(words, "spread", "propose other minutes for Schedules that start together")
    add_selection(one, "Schedules")
    one.add_argument("--most", type=int, default=1, metavar="N", help="allowed starts per minute (%(default)s)")
    one.add_argument("--days", type=int, default=7, metavar="N", help="days to look ahead (%(default)s)")
    add_output(one, "table", "json", "yaml", "name", "patch")
    _add_reading(one)


def _word(words: Any, name: str, help_text: str) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse's own is private
    one: argparse.ArgumentParser = words.add_parser(
        name, help=help_text, description=help_text, epilog=examples(*_EXAMPLES[name])
    )
    where = one.add_argument_group("where")
    add_velero_and_cluster(where)
    one.set_defaults(run=partial(_run, name), all_namespaces=False)
    return one


def _add_reading(one: argparse.ArgumentParser) -> None:
    how = one.add_argument_group("reading of schedules")
    how.add_argument(
        "--velero-dialect",
        choices=["robfig", "go-cron"],
        help="Velero's cron dialect, used only if its image tag is not a version",
    )
    how.add_argument(
        "--velero-time-zone", metavar="ZONE", help="time zone of Velero's clock (default: the operator's, or UTC)"
    )


def _run(verb: str, args: argparse.Namespace) -> int:
    match verb:
        case "create":
            from foresail.cli.schedule.create import create as command
        case "get":
            from foresail.cli.schedule.get import get as command
        case "describe":
            from foresail.cli.schedule.get import describe as command
        case "explain":
            from foresail.cli.schedule.explain import explain as command
        case "retention":
            from foresail.cli.schedule.retention import retention as command
        case "run":
            from foresail.cli.schedule.run import run as command
        case "simulate":
            from foresail.cli.schedule.simulate import simulate as command
        case "calendar":
            from foresail.cli.schedule.calendar import calendar as command
        case "pause":
            from foresail.cli.schedule.change import pause as command
        case "unpause":
            from foresail.cli.schedule.change import unpause as command
        case "delete":
            from foresail.cli.schedule.change import delete as command
        case "spread":
            from foresail.cli.schedule.spread import propose as command
        case _:
            raise NotImplementedError(verb)
    return command(args)
