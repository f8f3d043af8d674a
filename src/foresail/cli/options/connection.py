"""Options that say which cluster and which namespace: the same names and meanings in every command."""

import argparse
import os


def add_cluster(to: argparse._ActionsContainer) -> None:
    """Add which cluster."""
    to.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig (default: KUBECONFIG, or ~/.kube/config)")
    to.add_argument("--context", "--kubecontext", metavar="NAME", help="the context of the kubeconfig")


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
