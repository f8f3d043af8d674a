"""The testbed's command line: `python -m testbed --help`."""

import argparse
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Never

from testbed.build import build
from testbed.cluster import Cluster, components_of, remove
from testbed.command import spelled
from testbed.components import COMPONENTS
from testbed.errors import TestbedError
from testbed.node import images, needs
from testbed.site import Options, known, names

_VELERO = {"1.18": "velero", "1.17": "velero-1.17"}
_KARPENTER = {"1.14": "karpenter", "1.15": "karpenter-1.15"}
_KUBERNETES = {"1.36": "kube", "1.34": "kube-1.34", "1.35": "kube-1.35", "1.37": "kube-1.37"}
_EMULATED = ("1.33", "1.34", "1.35")  # by Kubernetes 1.36


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; data goes to standard output, everything else to standard error."""
    args = _parser().parse_args(arguments)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _as_interrupt)
    try:
        code: int = args.run(args)
    except TestbedError as error:
        _say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        _say("interrupted: what had been started is gone")
        return 130
    return code


def _as_interrupt(_number: int, _frame: FrameType | None) -> Never:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog=spelled(),
        description="Real Kubernetes, Velero and S3 on this machine, without containers, on loopback only.",
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    one = commands.add_parser("build", help="build what is missing of the programs")
    usual = [name for name, component in COMPONENTS.items() if component.is_usual]
    one.add_argument("components", nargs="*", metavar="COMPONENT", help=f"all by default: {', '.join(usual)}")
    one.add_argument("--node", action="store_true", help="what a real node needs besides, its images included")
    one.set_defaults(run=_build)

    one = commands.add_parser("needs", help="print what this machine lacks for a real node; exit code 1 if anything")
    one.add_argument("--packages", action="store_true", help="print the packages of a real node instead")
    one.set_defaults(run=_needs)

    one = commands.add_parser("up", help="bring a cluster up and return when it is ready")
    _add_name(one)
    one.add_argument(
        "--velero",
        nargs="?",
        const="1.18",
        choices=_VELERO,
        help="with Velero, its schedule controller off, and an S3 server (1.18 if no version is given)",
    )
    one.add_argument(
        "--kubernetes",
        default="1.36",
        choices=_KUBERNETES,
        help="with a control plane of that version (%(default)s); another is built when it is first used",
    )
    one.add_argument(
        "--emulate",
        default="",
        choices=_EMULATED,
        help="with the kinds and features of an older version, emulated by the control plane of 1.36",
    )
    one.add_argument("--nodes", type=int, default=0, metavar="N", help="with N ready nodes, played by KWOK")
    one.add_argument(
        "--flux", action="store_true", help="with Flux's controllers, which need --velero for its S3 server"
    )
    one.add_argument(
        "--karpenter",
        nargs="?",
        const="1.14",
        choices=_KARPENTER,
        help="with Karpenter, which makes nodes when pods need them (1.14 if no version is given)",
    )
    one.add_argument(
        "--node-seconds",
        type=int,
        default=Options().node_seconds,
        metavar="S",
        help="how long a node of Karpenter's takes to become ready (%(default)s)",
    )
    one.add_argument(
        "--capacity-buffers", action="store_true", help="with Karpenter's feature gate CapacityBuffer, for --karpenter"
    )
    one.add_argument(
        "--node",
        action="store_true",
        help="with a real node, whose pods are containers, Velero's included; needs root and a few packages",
    )
    one.add_argument(
        "--csi",
        action="store_true",
        help="with volumes on the real node that have snapshots, by the CSI host-path driver, for --node",
    )
    one.add_argument(
        "--ha",
        action="store_true",
        help="with three etcd members, three API servers behind one address, and two of each other server",
    )
    one.add_argument("--audit", action="store_true", help="with the API server's audit log")
    one.set_defaults(run=_up)

    one = commands.add_parser("down", help="end a cluster: no process, no port and no file of it is left")
    which = one.add_mutually_exclusive_group()
    _add_name(which)
    which.add_argument("--all", action="store_true", help="every cluster of this user")
    which.add_argument("--orphaned", action="store_true", help="clusters whose test run was killed")
    one.set_defaults(run=_down)

    one = commands.add_parser("status", help="show the clusters and what runs in them")
    one.set_defaults(run=_status)

    one = commands.add_parser("kubeconfig", help="print the path of the administrator's kubeconfig")
    _add_name(one)
    one.set_defaults(run=_kubeconfig)

    one = commands.add_parser("env", help=f'print shell lines: eval "$({spelled("env")})"')
    _add_name(one)
    one.set_defaults(run=_env)

    one = commands.add_parser("logs", help="print what a component said")
    one.add_argument("component", metavar="COMPONENT", help="as listed by `status`")
    _add_name(one)
    one.set_defaults(run=_logs)
    return top


def _add_name(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--name", default="default", help="of the cluster, if there are several (%(default)s)")


def _build(args: argparse.Namespace) -> int:
    usual = [name for name, component in COMPONENTS.items() if component.is_usual]
    if args.node:
        needs.require()
        build([*args.components, *components_of(Options(node=True, csi=True))], _say)
        images.build_images(_say)
        images.build_base(_say)
        images.build_postgres(_say)
    else:
        build(args.components or usual, _say)
    return 0


def _needs(args: argparse.Namespace) -> int:
    if args.packages:
        print(*needs.PACKAGES.values())
        return 0
    lacks = needs.missing()
    for each in lacks:
        print(each)
    return 1 if lacks else 0


def _up(args: argparse.Namespace) -> int:
    options = Options(
        velero=_VELERO[args.velero] if args.velero else None,
        kubernetes=_KUBERNETES[args.kubernetes],
        emulate=args.emulate,
        nodes=args.nodes,
        karpenter=_KARPENTER[args.karpenter] if args.karpenter else None,
        flux=args.flux,
        audit=args.audit,
        node_seconds=args.node_seconds,
        capacity_buffers=args.capacity_buffers,
        node=args.node,
        csi=args.csi,
        ha=args.ha,
    )
    cluster = Cluster.create(args.name, options, say=_say)
    at = [] if args.name == "default" else ["--name", args.name]
    commands = " and ".join(sorted(link.name for link in cluster.site.programs.iterdir()))
    _say(f'to use {commands} with it:  eval "$({spelled("env", *at)})"')
    _say(f"to end it:  {spelled('down', *at)}")
    return 0


def _down(args: argparse.Namespace) -> int:
    if args.orphaned:
        ended = [site.name for site in known() if site.is_orphaned]
    else:
        ended = names() if args.all else [args.name]
    for name in ended:
        remove(name)
        _say(f"of cluster {name!r} nothing is left")
    return 0


def _status(_chosen: argparse.Namespace) -> int:
    for site in known():
        cluster = Cluster(site)
        print(f"{site.name}  {cluster.server}  {cluster.folder}")
        for component, pids in cluster.status().items():
            print(f"  {component:<24} {' '.join(map(str, pids)) or 'ended'}")
    return 0


def _kubeconfig(args: argparse.Namespace) -> int:
    print(Cluster.open(args.name).kubeconfig)
    return 0


def _env(args: argparse.Namespace) -> int:
    cluster = Cluster.open(args.name)
    print(f"export KUBECONFIG='{cluster.kubeconfig}'")
    print(f"export PATH='{cluster.site.programs}':\"$PATH\"")
    return 0


def _logs(args: argparse.Namespace) -> int:
    log = Cluster.open(args.name).log(args.component)
    sys.stdout.write(log.read_text(errors="replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
