"""The options of `foresail recovery-key`; what a verb does is imported only when it is chosen."""

import argparse
from functools import partial
from typing import Any

from foresail.cli.options.parser import add_dry_run, examples
from foresail.cli.options.shared import add_output, add_velero_and_cluster

_EXPORT = "foresail recovery-key export > recovery-key.yaml"


def add_recovery_key(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `foresail recovery-key` to the command line."""
    one = commands.add_parser(
        "recovery-key",
        help="manage the keys that sign the records of tenants' backups",
        description="Manages the Secret foresail-record-key in Velero's namespace. The operator signs each tenant's"
        " backup with it. After a disaster the signature proves whose a backup is. Keep a copy outside of the cluster.",
        epilog=examples("foresail recovery-key get", _EXPORT),
    )
    verbs = one.add_subparsers(metavar="COMMAND", required=True)
    add_dry_run(_verb(verbs, "create", "create a key, unless there is one", "foresail recovery-key create"))
    listed = _verb(verbs, "get", "list the IDs of the keys, and which one signs", "foresail recovery-key get")
    add_output(listed, "table", "json", "yaml")
    _verb(verbs, "export", "print the keys as a manifest of a Secret: keep it secret", _EXPORT)
    imported = _verb(
        verbs,
        "import",
        "add the keys of an exported manifest; existing keys stay",
        "foresail recovery-key import -f recovery-key.yaml",
    )
    imported.add_argument("-f", "--file", required=True, metavar="FILE", help="the exported manifest; - is stdin")
    add_dry_run(imported)
    rotated = _verb(
        verbs,
        "rotate",
        "add a new key that signs from now on; old keys still verify",
        "foresail recovery-key rotate",
    )
    add_dry_run(rotated)


def _verb(verbs: Any, name: str, meaning: str, *commands: str) -> argparse.ArgumentParser:  # noqa: ANN401
    one: argparse.ArgumentParser = verbs.add_parser(name, help=meaning, description=meaning, epilog=examples(*commands))
    add_velero_and_cluster(one.add_argument_group("where"))
    one.set_defaults(run=partial(_run, name))
    return one


def _run(verb: str, args: argparse.Namespace) -> int:
    match verb:
        case "create":
            from foresail.cli.recovery_key.keys import run_create as command
        case "rotate":
            from foresail.cli.recovery_key.keys import run_rotate as command
        case "get":
            from foresail.cli.recovery_key.keys import run_get as command
        case "export":
            from foresail.cli.recovery_key.keys import run_export as command
        case "import":
            from foresail.cli.recovery_key.keys import run_import as command
        case _:
            raise NotImplementedError(verb)
    return command(args)
