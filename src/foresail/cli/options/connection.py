"""Options that say where Velero is."""

import argparse


def add_velero_and_cluster(to: argparse.ArgumentParser, whose: str) -> None:
    """Add Velero's namespace, and which cluster it is in."""
    to.add_argument(
        "-n",
        "--velero-namespace",
        dest="namespace",
        default="velero",
        metavar="NAMESPACE",
        help=f"{whose} (default: velero)",
    )
    to.add_argument("--kubeconfig", help="the kubeconfig to use")
    to.add_argument("--context", help="the context of the kubeconfig")
