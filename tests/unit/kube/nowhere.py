"""A client of a server that is not there: for what must happen without one."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.requests import Requests


def kubeconfig_of(folder: Path, port: int) -> str:
    """Return the path of a kubeconfig for a server at a port of the loopback."""
    kubeconfig = folder / "kubeconfig"
    content = {
        "clusters": [{"name": "nowhere", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": "nobody"}}],
        "current-context": "nowhere",
    }
    kubeconfig.write_text(json.dumps(content))
    return str(kubeconfig)


@asynccontextmanager
async def nowhere(folder: Path, port: int = 9, requests: Requests | None = None) -> AsyncIterator[Client]:
    """Yield a client whose every request is refused at once, unless somebody listens at the port."""
    async with Client(await connect(kubeconfig_of(folder, port)), requests=requests) as client:
        yield client
