"""The same controller as several replicas: one leads, the others wait with warm stores.

Run two: python examples/replicated.py KUBECONFIG IDENTITY PORT
"""

import asyncio
import sys

from one_child_each import OneChildEach

from foresail.kube import replica
from foresail.kube.connect import connect
from foresail.kube.logs import log_as_json
from foresail.plan import Key


async def main(kubeconfig: str, identity: str, port: int) -> None:
    """Run this replica until SIGTERM."""
    lease = Key("default", OneChildEach.name)
    config = replica.ReplicaConfig(OneChildEach.name, identity, lease, host="127.0.0.1", port=port)
    await replica.run(await connect(kubeconfig), [OneChildEach()], config)


if __name__ == "__main__":
    log_as_json()
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
