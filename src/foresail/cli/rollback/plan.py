"""The plan of a Rollback as people read it: what is created, changed with its fields, deleted, suspended, and left."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from foresail.api.rollback import NamedGroup, RollbackPlan, RollbackSpec
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError, TooLargeError, UnreachableError
from foresail.cli.output.messages import hint
from foresail.cli.output.table import table
from foresail.cli.output.words import counted
from foresail.cli.restore_plan.dry_runs import served_kinds
from foresail.cli.restore_plan.planning import RestorePlan, make_plan
from foresail.cli.tenant.contents import kinds_served
from foresail.cli.tenant.diff import WRITES, Comparison, compared
from foresail.cli.tenant.files import Access, NotServedError
from foresail.cli.tenant.held import GONE, NEW
from foresail.cli.tenant.restore_plan import read_inputs
from foresail.plan import Key
from foresail.proof.restore_plan.archive import MOST_BYTES
from foresail.proof.restore_plan.decide import Outcome
from foresail.proof.restore_plan.items import ItemKey, Served
from foresail.proof.restore_plan.refusals import By
from foresail.reporting import some
from foresail.rollback.build import restore_spec
from foresail.rollback.kinds import ACCOUNT, full_name

_MOST_NAMED = 20
_HEADER = ("PLAN", "OBJECT", "FIELDS")

Fields = Mapping[str, Sequence[str]]
"""The fields that differ, by the object that has them as plural.group/name."""


_BY_ANYBODY = (By.SCHEMA, By.QUOTA)
"""Who refuses a write whoever sends it: the caller's dry run says that Velero would fail too."""


@dataclass(frozen=True, slots=True)
class Differences:
    """The fields that differ from a backup, None if they are not known, and what cannot be as in the backup."""

    fields: Fields | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    """By the object, as plural.group/name: the words of the API server."""


async def find_differences(cluster: Cluster, namespace: str, spec: RollbackSpec, access: Access) -> Differences:
    """Return what differs from the backup, as far as the caller may know it, with a hint if that is not all."""
    try:
        return await _find_differences(cluster, namespace, spec, access)
    except UnreachableError:
        raise
    except CommandError as error:
        hint(f"which fields change is not known: {error.problem}")
        return Differences()


async def _find_differences(cluster: Cluster, namespace: str, spec: RollbackSpec, access: Access) -> Differences:
    try:
        asked = restore_spec(spec, spec.to, ())
        inputs = await read_inputs(cluster, namespace, asked, access, MOST_BYTES)
    except (NotServedError, TooLargeError):
        comparison = await compared(cluster, Key(namespace, spec.to), access)
        served = served_kinds(await kinds_served(cluster))
        if comparison.compared_with != WRITES:
            return Differences()
        hint(
            "you may not read the contents of the backup, so fields are those of whoever wrote the object since. A"
            " written object may still be the same"
        )
        return Differences(by_object(comparison, served))
    return differences_of(await make_plan(cluster, cluster.client, inputs))


def differences_of(plan: RestorePlan) -> Differences:
    """Return the differences that a restore over what exists would change back, and those that it could not."""
    changed = (verdict for verdict in plan.verdicts if verdict.changes and verdict.outcome is not Outcome.NOT_RESTORED)
    refused = (verdict for verdict in plan.verdicts if verdict.outcome is Outcome.REFUSED and verdict.by in _BY_ANYBODY)
    return Differences(
        {_spelled(verdict.target): tuple(change.path for change in verdict.changes) for verdict in changed},
        {_spelled(verdict.target): verdict.reason for verdict in refused},
    )


def _spelled(target: ItemKey) -> str:
    return f"{target.resource}/{target.name}"


def by_object(comparison: Comparison, served: Served) -> Fields:
    """Return the fields of what changed, by the object."""
    changed = (change for change in comparison.changes if change.change not in (GONE, NEW))
    return {f"{_resource(change.kind, served)}/{change.name}": change.fields for change in changed}


def _resource(title: str, served: Served) -> str:
    """Return the plural.group of a kind that is written as Kind.group."""
    kind, dot, group = title.partition(".")
    return served.full_name(f"{kind.lower()}{dot}{group}")


def plan_text(spec: RollbackSpec, plan: RollbackPlan, fields: Fields | None) -> str:
    """Return a row for each object that is not left as it is, and one for each group that is."""
    rows = list(_rows(spec, plan, fields))
    return table(_HEADER, rows) if rows else "Nothing differs that a Rollback could change."


def _rows(spec: RollbackSpec, plan: RollbackPlan, fields: Fields | None) -> Iterator[tuple[str, str, str]]:
    yield from _named("create", plan.created)
    if fields is None:
        yield from _named("change if differing", plan.existing)
    else:
        names = [name for name in plan.existing.names if name in fields]
        hidden = plan.existing.count - len(plan.existing.names)
        yield from ((_change_word(name), name, _field_text(fields[name])) for name in names)
        if len(plan.existing.names) > len(names):
            yield "unchanged", counted(len(plan.existing.names) - len(names), "object"), ""
        if hidden:
            yield "change if differing", f"{counted(hidden, 'more object')}", ""
    yield from _named("delete" if spec.prune else "keep, not in the backup", plan.extra)
    yield from _named("replace its volume", plan.replaced)
    yield from _named("stop meanwhile", plan.stopped)
    yield from _named("suspend meanwhile", plan.suspended)
    yield from _named("restore, not compared", plan.not_compared)
    yield from _named("leave as it is", plan.left_out)


def _change_word(name: str) -> str:
    """Return what a restore does with an object that differs: Velero takes nothing away from a ServiceAccount."""
    return "add to" if name.startswith(f"{full_name(ACCOUNT)}/") else "change"


def _named(word: str, group: NamedGroup) -> Iterator[tuple[str, str, str]]:
    shown = group.names[:_MOST_NAMED]
    yield from ((word, name, "") for name in shown)
    if group.count > len(shown):
        yield word, f"and {group.count - len(shown):,} more", ""


def _field_text(fields: Sequence[str]) -> str:
    return some(fields)


def summary(spec: RollbackSpec, plan: RollbackPlan) -> str:
    """Return the plan in one line."""
    extra = "deleted" if spec.prune else "not in the backup, which stay"
    counts = (
        (plan.created.count, "created"),
        (plan.existing.count, "changed back if they differ"),
        (plan.extra.count, extra),
        (plan.replaced.count, "with another volume"),
        (plan.stopped.count, "stopped meanwhile"),
        (plan.suspended.count, "suspended meanwhile"),
    )
    return ", ".join(f"{number:,} {word}" for number, word in counts if number) or "nothing"
