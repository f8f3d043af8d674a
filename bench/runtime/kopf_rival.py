"""The example's job in kopf, in the form that costs kopf least, to keep the decision against it verifiable.

- Its lowest-level handler, which keeps no state of its own: the others write annotations on every object.
- What is known of the children is in an index of kopf's, as ours is in a store.
- The child is created with our client, for kopf brings none; the status goes through kopf's own patch.
- No Events, no scanning of the cluster, no peering, no logs but errors. As many workers as it likes: each of its
  workers stays with one object for seconds after the work is done, so a limit would only make it wait.

python -m bench.runtime.kopf_rival KUBECONFIG PORT; the port is not used.
"""

import asyncio
import json
import logging
import os
import sys
from typing import cast

import kopf
import msgspec
from one_child_each import CHILD, OWNER, PARENT

from bench.runtime.bare import child
from bench.runtime.stopwatch import Stopwatch
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.plan import Key

_stopwatch = Stopwatch()
_clients: list[Client] = []


@kopf.on.startup()
async def prepare(settings: kopf.OperatorSettings, **_: object) -> None:
    """Turn off whatever is not the job."""
    settings.posting.enabled = False
    settings.scanning.disabled = True
    _clients.append(Client(await connect(sys.argv[1])))


@kopf.on.cleanup()
async def close(**_: object) -> None:
    """Close the connections."""
    await _clients.pop().close()


@kopf.on.login()
def login(settings: kopf.OperatorSettings, **_: object) -> kopf.ConnectionInfo | None:
    """Be who the kubeconfig says."""
    return kopf.login_with_kubeconfig(settings=settings)


@kopf.index("", "v1", CHILD.plural, labels={OWNER: kopf.PRESENT})
def children(name: str, namespace: str | None, labels: kopf.Labels, **_: object) -> dict[tuple[str | None, str], str]:
    """Remember of each child whose it is."""
    return {(namespace, name): labels[OWNER]}


@kopf.on.event(PARENT.group, PARENT.version, PARENT.plural)
async def converge(body: kopf.Body, patch: kopf.Patch, **more: object) -> None:
    """Make the child if it is not there, then say in the status that it is."""
    known = cast("kopf.Index[tuple[str | None, str], str]", more["children"])
    metadata = body["metadata"]
    key, uid = Key(metadata["namespace"], metadata["name"]), metadata["uid"]
    if uid not in known.get((key.namespace, key.name), ()):
        _stopwatch()
        made = await _clients[0].create(CHILD, key, child(key, uid), msgspec.Raw)
        if isinstance(made, Failure):
            raise kopf.TemporaryError(str(made))
    if not body.get("status", {}).get("child"):
        _stopwatch()
        patch.status["child"] = key.name


if __name__ == "__main__":
    os.environ["KUBECONFIG"] = sys.argv[1]
    logging.basicConfig(level=logging.CRITICAL)
    asyncio.run(kopf.operator(standalone=True, clusterwide=True))
    print(json.dumps(_stopwatch.facts))
