"""A client of a server that is not there: for what must happen without one."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from foresail.kube.client import Client
from foresail.kube.connect import Connection, connect
from foresail.kube.http_direct import DirectHttp
from foresail.kube.http_pool import HttpPool
from foresail.kube.requests import Requests
from foresail.kube.server import Http

MakeHttp = Callable[[Connection], Http]
HTTP: dict[str, MakeHttp] = {"pool": HttpPool, "direct": DirectHttp}
"""The operator's connections and those of the command line: both must pass the same tests."""


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
async def nowhere(
    folder: Path, port: int = 9, requests: Requests | None = None, make_http: MakeHttp = HttpPool
) -> AsyncIterator[Client]:
    """Yield a client whose every request is refused at once, unless somebody listens at the port."""
    connection = await connect(kubeconfig_of(folder, port))
    async with Client(connection, requests=requests, http=make_http(connection)) as client:
        yield client
