"""The arguments of `foresail install` and `foresail uninstall`; each imports its work only when it runs."""

import argparse
from typing import TYPE_CHECKING

from foresail.api.pods import PAUSE_IMAGE
from foresail.cli.options.parser import CLIENT, SERVER, ServerDryRunOption, examples, true_or_false
from foresail.cli.options.shared import add_velero_and_cluster

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser

_TRIED = "server: the API server validates every write and stores nothing"


def add_install(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail install` and `foresail uninstall` to the command line."""
    install = commands.add_parser(
        "install",
        help="install Foresail beside Velero",
        description="Installs Foresail into Velero's namespace and takes over Velero's Schedules. When the operator"
        " leads, Velero's schedule controller is switched off; if that fails, it is switched on again. If Helm,"
        " Argo CD, Flux or OLM manages Velero, the command prints the change and waits for it. Re-running is safe:"
        " only differences are applied, and what is not named stays as installed."
        " An option with =false switches a capability off, after a question, and releases what it holds.",
        epilog=examples(
            "foresail install --image example.com/foresail:0.1.0 --dry-run",
            "foresail install --image example.com/foresail:0.1.0",
            "foresail install --self-service --monitoring",
            "foresail install --tenant-locations",
            "foresail install --primers=false",
        ),
    )
    install.set_defaults(run=_install)
    install.fill = _fill_install
    uninstall = commands.add_parser(
        "uninstall",
        help="give the Schedules back to Velero, and remove Foresail",
        description="Switches Velero's schedule controller on again, then removes everything that `foresail install`"
        " created. If another tool manages Velero, the command prints the change and waits for it. Foresail's kinds and"
        " their objects stay unless --crds is given. Backups always stay.",
        epilog=examples("foresail uninstall --dry-run", "foresail uninstall", "foresail uninstall --crds"),
    )
    uninstall.set_defaults(run=_uninstall)
    uninstall.fill = _fill_uninstall


def _fill_install(one: argparse.ArgumentParser) -> None:
    _fill_common(one)
    one.add_argument(
        "--dry-run",
        action=ServerDryRunOption,
        default="",
        choices=[CLIENT, SERVER],
        help=f"{_TRIED}. client: print the manifests, without a cluster. (alone it means server)",
    )
    for flag, at_first, meaning in (
        ("--schedules", "true", "replace Velero's schedule controller"),
        ("--self-service", "false", "let teams back up and restore their own namespaces"),
        ("--tenant-locations", "false", "let policies allow teams buckets of their own; part of self-service"),
        (
            "--download-contents",
            "false",
            "let policies allow teams to download what is in their backups, Secrets included; part of self-service",
        ),
        (
            "--self-service-hooks",
            "false",
            "let policies allow teams hooks, commands in their pods; part of self-service",
        ),
        (
            "--self-service-other-namespaces",
            "false",
            "let policies allow teams restores into other namespaces of theirs; part of self-service",
        ),
        (
            "--self-service-from-protection",
            "false",
            "let ProtectionClasses allow teams restores from their backups; part of self-service",
        ),
        ("--primers", "false", "hold capacity for CronJobs before they fire"),
        ("--restore-checks", "false", "restore backups into fenced sandbox namespaces, and compare"),
        ("--protection", "false", "back up namespaces by the class that their label names; needs --schedules"),
        ("--rollback", "false", "let teams roll their namespaces back to a backup, in place; needs --self-service"),
        ("--rollback-volumes", "false", "let policies allow rollbacks that replace volumes; part of rollback"),
        ("--schedule-skip-immediately", "false", "default of spec.skipImmediately for new and unpaused Schedules"),
        ("--monitoring", "false", "install alert rules and a ServiceMonitor for the Prometheus operator"),
    ):
        _add_switch(one, flag, meaning, at_first)
    one.add_argument(
        "--image", help="the operator's image (default: as installed; required at first, because none is published)"
    )
    one.add_argument(
        "--primer-pause-image",
        metavar="IMAGE",
        help=f"image of placeholders, preferably by digest (default: as installed, at first {PAUSE_IMAGE})",
    )
    one.add_argument(
        "--monitoring-label",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="label them, for a Prometheus that selects by labels: release=kube-prometheus-stack; may be repeated"
        " (default: as installed)",
    )
    one.add_argument(
        "--runbook-url",
        metavar="URL",
        help="where your readers open docs/runbooks.md; each alert then links to its section (default: as installed,"
        " at first those of the release)",
    )
    one.add_argument("--confirm", action="store_true", help="switch a capability off without asking")


def _add_switch(one: argparse.ArgumentParser, flag: str, meaning: str, at_first: str) -> None:
    """Add a switch that stays as it is in the cluster unless it is given."""
    text = f"{meaning} (default: as installed, at first {at_first})"
    one.add_argument(flag, type=true_or_false, nargs="?", const=True, metavar="true|false", help=text)


def _fill_uninstall(one: argparse.ArgumentParser) -> None:
    _fill_common(one)
    one.add_argument(
        "--dry-run",
        action=ServerDryRunOption,
        default="",
        choices=[SERVER],
        help=f"{_TRIED} (alone it means server)",
    )
    one.add_argument(
        "--leave-schedules-stopped",
        action="store_true",
        help="remove Foresail even if Velero's schedule controller stays off; no Schedule runs then",
    )
    one.add_argument("--crds", action="store_true", help="also delete Foresail's kinds with all their objects")
    one.add_argument("--confirm", action="store_true", help="with --crds: do not ask for confirmation")


def _fill_common(one: argparse.ArgumentParser) -> None:
    add_velero_and_cluster(one, "namespace of Velero and Foresail")
    one.add_argument(
        "--timeout",
        default="10m",
        metavar="DURATION",
        help="maximum time to wait in total; Velero's rollout, and undoing it, may take two minutes more each"
        " (default: 10m)",
    )


def _install(args: argparse.Namespace) -> int:
    from foresail.cli.install.install import run_install

    return run_install(args)


def _uninstall(args: argparse.Namespace) -> int:
    from foresail.cli.install.uninstall import run_uninstall

    return run_uninstall(args)
