"""The console's memory with 50 hostile viewers: `python -m bench.console_hostile`.

Each viewer has a token of their own, and all of them ask at once for pages of a namespace whose objects are as large as
the API server accepts. The last line is one JSON object. It fails if the console needs more than its chart allows.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from bench.console import _ACCOUNT, _ROLE_BINDING, Viewer, _bound, _named, console, viewer
from bench.figures import Bounds, verdict
from bench.processes import Process
from bench.selfservice.world import create_namespaces, install_policy, world
from bench.writing import create_all
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.plan import Body, Key
from testbed import Cluster

VIEWERS, OBJECTS, ROUNDS = 50, 22, 2
NAMESPACES = {"finalizers": "fat-finalizers", "selector": "fat-selector"}
BOUNDS: Bounds = {"peak_mib is at most 256": lambda f: f["peak_mib"] <= 256}


def _finalizers(number: int) -> tuple[Body, Body]:
    return {"finalizers": [f"example.com/{number}-{index:05}-{'x' * 40}" for index in range(21_000)]}, {}


def _selector(number: int) -> tuple[Body, Body]:
    labels = {f"example.com/{number}-{index:05}": "x" * 40 for index in range(18_000)}
    return {}, {"labelSelector": {"matchLabels": labels}}


FAT: dict[str, Callable[[int], tuple[Body, Body]]] = {"finalizers": _finalizers, "selector": _selector}
"""What makes an object large, by its name: the metadata and the backupSpec."""


def populate(cluster: Cluster) -> dict[str, list[str]]:
    """Create the objects and the viewers; return the tokens by namespace."""
    install_policy(cluster)
    create_namespaces(cluster, list(NAMESPACES.values()))
    kinds = "nonadminbackups.oadp.openshift.io,nonadminrestores.oadp.openshift.io,nonadminschedules.oadp.openshift.io"
    cluster.kubectl("create", "clusterrole", "viewing-team", "--verb=get,list,create", f"--resource={kinds},pods")
    tokens: dict[str, list[str]] = {}
    for way, namespace in NAMESPACES.items():
        bodies = (_fat(Key(namespace, f"fat-{number}"), *FAT[way](number)) for number in range(OBJECTS))
        create_all(cluster, NON_ADMIN_BACKUP, bodies)
        names = [f"viewer-{number}" for number in range(VIEWERS // len(NAMESPACES))]
        create_all(cluster, _ACCOUNT, (_named(_ACCOUNT, Key(namespace, name)) for name in names))
        subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace} for name in names]
        key, body = _bound(namespace)
        create_all(cluster, _ROLE_BINDING, [(key, {**body, "subjects": subjects})])
        tokens[namespace] = [cluster.service_account_token(namespace, name) for name in names]
    return tokens


def _fat(key: Key, metadata: Body, spec: Body) -> tuple[Key, Body]:
    key, body = _named(NON_ADMIN_BACKUP, key, spec={"backupSpec": spec})
    name: Any = body["metadata"]
    return key, {**body, "metadata": {**name, **metadata}}


async def attack(process: Process, tokens: dict[str, list[str]]) -> dict[str, Any]:
    """Let every viewer ask for three pages at once."""
    statuses: dict[str, int] = {}

    async def ask(one: Viewer, namespace: str) -> None:
        paths = (f"/ns/{namespace}", "/", f"/ns/{namespace}/backup/fat-0")
        await asyncio.gather(*(one.page(path) for path in paths), return_exceptions=True)
        for failure in one.failed:
            status = failure.split(": ")[1][:3]
            statuses[status] = statuses.get(status, 0) + 1
        one.failed.clear()

    async def live(token: str, namespace: str) -> int:
        async with viewer(process, token, namespace) as one:
            for _ in range(ROUNDS):
                await ask(one, namespace)
            return len(one.took)

    asked = [live(token, namespace) for namespace, own in tokens.items() for token in own]
    pages = sum(await asyncio.gather(*asked))
    return {"viewers": len(asked), "pages": pages, "refused": statuses}


def main() -> int:
    """Measure, print, and say which bounds are missed."""
    with world() as cluster:
        tokens = populate(cluster)
        with console(cluster) as process:
            figures = asyncio.run(attack(process, tokens))
            peak = round(process.memory_mib("VmHWM"), 1)
    return verdict({**figures, "peak_mib": peak}, BOUNDS)


if __name__ == "__main__":
    sys.exit(main())
