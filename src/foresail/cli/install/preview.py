"""What a dry run of the installation tells about the Schedules that the operator would take over."""

from collections import Counter
from collections.abc import Iterator

from foresail.cli.access.cluster import Cluster
from foresail.cli.doctor.evidence import Evidence, gather
from foresail.cli.doctor.finding import some
from foresail.cli.doctor.velero_checks import runnable
from foresail.schedules.expression import diff_dialects
from foresail.schedules.observe import ScheduleView, Unread, location_of, location_row
from foresail.schedules.reasons import Reason
from foresail.schedules.rules import cannot_run, judge
from foresail.schedules.settings import Settings
from foresail.schedules.velero_server import identify_server

_UNREADABLE = "cannot be read", "cannot be read"
_LOCATION = "names a missing location", "name a missing location"
_DEFAULT = "has no location", "have no location"
_READ_ONLY = "names a read-only location", "name a read-only location"
_MEANING = "changes meaning", "change meaning"
_REFUSALS: dict[str, tuple[str, str]] = {
    Reason.INVALID: ("invalid", "invalid"),
    Reason.NEVER_FIRES: ("never fires", "never fire"),
    Reason.NAME_TOO_LONG: ("has too long a name", "have too long a name"),
}
_KINDS = (_UNREADABLE, *_REFUSALS.values(), _LOCATION, _DEFAULT, _READ_ONLY, _MEANING)


async def preview_schedules(cluster: Cluster, namespace: str, zone: str) -> list[str]:
    """Return how many Schedules can never run, or may run at other times, by the operator's own rules."""
    return schedule_lines(await gather(cluster, namespace, None), zone)


def schedule_lines(seen: Evidence, zone: str = "UTC") -> list[str]:
    """Return one line that counts, and one for each reason; expressions are read in that time zone."""
    found = dict(_classified(seen, zone))
    counts = Counter(found.values())
    parts = [f"{counts[kind]} {kind[counts[kind] > 1]}" for kind in _KINDS if counts[kind]]
    total = len(seen.schedules)
    if total and not parts:
        parts = ["each can run, and none changes meaning"]
    lines = [f"{total} Schedule{'' if total == 1 else 's'}{': ' if parts else ''}{', '.join(parts)}"]
    lines += [f"  {finding.says}; {finding.fix}" for finding in runnable(seen)]
    changed = [name for name, kind in found.items() if kind == _MEANING]
    if changed:
        tag = seen.servers[0].tag if seen.servers else ""
        lines.append(
            f"  {some(changed)}: Velero up to 1.18.2 and from 1.18.3 on read this differently, and its image tag"
            f" ({tag or 'none'}) is not a version; foresail cron diff-dialects shows the fires"
        )
    return lines


def _classified(seen: Evidence, zone: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the name of each Schedule that needs attention, with why."""
    known = identify_server(seen.servers, "", None)
    now = seen.server_time or seen.instant
    places = [location_row(location) for location in seen.locations]
    for name, row in sorted(seen.schedules.items()):
        if isinstance(row, Unread):
            yield name, _UNREADABLE
            continue
        view = ScheduleView(row, (), location_of(row.location, places), known, Settings(zone=zone))
        because = cannot_run(view, judge(view, now))
        if because is not None:
            yield name, _REFUSALS.get(because.reason) or _location_problem(view)
        elif known.dialect is None and diff_dialects(row.text, zone, now) is not None:
            yield name, _MEANING


def _location_problem(view: ScheduleView) -> tuple[str, str]:
    if view.location is not None:
        return _READ_ONLY
    return _LOCATION if view.schedule.location else _DEFAULT
