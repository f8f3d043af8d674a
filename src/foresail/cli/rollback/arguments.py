"""The words of `foresail rollback`; what a verb does is imported only when it is used."""

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from foresail.cli.options.parser import CLIENT, SERVER, ServerDryRunOption, add_dry_run, examples
from foresail.cli.options.shared import (
    add_bucket,
    add_object_output,
    add_operator_namespace,
    add_own_namespace,
    add_selection,
    add_velero_namespace,
)

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser

VOLUMES = {"none": "None", "all": "All", "data": "Data"}
"""What --volumes takes, and how the API writes it."""

_EXAMPLES = {
    "create": (
        "foresail rollback create --to before-upgrade --dry-run",
        "foresail rollback create --to before-upgrade --wait",
        "foresail rollback create back --to before-upgrade --only deployments --prune",
    ),
    "get": ("foresail rollback get", "foresail rollback get -A -o wide"),
    "describe": ("foresail rollback describe back",),
    "undo": ("foresail rollback undo back --wait", "foresail rollback undo back --confirm"),
}


def add_rollback(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail rollback` to the command line."""
    rollback = commands.add_parser(
        "rollback",
        help="bring objects of your namespace back to a backup, in place, and undo that",
        description="Brings the objects of your namespace back to the state of a backup: what was changed is changed"
        " back, what is missing is created. A backup of the present state is taken first, so that it can be undone."
        " Volumes stay as they are unless --volumes says otherwise. The policy of the namespace must have"
        " rollback.enabled.",
        epilog=examples(*(lines[0] for lines in _EXAMPLES.values())),
    )
    rollback.fill = _fill


def _fill(rollback: argparse.ArgumentParser) -> None:
    verbs = rollback.add_subparsers(metavar="COMMAND", required=True)
    _add_create(verbs)
    one = _verb(verbs, "get", "list rollbacks with their steps, and until when they can be undone")
    add_selection(one, "rollbacks")
    add_object_output(one)
    one = _verb(verbs, "describe", "show the plan, the steps with their times, what is suspended, and how to undo it")
    add_selection(one, "rollbacks")
    one = _verb(verbs, "undo", "bring everything back to how it was before a rollback, also while that runs")
    one.add_argument("name", metavar="NAME", help="name of the rollback")
    _add_agreement(one)
    add_object_output(one)
    add_dry_run(one)
    _add_wait(one, "wait until it is undone, and show each step; exit code 1 unless everything is as before")


def _add_create(verbs: Any) -> None:  # noqa: ANN401 - argparse's own is private
    one = _verb(verbs, "create", "show what a rollback would do, ask, and do exactly that")
    one.add_argument("name", nargs="?", metavar="NAME", help="(default: from the backup and the time)")
    one.add_argument("--to", metavar="BACKUP", required=True, help="the NonAdminBackup whose state comes back")
    what = one.add_argument_group("what comes back (default: every object that you may restore)")
    what.add_argument("--only", action="append", metavar="KIND,...", help="only these kinds, such as configmaps")
    what.add_argument(
        "--volumes",
        choices=list(VOLUMES),
        default="none",
        help="all: claims get the data of the backup, and what uses them is stopped meanwhile; data: no other object"
        " (default: none)",
    )
    what.add_argument(
        "--prune", action="store_true", help="delete objects that are not in the backup; Secrets and claims stay"
    )
    how = one.add_argument_group("how")
    how.add_argument(
        "--dry-run",
        action=ServerDryRunOption,
        default="",
        choices=[CLIENT, SERVER],
        help="server: the operator makes the plan; it is printed, and nothing is changed. client: print what would be"
        " sent, and send nothing (alone it means server)",
    )
    how.add_argument(
        "--plan-digest", metavar="DIGEST", help="the plan that --dry-run has shown: no other is run, and nobody asked"
    )
    _add_agreement(how)
    add_object_output(one, "json, yaml, jsonpath: print the object and send nothing; with --dry-run, its plan too")
    _add_wait(one, "wait until it has ended, and show each step; exit code 1 unless everything is as in the backup")
    add_bucket(one)
    add_velero_namespace(one)
    add_operator_namespace(one)


def _add_agreement(to: argparse._ActionsContainer) -> None:
    to.add_argument("--confirm", action="store_true", help="do not ask for confirmation")


def _add_wait(one: argparse.ArgumentParser, meaning: str) -> None:
    one.add_argument("-w", "--wait", action="store_true", help=meaning)
    one.add_argument("--timeout", metavar="DURATION", help="maximum time to wait, such as 30m (default: no limit)")


def _verb(verbs: Any, verb: str, meaning: str) -> argparse.ArgumentParser:  # noqa: ANN401
    one: argparse.ArgumentParser = verbs.add_parser(
        verb, help=meaning, description=f"{meaning[0].upper()}{meaning[1:]}.", epilog=examples(*_EXAMPLES[verb])
    )
    add_own_namespace(one)
    one.set_defaults(run=partial(_run, verb), all_namespaces=False)
    return one


def _run(verb: str, args: argparse.Namespace) -> int:
    match verb:
        case "create":
            from foresail.cli.rollback.create import create as command
        case "get":
            from foresail.cli.rollback.get import get as command
        case "describe":
            from foresail.cli.rollback.describe import describe as command
        case "undo":
            from foresail.cli.rollback.undo import undo as command
        case _:
            raise NotImplementedError(verb)
    return command(args)
