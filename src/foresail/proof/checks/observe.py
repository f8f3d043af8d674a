"""From the stores to the view of one check; it reads, and changes nothing."""

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from foresail.plan import Key, ReadResult
from foresail.proof.checks import rules, tenants
from foresail.proof.checks.rows import BackupRow, CheckRow, LocationRow
from foresail.proof.checks.state import CheckState
from foresail.proof.checks.view import CheckView, Environment, Found, Query, Tenant


def observe(state: CheckState, key: Key, now: datetime, read: ReadResult[Query, Found] | None) -> CheckView | None:
    """Collect what is known about a check; None if it cannot be read, because its sandbox may be in use.

    A tenant's check that cannot be read, or is being deleted, counts as deleted: it keeps no sandbox.
    """
    is_tenants = key.namespace != state.velero_namespace
    if key in state.checks.unread and not is_tenants:
        return None
    check = state.checks.get(key)
    if check is not None and check.is_tenants and check.is_terminating:
        check = None
    owner = Key(key.namespace if is_tenants else "", key.name)
    view = CheckView(
        key=key,
        check=check,
        tenant=_tenant(state, key, check, now) if is_tenants else None,
        sandboxes=tuple(state.sandboxes.by("check", owner)),
        quotas=tuple(state.quotas.by("check", owner)),
        restores=tuple(state.restores.by("check", owner)),
        config_maps=tuple(state.config_maps.by("check", owner)),
        downloads=tuple(state.downloads.by("check", owner)),
    )
    if check is None:
        return view if view.sandboxes or view.restores or view.config_maps or view.downloads else None
    if view.tenant is not None and tenants.refusal(check, view.tenant) is not None:
        return view
    return _with_backups(state, view, check, read)


def _with_backups(
    state: CheckState, view: CheckView, check: CheckRow, read: ReadResult[Query, Found] | None
) -> CheckView:
    """Add what a check that may run depends on: Backups, volumes, and what was read in the background."""
    is_tenants = view.tenant is not None
    backup = state.backup_in_check(check)
    location = state.location(backup) if backup is not None else None
    return replace(
        view,
        backups=tuple(_own_backups(state, check) if is_tenants else state.selected_backups(check)),
        authority=location.authority if location is not None else "",
        environment=_environment(state, backup, location),
        classes=tuple(sorted(row.name for row in state.classes)),
        taken_volumes=tuple(state.taken_volumes(view)),
        free_volumes={row.free_class or "": row.key.name for row in state.volumes.by("free", "")},
        data=None if is_tenants else state.data,  # a tenant starts no pods
        read_result=read,
    )


def _tenant(state: CheckState, key: Key, check: CheckRow | None, now: datetime) -> Tenant:
    """Return what holds for a check in the namespace of a tenant."""
    others = [row for row in state.checks.by("running for", "tenants") if row.key != key]
    ends = {row.key: until for row in others if (until := tenants.busy_until(row)) is not None and until > now}
    return Tenant(
        namespace=state.namespaces.get(Key("", key.namespace)),
        policy=state.policy(key.namespace),
        rank=state.ages.rank(check) if check is not None else 0,
        starts=(*state.config_maps.by("starts", key.namespace), *state.starts.of(key.namespace)),
        is_free=state.turns.is_free(key, ends),
        busy_until=min(ends.values(), default=None),
        sandboxes=tuple(state.sandboxes.by("tenant", key.namespace)),
    )


def _own_backups(state: CheckState, check: CheckRow) -> Iterator[BackupRow]:
    """Return the Backups that a tenant's check selects: of its own NonAdminBackups, by their records."""
    here = check.key.namespace
    namespace = state.namespaces.get(Key("", here))
    if namespace is None:
        return
    schedule = state.schedule(check)
    for backup in state.backups.by("completed of", here):
        request = state.requests.get(backup.owner) if backup.owner is not None else None
        if rules.is_of_tenant(check, backup, request, namespace, schedule, state.location(backup)):
            yield backup


def _environment(state: CheckState, backup: BackupRow | None, location: LocationRow | None) -> Environment:
    """Return what the evidence says about Velero and the bucket; credentials are not read."""
    return Environment(
        velero_image=next((row.image for row in state.servers.rows() if row.image), ""),
        backup_kubernetes=backup.kubernetes if backup is not None else "",
        location=location.key.name if location is not None else "",
        bucket=location.bucket if location is not None else "",
        prefix=location.prefix if location is not None else "",
    )
