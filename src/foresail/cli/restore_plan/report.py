"""A restore plan for people and for programs."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from foresail.cli.output.table import table
from foresail.cli.output.words import counted
from foresail.proof.restore_plan.decide import SAME_FIELDS, Outcome, Verdict
from foresail.proof.restore_plan.items import ItemKey
from foresail.proof.restore_plan.refusals import By

_FIRST = 10
_EXPLAINED = (Outcome.REFUSED, Outcome.UPDATE, Outcome.EXISTS, Outcome.UNPREDICTABLE, Outcome.NOT_RESTORED)
_FIELDS = 3
KEPT_POD = "Kubernetes lets nobody change these fields of a pod, so it stays as it is. Delete it to have it restored"


Judged = Verdict
"""An item of a plan with what becomes of it, for who shows plans."""


def counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Return how many items have each outcome."""
    counter = Counter(verdict.outcome for verdict in verdicts)
    return {outcome.value: counter[outcome] for outcome in Outcome}


def worst_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the items with a reason to look at first, in the order of the sections of the text."""
    order = {outcome: place for place, outcome in enumerate((*_EXPLAINED, Outcome.CREATE, Outcome.UNCHANGED))}
    return sorted(verdicts, key=lambda verdict: order[verdict.outcome])


def as_data(
    backup: str, verdicts: Sequence[Verdict], left_out: Sequence[tuple[ItemKey, str]], warnings: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a plan for programs."""
    return {
        "backup": backup,
        "warnings": list(warnings),
        "counts": counts(verdicts),
        "items": [_item(verdict) for verdict in verdicts],
        "leftOut": [{**_key(key), "reason": why} for key, why in left_out],
    }


def _item(verdict: Verdict) -> dict[str, Any]:
    document: dict[str, Any] = {**_key(verdict.target), "outcome": verdict.outcome.value}
    if verdict.by is not None:
        document["refusedBy"] = verdict.by.value
    texts = {"reason": verdict.reason, "warning": verdict.warning}
    document |= {name: text for name, text in texts.items() if text}
    if verdict.changes:
        document["changes"] = [
            {"path": change.path, "inBackup": change.in_backup, "inCluster": change.in_cluster}
            for change in verdict.changes
        ]
    return document


def _key(key: ItemKey) -> dict[str, str]:
    return {"resource": key.resource, "namespace": key.namespace, "name": key.name}


def as_text(
    backup: str, verdicts: Sequence[Verdict], left_out: Sequence[tuple[ItemKey, str]], warnings: Sequence[str] = ()
) -> str:
    """Return a summary and the first reasons of each outcome."""
    rows = [(outcome, str(count)) for outcome, count in counts(verdicts).items() if count]
    if left_out:
        rows.append(("left out", str(len(left_out))))
    title = f"Restore of backup {backup}: {counted(len(verdicts), 'item')}"
    first = [title, *(f"Warning: {warning}" for warning in warnings)]
    parts = ["\n".join(first), table(("OUTCOME", "ITEMS"), rows)]
    for outcome in _EXPLAINED:
        parts += _section(outcome, [verdict for verdict in verdicts if verdict.outcome is outcome])
    if left_out:
        causes = Counter(why for _, why in left_out).most_common()
        parts.append(table(("LEFT OUT", "REASON"), _short([(str(count), why) for why, count in causes])))
    warned = [(str(verdict.target), verdict.warning) for verdict in verdicts if verdict.warning]
    if warned:
        parts.append(table(("WARNING FOR", "WARNING"), _short(warned)))
    return "\n\n".join(parts)


def _section(outcome: Outcome, verdicts: Sequence[Verdict]) -> list[str]:
    if not verdicts:
        return []
    told = [verdict for verdict in verdicts if verdict.reason != SAME_FIELDS and not _is_kept_pod(verdict)]
    rows = _short([(str(verdict.target), reason_text(verdict)) for verdict in told])
    same = sum(verdict.reason == SAME_FIELDS for verdict in verdicts)
    if same:
        rows.append((counted(same, "item"), SAME_FIELDS))
    pods = sum(map(_is_kept_pod, verdicts))
    if pods:
        rows.append((f"{counted(pods, 'pod')} that {'exists' if pods == 1 else 'exist'}", KEPT_POD))
    return [table((outcome.value.upper(), "REASON"), rows)]


def _is_kept_pod(verdict: Verdict) -> bool:
    """Whether it is a pod whose fields cannot be changed: the one in the backup has not been scheduled, for example."""
    is_fixed = verdict.outcome is Outcome.REFUSED and verdict.by is By.SCHEMA
    return is_fixed and verdict.target.resource == "pods" and bool(verdict.changes)


def _short(rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    rest = len(rows) - _FIRST
    return [*rows[:_FIRST], *([("…", f"{rest} more; see -o json")] if rest > 0 else [])]


def reason_text(verdict: Verdict) -> str:
    """Return why an item has its outcome, with the first fields that differ."""
    by = f"{verdict.by.value}: " if verdict.by is not None else ""
    fields = [
        f"{change.path}: {change.in_cluster or '(absent)'} -> {change.in_backup or '(absent)'}"
        for change in verdict.changes[:_FIELDS]
    ]
    if len(verdict.changes) > _FIELDS:
        fields.append("…")
    reason = verdict.reason.partition("\n")[0]  # below it the API server has the difference of the whole object
    parts = [*([by + reason] if reason else []), *fields]
    return "; ".join(parts)
