"""The options of `foresail check`; what a verb does is imported only when it is used."""

import argparse
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from foresail.cli.errors import NotAllowedError
from foresail.cli.options.parser import add_dry_run, examples
from foresail.cli.options.shared import (
    add_cluster,
    add_object_output,
    add_operator_namespace,
    add_velero_and_cluster,
    add_velero_namespace,
)

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser


def add_check(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail check` to the command line."""
    check = commands.add_parser(
        "check",
        help="create, show and start RestoreChecks",
        description="Creates, shows and starts RestoreChecks, which restore backups into fenced sandboxes and compare."
        " -n shows those of a tenant's namespace, -A all.",
        epilog=examples(
            "foresail check get",
            "foresail check get -n my-namespace",
            "foresail check get -A",
            "foresail check create own -n my-namespace --from-schedule nightly",
            "foresail check run nightly --wait",
            "foresail check explain nightly",
        ),
    )
    check.fill = _fill


def _fill(check: argparse.ArgumentParser) -> None:
    verbs = check.add_subparsers(metavar="COMMAND", required=True)
    one = _verb(
        verbs,
        "get",
        "list RestoreChecks with their last results",
        "foresail check get",
        "foresail check get nightly -o jsonpath='{.status.last.result}'",
    )
    one.add_argument("names", nargs="*", metavar="NAME", help="names of RestoreChecks; all if none is given")
    one.add_argument("-A", "--all-namespaces", action="store_true", help="those of tenants too")
    add_object_output(one)
    _add_create(verbs)
    one = _verb(verbs, "run", "check the newest good backup now", "foresail check run nightly --wait")
    one.add_argument("name", metavar="NAME", help="the RestoreCheck")
    one.add_argument("--wait", action="store_true", help="wait for the result; exit code 1 if it is Fail")
    one.add_argument("--timeout", metavar="DURATION", help="maximum time to wait, such as 70m (default: no limit)")
    add_dry_run(one)
    one = _verb(
        verbs, "explain", "show the last result with everything that was found", "foresail check explain nightly"
    )
    one.add_argument("name", metavar="NAME", help="the RestoreCheck")


def _add_create(verbs: Any) -> None:  # noqa: ANN401 - argparse's own is private
    one = verbs.add_parser(
        "create",
        help="create a RestoreCheck",
        description="Creates a RestoreCheck, or says why it would not be served. In a tenant's namespace, the"
        " SelfServicePolicy must allow it.",
        epilog=examples(
            "foresail check create nightly --from-schedule nightly",
            "foresail check create own -n my-namespace --from-schedule nightly",
            "foresail check create own -n my-namespace -o yaml",
        ),
    )
    one.add_argument("name", metavar="NAME", help="name of the RestoreCheck")
    one.add_argument(
        "--from-schedule",
        metavar="NAME",
        help="check the newest good backup of this Schedule, in a tenant's namespace of this NonAdminSchedule"
        " (default there: of all NonAdminBackups)",
    )
    one.add_argument("--schedule", metavar="CRON", help="when to check, in UTC (default: after each backup)")
    one.add_argument("-n", "--namespace", metavar="NAMESPACE", help="a tenant's namespace (default: Velero's)")
    add_velero_namespace(one)
    add_operator_namespace(one)
    add_cluster(one)
    add_object_output(one, "json, yaml, jsonpath: print the object and send nothing; needs no cluster")
    add_dry_run(one)
    one.set_defaults(run=partial(_run, "create"))


def _verb(verbs: Any, name: str, help_text: str, *commands: str) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse's own is private
    one: argparse.ArgumentParser = verbs.add_parser(
        name, help=help_text, description=f"{help_text[0].upper()}{help_text[1:]}.", epilog=examples(*commands)
    )
    add_velero_and_cluster(one)
    one.set_defaults(run=partial(_run, name))
    return one


def _run(verb: str, args: argparse.Namespace) -> int:
    match verb:
        case "get":
            from foresail.cli.check.checks import get as command
        case "run":
            from foresail.cli.check.checks import run as command
        case "explain":
            from foresail.cli.check.checks import explain as command
        case "create":
            from foresail.cli.check.create import create as command
        case _:
            raise NotImplementedError(verb)
    try:
        return command(args)
    except NotAllowedError as error:
        if args.namespace != vars(args).get("velero_namespace", os.environ.get("VELERO_NAMESPACE") or "velero"):
            raise
        own = "the RestoreChecks of a team are in its own namespace: add -n NAMESPACE"
        raise NotAllowedError(error.problem, f"{own}. Otherwise {error.hint}") from error
