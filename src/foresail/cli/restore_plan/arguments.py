"""The words of `foresail plan`; what it does is imported only when it is used."""

import argparse

from foresail.cli.options.parser import BooleanOption, CommandParser, add_dry_run, examples
from foresail.cli.options.shared import add_bucket, add_output, add_velero_and_cluster

PATIENCE = "10m"
"""How long a plan waits, unless --timeout is given."""

_EXAMPLES = (
    "foresail plan nightly-20261116030000",
    "foresail plan nightly-20261116030000 --include-namespaces shop --to shop-copy",
    "foresail plan nightly-20261116030000 --as ann --fail-on refused -o json",
    "foresail plan nightly-20261116030000 --to shop-copy --restore --wait",
)


def add_plan(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail plan` to the command line."""
    meaning = "show what a restore of a Velero Backup would do to each item, and do it"
    description = (
        "Reads the contents of a Backup and asks the API server about each item with a dry run. "
        "Nothing is restored without --restore, which creates the planned Restore with your own rights. "
        "For a namespace that does not exist, a scratch namespace is created and deleted. "
        "You need Velero's rights to read contents: create DownloadRequests in its namespace."
    )
    one = commands.add_parser("plan", help=meaning, description=description, epilog=examples(*_EXAMPLES))
    one.fill = _fill


def _fill(one: argparse.ArgumentParser) -> None:
    one.add_argument("backup", metavar="BACKUP", help="name of the Velero Backup")
    add_velero_and_cluster(one.add_argument_group("where"))
    what = one.add_argument_group("what to restore (default: everything in the backup)")
    for option, meaning in (
        ("--include-namespaces", "namespaces to restore"),
        ("--exclude-namespaces", "namespaces to exclude"),
        ("--include-resources", "kinds to restore, such as deployments.apps"),
        ("--exclude-resources", "kinds to exclude"),
    ):
        what.add_argument(option, action="append", metavar="NAME,...", help=meaning)
    what.add_argument("-l", "--selector", metavar="SELECTOR", help="only objects with these labels")
    what.add_argument("--include-cluster-resources", action=BooleanOption, help="include cluster-scoped resources")
    how = one.add_argument_group("how to restore")
    how.add_argument("--to", metavar="NAMESPACE", help="restore the backup's one namespace into this one")
    how.add_argument("--namespace-mappings", action="append", metavar="OLD:NEW,...", help="namespaces to rename")
    how.add_argument(
        "--existing-resource-policy", choices=("none", "update"), help="what to do with objects that already exist"
    )
    how.add_argument("--preserve-nodeports", action=BooleanOption, help="keep the node ports of Services")
    how.add_argument("--resource-modifier-configmap", metavar="NAME", help="a ConfigMap in Velero's namespace")
    whose = one.add_argument_group("whose rights")
    whose.add_argument("--as", dest="as_user", metavar="USER", help="send the dry runs as this user")
    whose.add_argument("--as-group", action="append", metavar="GROUP", help="with --as: a group; may be repeated")
    _add_restore(one)
    add_plan_report(one)
    meaning = f"maximum time to wait for the plan, such as 30m (default: {PATIENCE})"
    one.add_argument("--timeout", metavar="DURATION", default=PATIENCE, help=meaning)
    add_bucket(one)
    one.set_defaults(run=_run)


def _add_restore(one: argparse.ArgumentParser) -> None:
    """Add how the planned restore is done."""
    done = one.add_argument_group("do it")
    done.add_argument("--restore", action="store_true", help="create the Velero Restore, once you have confirmed it")
    done.add_argument("--name", metavar="NAME", help="name of the Restore (default: from the backup and the time)")
    done.add_argument(
        "-y", "--yes", "--confirm", dest="confirm", action="store_true", help="do not ask for confirmation"
    )
    add_dry_run(done)
    meaning = "wait until it finishes, and report what it did; exit code 1 unless it completes"
    done.add_argument("-w", "--wait", action="store_true", help=meaning)


def add_plan_report(one: argparse.ArgumentParser) -> None:
    """Add how a plan is printed, and when it fails."""
    add_output(one, "table", "json", "yaml")
    one.add_argument(
        "--fail-on", choices=("refused",), help="exit code 1 if an item would be refused, or a dry run is not answered"
    )


def _run(args: argparse.Namespace) -> int:
    from foresail.cli.restore_plan.plan import plan

    return plan(args)
