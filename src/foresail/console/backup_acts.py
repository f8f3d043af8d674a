"""Back up now, with options: a team's own backup where self-service serves it, else a Velero Backup."""

from datetime import datetime
from shlex import join

from foresail.api import velero
from foresail.cli.access.cluster import Cluster, may
from foresail.cli.access.self_service import is_enabled
from foresail.cli.errors import CommandError
from foresail.cli.tenant.new_request import check_kinds, problem_with_name
from foresail.console.acts import LONGEST_NAME, Act, Choice, Fields, object_of
from foresail.console.template_fields import template_of
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS

_NAME = "console-{:%Y%m%d%H%M%S}"


async def back_up(cluster: Cluster, velero_namespace: str, namespace: str, fields: Fields, now: datetime) -> Act:
    """Return a backup of a namespace, whole or in part."""
    is_own = await is_enabled(cluster, namespace) is not False or not await may(
        cluster, "create", velero.BACKUP, velero_namespace
    )
    template = template_of(fields)
    usual = _NAME if is_own else f"{namespace[:60]}-{_NAME}"
    text = fields.get("name", usual.format(now)).strip()
    name = text[:LONGEST_NAME]
    wrong = problem_with_name(text)
    problem = f"name: {wrong}" if wrong is not None else template.problem
    kind = BACKUPS.kind if is_own else velero.BACKUP
    key = Key(namespace if is_own else velero_namespace, name)
    if is_own:
        body = object_of(kind, key, {"backupSpec": dict(template.spec)})
        words = ["foresail", "backup", "create", name, *template.options, "-n", namespace]
        if not problem:
            problem = await _unknown_kinds(cluster, body)
    else:
        body = object_of(kind, key, {"includedNamespaces": [namespace], **template.spec})
        words = ["velero", "backup", "create", name, "--include-namespaces", namespace, *template.options]
        words += ["-n", velero_namespace]
    return Act(
        f"Back up {namespace} now",
        "Creates one backup of this namespace. It starts when its turn comes; no schedule changes.",
        "Back it up",
        kind,
        key,
        body,
        join(words),
        ("ns", namespace, BACKUPS.word, name) if is_own else ("ns", namespace),
        choices=(Choice("name", "Name", name), *template.choices),
        is_stamped=is_own,
        problem=problem,
        place=("ns", namespace, "back-up"),
    )


async def _unknown_kinds(cluster: Cluster, body: dict[str, object]) -> str:
    """Return that the cluster serves none of the kinds; empty if it serves one."""
    try:
        await check_kinds(cluster, BACKUPS, body)
    except CommandError as error:
        return error.sentence
    return ""
