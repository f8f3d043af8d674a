"""The console with 5,000 namespaces and backups, and with 50 viewers at once: `make bench-console`, also `SIZE=0.1`.

The in-cluster console runs as its own process against a real API server; every viewer has a token of their own and
follows the page that they look at. The last line is one JSON object. It fails if a figure misses its bound.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import cycle
from random import Random
from typing import Any

import aiohttp
import msgspec

from bench import MeasurementError, fleet_page
from bench.figures import Bounds, verdict
from bench.processes import Process, free_port
from bench.selfservice.world import create_namespaces, install_policy, world
from bench.writing import create_all, write_all
from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.plan import Body, Key, Kind
from testbed import Cluster

ROWS, VIEWERS, SECONDS = 5_000, 50, 90.0
ADMINISTRATORS = 5
CROWDED = "team-0000"
"""The namespace that has as many backups as there are namespaces."""

THINK = 10.0
"""Seconds between two clicks of a viewer, on average."""

HOST = "console.example.com"
_VELERO = "velero"
_ACCOUNT, _BINDING = Kind("", "v1", "serviceaccounts", "ServiceAccount"), "rbac.authorization.k8s.io"
_ROLE_BINDING = Kind(_BINDING, "v1", "rolebindings", "RoleBinding")

BOUNDS: Bounds = {
    "first_page_s is at most 1": lambda f: f["first_page_s"] <= 1,
    "search_s is at most 1": lambda f: f["search_s"] <= 1,
    "backups_page_s is at most 1": lambda f: f["backups_page_s"] <= 1,
    "viewers_p95_ms is at most 500": lambda f: f["viewers_p95_ms"] <= 500,
    "peak_mib is at most 150": lambda f: f["peak_mib"] <= 150,
    "failed is 0": lambda f: f["failed"] == 0,
    "overview_kb is at most 100": lambda f: f["overview_kb"] <= 100,
    **fleet_page.BOUNDS,
}


def team(number: int) -> str:
    """Return the namespace of a team."""
    return f"team-{number:04}"


def populate(cluster: Cluster, rows: int, viewers: int) -> None:
    """Create namespaces, completed backups of Velero and of tenants, and the viewers with their rights."""
    create_namespaces(cluster, [team(number) for number in range(rows)])
    started = now() - timedelta(hours=2)
    ended = {
        "phase": "Completed",
        "startTimestamp": stamp(started),
        "progress": {"totalItems": 40, "itemsBackedUp": 40},
    }
    expires = {"expiration": stamp(started + timedelta(days=30))}
    create_all(
        cluster,
        velero.BACKUP,
        (
            _named(
                velero.BACKUP,
                Key(_VELERO, f"nightly-{number:04}"),
                spec={"includedNamespaces": [team(number)]},
                status=ended,
            )
            for number in range(rows)
        ),
    )
    schedule = {"schedule": "0 3 * * *", "template": {"includedNamespaces": ["*"]}}
    create_all(
        cluster,
        velero.SCHEDULE,
        (_named(velero.SCHEDULE, Key(_VELERO, f"nightly-{n}"), spec=schedule) for n in range(20)),
    )
    own = [Key(team(number), f"own-{turn}") for number in range(viewers + 1) for turn in range(20)]
    crowd = [Key(CROWDED, f"run-{number:05}") for number in range(rows)]
    create_all(
        cluster, NON_ADMIN_BACKUP, (_named(NON_ADMIN_BACKUP, key, spec={"backupSpec": {}}) for key in own + crowd)
    )
    status = {"phase": "Created", "veleroBackup": {"name": "v", "status": {**ended, **expires}}}
    write_all(
        cluster,
        (
            partial(
                Client.merge,
                kind=NON_ADMIN_BACKUP,
                key=key,
                body={"status": status},
                of=msgspec.Raw,
                subresource="status",
            )
            for key in own + crowd
        ),
    )
    create_all(cluster, _ACCOUNT, (_named(_ACCOUNT, Key(team(number), "viewer")) for number in range(viewers + 1)))
    # As the role of the chart, which the controller manager would aggregate to edit.
    own_kinds = (
        "nonadminbackups.oadp.openshift.io,nonadminrestores.oadp.openshift.io,nonadminschedules.oadp.openshift.io"
    )
    kinds = f"{own_kinds},pods,persistentvolumeclaims,events,cronjobs.batch,primers.foresail.dev"
    cluster.kubectl(
        "create", "clusterrole", "viewing-team", "--verb=get,list,create,patch,delete", f"--resource={kinds}"
    )
    create_all(cluster, _ROLE_BINDING, (_bound(team(number)) for number in range(viewers + 1)))
    create_all(cluster, _ACCOUNT, (_named(_ACCOUNT, Key(_VELERO, f"admin-{number}")) for number in range(viewers + 1)))
    for number in range(viewers + 1):
        cluster.kubectl(
            "create", "clusterrolebinding", f"viewing-{number}", "--clusterrole=cluster-admin",
            f"--serviceaccount={_VELERO}:admin-{number}",
        )  # fmt: skip


def _named(kind: Kind, key: Key, **content: Any) -> tuple[Key, Body]:  # noqa: ANN401
    metadata = {"name": key.name, "namespace": key.namespace}
    return key, {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **content}


def _bound(namespace: str) -> tuple[Key, Body]:
    role = {"apiGroup": _BINDING, "kind": "ClusterRole", "name": "viewing-team"}
    subjects = [{"kind": "ServiceAccount", "name": "viewer", "namespace": namespace}]
    return _named(_ROLE_BINDING, Key(namespace, "viewer"), roleRef=role, subjects=subjects)


@contextmanager
def console(cluster: Cluster) -> Iterator[Process]:
    """Run the in-cluster console until the block ends."""
    port = free_port()
    command = [sys.executable, "-m", "foresail", "console", "--in-cluster", f"--public-url=https://{HOST}"]
    command += [f"--api-server={cluster.server}", f"--certificate-authority={cluster.site.pki / 'ca.crt'}"]
    with Process([*command, "--address=127.0.0.1", f"--port={port}"], port, keep=False) as process:
        process.wait_synced()
        yield process


@dataclass
class Viewer:
    """A browser behind the proxy."""

    session: aiohttp.ClientSession
    base: str
    token: str
    namespace: str = ""
    took: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    changes: int = 0

    @property
    def _headers(self) -> dict[str, str]:
        cookie = {"Cookie": f"__Host-foresail-namespace={self.namespace}"} if self.namespace else {}
        return {"Host": HOST, "Authorization": f"Bearer {self.token}", **cookie}

    async def page(self, path: str) -> str:
        """Fetch a page, and keep how long it took."""
        began = time.monotonic()
        async with self.session.get(f"{self.base}{path}", headers=self._headers) as answer:
            text = await answer.text()
        self.took.append(time.monotonic() - began)
        if answer.status != 200:
            self.failed.append(f"{path}: {answer.status} {text[-300:]}")
        return text

    async def look_around(self, paths: list[str], random: Random, until: float) -> None:
        """Look at one page after the other, and follow each as the script of the console does."""
        await asyncio.sleep(random.uniform(0, THINK))
        for path in cycle(paths):
            if time.monotonic() > until:
                return
            text = await self.page(path)
            follow = asyncio.create_task(self._follow(path, text))
            await asyncio.sleep(random.uniform(0.5 * THINK, 1.5 * THINK))
            follow.cancel()
            await asyncio.gather(follow, return_exceptions=True)

    async def _follow(self, path: str, text: str) -> None:
        if 'data-live="' not in text:
            return
        live = text.partition('data-live="')[2].partition('"')[0].removeprefix("/foresail").replace("&amp;", "&")
        limits = aiohttp.ClientTimeout(total=None)
        async with self.session.get(f"{self.base}{live}", headers=self._headers, timeout=limits) as answer:
            if answer.status != 200:
                self.failed.append(f"{live}: {answer.status}")
            async for line in answer.content:
                if line.startswith(b"event: changed"):
                    self.changes += 1
                    await self.page(path)


@asynccontextmanager
async def viewer(process: Process, token: str, namespace: str = "") -> AsyncIterator[Viewer]:
    """Give somebody a browser."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield Viewer(session, f"http://127.0.0.1:{process.port}/foresail", token, namespace)


async def many_rows(process: Process, token: str) -> dict[str, Any]:
    """Measure the pages of an administrator, each the first time: how long, and how much of it is the console's CPU."""
    texts = dict[str, str]()
    cpu = list[float]()
    async with viewer(process, token) as one:
        for path in (
            "/namespaces", "/", "/namespaces?page=7", "/namespaces?q=team-0123", f"/ns/{CROWDED}", "/queue",
        ):  # fmt: skip
            before = process.cpu_seconds
            texts[path] = await one.page(path)
            cpu.append(round(process.cpu_seconds - before, 3))
    if one.failed:
        raise MeasurementError("; ".join(one.failed))
    names = ("first_page_s", "overview_s", "next_page_s", "search_s", "backups_page_s", "queue_s")
    largest = max(len(text) for text in texts.values())
    return {
        **{name: round(took, 3) for name, took in zip(names, one.took, strict=True)},
        "cpu_s": dict(zip(names, cpu, strict=True)),
        "largest_page_kib": largest >> 10,
        "overview_kb": len(texts["/"].encode()) // 1000,
    }


async def many_viewers(cluster: Cluster, process: Process, tokens: dict[str, str], seconds: float) -> dict[str, Any]:
    """Let everybody look around while backups go on."""
    until = time.monotonic() + seconds
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        base = f"http://127.0.0.1:{process.port}/foresail"
        found = [Viewer(session, base, token, name) for name, token in tokens.items()]
        working = asyncio.create_task(_work(cluster, [each.namespace for each in found if "team" in each.namespace]))
        async with asyncio.TaskGroup() as group:
            for number, each in enumerate(found):
                group.create_task(each.look_around(_paths(each.namespace), Random(number), until))  # noqa: S311
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    took = sorted(each for one in found for each in one.took)
    tenants = sorted(each for one in found if "team" in one.namespace for each in one.took)
    failed = [each for one in found for each in one.failed]
    for text in failed[:5]:
        print(f"failed: {text}", file=sys.stderr)
    return {
        "viewers": len(found),
        "pages": len(took),
        "changes": sum(one.changes for one in found),
        "viewers_p50_ms": _share(took, 0.5),
        "viewers_p95_ms": _share(took, 0.95),
        "tenants_p95_ms": _share(tenants, 0.95),
        "viewers_max_ms": _share(took, 1),
        "failed": len(failed),
    }


def _share(sorted_times: list[float], share: float) -> int:
    return round(1000 * sorted_times[max(int(len(sorted_times) * share) - 1, 0)]) if sorted_times else 0


def _paths(namespace: str) -> list[str]:
    if "team" not in namespace:
        return ["/", "/namespaces", "/namespaces?page=2", "/queue"]
    return [f"/ns/{namespace}", f"/ns/{namespace}/backup/own-0", "/", "/calendar", f"/ns/{namespace}/restore"]


async def _work(cluster: Cluster, namespaces: list[str]) -> None:
    """Change one backup after the other, as the operator does when Velero makes progress."""
    async with Client(await connect(str(cluster.kubeconfig))) as client:
        for number, namespace in enumerate(cycle(namespaces)):
            progress = {"totalItems": 40, "itemsBackedUp": number % 40}
            status = {"veleroBackup": {"status": {"phase": "InProgress", "progress": progress}}}
            await client.merge(NON_ADMIN_BACKUP, Key(namespace, "own-0"), {"status": status}, msgspec.Raw, "status")
            await asyncio.sleep(0.5)


def measure(cluster: Cluster, rows: int, viewers: int, administrators: int, seconds: float) -> dict[str, Any]:
    """Measure many rows with one viewer, and then many viewers."""
    install_policy(cluster)
    populate(cluster, rows, viewers)
    admin = [cluster.service_account_token(_VELERO, f"admin-{number}") for number in range(administrators + 1)]
    tokens = {f"admin-{number}": admin[number + 1] for number in range(administrators)}
    for number in range(1, viewers - administrators + 1):  # the first has too many backups to be one of many
        tokens[team(number)] = cluster.service_account_token(team(number), "viewer")
    with console(cluster) as process:
        alone = asyncio.run(many_rows(process, admin[0]))
        alone["peak_alone_mib"] = round(process.memory_mib("VmHWM"), 1)
        used, began = process.cpu_seconds, time.monotonic()
        together = asyncio.run(many_viewers(cluster, process, tokens, seconds))
        load = (process.cpu_seconds - used) / (time.monotonic() - began)
        peak = round(process.memory_mib("VmHWM"), 1)
    return {**alone, **together, "cpu_of_console": round(load, 2), "peak_mib": peak}


def main() -> int:
    """Measure, print, and say which bounds are missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="the part of the full size, such as 0.1")
    parser.add_argument("--administrators", type=int, default=ADMINISTRATORS, help="of the viewers (%(default)s)")
    args = parser.parse_args()
    rows = max(int(ROWS * args.size), VIEWERS + 1)
    with world() as cluster:
        figures = measure(cluster, rows, VIEWERS, args.administrators, SECONDS)
    return verdict(
        {"size": args.size, "rows": rows, "administrators": args.administrators, **figures, **fleet_page.measure()},
        BOUNDS,
    )


if __name__ == "__main__":
    sys.exit(main())
