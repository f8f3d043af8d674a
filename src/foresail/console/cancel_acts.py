"""Cancel a backup or a restore that only waits: its deletion, for Velero cannot stop what it has begun."""

from shlex import join

from foresail.cli.access.cluster import Cluster
from foresail.cli.tenant.delete import request_for
from foresail.cli.tenant.selection import read_request
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.console.acts import Act, Fields, replaced, seen
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES


def can_be_cancelled(request: TenantRequest) -> bool:
    """Whether a request only waits: nothing was made for it in Velero."""
    return request.is_open and not request.made.name and not request.is_terminating


async def cancel(cluster: Cluster, word: str, key: Key, fields: Fields) -> Act:
    """Return the deletion of a request that waits, as `delete` of the command line writes it."""
    family = BACKUPS if word == BACKUPS.word else RESTORES
    request = await read_request(cluster, family, key)
    uid = request.request.metadata.uid
    choices = (seen(fields.get("uid", uid)),)
    write = request_for(request, force=False)
    problem = replaced(family.kind, key, uid, choices[0].value) or _why_not(request)
    return Act(
        f"Cancel {family.word} {key.name}",
        "Deletes the request. Velero has not begun it, so no data is lost and nothing was restored.",
        "Delete the request",
        family.kind,
        key,
        write.body if write.body is not None else {"preconditions": {"uid": uid}},
        join(["foresail", family.word, "delete", key.name, "-n", key.namespace]),
        ("ns", key.namespace),
        creates=False,
        way_out="Keep it",
        deletes=write.body is None,
        choices=choices,
        is_stamped=write.body is not None,
        problem=problem,
        place=("ns", key.namespace, "cancel", family.word, key.name),
    )


def _why_not(request: TenantRequest) -> str:
    if can_be_cancelled(request):
        return ""
    if not request.is_open:
        return "It has ended: there is nothing to cancel."
    if request.is_terminating:
        return "It is being deleted already."
    return "Velero has it already and cannot stop it: delete it when it has ended."
