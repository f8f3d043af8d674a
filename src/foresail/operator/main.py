"""Puts the operator together: one connection, one controller for each capability, one Lease."""

import gc
import logging
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from foresail.api.authorization import Discovery
from foresail.api.capacity_buffers import capacity_buffer, served_kind
from foresail.kube import dry_run, replica
from foresail.kube.client import Client
from foresail.kube.connect import Connection, connect
from foresail.kube.failures import Failure
from foresail.kube.lease import HistoryRewoundError
from foresail.kube.tracing import Tracer
from foresail.operator.settings import Settings
from foresail.plan import Key, Kind

if TYPE_CHECKING:  # a process imports only the capabilities that it runs: the others would take 8 MiB
    from collections.abc import Iterator

    from foresail.primers.controller import Primers
    from foresail.proof.checks.controller import RestoreChecks
    from foresail.proof.facts_watch import PublishedFacts
    from foresail.protection.controller import ProtectionByLabel
    from foresail.rollback.controller import Rollbacks
    from foresail.schedules.controller import Schedules
    from foresail.selfservice.controller import SelfService
    from foresail.selfservice.queue.window import Limits

    Capability = Schedules | SelfService | Primers | RestoreChecks | ProtectionByLabel | Rollbacks | PublishedFacts

_log = logging.getLogger(__name__)
_BUFFER = capacity_buffer()


async def run(settings: Settings) -> None:
    """Run this replica until SIGTERM; if etcd is restored meanwhile, begin anew and remember nothing."""
    while True:
        try:
            return await _run_once(settings)
        except HistoryRewoundError as problem:
            _log.warning("starting again: %s", problem)
            gc.unfreeze()  # the stores, which are read again


async def _run_once(settings: Settings) -> None:
    connection = await connect(settings.kubeconfig, settings.context)
    async with _tracing(settings) as tracer, Client(connection, tracer=tracer) as apart:
        buffers = await _buffer_kind(apart) if settings.runs_primers else _BUFFER
        await _run(settings, connection, controllers(settings, apart, buffers), tracer)


async def _buffer_kind(client: Client) -> Kind:
    """Return CapacityBuffer in the version that is served now; another one is found at the next start."""
    discovery = await client.discover(Discovery)
    if isinstance(discovery, Failure):
        _log.warning("cannot discover the version of CapacityBuffer, using the default: %s", discovery)
        return _BUFFER
    return served_kind(discovery) or _BUFFER


def _tracing(settings: Settings) -> AbstractAsyncContextManager[Tracer | None]:
    if not settings.sends_traces:
        return nullcontext()
    from foresail.kube.otel import exporting  # noqa: PLC0415 - an extra, which need not be installed

    return exporting(settings.identity)


async def _run(
    settings: Settings,
    connection: Connection,
    chosen: "list[Capability]",
    tracer: Tracer | None,
) -> None:
    if settings.dry_run:
        await dry_run.run(connection, chosen, lambda line: print(line, flush=True))
        return
    figures, published = list[Any](chosen), list["PublishedFacts"]()
    if settings.runs_self_service:
        from foresail.proof.facts_watch import PublishedFacts  # noqa: PLC0415 - see above
        from foresail.schedules.forecast import Forecast  # noqa: PLC0415

        # Another process has the figures of the forecast.
        figures = [capability for capability in chosen if not isinstance(capability, Forecast | PublishedFacts)]
        published = [capability for capability in chosen if isinstance(capability, PublishedFacts)]
    config = replica.ReplicaConfig(
        name="foresail",
        identity=settings.identity,
        lease=Key(settings.lease_namespace, settings.lease_name),
        host=settings.host,
        port=settings.port,
        annotations=published[0].annotations if published else lambda *_: {},
    )
    await replica.run(connection, chosen, config, figures=[capability.metrics for capability in figures], tracer=tracer)


def controllers(settings: Settings, client: Client, buffers: Kind = _BUFFER) -> "list[Capability]":
    """Return a controller for each capability that is switched on."""
    capabilities: list[Capability] = []
    schedules = None
    if settings.runs_schedules:
        schedules = _schedules(settings, client)
        capabilities.append(schedules)
    if settings.runs_self_service:
        capabilities += _self_service(settings, client, schedules)
    if settings.runs_primers:
        capabilities.append(_primers(settings, client, buffers))
    if settings.runs_restore_checks:
        capabilities.append(_restore_checks(settings, client))
    if settings.runs_protection:
        capabilities.append(_protection(settings, client))
    if settings.runs_rollbacks:
        capabilities.append(_rollbacks(settings, client))
    return capabilities


def _schedules(settings: Settings, client: Client) -> "Schedules":
    from foresail.schedules.controller import Schedules  # noqa: PLC0415 - see above

    schedules = Schedules(
        settings.velero_namespace,
        settings.schedules,
        settings.velero_dialect,
        lambda: client.skew,
        records_namespaces=settings.records_namespaces,
    )
    schedules.metrics.shows_all = settings.metrics_for_all_schedules
    return schedules


def _self_service(settings: Settings, client: Client, schedules: "Schedules | None") -> "Iterator[Capability]":
    from foresail.proof.facts_watch import PublishedFacts  # noqa: PLC0415 - see above
    from foresail.schedules.forecast import Forecast  # noqa: PLC0415
    from foresail.selfservice.access.reader import AccessReader  # noqa: PLC0415
    from foresail.selfservice.controller import SelfService  # noqa: PLC0415
    from foresail.selfservice.locations.reader import SecretReader  # noqa: PLC0415

    where = settings.velero_namespace
    if schedules is None and settings.heeds_schedules:
        schedules = Forecast(where, settings.schedules, settings.velero_dialect)
        yield schedules
    limits = _limits(settings, schedules)
    secrets = SecretReader(client) if settings.serves_locations else None
    access = AccessReader(client)
    never = _own_namespaces(settings)
    tenants = SelfService(where, never, limits=limits, access=access, secrets=secrets, chart=settings.chart)
    tenants.cluster.skew = lambda: client.skew
    yield tenants
    yield PublishedFacts(where, lambda: client.skew)


def _primers(settings: Settings, client: Client, buffers: Kind) -> "Primers":
    from foresail.primers.controller import Primers  # noqa: PLC0415 - see above
    from foresail.primers.reads import dry_run_with, locate_volumes_with  # noqa: PLC0415

    return Primers(settings.primers, dry_run_with(client), locate_volumes_with(client), buffers)


def _restore_checks(settings: Settings, client: Client) -> "RestoreChecks":
    from foresail.proof.checks.controller import RestoreChecks  # noqa: PLC0415 - see above
    from foresail.proof.checks.reads import FileReader, SandboxReader  # noqa: PLC0415

    others = _own_namespaces(settings) if settings.serves_tenant_checks else None
    read_files = FileReader(client).run
    read_pods = SandboxReader(client).run
    where, at_once = settings.velero_namespace, settings.tenant_checks_at_once
    return RestoreChecks(where, read_files, others, read_pods, settings.check_data, at_once)


def _protection(settings: Settings, client: Client) -> "ProtectionByLabel":
    from foresail.protection.controller import ProtectionByLabel  # noqa: PLC0415 - see above

    zone = settings.schedules.zone
    return ProtectionByLabel(settings.velero_namespace, _own_namespaces(settings), zone, lambda: client.skew)


def _rollbacks(settings: Settings, client: Client) -> "Rollbacks":
    from foresail.rollback.controller import Rollbacks  # noqa: PLC0415 - see above
    from foresail.rollback.reads import SurveyReader  # noqa: PLC0415

    where = settings.velero_namespace
    return Rollbacks(where, SurveyReader(client, where).run, _own_namespaces(settings), settings.chart)


def _own_namespaces(settings: Settings) -> tuple[str, str]:
    return settings.lease_namespace, settings.own_namespace


def _limits(settings: Settings, schedules: "Schedules | None") -> "Limits":
    """Return the limits of the window; the controller of Schedules, or their forecast, provides the next slot."""
    from foresail.selfservice.queue.window import Limits, no_slots  # noqa: PLC0415 - see above

    def window() -> int:
        if settings.self_service_window is not None:
            return settings.self_service_window
        return (schedules.concurrency if schedules is not None else 1) + 1

    next_slot = no_slots if schedules is None else schedules.next_slot
    return Limits(window, lambda: settings.self_service_restore_window, next_slot)
