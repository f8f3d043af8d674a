"""`foresail backup diff`: what is gone, new or changed since a backup, with the names of fields and without values.

With the contents of the backup the answer is exact. Without the right to read them, the API server's own record of
who wrote which fields since the backup began says what may have changed: nothing of the backup itself is read.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from foresail.api.authorization import Discovery
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.together import in_thread
from foresail.cli.errors import CommandError, TooLargeError
from foresail.cli.output.messages import hint, interruptible
from foresail.cli.output.objects import document
from foresail.cli.output.table import table
from foresail.cli.output.words import counted
from foresail.cli.restore_plan.dry_runs import DryRuns, served_kinds
from foresail.cli.tenant.contents import kinds_served, live_objects, not_compared_text, read_contents
from foresail.cli.tenant.field_changes import CHANGED, RECREATED, WRITTEN, changed_since, written_since
from foresail.cli.tenant.files import Access, File, NotServedError, access_of, check_has_files, read_file
from foresail.cli.tenant.held import GONE, NEW, Change, changes
from foresail.cli.tenant.restored import own_changes
from foresail.cli.tenant.selection import in_namespace, read_request
from foresail.plan import Key
from foresail.proof.restore_plan.archive import MOST_BYTES, ArchiveError, read_archive
from foresail.proof.restore_plan.prepare import Step
from foresail.reporting import some
from foresail.selfservice.families import BACKUPS

CONTENTS, WRITES, NOTHING = "contents", "writes", "nothing"
"""What changed objects are known by."""

_ORDER = (GONE, NEW, RECREATED, CHANGED, WRITTEN)
_spec = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed since a backup, by what it is known, and what is not compared, with the causes."""

    changes: Sequence[Change]
    compared_with: str
    not_compared: dict[str, str]
    following: int = 0
    """How many more changes are of objects that Kubernetes makes for others."""


def diff(args: argparse.Namespace) -> int:
    """Print what changed since a backup."""
    access = access_of(args)
    return interruptible(lambda: in_namespace(args, lambda cluster, _: _diff(cluster, args, access)))


async def _diff(cluster: Cluster, args: argparse.Namespace, access: Access) -> int:
    about = Key(args.namespace, args.name)
    comparison = await compared(cluster, about, access)
    if args.output != "table":
        print(document(as_data(about, comparison), args.output))
        return 0
    print(diff_text(comparison.changes, is_exact=comparison.compared_with == CONTENTS))
    for text in hints(comparison):
        hint(text)
    return 0


async def compared(cluster: Cluster, about: Key, access: Access) -> Comparison:
    """Return what changed since a backup, as far as the caller may know it."""
    backup = await read_request(cluster, BACKUPS, about)
    check_has_files(backup, "list of contents")
    held = await read_contents(cluster, about, access)
    discovery = await kinds_served(cluster)
    spec = _spec.decode(backup.made.spec)
    live, not_compared = await live_objects(cluster, about.namespace, discovery, held, spec, backup.started)
    by_name = changes(held, live, spec)
    try:
        known_by = CONTENTS
        changed = await _changed(cluster, about, discovery, access)
    except (NotServedError, TooLargeError):
        known_by = WRITES if backup.started is not None else NOTHING
        changed = written_since(held, live)
    every = sorted([*by_name, *changed], key=lambda change: (_ORDER.index(change.change), change))
    own = own_changes(every, held)
    return Comparison(own, known_by, not_compared, len(every) - len(own))


async def _changed(cluster: Cluster, about: Key, discovery: Discovery, access: Access) -> list[Change]:
    file = File(BACKUPS, about, "BackupContents", "contents")
    archive = await read_file(cluster, file, access, MOST_BYTES)
    try:
        items = await in_thread(lambda: read_archive(archive))
    except ArchiveError as error:
        raise CommandError(f"{BACKUPS.kind.name} {about}: {error}", "choose another backup") from error
    own = [item for item in items if item.key.namespace == about.namespace]
    asking = DryRuns(cluster.client, served_kinds(discovery), "")
    live = await asking.live(Step(item.key, item.key, item.body) for item in own)
    return await in_thread(lambda: changed_since(own, live))


def diff_text(rows: Sequence[Change], *, is_exact: bool) -> str:
    """Return a row for each object that is gone, new or changed."""
    if not rows:
        return "No differences." if is_exact else "Nothing is gone, new or written since the backup began."
    header = ("CHANGE", "KIND", "NAME", "FIELDS")
    return table(header, [(change.change, change.kind, change.name, _fields(change)) for change in rows])


def _fields(change: Change) -> str:
    return some(change.fields)


def hints(comparison: Comparison) -> list[str]:
    """Return what the rows do not say."""
    told = []
    if comparison.compared_with == WRITES:
        told.append(
            "you may not read the contents of the backup, so fields are those of whoever wrote the object since. "
            "A written object may still be the same"
        )
    if comparison.compared_with == NOTHING:
        told.append("which objects changed is not known: the policy does not let you read the contents of the backup")
    if comparison.following:
        told.append(f"{counted(comparison.following, 'change')} of Pods, ReplicaSets and the like follow automatically")
    not_compared = not_compared_text(comparison.not_compared)
    return [*told, *([not_compared] if not_compared else [])]


def as_data(about: Key, comparison: Comparison) -> dict[str, Any]:
    """Return the same for programs."""
    rows = [
        {"change": change.change, "kind": change.kind, "name": change.name, "fields": list(change.fields)}
        for change in comparison.changes
    ]
    causes = [{"kind": kind, "cause": cause} for kind, cause in comparison.not_compared.items()]
    return {
        "namespace": about.namespace,
        "name": about.name,
        "comparedWith": comparison.compared_with,
        "changes": rows,
        "following": comparison.following,
        "notCompared": causes,
    }
