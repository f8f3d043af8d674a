"""The options of `foresail protection`; what a verb does is imported only when it is used."""

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from foresail.cli.options.parser import add_dry_run, examples
from foresail.cli.options.shared import add_cluster, add_object_output, add_velero_namespace

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser


def add_protection(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail protection` to the command line."""
    protection = commands.add_parser(
        "protection",
        help="show and choose what protects namespaces",
        description="Shows what protects namespaces by their labels, chooses the ProtectionClass of one, and previews"
        " what a class would do.",
        epilog=examples(
            "foresail protection get -A",
            "foresail protection get -A --gaps",
            "foresail protection describe -n shop",
            "foresail protection set gold -n shop",
            "foresail protection preview -f class.yaml",
        ),
    )
    protection.fill = _fill


def _fill(protection: argparse.ArgumentParser) -> None:
    verbs = protection.add_subparsers(metavar="COMMAND", required=True)
    one = _verb(
        verbs,
        "get",
        "list what protects namespaces",
        "foresail protection get -A",
        "foresail protection get -A --gaps --class gold",
    )
    one.add_argument("-A", "--all-namespaces", action="store_true", help="those of all namespaces")
    one.add_argument("--gaps", action="store_true", help="only namespaces that are not protected as they ask")
    one.add_argument("--class", dest="of_class", metavar="CLASS", help="only namespaces of this ProtectionClass")
    add_object_output(one)
    _verb(
        verbs,
        "describe",
        "show what protects a namespace, with its gaps and the points in time that can be restored",
        "foresail protection describe -n shop",
    )
    one = _verb(
        verbs,
        "set",
        "choose the class of a namespace; none exempts it",
        "foresail protection set gold -n shop",
        "foresail protection set none --reason 'test data' --until 2027-06-30",
    )
    one.add_argument("choice", metavar="CLASS", help="a ProtectionClass, or none")
    one.add_argument("--reason", metavar="TEXT", help="with none: why the namespace is not protected")
    one.add_argument("--until", metavar="DATE", help="with none: until when, such as 2027-06-30")
    add_dry_run(one)
    _add_preview(verbs)


def _add_preview(verbs: Any) -> None:  # noqa: ANN401 - argparse's own is private
    one = verbs.add_parser(
        "preview",
        help="show what a class does: how many backups, when, how long, and what it closes",
        description="Shows what a class would do with the namespaces as they are labelled now: how many backups, when"
        " they start, and how long they take by past runs. It names the namespaces that nothing protects yet, and"
        " changes nothing.",
        epilog=examples("foresail protection preview -f class.yaml", "foresail protection preview gold"),
    )
    one.add_argument("name", nargs="?", metavar="CLASS", help="a ProtectionClass of the cluster")
    one.add_argument("-f", "--file", metavar="FILE", help="a file with a ProtectionClass; - for the standard input")
    add_velero_namespace(one)
    add_cluster(one)
    one.set_defaults(run=partial(_run, "preview"))


def _verb(verbs: Any, name: str, help_text: str, *commands: str) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse's own is private
    one: argparse.ArgumentParser = verbs.add_parser(
        name, help=help_text, description=f"{help_text[0].upper()}{help_text[1:]}.", epilog=examples(*commands)
    )
    one.add_argument("-n", "--namespace", metavar="NAMESPACE", help="(default: the namespace of the context)")
    add_cluster(one)
    one.set_defaults(run=partial(_run, name))
    return one


def _run(verb: str, args: argparse.Namespace) -> int:
    match verb:
        case "get":
            from foresail.cli.protection.get import get as command
        case "describe":
            from foresail.cli.protection.get import describe as command
        case "set":
            from foresail.cli.protection.change import choose as command
        case "preview":
            from foresail.cli.protection.preview import preview as command
        case _:
            raise NotImplementedError(verb)
    return command(args)
