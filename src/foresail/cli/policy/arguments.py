"""The words of `foresail policy`; what they do is imported only when one of them is chosen."""

import argparse


def add_policy(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `foresail policy` to the command line."""
    policy = commands.add_parser(
        "policy", help="who may back up and restore what", description="Who may back up and restore what."
    )
    verbs = policy.add_subparsers(metavar="COMMAND", required=True)
    test = verbs.add_parser(
        "test",
        help="which namespaces a SelfServicePolicy would reach, before it is applied",
        description="Shows for each namespace that the policies of a file match which policy holds in it now, and"
        " which would if the file were applied. Changes nothing. Without a cluster: name --namespaces.",
    )
    test.set_defaults(run=_run_test)
    test.add_argument(
        "-f", "--file", required=True, metavar="FILE", help="SelfServicePolicies, YAML or JSON; - is stdin"
    )
    test.add_argument(
        "-n",
        "--namespace",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="show this namespace, matched or not; may be repeated (default: all that are matched, or change)",
    )
    test.add_argument("-o", "--output", choices=["table", "json"], default="table")
    where = test.add_argument_group("where namespaces and the policies of now come from")
    where.add_argument("--namespaces", metavar="FILE", help="from a file, such as kubectl get namespaces -o yaml gives")
    where.add_argument("--policies", metavar="FILE", help="the policies of now, beside --namespaces (default: none)")
    where.add_argument("--kubeconfig", help="the kubeconfig of the cluster to ask, if --namespaces is not given")
    where.add_argument("--context", help="the context of the kubeconfig")
    where.add_argument("--velero-namespace", default="velero", metavar="NAMESPACE", help="Velero's (default: velero)")
    where.add_argument(
        "--operator-namespace", default="foresail", metavar="NAMESPACE", help="Foresail's (default: foresail)"
    )


def _run_test(chosen: argparse.Namespace) -> int:
    from foresail.cli.policy.reach import run_test  # noqa: PLC0415 - the rest of the command line starts without it

    return run_test(chosen)
