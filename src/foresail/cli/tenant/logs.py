"""`foresail backup logs` and `foresail restore logs`: what Velero wrote about it, read with the tenant's own rights.

A NonAdminDownloadRequest is made, waited for, and deleted whatever happens; the file comes from the bucket itself.
"""

import argparse
import asyncio
import secrets
import ssl
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TextIO

import msgspec

from foresail.api.nonadmin import Condition, Download
from foresail.api.requests import NON_ADMIN_DOWNLOAD_REQUEST
from foresail.bucket import DownloadError, download, trusting
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import hint, interruptible
from foresail.cli.tenant.advice import UNSEEN, advice_for, next_step, sentence
from foresail.cli.tenant.results import as_lines
from foresail.cli.tenant.selection import in_namespace, read_request
from foresail.cli.tenant.wait import PATIENCE
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.downloads.observe import download_row
from foresail.selfservice.families import Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.results.file import MOST_BYTES

_FILES = NON_ADMIN_DOWNLOAD_REQUEST
_PAUSE = 0.5
_SECONDS = 600.0
_LONGEST_LOG = 1 << 30
_LONGEST_NAME = 200
_NO_FILE = (Reason.ERROR, Reason.TARGET_NOT_SERVED, Reason.CONTENTS_DENIED, Reason.VELERO_SILENT)

WHAT_TO_DO = {
    "certificate": "pass its CA certificate in PEM with --cacert FILE",
    "reached": "the bucket must be reachable from here; ask a cluster administrator, or run the command in the cluster",
    "longer": "try again, or run the command closer to the bucket",
    "404": "Velero stored no such file, for example after a crash; see foresail {word} describe {name} -n {namespace}",
    "403": "try again; the download URL expires after a few minutes",
    "larger": "download it with curl from the URL of a NonAdminDownloadRequest",
}
"""What to do about a file that cannot be read, by a word of the cause."""


def logs(args: argparse.Namespace) -> int:
    """Print the log of a request, or its results."""
    tls = _trusted(args)
    return interruptible(lambda: in_namespace(args, lambda cluster, family: _logs(cluster, family, args, tls)))


async def _logs(cluster: Cluster, family: Family, args: argparse.Namespace, tls: ssl.SSLContext) -> int:
    about, until = Key(args.namespace, args.name), deadline(args.timeout)
    await read_request(cluster, family, about)  # if it does not exist, that is the error
    key = Key(about.namespace, request_name(about.name))
    made = msgspec.json.decode(await cluster.create(_FILES, key, body(family, key, args)), type=Download)
    try:
        url = await _url(cluster, family, about, key, until)
        await _print(url, tls, is_results=args.results)
    except DownloadError as error:
        what = "results" if args.results else "log"
        problem = f"the {what} of {family.kind.name} {about} cannot be read: {error}"
        raise CommandError(problem, what_to_do(str(error), family, about)) from error
    finally:
        await cluster.delete(_FILES, key, made.metadata.uid)
    return 0


def request_name(name: str) -> str:
    """Return a unique name for the request."""
    return f"{name[:_LONGEST_NAME].rstrip('.-')}-{secrets.token_hex(4)}"


def body(family: Family, key: Key, args: argparse.Namespace) -> dict[str, object]:
    """Return the request for a file."""
    kind = f"{family.velero.name}{'Results' if args.results else 'Log'}"
    return {
        "apiVersion": _FILES.api_version,
        "kind": _FILES.name,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {"target": {"kind": kind, "name": args.name}},
    }


async def _url(cluster: Cluster, family: Family, about: Key, key: Key, until: datetime | None) -> str:
    shown, began = "", now()
    while True:
        wire = await cluster.read(_FILES, key, Download)
        url, condition = download_row(wire).url, next(iter(wire.status.conditions or ()), None)
        if url:
            return url
        ended = verdict(condition, family, about)
        if ended is not None:
            raise ended
        news = remark(condition, now() - began, family, about)
        if news != shown:
            shown = news
            hint(shown)
        if until is not None and now() >= until:
            problem = f"{family.kind.name} {about}: timed out waiting for its log"
            raise CommandError(problem, shown or next_step(advice_for(""), family, about))
        await asyncio.sleep(_PAUSE)


def verdict(condition: Condition | None, family: Family, about: Key) -> CommandError | None:
    """Return why there will be no file; None if there may still be one."""
    if condition is None or condition.reason not in _NO_FILE:
        return None
    return CommandError(
        f"{family.kind.name} {about}: {condition.message}",
        f"see foresail {family.word} explain {about.name} -n {about.namespace}"
        if condition.reason == Reason.ERROR
        else next_step(advice_for(condition.reason), family, about),
    )


def remark(condition: Condition | None, waited: timedelta, family: Family, about: Key) -> str:
    """Return a hint for someone who waits; empty if there is none."""
    if condition is not None:
        return condition.message
    return sentence(UNSEEN, family, about) if waited > PATIENCE else ""


async def _print(url: str, tls: ssl.SSLContext, *, is_results: bool) -> None:
    if is_results:
        pieces = [each async for each in download(url, most=MOST_BYTES, seconds=_SECONDS, tls=tls)]
        print(as_lines(b"".join(pieces)))
        return
    write = writer(sys.stdout)
    async for piece in download(url, most=_LONGEST_LOG, seconds=_SECONDS, tls=tls):
        write(piece)


def writer(stream: TextIO) -> Callable[[bytes], object]:
    """Return what writes a log piece by piece: as it is into a file, and as text, which is screened, on a terminal."""
    if not stream.isatty():
        return stream.buffer.write
    decode = getincrementaldecoder("utf-8")("replace").decode
    return lambda piece: stream.write(decode(piece))


def what_to_do(cause: str, family: Family, about: Key) -> str:
    """Return what to do about a file that cannot be read."""
    found = next(
        (text for word, text in WHAT_TO_DO.items() if word in cause), "try again, or ask a cluster administrator"
    )
    return found.format(word=family.word, name=about.name, namespace=about.namespace)


def _trusted(args: argparse.Namespace) -> ssl.SSLContext:
    try:
        tls = trusting(Path(args.cacert).read_text() if args.cacert else "")
    except (OSError, ValueError, DownloadError) as error:
        raise CommandError(f"--cacert {args.cacert}: {error}", "pass a file with PEM certificates") from error
    if args.insecure_skip_tls_verify:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls
