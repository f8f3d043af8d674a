"""`foresail version`: of this command, of the operator and of Velero in a cluster."""

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from foresail import __version__
from foresail.api.marks import LEASES, RETIRED_LEASE
from foresail.cli.options.parser import examples
from foresail.cli.options.shared import add_velero_and_cluster

if TYPE_CHECKING:
    from foresail.cli.access.cluster import Cluster
    from foresail.cli.options.parser import CommandParser

_OPERATORS = (*LEASES, RETIRED_LEASE)
_NAME = "app.kubernetes.io/name"
_UNKNOWN = "unknown"


class Running(NamedTuple):
    """A program that a Deployment runs."""

    deployment: str
    image: str

    @property
    def version(self) -> str:
        """The tag of its image; unknown if it has none."""
        tag = self.image.partition("@")[0].rpartition("/")[2].partition(":")[2]
        return tag or _UNKNOWN

    def as_data(self) -> dict[str, str]:
        """Return it for programs to read."""
        return {"deployment": self.deployment, "image": self.image, "version": self.version}


def add_version(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail version` to the command line."""
    one = commands.add_parser(
        "version",
        help="show the versions of this command, the operator and Velero",
        description="Prints the version of this command, and of the operator and Velero that the cluster runs.",
        epilog=examples("foresail version", "foresail version --client", "foresail version -o json"),
    )
    one.set_defaults(run=_run)
    add_velero_and_cluster(one)
    one.add_argument("--client", action="store_true", help="only this command; needs no cluster")
    one.add_argument("-o", "--output", choices=["table", "json", "yaml"], default="table", help="(%(default)s)")


def _run(args: argparse.Namespace) -> int:
    from foresail.cli.access.cluster import on_cluster  # noqa: PLC0415 - the rest of the command line starts without it
    from foresail.cli.errors import CommandError  # noqa: PLC0415

    running_in: dict[str, list[Running]] = {}
    problem: CommandError | None = None
    if not args.client:
        try:
            running_in = on_cluster(args, lambda cluster: _running(cluster, args.namespace))
        except CommandError as error:
            problem = error
    _show(running_in, args.output)
    if problem is not None:
        raise problem
    return 0


async def _running(cluster: "Cluster", namespace: str) -> dict[str, list[Running]]:
    import msgspec  # noqa: PLC0415

    from foresail.api.apps import (  # noqa: PLC0415
        DEPLOYMENT,
        Deployment,
        is_server,
    )

    running_in: dict[str, list[Running]] = {"operator": [], "velero": []}
    for raw in await cluster.listed(DEPLOYMENT, namespace):
        deployment = msgspec.json.decode(raw, type=Deployment)
        name = f"{deployment.metadata.namespace}/{deployment.metadata.name}"
        containers = deployment.spec.template.spec.containers
        if (deployment.metadata.labels or {}).get(_NAME) in _OPERATORS:
            running_in["operator"].append(Running(name, containers[0].image))
        running_in["velero"] += [Running(name, server.image) for server in containers if is_server(server)]
    return running_in


def _show(running_in: dict[str, list[Running]], form: str) -> None:
    if form != "table":
        from foresail.cli.output.objects import document  # noqa: PLC0415

        data: dict[str, Any] = {"client": {"version": __version__}}
        print(
            document(
                {**data, **{name: [running.as_data() for running in those] for name, those in running_in.items()}}, form
            )
        )
        return
    from foresail.cli.output.table import table  # noqa: PLC0415

    rows = [("client", __version__, "")]
    for name, those in running_in.items():
        rows += [
            (name, running.version, f"Deployment {running.deployment}, image {running.image}") for running in those
        ]
        rows += [] if those else [(name, "none", "no Deployment in this namespace")]
    print(table(("PROGRAM", "VERSION", "FROM"), rows))
