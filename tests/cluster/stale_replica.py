"""The replicated example, unready when a store was not confirmed for N seconds; arguments: KUBECONFIG IDENTITY N."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from one_child_each import OneChildEach

from foresail.kube import replica
from foresail.kube.connect import connect
from foresail.kube.logs import log_as_json
from foresail.plan import Key


async def main(kubeconfig: str, identity: str, stale: float) -> None:
    lease = Key("default", OneChildEach.name)
    config = replica.ReplicaConfig(OneChildEach.name, identity, lease, host="127.0.0.1", port=0, stale=stale)
    await replica.run(await connect(kubeconfig), [OneChildEach()], config)


if __name__ == "__main__":
    log_as_json()
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
