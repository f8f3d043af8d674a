"""Files that Velero keeps about a backup or a restore, read with the tenant's own rights.

A NonAdminDownloadRequest is created, waited for, and deleted whatever happens; the file comes from the bucket itself.
"""

import argparse
import asyncio
import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from foresail.api.nonadmin import NON_ADMIN_DOWNLOAD_REQUEST, Condition, Download
from foresail.bucket import DownloadError, download, trusting
from foresail.bucket import TooLargeError as TooLargeDownloadError
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError, NotAllowedError, TooLargeError
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import hint
from foresail.cli.tenant.advice import PATIENCE, UNSEEN, UNSERVED, advice_for, next_step, sentence, unserved
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.downloads.decide import HAS_FILES
from foresail.selfservice.downloads.view import download_row
from foresail.selfservice.families import Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.outcome import RESTARTED, cause_in_words

_FILES = NON_ADMIN_DOWNLOAD_REQUEST
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 0.8
_SECONDS = 600.0
_LONGEST_NAME = 200
_NOT_SERVED = (Reason.TARGET_NOT_SERVED, Reason.CONTENTS_DENIED)
_NO_FILE = (Reason.ERROR, *_NOT_SERVED, Reason.VELERO_SILENT)

WHAT_TO_DO = {
    "certificate": "pass its CA certificate in PEM with --cacert FILE",
    "reached": "the bucket must be reachable from here; ask a cluster administrator, or run the command in the cluster",
    "longer": "try again, or run the command closer to the bucket",
    "404": "Velero stored no such file, for example because it was restarted; create another {word}",
    "403": "try again; the download URL expires after a few minutes",
    "larger": "download it with curl from the URL of a NonAdminDownloadRequest",
}
"""What to do about a file that cannot be read, by a word of the cause."""


class NotServedError(NotAllowedError):
    """The policy, or the API server, does not let the caller have the file."""


@dataclass(frozen=True, slots=True)
class File:
    """A file about a backup or a restore: its kind as Velero names it, and what people call it."""

    family: Family
    about: Key
    kind: str
    word: str


@dataclass(frozen=True, slots=True)
class Access:
    """Whom to trust in front of the bucket, and how long to wait for the URL."""

    tls: ssl.SSLContext
    until: datetime | None
    is_quiet: bool = False  # whether nothing is printed while it waits


def access_of(args: argparse.Namespace) -> Access:
    """Return how the user wants files to be read."""
    tls = trust_of(args)
    if args.insecure_skip_tls_verify:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return Access(tls, deadline(args.timeout))


def trust_of(args: argparse.Namespace) -> ssl.SSLContext:
    """Return whom the user trusts in front of the bucket."""
    try:
        return trusting(Path(args.cacert).read_text() if args.cacert else "")
    except (OSError, ValueError, DownloadError) as error:
        raise CommandError(f"--cacert {args.cacert}: {error}", "pass a file with PEM certificates") from error


def check_has_files(request: TenantRequest, word: str, wait: str = "") -> None:
    """Raise why Velero has no files about a request: it waits, it runs, or it never started."""
    family = request.family
    key = request.key
    blocking = request.blocking
    if request.velero.phase in HAS_FILES and cause_in_words(request.velero.failure_reason) != RESTARTED:
        return
    name = f"{family.kind.name} {key}"
    cause = blocking.message if blocking is not None else ""
    if not request.is_open or request.is_terminating:
        reason = blocking.reason if blocking is not None else ""
        raise CommandError(f"{name} has no {word}: {cause}", next_step(advice_for(reason, cause), family, key))
    told = f": {cause}" if cause else ""
    later = wait or f"wait for it with foresail {family.word} wait {key.name} -n {key.namespace}"
    raise CommandError(f"{name} has no {word} yet, because it has not finished{told}", later)


async def read_file(cluster: Cluster, file: File, access: Access, most: int) -> bytes:
    """Return a file, unpacked."""
    async with pieces_of(cluster, file, access, most) as pieces:
        return b"".join([piece async for piece in pieces])


@asynccontextmanager
async def pieces_of(cluster: Cluster, file: File, access: Access, most: int) -> AsyncIterator[AsyncIterator[bytes]]:
    """Let a file be read piece by piece; nothing is left behind."""
    family = file.family
    about = file.about
    key = Key(about.namespace, request_name(about.name))
    made = msgspec.json.decode(await cluster.create(_FILES, key, body(key, file)), type=Download)
    try:
        url = await _url(cluster, file, key, access)
        yield download(url, most=most, seconds=_SECONDS, tls=access.tls)
    except DownloadError as error:
        problem = f"the {file.word} of {family.kind.name} {about} cannot be read: {error}"
        kind = TooLargeError if isinstance(error, TooLargeDownloadError) else CommandError
        raise kind(problem, what_to_do(str(error), family, about)) from error
    finally:
        await cluster.delete(_FILES, key, made.metadata.uid)


def request_name(name: str) -> str:
    """Return a unique name for the request."""
    return f"{name[:_LONGEST_NAME].rstrip('.-')}-{secrets.token_hex(4)}"


def body(key: Key, file: File) -> dict[str, object]:
    """Return the request for a file."""
    return {
        "apiVersion": _FILES.api_version,
        "kind": _FILES.name,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {"target": {"kind": file.kind, "name": file.about.name}},
    }


async def _url(cluster: Cluster, file: File, key: Key, access: Access) -> str:
    family = file.family
    about = file.about
    until = access.until
    said = ""
    began = now()
    pause = _FIRST_PAUSE
    while True:
        wire = await cluster.read(_FILES, key, Download)
        url = download_row(wire).url
        stands = next(iter(wire.status.conditions or ()), None)
        if url:
            return url
        ended = verdict(stands, family, about)
        if ended is not None:
            raise ended
        news = remark(stands, now() - began, family, about)
        if news != said and not access.is_quiet:
            hint(news)
        said = news
        if until is not None and now() >= until:
            problem = f"{family.kind.name} {about}: timed out waiting for its {file.word}"
            raise CommandError(problem, said or next_step(advice_for(""), family, about))
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def verdict(stands: Condition | None, family: Family, about: Key) -> CommandError | None:
    """Return why there will be no file; None if there is still hope."""
    if stands is None or stands.reason not in _NO_FILE:
        return None
    kind = NotServedError if stands.reason in _NOT_SERVED else CommandError
    return kind(
        f"{family.kind.name} {about}: {stands.message}",
        f"see foresail {family.word} explain {about.name} -n {about.namespace}"
        if stands.reason == Reason.ERROR
        else next_step(advice_for(stands.reason), family, about),
    )


def remark(stands: Condition | None, waited: timedelta, family: Family, about: Key) -> str:
    """Return a hint for someone who waits; empty if there is none. Raise that nobody serves the request."""
    if stands is not None:
        return stands.message
    if waited >= UNSERVED:
        raise unserved(f"the request for a file of {family.kind.name} {about}")
    return sentence(UNSEEN, family, about) if waited > PATIENCE else ""


def what_to_do(cause: str, family: Family, about: Key) -> str:
    """Return what to do about a file that cannot be read."""
    advice = next(
        (text for word, text in WHAT_TO_DO.items() if word in cause), "try again, or ask a cluster administrator"
    )
    return advice.format(word=family.word, name=about.name, namespace=about.namespace)
