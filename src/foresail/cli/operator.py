"""`foresail operator run`: the operator itself, as a pod or a developer starts it."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from foresail.api.marks import CHECKS_LEASE, LEASES
from foresail.cli.errors import UnreachableError, UsageError
from foresail.cli.options.parser import add_switch, examples
from foresail.cli.options.values import positive, whole_number

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser


def add_operator(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail operator` to the command line."""
    operator = commands.add_parser(
        "operator",
        help="run the operator",
        description="Runs the operator itself, as its Deployment does.",
        epilog=examples("foresail operator run --dry-run"),
    )
    operator.fill = _fill


def _fill(operator: argparse.ArgumentParser) -> None:
    import socket  # noqa: PLC0415 - the rest of the command line starts without it

    from foresail.cli.primer.settings import add_primer_settings  # noqa: PLC0415
    from foresail.cron import Dialect  # noqa: PLC0415

    verbs = operator.add_subparsers(metavar="COMMAND", required=True)
    run = verbs.add_parser(
        "run",
        help="run one replica until SIGTERM",
        description="Runs one replica of the operator until SIGTERM. Several may run: one holds the Lease, the others"
        " wait.",
        epilog=examples(
            "foresail operator run --dry-run",
            "foresail operator run --self-service --velero-namespace backup",
            "foresail operator run --schedules=false --primers --lease-name primers",
        ),
    )
    run.set_defaults(run=_run)
    where = run.add_argument_group("where")
    where.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig (default in a pod: its ServiceAccount)")
    where.add_argument("--context", "--kubecontext", metavar="NAME", help="the context of the kubeconfig")
    where.add_argument(
        "--velero-namespace", default="velero", metavar="NAMESPACE", help="namespace of Velero (default: velero)"
    )
    where.add_argument(
        "--lease-namespace", metavar="NAMESPACE", help="namespace of the Lease (default: Velero's namespace)"
    )
    where.add_argument(
        "--lease-name",
        metavar="NAME",
        help="the Lease, one for all replicas with the same capabilities (default: that of the first one that is on:"
        f" {', '.join(LEASES)})",
    )
    where.add_argument(
        "--identity",
        default=os.environ.get("POD_NAME") or socket.gethostname(),
        help="unique identity of this replica (default: POD_NAME, or the host name)",
    )
    where.add_argument("--host", help="the address for /metrics, /healthz and /readyz (default: all)")
    where.add_argument("--port", type=whole_number, default=8081, help="their port (default: 8081; 0: a free one)")
    capabilities = run.add_argument_group("capabilities")
    for flag, default, meaning in (
        ("--schedules", True, "replace Velero's schedule controller"),
        ("--self-service", False, "let teams back up and restore their own namespaces; its kinds must be installed"),
        ("--primers", False, "hold capacity for CronJobs before they fire; the kind Primer must be installed"),
        ("--restore-checks", False, "restore backups into sandboxes; the kind RestoreCheck must be installed"),
        ("--protection", False, "keep the Schedules of ProtectionClasses; their kinds must be installed"),
        ("--rollback", False, "bring namespaces back to a backup, in place; needs an operator with --self-service"),
    ):
        add_switch(capabilities, flag, meaning, default=default)
    schedules = run.add_argument_group("schedules")
    skip = "default of spec.skipImmediately for new and unpaused Schedules"
    add_switch(schedules, "--schedule-skip-immediately", skip, default=False)
    series = "expose metrics of every Schedule, not only of late, held, failing, invalid or paused ones"
    add_switch(schedules, "--schedule-metrics-for-all", series, default=False)
    schedules.add_argument(
        "--velero-dialect",
        choices=[dialect.value for dialect in Dialect],
        help="Velero's cron dialect, used only if neither Velero nor its image tag reports a version",
    )
    record = "record the UIDs of namespaces in Backups of ProtectionClasses, without which those do not count"
    add_switch(schedules, "--record-namespaces", record, default=False)
    off = "Velero's schedule controller is off, although no Deployment or pod is recognised as a Velero server"
    add_switch(schedules, "--velero-schedules-off", off, default=False)
    schedules.add_argument(
        "--velero-time-zone", default="UTC", metavar="ZONE", help="time zone of Velero's clock (default: UTC)"
    )
    schedules.add_argument(
        "--not-copied",
        action="append",
        metavar="NAME",
        help="a label or annotation that Backups do not copy from their Schedule, or a prefix such as example.com/*;"
        " may be repeated, and replaces the default list",
    )
    schedules.add_argument(
        "--schedules-with-hooks",
        metavar="NAMES",
        help="the Schedules whose runs may have hooks, with commas between them (default: all)",
    )
    tenants = run.add_argument_group("self-service")
    tenants.add_argument(
        "--self-service-window",
        type=whole_number,
        metavar="N",
        help="maximum number of tenants' Backups in Velero at a time; the others wait in a fair queue. 0: no limit"
        " (default: Velero's --concurrent-backups plus 1)",
    )
    tenants.add_argument(
        "--self-service-restore-window",
        type=whole_number,
        default=1,
        metavar="N",
        help="the same for tenants' Restores (default: 1)",
    )
    heed = "hand over no tenant's backup that would still run at the next slot of a Schedule that another process runs"
    add_switch(tenants, "--heed-schedules", heed, default=False)
    _add_limits(tenants)
    own = "let policies allow tenants buckets of their own; needs selfService.locations.enabled of the chart"
    add_switch(tenants, "--tenant-locations", own, default=False)
    allowed = "serve RestoreChecks in tenants' namespaces, as policies allow; needs --restore-checks"
    add_switch(tenants, "--tenant-checks", allowed, default=False)
    tenants.add_argument(
        "--tenant-checks-at-once",
        type=positive,
        metavar="N",
        help="RestoreChecks of tenants that run at a time, one of a namespace (default: 4)",
    )
    checks = run.add_argument_group("restore checks")
    checks.add_argument(
        "--check-canary-image",
        metavar="IMAGE",
        help="image with `foresail canary`, for RestoreChecks with depth Data; without it that depth is off;"
        " needs proof.data.enabled of the chart",
    )
    checks.add_argument(
        "--check-canary-target",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="what the canary must not reach either; may be repeated",
    )
    checks.add_argument(
        "--check-account",
        metavar="NAMESPACE/NAME",
        help="the operator's ServiceAccount, which gets its rights in sandboxes (default: foresail-checks in its own or"
        " Velero's namespace)",
    )
    add_primer_settings(run)
    run.add_argument("--dry-run", action="store_true", help="print planned actions without writes, Events or a Lease")
    traces = (
        "send a trace of each reconcile to the OpenTelemetry collector that OTEL_EXPORTER_OTLP_ENDPOINT names;"
        " needs foresail[otel]"
    )
    add_switch(run, "--traces", traces, default=False)
    run.add_argument(
        "--log-level",
        default="info",
        choices=["debug", "info", "warning", "error"],
        help="minimum level to log (%(default)s)",
    )


def _names(text: str | None) -> tuple[str, ...] | None:
    """Return the names that a flag has; None if it is not set."""
    return tuple(name for name in text.split(",") if name) if text is not None else None


def _add_limits(tenants: "argparse._ArgumentGroup") -> None:
    """Add what the chart lets policies allow: the API server refuses the operator anything beyond it."""
    add_switch(tenants, "--self-service-hooks", "let policies allow hooks", default=True)
    update = "let policies allow existingResourcePolicy: update"
    add_switch(tenants, "--self-service-update-existing", update, default=True)
    elsewhere = "let policies allow restores into other namespaces of the requester"
    add_switch(tenants, "--self-service-other-namespaces", elsewhere, default=True)
    classes = "let ProtectionClasses allow restores from their backups"
    add_switch(tenants, "--self-service-from-protection", classes, default=True)
    volumes = "let policies allow Rollbacks that replace volumes"
    add_switch(tenants, "--rollback-volumes", volumes, default=False)
    for flag, meaning, otherwise in (
        ("--self-service-resource-policies", "ConfigMaps that policies may allow as resourcePolicy", "any"),
        ("--self-service-resource-modifiers", "ConfigMaps that policies may allow as resourceModifier", "any"),
        ("--self-service-namespaces", "namespaces that may have self-service, by name or prefix (team-*)", "all"),
        ("--self-service-excluded-namespaces", "namespaces that never have it, by name or prefix", "none"),
        ("--tenant-location-endpoints", "endpoints of tenants' buckets", "any that a policy allows"),
    ):
        text = f"{meaning}, with commas between them (default: {otherwise})"
        tenants.add_argument(flag, metavar="NAMES", help=text)


def _chart_limits(args: argparse.Namespace) -> Any:  # noqa: ANN401 - imported late, see above
    from foresail.tenancy.policies import ChartLimits, Reach  # noqa: PLC0415

    return ChartLimits(
        hooks=args.self_service_hooks,
        update_existing=args.self_service_update_existing,
        other_namespaces=args.self_service_other_namespaces,
        from_protection=args.self_service_from_protection,
        rollback_volumes=args.rollback_volumes,
        resource_policies=_names(args.self_service_resource_policies),
        resource_modifiers=_names(args.self_service_resource_modifiers),
        endpoints=_names(args.tenant_location_endpoints) or (),
        out_of_reach=Reach(
            _names(args.self_service_excluded_namespaces) or (), _names(args.self_service_namespaces) or ()
        ),
    )


def _run(args: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415 - the rest of the command line starts without it
    import logging  # noqa: PLC0415

    from foresail.kube.connect import ConnectError  # noqa: PLC0415
    from foresail.kube.logs import log_as_json  # noqa: PLC0415
    from foresail.operator.main import run  # noqa: PLC0415

    log_as_json(getattr(logging, args.log_level.upper()))
    try:
        asyncio.run(run(_settings(args)))
    except ConnectError as error:
        raise UnreachableError(str(error), hint="specify a kubeconfig with --kubeconfig, or run it in a pod") from error
    return 0


def _data_settings(args: argparse.Namespace, namespace: str) -> Any:  # noqa: ANN401 - imported late, see above
    """Return how pods of backups start; None if depth Data is off."""
    from foresail.plan import Key  # noqa: PLC0415
    from foresail.proof.checks.view import DataSettings  # noqa: PLC0415

    if not args.check_canary_image:
        return None
    wrong = next((item for item in args.check_canary_target if not _is_target(item)), None)
    if wrong is not None:
        raise UsageError(f"--check-canary-target {wrong}: not HOST:PORT", hint="write for example 192.0.2.1:443")
    account = args.check_account or f"{namespace}/{CHECKS_LEASE}"
    where, slash, name = account.partition("/")
    if not (where and slash and name):
        raise UsageError(
            f"--check-account {account}: not NAMESPACE/NAME", hint="write for example velero/foresail-checks"
        )
    return DataSettings(args.check_canary_image, Key(where, name), tuple(args.check_canary_target))


def _is_target(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdecimal() and "=" not in text and "," not in text


def _schedule_settings(args: argparse.Namespace) -> Any:  # noqa: ANN401 - imported late, see above
    from foresail.cron import CronError  # noqa: PLC0415
    from foresail.cron.zone_names import validate_zone_name  # noqa: PLC0415
    from foresail.schedules.settings import NOT_COPIED, Settings  # noqa: PLC0415

    try:
        zone = validate_zone_name(args.velero_time_zone)
    except CronError as error:
        raise UsageError(f"--velero-time-zone: {error}") from error
    return Settings(
        skip_immediately=args.schedule_skip_immediately,
        zone=zone,
        not_copied=tuple(args.not_copied or NOT_COPIED),
        velero_schedules_off=args.velero_schedules_off,
        with_hooks=_names(args.schedules_with_hooks),
    )


def _settings(args: argparse.Namespace) -> Any:  # noqa: ANN401 - imported late, see above
    from importlib.util import find_spec  # noqa: PLC0415

    from foresail.cli.primer.settings import primer_settings  # noqa: PLC0415
    from foresail.cron import Dialect  # noqa: PLC0415
    from foresail.operator.settings import Settings  # noqa: PLC0415

    is_on = (args.schedules, args.self_service, args.primers, args.restore_checks, args.protection, args.rollback)
    if not any(is_on):
        others = "--self-service, --primers, --restore-checks, --protection or --rollback"
        hint = f"leave out --schedules=false, or add {others}"
        raise UsageError("no capability is enabled", hint=hint)
    if args.traces and find_spec("opentelemetry") is None:
        raise UsageError("--traces: OpenTelemetry is not installed", hint="install foresail[otel], or its image")
    if args.check_canary_image and not args.restore_checks:
        raise UsageError("--check-canary-image needs --restore-checks", hint="add --restore-checks")
    own_namespace = os.environ.get("POD_NAMESPACE", "")
    return Settings(
        identity=args.identity,
        velero_namespace=args.velero_namespace,
        lease_namespace=args.lease_namespace or args.velero_namespace,
        lease_name=args.lease_name or next(name for name, on in zip(LEASES, is_on, strict=True) if on),
        own_namespace=own_namespace,
        kubeconfig=args.kubeconfig,
        context=args.context,
        host=args.host,
        port=args.port,
        dry_run=args.dry_run,
        sends_traces=args.traces,
        runs_schedules=args.schedules,
        metrics_for_all_schedules=args.schedule_metrics_for_all,
        runs_self_service=args.self_service,
        runs_primers=args.primers,
        runs_restore_checks=args.restore_checks,
        runs_protection=args.protection,
        runs_rollbacks=args.rollback,
        records_namespaces=args.record_namespaces,
        serves_tenant_checks=args.tenant_checks,
        **({"tenant_checks_at_once": args.tenant_checks_at_once} if args.tenant_checks_at_once else {}),
        check_data=_data_settings(args, own_namespace or args.velero_namespace),
        heeds_schedules=args.heed_schedules,
        chart=_chart_limits(args),
        self_service_window=args.self_service_window,
        self_service_restore_window=args.self_service_restore_window,
        serves_locations=args.tenant_locations,
        velero_dialect=Dialect(args.velero_dialect) if args.velero_dialect else None,
        schedules=_schedule_settings(args),
        **({"primers": primer_settings(args)} if args.primers else {}),
    )
