"""Which Primers a command is about, and where they are."""

import argparse
import sys
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from foresail.api.batch import CRON_JOB
from foresail.api.instants import instant
from foresail.api.marks import WARM_UP, WARM_UP_METHOD, WARM_UP_STATUS
from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError, UsageError
from foresail.plan import Key
from foresail.primers.annotated import read_record
from foresail.primers.reasons import Reason
from foresail.primers.rows import annotated_cron_job, annotation_key
from foresail.primers.status import READY, WARMING

T = TypeVar("T")
Document = dict[str, Any]
_any = msgspec.json.Decoder(Document)


def check_selection(args: argparse.Namespace, *, everything: bool = True) -> None:
    """Refuse names combined with -l, -A or --all; a command that changes objects needs one of them."""
    is_all = getattr(args, "all", False)
    if args.names and (args.selector or args.all_namespaces or is_all):
        problem = f"Primer {args.names[0]}: names cannot be combined with -l, -A or --all"
        raise UsageError(problem, "specify either names or a selection")
    annotated = next((name for name in args.names if "/" in name), None)
    if annotated and not everything:
        problem = f"{annotated} is primed by an annotation, not by a Primer"
        raise UsageError(problem, f"remove it: kubectl annotate {annotated} {WARM_UP}-")
    if not (everything or args.names or args.selector or is_all):
        raise UsageError("no Primer is specified", "specify names, -l SELECTOR or --all")


async def selected_primers(cluster: Cluster, args: argparse.Namespace) -> list[Document]:
    """Read the Primers that are named or selected, or all of them; report if there is none."""
    items = await read_primers(cluster, args)
    if not items:
        report_none(args)
    return items


async def read_primers(cluster: Cluster, args: argparse.Namespace) -> list[Document]:
    """Read the Primers that are named or selected, or all of them."""
    if args.names:
        keys = [Key(args.namespace, name) for name in args.names]
        return [as_document(await cluster.read(PRIMER, key, msgspec.Raw)) for key in keys]
    listed = await cluster.listed(PRIMER, args.namespace, args.selector or "")
    return sorted(map(as_document, listed), key=key_of)


def report_none(args: argparse.Namespace) -> None:
    """Report that no Primer is selected."""
    labels = f" with labels {args.selector}" if args.selector else ""
    where = f" in namespace {args.namespace}" if args.namespace else ""
    print(f"No Primers found{where}{labels}", file=sys.stderr)


def as_document(raw: msgspec.Raw) -> Document:
    """Return a Primer as it came, with its kind."""
    return {"apiVersion": PRIMER.api_version, "kind": PRIMER.name, **_any.decode(raw)}


def key_of(primer: Document) -> Key:
    """Return the namespace and the name of a Primer."""
    return Key(primer["metadata"]["namespace"], primer["metadata"]["name"])


async def selected(cluster: Cluster, args: argparse.Namespace) -> list[Document]:
    """Read Primers and annotated CronJobs: those named or selected, or all; `cronjob/NAME` names a CronJob."""
    named = [Key(args.namespace, name) for name in args.names]
    own = [object_key for key in named if (object_key := annotated_cron_job(key)) is not None]
    if named:
        others = [key.name for key in named if annotated_cron_job(key) is None]
        primers = await read_primers(cluster, _with_names(args, others)) if others else []
        return [*primers, *[await _named(cluster, key) for key in own]]
    primers = await read_primers(cluster, args)
    annotated = await read_annotated(cluster, args.namespace, args.selector or "")
    if not primers and not annotated:
        report_none(args)
    return [*primers, *annotated]


def is_annotated(document: Document) -> bool:
    """Whether a document is a CronJob and no Primer."""
    return bool(document["kind"] == CRON_JOB.name)


def queue_key_of(document: Document) -> Key:
    """Return the key under which the operator reconciles a Primer or an annotated CronJob."""
    key = key_of(document)
    return annotation_key(key) if is_annotated(document) else key


def in_primers_form(document: Document, at: datetime) -> Document:
    """Return a Primer as it is, and an annotated CronJob in the form of a Primer."""
    if not is_annotated(document):
        return document
    metadata = document["metadata"]
    annotations = document["metadata"]["annotations"]
    spec = {"cronJob": metadata["name"], "warmUp": annotations.get(WARM_UP, "-")}
    if annotations.get(WARM_UP_METHOD):
        spec["method"] = annotations[WARM_UP_METHOD]
    name = annotation_key(key_of(document)).name
    status = _status(annotations.get(WARM_UP_STATUS, ""), metadata["uid"], at)
    return {**document, "metadata": {**metadata, "name": name}, "spec": spec, "status": status}


def _status(text: str, uid: str, at: datetime) -> Document:
    """Return a record as the status of a Primer; empty if the operator has recorded nothing."""
    recorded = read_record(text, uid).cron_jobs
    if not recorded:
        return {}
    (primed,) = msgspec.to_builtins(recorded)
    reason = primed.get("reason")
    warms = instant(primed.get("nextWarmUp", ""))
    is_warming = warms is not None and warms <= at
    conditions = [
        _condition(READY, reason is None, reason or Reason.READY, primed.get("message", "One CronJob is primed.")),
        _condition(WARMING, is_warming, Reason.WARMING if is_warming else Reason.WAITING, ""),
    ]
    times = {name: primed[name] for name in ("nextFire", "nextWarmUp") if name in primed}
    return {**times, "matched": 1, "cronJobs": [primed], "conditions": conditions}


def _condition(kind: str, is_true: bool, reason: str, message: str) -> dict[str, Any]:  # noqa: FBT001 - its status
    return {"type": kind, "status": str(is_true), "reason": str(reason), "message": message}


async def _named(cluster: Cluster, key: Key) -> Document:
    document = _as_document(await cluster.read(CRON_JOB, key, msgspec.Raw))
    if WARM_UP not in (document["metadata"].get("annotations") or {}):
        raise CommandError(f"CronJob {key} has no annotation {WARM_UP}", "specify a Primer, or annotate the CronJob")
    return document


async def read_annotated(cluster: Cluster, namespace: str, labels: str = "") -> list[Document]:
    """Read the CronJobs that are primed by annotations; none, with a message, if CronJobs cannot be listed."""
    try:
        cron_jobs = map(_as_document, await cluster.listed(CRON_JOB, namespace, labels))
    except CommandError as error:
        print(f"cannot list annotated CronJobs: {error.problem}", file=sys.stderr)
        return []
    return sorted((item for item in cron_jobs if WARM_UP in (item["metadata"].get("annotations") or {})), key=key_of)


def _as_document(raw: msgspec.Raw) -> Document:
    return {"apiVersion": CRON_JOB.api_version, "kind": CRON_JOB.name, **_any.decode(raw)}


def _with_names(args: argparse.Namespace, names: list[str]) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(args), "names": names})
