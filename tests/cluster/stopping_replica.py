"""The replicated example, which stops itself right before its n-th write; arguments: KUBECONFIG IDENTITY N."""

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from one_child_each import OneChildEach

from foresail.kube import replica
from foresail.kube.connect import connect
from foresail.kube.logs import log_as_json
from foresail.plan import Key


async def main(kubeconfig: str, identity: str, stop_before: int) -> None:
    writes = itertools.count(1)

    def before_write() -> None:
        # The worst moment: it has been checked that this process leads, and the request is not sent yet.
        if next(writes) == stop_before:
            os.kill(os.getpid(), signal.SIGSTOP)

    config = replica.ReplicaConfig(
        OneChildEach.name, identity, Key("default", OneChildEach.name), host="127.0.0.1", port=0
    )
    await replica.run(await connect(kubeconfig), [OneChildEach()], config, before_write=before_write)


if __name__ == "__main__":
    log_as_json()
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
