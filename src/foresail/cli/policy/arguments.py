"""The options of `foresail policy`; what a verb does is imported only when it is used."""

import argparse
from functools import partial
from typing import Any

from foresail.cli.options.parser import examples
from foresail.cli.options.shared import (
    add_cluster,
    add_object_output,
    add_operator_namespace,
    add_output,
    add_velero_namespace,
)


def add_policy(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `foresail policy` to the command line."""
    policy = commands.add_parser(
        "policy",
        help="show and preview SelfServicePolicies and SchedulePolicies",
        description="Shows SelfServicePolicies, which set who may back up and restore what, and SchedulePolicies,"
        " which set when Schedules run and what they keep. `test` previews either before you apply it.",
        epilog=examples("foresail policy get", "foresail policy test -f web.yaml"),
    )
    verbs = policy.add_subparsers(metavar="COMMAND", required=True)
    _add_reports(verbs)
    _add_usage(verbs)
    _add_test(verbs)


def _add_reports(verbs: Any) -> None:  # noqa: ANN401 - argparse's own is private
    one = _verb(
        verbs,
        "get",
        "list policies: priority, where they apply, quotas or retention",
        "foresail policy get",
        "foresail policy get -o wide",
        "foresail policy get schedulepolicy/nights",
        "foresail policy get web -o jsonpath='{.spec.quotas}'",
        more="Lists SelfServicePolicies with the namespaces in which they apply, and SchedulePolicies with the"
        " Schedules to which they apply.",
    )
    _add_selection(one)
    add_object_output(one)
    one = _verb(
        verbs,
        "describe",
        "show policies with their rules and where they apply",
        "foresail policy describe web",
        "foresail policy describe schedulepolicy/nights",
        more="Shows SelfServicePolicies with their namespaces and the use of each quota, and SchedulePolicies with"
        " their Schedules.",
    )
    _add_selection(one)


def _add_usage(verbs: Any) -> None:  # noqa: ANN401
    one = _verb(
        verbs,
        "usage",
        "show the use of quotas by namespace, the fullest first",
        "foresail policy usage -A",
        "foresail policy usage -n shop -o wide",
        "foresail policy usage -A -o json",
        more="Shows the policy of a namespace and the use of its quotas; with -A those of all namespaces in which a"
        " policy applies, the fullest first.",
    )
    one.add_argument("-n", "--namespace", metavar="NAMESPACE", help="one namespace (default: that of the kube context)")
    one.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces in which a policy applies")
    one.add_argument(
        "--limit",
        type=int,
        default=50,
        metavar="NUMBER",
        help="print at most so many namespaces, 0 for all (default: 50)",
    )
    add_output(one, "table", "wide", "json", "yaml")


def _add_test(verbs: Any) -> None:  # noqa: ANN401
    one = _verb(
        verbs,
        "test",
        "preview which namespaces or Schedules a policy would apply to",
        "foresail policy test -f web.yaml",
        "foresail policy test -f web.yaml -n shop",
        "foresail policy test -f web.yaml --namespaces namespaces.yaml",
        "foresail policy test -f nights.yaml",
        more="Shows for each namespace that the policies of a file match which policy applies now, and which"
        " would apply with the file. Changes nothing. To run without a cluster, specify --namespaces."
        " For SchedulePolicies, shows the Schedules in Velero's namespace, and how their next week changes.",
    )
    one.add_argument(
        "-f", "--file", required=True, metavar="FILE", help="SelfServicePolicies, or SchedulePolicies; - is stdin"
    )
    one.add_argument(
        "-n",
        "--namespace",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="show this namespace, matched or not; may be repeated (default: all that match or change)",
    )
    add_output(one, "table", "json", "yaml")
    files = one.add_argument_group("source of namespaces and current policies")
    files.add_argument(
        "--namespaces",
        metavar="FILE",
        help="file with namespaces, such as the output of kubectl get namespaces -o yaml",
    )
    files.add_argument(
        "--policies", metavar="FILE", help="file with the current policies, with --namespaces (default: none)"
    )


def _verb(
    verbs: Any,  # noqa: ANN401
    name: str,
    help_text: str,
    *commands: str,
    more: str = "",
) -> argparse.ArgumentParser:
    one: argparse.ArgumentParser = verbs.add_parser(
        name, help=help_text, description=more or help_text, epilog=examples(*commands)
    )
    where = one.add_argument_group("where")
    add_cluster(where)
    add_velero_namespace(where)
    add_operator_namespace(where)
    one.set_defaults(run=partial(_run, name))
    return one


def _add_selection(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "names",
        nargs="*",
        metavar="[KIND/]NAME",
        help="names of policies of either kind, or of the kind given, such as schedulepolicy/nights;"
        " all if none is given",
    )
    one.add_argument("-l", "--selector", metavar="SELECTOR", help="select by labels")


def _run(verb: str, args: argparse.Namespace) -> int:
    match verb:
        case "get":
            from foresail.cli.policy.get import get as command
        case "describe":
            from foresail.cli.policy.get import describe as command
        case "usage":
            from foresail.cli.policy.usage import usage as command
        case "test":
            from foresail.cli.policy.reach import run_test as command
        case _:
            raise NotImplementedError(verb)
    return command(args)
