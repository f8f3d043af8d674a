"""Files that Velero keeps about a Backup or a Restore, read with an administrator's rights."""

import asyncio
import secrets

import msgspec

from foresail.api import velero
from foresail.bucket import DownloadError, MissingFileError, download
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.tenant.files import Access
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.proof.restore_plan.archive import MOST_BYTES

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.4  # Velero signs within milliseconds
_SECONDS = 600.0


class _Signed(msgspec.Struct, rename="camel"):
    phase: str = ""
    download_url: str = msgspec.field(default="", name="downloadURL")


class _Download(msgspec.Struct):
    status: _Signed = msgspec.field(default_factory=_Signed)


class _Made(msgspec.Struct):
    uid: str


class _Object(msgspec.Struct):
    metadata: _Made


async def read_velero_file(cluster: Cluster, about: Key, kind: str, access: Access) -> bytes | None:
    """Return a file about a Backup or a Restore; None if there is none. Velero signs its URL for a DownloadRequest."""
    key = Key(about.namespace, f"{about.name[:200].rstrip('.-')}-{secrets.token_hex(4)}")
    body = {
        "apiVersion": velero.DOWNLOAD_REQUEST.api_version,
        "kind": velero.DOWNLOAD_REQUEST.name,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {"target": {"kind": kind, "name": about.name}},
    }
    name = f"the file {kind} of {about}"
    made = msgspec.json.decode(await cluster.create(velero.DOWNLOAD_REQUEST, key, body), type=_Object)
    try:
        url = await _url(cluster, key, name, access)
        pieces = download(url, most=MOST_BYTES, seconds=_SECONDS, tls=access.tls)
        return b"".join([piece async for piece in pieces])
    except MissingFileError:
        return None
    except DownloadError as error:
        hint = "the bucket must be reachable from here; see --cacert"
        raise CommandError(f"{name} cannot be read: {error}", hint) from error
    finally:
        await asyncio.shield(cluster.delete(velero.DOWNLOAD_REQUEST, key, made.metadata.uid))


async def _url(cluster: Cluster, key: Key, name: str, access: Access) -> str:
    pause = _FIRST_PAUSE
    while True:
        status = (await cluster.read(velero.DOWNLOAD_REQUEST, key, _Download)).status
        if status.download_url:
            return status.download_url
        if access.until is not None and now() >= access.until:
            raise CommandError(f"Velero signs no URL for {name}", "check that Velero runs")
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
