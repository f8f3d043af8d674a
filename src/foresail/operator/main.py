"""Puts the operator together: one connection, one controller for each capability, one Lease."""

import gc
import logging
from contextlib import AbstractAsyncContextManager, nullcontext

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
from foresail.primers.controller import Primers
from foresail.primers.reads import dry_run_with, locate_volumes_with
from foresail.proof.checks.controller import RestoreChecks
from foresail.proof.checks.reads import FileReader, SandboxReader
from foresail.proof.facts_watch import PublishedFacts
from foresail.protection.controller import ProtectionByLabel
from foresail.schedules.controller import Schedules
from foresail.schedules.forecast import Forecast
from foresail.selfservice.access.reader import AccessReader
from foresail.selfservice.controller import SelfService
from foresail.selfservice.locations.reader import SecretReader
from foresail.selfservice.queue.window import Limits, no_slots

_log = logging.getLogger(__name__)
_BUFFER = capacity_buffer()
Capability = Schedules | SelfService | Primers | RestoreChecks | ProtectionByLabel | PublishedFacts


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
    found = await client.discover(Discovery)
    if isinstance(found, Failure):
        _log.warning("cannot discover the version of CapacityBuffer, using the default: %s", found)
        return _BUFFER
    return served_kind(found) or _BUFFER


def _tracing(settings: Settings) -> AbstractAsyncContextManager[Tracer | None]:
    if not settings.sends_traces:
        return nullcontext()
    from foresail.kube.otel import exporting  # noqa: PLC0415 - an extra, which need not be installed

    return exporting(settings.identity)


async def _run(
    settings: Settings,
    connection: Connection,
    chosen: list[Capability],
    tracer: Tracer | None,
) -> None:
    if settings.dry_run:
        await dry_run.run(connection, chosen, lambda line: print(line, flush=True))
        return
    config = replica.ReplicaConfig(
        name="foresail",
        identity=settings.identity,
        lease=Key(settings.lease_namespace, settings.lease_name),
        host=settings.host,
        port=settings.port,
        annotations=next(
            (capability.annotations for capability in chosen if isinstance(capability, PublishedFacts)), lambda *_: {}
        ),
    )
    figures = [
        capability.metrics for capability in chosen if not isinstance(capability, Forecast | PublishedFacts)
    ]  # another process has those of the forecast
    await replica.run(connection, chosen, config, figures=figures, tracer=tracer)


def controllers(settings: Settings, client: Client, buffers: Kind = _BUFFER) -> list[Capability]:
    """Return a controller for each capability that is switched on."""
    found: list[Capability] = []
    schedules = None
    if settings.runs_schedules:
        schedules = Schedules(
            settings.velero_namespace,
            settings.schedules,
            settings.velero_dialect,
            lambda: client.skew,
            records_namespaces=settings.records_namespaces,
        )
        schedules.metrics.shows_all = settings.metrics_for_all_schedules
        found.append(schedules)
    if settings.runs_self_service:
        if schedules is None and settings.heeds_schedules:
            schedules = Forecast(settings.velero_namespace, settings.schedules, settings.velero_dialect)
            found.append(schedules)
        limits = _limits(settings, schedules)
        never = (settings.lease_namespace, settings.own_namespace)
        secrets = SecretReader(client) if settings.serves_locations else None
        access = AccessReader(client)
        chart = settings.chart
        where = settings.velero_namespace
        tenants = SelfService(where, never, limits=limits, access=access, secrets=secrets, chart=chart)
        tenants.cluster.skew = lambda: client.skew
        found += [tenants, PublishedFacts(where, lambda: client.skew)]
    if settings.runs_primers:
        found.append(Primers(settings.primers, dry_run_with(client), locate_volumes_with(client), buffers))
    if settings.runs_restore_checks:
        others = (settings.lease_namespace, settings.own_namespace) if settings.serves_tenant_checks else None
        read_files = FileReader(client).run
        read_pods = SandboxReader(client).run
        found.append(RestoreChecks(settings.velero_namespace, read_files, others, read_pods, settings.check_data))
    if settings.runs_protection:
        never = (settings.lease_namespace, settings.own_namespace)
        found.append(ProtectionByLabel(settings.velero_namespace, never, settings.schedules.zone))
    return found


def _limits(settings: Settings, schedules: Schedules | None) -> Limits:
    """Return the limits of the window; the controller of Schedules, or their forecast, provides the next slot."""

    def window() -> int:
        if settings.self_service_window is not None:
            return settings.self_service_window
        return (schedules.concurrency if schedules is not None else 1) + 1

    next_slot = no_slots if schedules is None else schedules.next_slot
    return Limits(window, lambda: settings.self_service_restore_window, next_slot)
