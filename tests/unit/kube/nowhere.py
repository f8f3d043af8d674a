"""A client of a server that is not there: for what must happen without one."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.requests import RequestMetrics


@asynccontextmanager
async def nowhere(folder: Path, port: int = 9, metrics: RequestMetrics | None = None) -> AsyncIterator[Client]:
    """Yield a client whose every request is refused at once, unless somebody listens at the port."""
    kubeconfig = folder / "kubeconfig"
    content = {
        "clusters": [{"name": "nowhere", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": "nobody"}}],
        "current-context": "nowhere",
    }
    kubeconfig.write_text(json.dumps(content))
    async with Client(await connect(str(kubeconfig)), metrics=metrics) as client:
        yield client
