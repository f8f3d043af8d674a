"""Reads a fleet: each cluster by its context of the kubeconfig with the viewer's own rights, or all from Prometheus."""

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from urllib.parse import urlsplit

import aiohttp
import msgspec

from foresail.cli.access.cluster import connected
from foresail.cli.coverage.own_snapshot import is_administrator
from foresail.cli.errors import CommandError, UsageError
from foresail.console.report.fleet import (
    QUERIES,
    ClusterRow,
    Fleet,
    fleet_of,
    named,
    row_of_figures,
    rows_of_series,
    silent,
)
from foresail.console.report.snapshot import Wanted, read_cluster
from foresail.kube.clock import now
from foresail.kube.connect import ConnectError, cluster_of_context, contexts_of

AT_ONCE = 8
"""Clusters that are read at the same time."""

SECONDS = 60.0
"""How long one cluster may take, and Prometheus for one question."""

LARGEST = 16 << 20
"""Bytes of one answer of Prometheus."""

ReadFleet = Callable[[], Awaitable[Fleet]]


class _Result(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    result: list[_Result] = msgspec.field(default_factory=list)


class _Answer(msgspec.Struct):
    data: _Data = msgspec.field(default_factory=_Data)


_answer = msgspec.json.Decoder(_Answer)


def reader_of(args: Namespace, wanted: Wanted) -> ReadFleet:
    """Return what reads the fleet that the options describe."""
    if args.prometheus:
        parts = urlsplit(args.prometheus)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"--prometheus {args.prometheus!r}: not a URL", "such as http://prometheus.example.com:9090"
            )
        return lambda: read_prometheus(args.prometheus, now())
    try:
        contexts = named(contexts_of(args.kubeconfig), args.contexts or ())
    except ConnectError as error:
        raise UsageError(str(error), "specify a kubeconfig with --kubeconfig") from error
    if not contexts:
        raise UsageError("the kubeconfig has none of these contexts", "list them: kubectl config get-contexts")
    return lambda: read_contexts(args.kubeconfig, contexts, wanted, now())


async def read_contexts(kubeconfig: str | None, contexts: Sequence[str], wanted: Wanted, at: datetime) -> Fleet:
    """Read every cluster, some at a time; one that does not answer hides no other."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(context: str) -> ClusterRow:
        async with turns:
            try:
                async with asyncio.timeout(SECONDS):
                    return await _read_context(kubeconfig, context, wanted)
            except TimeoutError:
                return silent(context, f"it has not answered within {SECONDS:.0f} s")
            except CommandError as error:
                return silent(context, error.problem)

    rows = await asyncio.gather(*map(one, contexts))
    return fleet_of(rows, at, f"{len(contexts)} contexts of the kubeconfig")


async def _read_context(kubeconfig: str | None, context: str, wanted: Wanted) -> ClusterRow:
    try:
        _, server = cluster_of_context(kubeconfig, context)
    except ConnectError as error:
        return silent(context, str(error))
    async with connected(Namespace(kubeconfig=kubeconfig, context=context)) as cluster:
        if not await is_administrator(cluster, wanted.velero_namespace):
            return ClusterRow(context, "Unknown", "you may not read the whole cluster", server=server)
        return row_of_figures(context, server, await read_cluster(cluster, wanted, now()))


async def read_prometheus(url: str, at: datetime) -> Fleet:
    """Ask Prometheus or Thanos for what the clusters have reported."""
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        answers = await asyncio.gather(*(_ask(session, url, query) for query in QUERIES))
    return fleet_of(rows_of_series(dict(zip(QUERIES, answers, strict=True)), at), at, "Prometheus")


async def _ask(session: aiohttp.ClientSession, url: str, query: str) -> dict[str, float]:
    """Return the value of each cluster."""
    address = f"{url.rstrip('/')}/api/v1/query"
    try:
        async with session.get(address, params={"query": query}, allow_redirects=False) as answer:
            body = b""
            while len(body) <= LARGEST and not answer.content.at_eof():
                body += await answer.content.read(LARGEST + 1 - len(body))
            status = answer.status
    except (aiohttp.ClientError, TimeoutError) as error:
        raise CommandError(f"Prometheus does not answer: {type(error).__name__}", "check --prometheus") from error
    if status != 200 or len(body) > LARGEST:  # noqa: PLR2004 - OK
        raise CommandError(f"Prometheus answers with {status}, or with too much", "check --prometheus and the rules")
    try:
        results = _answer.decode(body).data.result
        return {one.metric.get("cluster", ""): float(one.value[1]) for one in results}
    except (msgspec.DecodeError, ValueError) as error:
        raise CommandError("Prometheus answers with something else than figures", "check --prometheus") from error
