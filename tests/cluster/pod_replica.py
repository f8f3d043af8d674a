"""The replicated example as in a pod, whose files are in a folder of the test's; arguments: FOLDER IDENTITY PORT.

Only the place of the files differs from a pod's: no container is there to mount them where they belong.
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from one_child_each import OneChildEach

from foresail.kube import connect, replica
from foresail.kube.logs import log_as_json
from foresail.plan import Key


async def main(folder: str, identity: str, port: int) -> None:
    connect._SERVICE_ACCOUNT = Path(folder)  # noqa: SLF001 - a place
    config = replica.ReplicaConfig(
        OneChildEach.name, identity, Key("default", OneChildEach.name), host="127.0.0.1", port=port
    )
    await replica.run(await connect.connect(), [OneChildEach()], config)


if __name__ == "__main__":
    log_as_json()
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
