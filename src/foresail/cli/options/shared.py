"""Options that many commands share: the cluster, the output and the objective."""

import argparse
import os
from datetime import timedelta

from foresail.cli.options.values import read_length


def add_cluster(to: argparse._ActionsContainer) -> None:
    """Add which cluster."""
    to.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig (default: KUBECONFIG, or ~/.kube/config)")
    to.add_argument("--context", "--kubecontext", metavar="NAME", help="the context of the kubeconfig")


def add_own_namespace(one: argparse.ArgumentParser) -> None:
    """Add where a team's command works: its namespace and the cluster."""
    where = one.add_argument_group("where")
    where.add_argument(
        "-n", "--namespace", metavar="NAMESPACE", help="your namespace (default: that of the kube context)"
    )
    add_cluster(where)


def add_velero_namespace(to: argparse._ActionsContainer) -> None:
    """Add Velero's namespace to a command whose `-n` is another one."""
    to.add_argument(
        "--velero-namespace",
        default=os.environ.get("VELERO_NAMESPACE") or "velero",
        metavar="NAMESPACE",
        help="Velero's (default: VELERO_NAMESPACE, or velero)",
    )


def add_operator_namespace(to: argparse._ActionsContainer) -> None:
    """Add Foresail's namespace, in which no policy applies."""
    to.add_argument(
        "--operator-namespace",
        metavar="NAMESPACE",
        help="Foresail's, in which no SelfServicePolicy applies (default: that of its Deployment)",
    )


def add_velero_and_cluster(to: argparse._ActionsContainer, whose: str = "Velero's") -> None:
    """Add Velero's namespace, and which cluster it is in."""
    to.add_argument(
        "-n",
        "--namespace",
        "--velero-namespace",
        dest="namespace",
        default=os.environ.get("VELERO_NAMESPACE") or "velero",
        metavar="NAMESPACE",
        help=f"{whose} (default: VELERO_NAMESPACE, or velero)",
    )
    add_cluster(to)


def add_selection(one: argparse.ArgumentParser, which: str, every: str = "") -> None:
    """Add names, -l and -A; a command that changes objects needs --all for all of them, and says which those are."""
    none = "" if every else "; all if none is given"
    one.add_argument("names", nargs="*", metavar="NAME", help=f"names of {which}{none}")
    one.add_argument("-l", "--selector", metavar="SELECTOR", help="select by labels")
    one.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")
    if every:
        one.add_argument("--all", action="store_true", help=every)


def add_bucket(to: argparse._ActionsContainer) -> None:
    """Add whom to trust in front of the bucket."""
    to.add_argument("--cacert", metavar="FILE", help="additional CA certificates for the bucket, in PEM")
    to.add_argument("--insecure-skip-tls-verify", action="store_true", help="do not verify the bucket's certificate")


JSONPATH = "jsonpath="
_TABLES = ("table", "wide")
_OF_OBJECTS = (*_TABLES, "json", "yaml", "name")


class Forms(list[str]):
    """The forms that a verb prints; `jsonpath=` matches every template."""

    def __contains__(self, form: object) -> bool:
        """Return whether a form is known."""
        is_template = isinstance(form, str) and form.startswith(JSONPATH) and list.__contains__(self, JSONPATH)
        return is_template or list.__contains__(self, form)


def is_table(form: str) -> bool:
    """Return whether people read it: no document, and no names."""
    return form in _TABLES


def add_object_output(to: argparse.ArgumentParser, more: str = "") -> None:
    """Add -o to a verb that prints objects: the same forms in each of them."""
    add_output(to, *_OF_OBJECTS, more=more)


def add_output(to: argparse.ArgumentParser, *forms: str, default: str = "table", more: str = "") -> None:
    """Add -o; a verb that prints JSON takes JSONPath templates too."""
    known = Forms([*forms, *([JSONPATH] if "json" in forms else [])])
    shown = "|".join(f"{form}TEMPLATE" if form == JSONPATH else form for form in known)
    text = f"{more} (default: {default})".strip()
    to.add_argument("-o", "--output", choices=known, default=default, metavar=shown, help=text)


def add_objective(to: argparse._ActionsContainer) -> None:
    """Add `--rpo`."""
    to.add_argument("--rpo", metavar="DURATION", help="objective: how old the newest good backup may be, such as 26h")


def read_objective(args: argparse.Namespace) -> timedelta | None:
    """Return the objective; None if none is given."""
    return timedelta(microseconds=read_length(args.rpo, "--rpo") / 1000) if args.rpo else None
