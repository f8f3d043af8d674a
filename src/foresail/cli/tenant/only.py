"""`foresail restore create --only KIND/NAME`: exactly the named objects of a backup.

Velero has no filter by name. Where the named objects are all that the backup has of their kinds, a NonAdminRestore of
these kinds is exact. Otherwise the caller writes them, with the caller's own rights: what the plan showed, and only
over the version that it showed.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

import msgspec

from foresail.cli.access.cluster import Cluster, refusal
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.options.values import read_list, spelled
from foresail.cli.output.messages import confirm, hint
from foresail.cli.output.words import counted
from foresail.cli.restore_plan.dry_runs import Write, served_kinds
from foresail.cli.restore_plan.planning import RestorePlan, make_plan
from foresail.cli.restore_plan.report import as_text
from foresail.cli.tenant.contents import kinds_served, read_contents
from foresail.cli.tenant.files import NotServedError, access_of, check_has_files
from foresail.cli.tenant.held import HeldKind
from foresail.cli.tenant.restore_plan import read_inputs
from foresail.cli.tenant.selection import read_request
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key
from foresail.proof.restore_plan.archive import MOST_BYTES
from foresail.proof.restore_plan.decide import Outcome
from foresail.proof.restore_plan.items import ItemKey, Served, ServedKind
from foresail.selfservice.access.rules import BRINGS
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.results.restored import CHANGE_BACK
from foresail.selfservice.specs.kinds import COME_WITH_CLAIMS, NEED_TRUST

_VOLUMES = {*NEED_TRUST, *COME_WITH_CLAIMS} - set(BRINGS)
_BY_NAME = "volumes cannot be restored by name, because their data comes with other objects"
_ALONE = ("include_resources", "exclude_resources", "selector", "or_selector", "to")
_OF_REQUESTS = (
    *("labels", "annotations", "wait"),
    *("restore_volumes", "item_operation_timeout", "parallel_files_download", "write_sparse_files"),
)
_WRITTEN = (Outcome.CREATE, Outcome.UPDATE)
_LEFT = (Outcome.EXISTS, Outcome.UNCHANGED)

Picked = frozenset[ItemKey]
"""Objects that are restored by their names."""

_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._:]{0,251}[A-Za-z0-9])?")  # also of Roles
_LONGEST = 300

Named = Mapping[tuple[str, str], Collection[str]]
"""The named objects by the group and kind that they have."""


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that would restore something else, or that only print a request."""
    given = [spelled(option) for option in _ALONE if getattr(args, option)]
    given += [f"-o {args.output}"] if args.output != "table" else []
    given += [f"--dry-run={args.dry_run}"] if args.dry_run == "client" else []
    if given:
        problem = f"--only cannot be combined with {', '.join(given)}"
        raise UsageError(problem, "name the objects with --only KIND/NAME,... alone")
    read_only(args.only)


def read_only(given: Sequence[str]) -> list[tuple[str, str]]:
    """Return the kind and name of each object."""
    objects = []
    for word in read_list(given):
        kind, slash, name = word.partition("/")
        if not (kind and slash and name) or "/" in name:
            raise UsageError(f"--only: {word!r} is not KIND/NAME", "write --only configmap/settings,deployment/web")
        objects.append((kind, name))
    return objects


async def restore_only(cluster: Cluster, args: argparse.Namespace) -> tuple[str, ...]:
    """Restore the named objects as the caller, or return the kinds with which Velero restores exactly these."""
    about = Key(args.namespace, args.from_backup)
    named = read_only(args.only)
    check_has_files(await read_request(cluster, BACKUPS, about), "contents")
    served = served_kinds(await kinds_served(cluster))
    kinds = [_kind(kind, name, served) for kind, name in named]
    held = await read_contents(cluster, about, access_of(args))
    wanted: dict[tuple[str, str], set[str]] = {}
    for kind, (word, name) in zip(kinds, named, strict=True):
        if not _is_held(kind, name, held):
            problem = f"backup {about} has no {word}/{name}"
            raise CommandError(problem, f"foresail backup contents {about.name} -n {about.namespace} --names")
        wanted.setdefault((kind.group, kind.kind), set()).add(name)
    resources = tuple(sorted({kind.resource for kind in kinds}))
    if is_exact(wanted, held):
        are, them = ("is", "it") if len(named) == 1 else ("are", "them")
        names = ", ".join(f"{word}/{name}" for word, name in named)
        text = f"{names} {are} all that the backup has of {', '.join(resources)}, so Velero restores {them} as"
        print(f"{text} NonAdminRestore {args.namespace}/{args.name}.", file=sys.stderr)
        return resources
    keys = frozenset(
        ItemKey(kind.resource, about.namespace, name) for kind, (_, name) in zip(kinds, named, strict=True)
    )
    await _restore_as_caller(cluster, args, resources, keys)
    return ()


def _kind(word: str, name: str, served: Served) -> ServedKind:
    kind = served.kind(served.full_name(word))
    if kind is None:
        raise CommandError(f"the cluster does not serve {word}", "list the kinds with kubectl api-resources")
    if kind.resource in _VOLUMES:
        raise CommandError(
            f"{word}/{name}: {_BY_NAME}",
            "restore the kinds: --include-resources persistentvolumeclaims, with -l to select",
        )
    if not kind.is_namespaced:
        raise CommandError(f"{word}/{name} has no namespace, so no restore of yours has it", "leave it out")
    return kind


def _is_held(kind: ServedKind, name: str, held: Sequence[HeldKind]) -> bool:
    return any((item.group, item.kind) == (kind.group, kind.kind) and name in item.names for item in held)


def is_exact(wanted: Named, held: Sequence[HeldKind]) -> bool:
    """Whether a restore of the named kinds is one of the named objects alone: they are all, and bring none along."""
    if any(kind == "Pod" and not group for group, kind in wanted):
        return False
    names = {(kind.group, kind.kind): set(kind.names) for kind in held if kind.is_namespaced}
    return all(names.get(kind) == set(objects) for kind, objects in wanted.items())


async def _restore_as_caller(
    cluster: Cluster, args: argparse.Namespace, resources: Sequence[str], keys: frozenset[ItemKey]
) -> None:
    kinds = ", ".join(resources)
    print(
        f"The backup has more of {kinds}, and Velero has no filter by name: the objects are written as yourself.",
        file=sys.stderr,
    )
    unused = [spelled(option) for option in _OF_REQUESTS if getattr(args, option) not in (None, False, [])]
    if unused:
        text = "no NonAdminRestore is made, and all is restored when this command ends"
        hint(f"{text}, so these have no effect: {', '.join(unused)}")
    asked = {"backupName": args.from_backup, "includedResources": list(resources)}
    given = {
        "existingResourcePolicy": args.existing_resource_policy,
        "preserveNodePorts": args.preserve_nodeports,
    }
    asked |= {name: value for name, value in given.items() if value is not None}
    try:
        inputs = await read_inputs(cluster, args.namespace, asked, access_of(args), MOST_BYTES)
    except NotServedError as error:
        other = f"--include-resources {','.join(resources)} restores all of the kind by Velero"
        raise NotServedError(error.problem, f"{other}. {error.hint}") from error
    plan = await make_plan(cluster, cluster.client, replace(inputs, only=keys))
    print(as_text(plan.backup, plan.verdicts, (), plan.warnings), flush=True)
    check_only(plan)
    writes = writes_of(plan)
    if _is_agreed(args, plan, len(writes)):
        await write_as_caller(cluster, writes, lambda text: print(text, file=sys.stderr))


def writes_of(plan: RestorePlan) -> list[Write]:
    """Return what has to be written to restore the objects of a plan as the caller."""
    planned = {verdict.target for verdict in plan.verdicts if verdict.outcome in _WRITTEN}
    return [write for write in plan.writes if write.target in planned]


def writes_digest(writes: Iterable[Write]) -> str:
    """Return the digest of writes, by which a person agrees to what was shown: these changes of these versions."""
    lines = [
        f"{write.target} {write.asked.is_patch} {json.dumps(write.asked.body, sort_keys=True)}" for write in writes
    ]
    return sha256("\n".join(lines).encode()).hexdigest()


def check_only(plan: RestorePlan) -> None:
    """Refuse all if one cannot be restored: half of what was asked for is not what was asked for."""
    refused = [
        verdict for verdict in plan.verdicts if verdict.target.namespace and verdict.outcome not in (*_WRITTEN, *_LEFT)
    ]
    if refused:
        first = refused[0]
        raise CommandError(f"{first.target}: {first.reason}; nothing was restored", "leave it out of --only")


def is_pickable(key: ItemKey) -> bool:
    """Whether an object can be restored by its name: the data of volumes comes with other objects."""
    return bool(key.namespace) and key.resource not in _VOLUMES


def picked_of(words: Iterable[str], namespace: str) -> Picked:
    """Return the objects that RESOURCE/NAME words name; raise which of them is none."""
    keys = set[ItemKey]()
    for word in words:
        resource, _, name = word.partition("/")
        key = ItemKey(resource, namespace, name)
        if not (_RESOURCE.fullmatch(resource) and _NAME.fullmatch(name) and is_pickable(key)):
            raise UsageError(f"{word[:_LONGEST]!r} cannot be restored by its name", "plan the restore again")
        keys.add(key)
    return frozenset(keys)


def word_of(key: ItemKey) -> str:
    """Return RESOURCE/NAME."""
    return f"{key.resource}/{key.name}"


def _is_agreed(args: argparse.Namespace, plan: RestorePlan, number: int) -> bool:
    """Whether there is something to write, and the caller wants it."""
    left = sum(verdict.outcome is Outcome.EXISTS for verdict in plan.verdicts)
    if left:
        text, them = ("object exists and differs", "it") if left == 1 else ("objects exist and differ", "them")
        hint(f"{left} {text}; to change {them} back: {CHANGE_BACK}")
    if not number:
        print("Nothing to restore.", file=sys.stderr)
        return False
    if args.dry_run:
        print(f"{counted(number, 'object')} would be restored (server dry run).", file=sys.stderr)
        return False
    if not args.confirm:
        question = f"Restore {counted(number, 'object')} as yourself?"
        confirm(question, "restore without confirmation (no terminal)", "nothing was restored")
    return True


async def write_as_caller(cluster: Cluster, writes: Sequence[Write], tell: Callable[[str], None]) -> None:
    """Write the objects with the caller's own rights, and only over the versions that the plan has read."""
    done: list[str] = []
    for write in writes:
        key = Key(write.target.namespace, write.target.name)
        client = cluster.client
        send = client.merge if write.asked.is_patch else client.create
        made = await send(write.kind, key, write.asked.body, msgspec.Raw)
        if isinstance(made, Failure):
            raise _stopped(write, key, made, done)
        done.append(str(write.target))
        tell(f"{write.target} {'changed back' if write.asked.is_patch else 'created'}.")


def _stopped(write: Write, key: Key, failure: Failure, done: Sequence[str]) -> CommandError:
    """Return why the work ends here, and what was restored before."""
    error = refusal(failure, "patch" if write.asked.is_patch else "create", write.kind, key)
    problem = error.problem
    if failure.cause in (Cause.CONFLICT, Cause.ALREADY_EXISTS):
        problem = f"{write.target} has changed since the plan was made, so it is left alone"
    before = f"; restored before that: {', '.join(done)}" if done else "; nothing was restored"
    again = "run the command again to see what it would do now"
    return CommandError(f"{problem}{before}", again if problem != error.problem else error.hint)
