"""The options of `foresail location`; what a verb does is imported only when it is chosen."""

import argparse
from functools import partial
from typing import Any

from foresail.api.marks import SELF_SERVICE_LEASE
from foresail.cli.options.parser import CommandParser, add_dry_run, examples
from foresail.cli.options.shared import add_cluster, add_object_output

OPERATOR = f"velero/{SELF_SERVICE_LEASE}"


def add_location(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail location` to the command line."""
    location = commands.add_parser(
        "location",
        help="store backups in your own bucket",
        description="Manages your NonAdminBackupStorageLocations. You need the role edit in your namespace. "
        "The policy of the namespace must allow it.",
        epilog=examples(
            "foresail location create mine --bucket shop --credential keys=cloud",
            "foresail location get",
            "foresail location request approve mine -n shop",
        ),
    )
    location.fill = _fill


def _fill(location: argparse.ArgumentParser) -> None:
    verbs = location.add_subparsers(required=True, metavar="COMMAND")
    _add_create(verbs)
    one = _verb(verbs, "get", "list storage locations with their approval and phase", "foresail location get -A")
    _add_names(one)
    add_object_output(one)
    one = _verb(
        verbs, "describe", "show storage locations and the next step", "foresail location describe mine -n shop"
    )
    _add_names(one)
    one = _verb(
        verbs,
        "grant",
        "let the operator read the one Secret of a storage location",
        "foresail location grant mine -n shop",
        more="Creates a Role and a RoleBinding. You need the role admin in the namespace.",
    )
    one.add_argument("name", metavar="NAME", help="name of the NonAdminBackupStorageLocation")
    _add_operator(one)
    one = _verb(
        verbs,
        "delete",
        "delete a storage location and its backups; the data stays in the bucket",
        "foresail location delete mine --confirm",
    )
    one.add_argument("name", metavar="NAME", help="name of the NonAdminBackupStorageLocation")
    one.add_argument("--confirm", action="store_true", help="do not ask for confirmation")
    add_dry_run(one)
    _add_requests(verbs)


def _add_create(verbs: Any) -> None:  # noqa: ANN401 - argparse's own is private
    one = _verb(
        verbs,
        "create",
        "ask for a storage location in your own bucket",
        "foresail location create mine --bucket shop --credential keys=cloud",
        "foresail location create mine --bucket shop --credential keys=cloud -o yaml",
    )
    one.add_argument("name", metavar="NAME", help="name of the NonAdminBackupStorageLocation")
    one.add_argument("--bucket", required=True, metavar="BUCKET", help="name of the bucket")
    one.add_argument(
        "--credential",
        required=True,
        metavar="SECRET=KEY",
        help="the Secret of your namespace with the keys of the bucket, and the key in it",
    )
    one.add_argument("--provider", default="aws", metavar="PROVIDER", help="provider of the bucket (default: aws)")
    one.add_argument(
        "--prefix", metavar="FOLDER", help="folder in the bucket, below one with the name of the namespace"
    )
    one.add_argument("--region", metavar="REGION", help="region of the bucket: config.region")
    one.add_argument(
        "--config", action="append", default=[], metavar="KEY=VALUE", help="a key of config; may be repeated"
    )
    one.add_argument("--cacert", metavar="FILE", help="CA certificates of the endpoint, in PEM")
    _add_operator(one)
    add_object_output(one, "json, yaml, jsonpath: print the object and send nothing; needs no cluster")
    add_dry_run(one)


def _add_requests(verbs: Any) -> None:  # noqa: ANN401
    request = verbs.add_parser(
        "request",
        help="decide about requests for storage locations",
        description="Lists, approves and rejects the requests of tenants. You need access to Velero's namespace.",
        epilog=examples("foresail location request get", "foresail location request approve mine -n shop"),
    )
    words = request.add_subparsers(required=True, metavar="COMMAND")
    one = _verb(
        words,
        "get",
        "list requests for storage locations",
        "foresail location request get",
        more="Locations without a request yet are listed with the reason, if you may list them.",
        of="request ",
    )
    _add_velero(one)
    add_object_output(one)
    for verb, meaning, example in (
        ("approve", "approve a storage location as it is requested now", "approve mine -n shop"),
        ("reject", "reject a storage location, or withdraw an approval", "reject mine -n shop --reason 'no budget'"),
    ):
        one = _verb(words, verb, meaning, f"foresail location request {example}", of="request ", needs_namespace=True)
        one.add_argument(
            "name", metavar="NAME", help="name of the NonAdminBackupStorageLocation, in the namespace of -n"
        )
        one.add_argument("--reason", metavar="TEXT", help="why; kept as an annotation")
        _add_velero(one)


def _verb(
    verbs: Any,  # noqa: ANN401
    verb: str,
    meaning: str,
    *shown: str,
    more: str = "",
    of: str = "",
    needs_namespace: bool = False,
) -> argparse.ArgumentParser:
    text = f"{meaning}. {more}".strip() if more else meaning
    one: argparse.ArgumentParser = verbs.add_parser(verb, help=meaning, description=text, epilog=examples(*shown))
    where = one.add_argument_group("where")
    which = "the tenant's namespace" if needs_namespace else "your namespace (default: that of the kube context)"
    where.add_argument("-n", "--namespace", metavar="NAMESPACE", required=needs_namespace, help=which)
    add_cluster(where)
    one.set_defaults(run=partial(_run, of + verb))
    return one


def _add_names(one: argparse.ArgumentParser) -> None:
    one.add_argument("names", nargs="*", metavar="NAME", help="names of storage locations; all if none is given")
    one.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")


def _add_operator(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--operator",
        default=OPERATOR,
        metavar="NAMESPACE/NAME",
        help=f"ServiceAccount of the operator (default: {OPERATOR})",
    )


def _add_velero(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--velero-namespace", default="velero", metavar="NAMESPACE", help="the namespace of Velero (default: velero)"
    )


def _run(verb: str, args: argparse.Namespace) -> int:
    match verb:
        case "get":
            from foresail.cli.location.get import get as command
        case "describe":
            from foresail.cli.location.get import describe as command
        case "create":
            from foresail.cli.location.change import create as command
        case "grant":
            from foresail.cli.location.change import grant as command
        case "delete":
            from foresail.cli.location.change import delete as command
        case "request get":
            from foresail.cli.location.request import get as command
        case "request approve":
            from foresail.cli.location.request import approve as command
        case "request reject":
            from foresail.cli.location.request import reject as command
        case _:
            raise NotImplementedError(verb)
    return command(args)
