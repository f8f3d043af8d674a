"""Pushes an image of one layer to a registry by its HTTP interface: faster than a tool that copies each layer twice."""

import gzip
import hashlib
import http.client
import json
import platform
import shutil
import tempfile
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from testbed.errors import TestbedError
from testbed.node.images import MANIFEST, Image, repository, write_layer

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_LEVEL = 1
_SECONDS = 300


def push_image(image: Image, server: str) -> None:
    """Make an image of these files and push it."""
    path, _, tag = repository(image.name).rpartition(":")
    with tempfile.TemporaryDirectory(prefix="testbed-image-") as scratch:
        tar, layer = Path(scratch) / "layer.tar", Path(scratch) / "layer.tar.gz"
        write_layer(image, tar)
        with tar.open("rb") as source, gzip.open(layer, "wb", _LEVEL) as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
        (Path(scratch) / "config.json").write_bytes(_config(image, _digest(tar)))
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _push_blob(server, path, Path(scratch) / "config.json", _CONFIG),
            "layers": [_push_blob(server, path, layer, _LAYER)],
        }
    _send(server, "PUT", f"/v2/{path}/manifests/{tag}", json.dumps(manifest).encode(), {"Content-Type": MANIFEST})


def _config(image: Image, layer: str) -> bytes:
    run = {"User": f"{image.user}:{image.user}", "Env": list(image.environment), "Entrypoint": list(image.command)}
    machine = _ARCHITECTURES.get(platform.machine(), platform.machine())
    rootfs = {"type": "layers", "diff_ids": [layer]}
    return json.dumps({"architecture": machine, "os": "linux", "config": run, "rootfs": rootfs}).encode()


def _push_blob(server: str, path: str, file: Path, kind: str) -> dict[str, object]:
    digest, size = _digest(file), file.stat().st_size
    place = urlsplit(_send(server, "POST", f"/v2/{path}/blobs/uploads/"))
    with file.open("rb") as body:
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        _send(server, "PUT", f"{place.path}?{place.query}&digest={digest}", body, headers)
    return {"mediaType": kind, "digest": digest, "size": size}


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def _send(
    server: str, method: str, target: str, body: bytes | IO[bytes] | None = None, headers: dict[str, str] | None = None
) -> str:
    """Send a request that must succeed; return where the registry says to go on."""
    connection = http.client.HTTPConnection(server, timeout=_SECONDS)
    try:
        connection.request(method, target, body, headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    if answer.status not in (http.client.CREATED, http.client.ACCEPTED):
        raise TestbedError(f"{method} {server}{target}: code {answer.status}: {text}", "is the registry running?")
    return answer.headers.get("Location", "")
