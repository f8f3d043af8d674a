"""The words of `foresail console` and `foresail report`; what they do is imported only when one of them is used."""

import argparse
from typing import TYPE_CHECKING

from foresail.cli.errors import UsageError
from foresail.cli.options.parser import examples
from foresail.cli.options.shared import add_cluster, add_objective, add_operator_namespace, add_velero_namespace
from foresail.cli.options.values import whole_number

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser


_COLORS = ("blue", "brown", "gray", "orange", "pink", "purple", "teal", "yellow")


def add_console(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail console` to the command line."""
    one = commands.add_parser(
        "console",
        help="serve the same answers to your own browser, with your own rights",
        description="Serves pages on 127.0.0.1 to your own browser until Ctrl-C. Every request to the API server is"
        " made with your kubeconfig. Nothing is installed in the cluster. With --in-cluster it serves many viewers"
        " behind an authenticating proxy, each with the bearer token that the proxy passes, and reads no kubeconfig and"
        " no ServiceAccount.",
        epilog=examples(
            "foresail console",
            "foresail console -n shop --no-browser",
            "foresail console --rpo 26h --port 8080",
            "foresail console --fleet",
        ),
    )
    one.set_defaults(run=_run_console)
    one.add_argument("-n", "--namespace", metavar="NAMESPACE", help="(default: the namespace of the context)")
    add_velero_namespace(one)
    add_objective(one)
    one.add_argument("--zone", default="UTC", help="time zone of the calendar (%(default)s)")
    one.add_argument(
        "--port", type=whole_number, default=0, metavar="N", help="(default: a free one; with --in-cluster 8080)"
    )
    one.add_argument("--cacert", metavar="FILE", help="additional CA certificates for the bucket, in PEM")
    add_operator_namespace(one)
    _add_fleet(one)
    one.add_argument("--console-url", default="", metavar="URL", help="with --fleet: of consoles; {} is the cluster")
    one.add_argument("--cluster-name", default="", metavar="NAME", help="(default: the context)")
    one.add_argument("--cluster-color", default="", choices=_COLORS, help="of the header, to tell clusters apart")
    one.add_argument("--no-browser", action="store_true", help="print the URL only")
    add_cluster(one)
    shared = one.add_argument_group("behind an authenticating proxy")
    shared.add_argument("--in-cluster", action="store_true", help="serve every viewer with the token of their request")
    shared.add_argument("--public-url", metavar="URL", help="where browsers find the console: https://HOST[:PORT]")
    shared.add_argument(
        "--token-header",
        choices=("Authorization", "X-Forwarded-Access-Token"),
        default="Authorization",
        help="the only header that is read for a token (default: %(default)s)",
    )
    shared.add_argument("--certificate-authority", metavar="FILE", help="the CA certificates of the API server, in PEM")
    shared.add_argument(
        "--api-server", default="", metavar="URL", help="(default: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT)"
    )
    shared.add_argument("--address", default="", help="where to listen (default: all addresses)")


def _add_fleet(one: argparse.ArgumentParser) -> None:
    one.add_argument("--fleet", action="store_true", help="one page about many clusters: all contexts, or Prometheus")
    one.add_argument(
        "--contexts", action="append", metavar="NAME", help="with --fleet: a context; repeat it (default: all)"
    )
    one.add_argument(
        "--prometheus",
        default="",
        metavar="URL",
        help="with --fleet: read what clusters report to it",
    )


def _refuse_without_fleet(args: argparse.Namespace, *names: str) -> None:
    for name in names:
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')}: only with --fleet")


def _run_console(args: argparse.Namespace) -> int:
    if args.fleet:
        if args.in_cluster:
            raise UsageError("--fleet: not with --in-cluster", "the fleet page reads your own kubeconfig")
        from foresail.console.fleet_server import run_fleet_console  # noqa: PLC0415 - as below

        return run_fleet_console(args)
    _refuse_without_fleet(args, "contexts", "prometheus", "console_url")
    if args.in_cluster:
        from foresail.console.in_cluster import run_in_cluster  # noqa: PLC0415 - as below

        return run_in_cluster(args)
    for name in ("public_url", "certificate_authority", "api_server", "address"):
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')}: only with --in-cluster")
    from foresail.console.server import run_console  # noqa: PLC0415 - the rest of the command starts without it

    return run_console(args)


def add_report(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail report` to the command line."""
    one = commands.add_parser(
        "report",
        help="write coverage, next runs, failed runs, restore checks and gaps as one HTML file",
        description="Writes one HTML file: the coverage of each namespace, next and failed runs, the last restore"
        " checks, and each gap with a command. An administrator's has all namespaces, a tenant's their own."
        " Changes nothing in the cluster.",
        epilog=examples(
            "foresail report --html report.html",
            "foresail report --html report.html --rpo 26h --zone Europe/Berlin",
            "foresail report --html shop.html -n shop",
            "foresail report --fleet --html fleet.html",
        ),
    )
    one.set_defaults(run=_run_report)
    one.add_argument("--html", metavar="FILE", required=True, help="the file to write; - writes to standard output")
    where = one.add_mutually_exclusive_group()
    where.add_argument("-A", "--all-namespaces", action="store_true", help="every namespace but those of the system")
    where.add_argument(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        help="only this one (default: all, or that of the context if you may not list all)",
    )
    _add_fleet(one)
    add_velero_namespace(one)
    add_objective(one)
    one.add_argument("--zone", default="UTC", help="time zone of the calendar (%(default)s)")
    add_cluster(one)


def _run_report(args: argparse.Namespace) -> int:
    if not args.fleet:
        _refuse_without_fleet(args, "contexts", "prometheus")
    from foresail.console.report.run import run_report  # noqa: PLC0415 - the rest of the command starts without it

    return run_report(args)
