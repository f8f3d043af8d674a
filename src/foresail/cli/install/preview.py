"""What a dry run of the installation tells about the Schedules that the operator would take over."""

from foresail.cli.access.cluster import Cluster
from foresail.cli.doctor.evidence import Evidence, gather
from foresail.cli.doctor.velero_checks import runnable


async def preview_schedules(cluster: Cluster, namespace: str) -> list[str]:
    """Return how many Schedules there are, and which of them can never run, by the operator's own rules."""
    return schedule_lines(await gather(cluster, namespace, None))


def schedule_lines(seen: Evidence) -> list[str]:
    """Return one line about all Schedules, and one for each reason for which some can never run."""
    count = len(seen.schedules)
    problems = list(runnable(seen))
    verdict = "every one can run" if not problems else "some can never run"
    first = f"{count} Schedule{'' if count == 1 else 's'} would be taken over" + (f"; {verdict}" if count else "")
    return [first, *(f"  {each.says}; {each.fix}" for each in problems)]
