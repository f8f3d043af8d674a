"""`foresail backup logs` and `foresail restore logs`: what Velero wrote about it, read with the tenant's own rights."""

import argparse
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from typing import TextIO

from foresail.api.velero_files import MOST_BYTES
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import interruptible
from foresail.cli.output.table import table
from foresail.cli.tenant.files import Access, File, access_of, check_has_files, pieces_of, read_file
from foresail.cli.tenant.selection import in_namespace, read_request
from foresail.plan import Key
from foresail.selfservice.families import Family
from foresail.selfservice.results.file import Part, parts, tidy


def as_lines(results: bytes) -> str:
    """Return the results in lines, errors first."""
    lists = parts(results)
    if lists is None:
        raise CommandError("the results are not in Velero's format", "read the log, without --results")
    rows = [*_rows("error", lists.errors), *_rows("warning", lists.warnings)]
    return table(("LEVEL", "WHERE", "WHAT"), rows) if rows else "No errors and no warnings."


def _rows(level: str, part: Part | None) -> Iterator[tuple[str, str, str]]:
    if part is None:
        return
    places = [*(part.namespaces or {}).items(), ("cluster", part.cluster), ("velero", part.velero)]
    for place, lines in places:
        yield from ((level, tidy(place), tidy(line)) for line in lines or ())


_LONGEST_LOG = 1 << 30


def logs(args: argparse.Namespace) -> int:
    """Print the log of a request, or its results."""
    access = access_of(args)
    return interruptible(lambda: in_namespace(args, lambda cluster, family: _logs(cluster, family, args, access)))


async def _logs(cluster: Cluster, family: Family, args: argparse.Namespace, access: Access) -> int:
    file = wanted_file(family, args)
    request = await read_request(cluster, family, file.about)  # if it does not exist, that is the error
    if not args.follow or not request.is_open:
        check_has_files(request, file.word, "add --follow to wait for it")
    if args.results:
        print(as_lines(await read_file(cluster, file, access, MOST_BYTES)))
        return 0
    write = writer(sys.stdout)
    async with pieces_of(cluster, file, access, _LONGEST_LOG) as pieces:
        async for piece in pieces:
            write(piece)
    return 0


def wanted_file(family: Family, args: argparse.Namespace) -> File:
    """Return the file that is to be printed."""
    about = Key(args.namespace, args.name)
    return File(family, about, f"{family.velero.name}Results", "results") if args.results else log_file(family, about)


def log_file(family: Family, about: Key) -> File:
    """Return the log of a backup or a restore."""
    return File(family, about, f"{family.velero.name}Log", "log")


async def read_log_end(cluster: Cluster, family: Family, about: Key, access: Access, most: int, largest: int) -> str:
    """Return the end of a log, from the start of a line on; a log that is larger is not read."""
    tail = b""
    async with pieces_of(cluster, log_file(family, about), access, largest) as pieces:
        async for piece in pieces:
            tail = (tail + piece)[-most - 1 :]
    return end_of_log(tail, most)


def end_of_log(tail: bytes, most: int) -> str:
    """Return the whole lines among the last bytes of a log."""
    if len(tail) > most:
        tail = tail[-most:].partition(b"\n")[2]
    return tail.decode(errors="replace")


def writer(stream: TextIO) -> Callable[[bytes], object]:
    """Return what writes a log piece by piece: as it is into a file, and as text, which is screened, on a terminal."""
    if not stream.isatty():
        return stream.buffer.write
    decode = getincrementaldecoder("utf-8")("replace").decode
    return lambda piece: stream.write(decode(piece))
