"""When a Schedule that is not written yet would run: by the Velero, the zone and the policies of its namespace."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import msgspec

from foresail.api.instants import stamp
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.schedule.calendar import fires_of
from foresail.cli.schedule.create import checked
from foresail.cli.schedule.snapshot import evaluate, read_namespace, read_policies, row_of


@dataclass(frozen=True, slots=True)
class Upcoming:
    """The next runs of a Schedule, and the SchedulePolicy that moves them; an empty one if none applies."""

    starts: tuple[datetime, ...]
    policy: str = ""


async def upcoming_runs(
    cluster: Cluster, schedule: Mapping[str, Any], at: datetime, ahead: timedelta, most: int
) -> Upcoming:
    """Return when a Schedule would run; raise why it would not."""
    metadata = {"creationTimestamp": stamp(at), "uid": "", **schedule["metadata"]}
    known = await read_namespace(cluster, metadata["namespace"], argparse.Namespace(), at, await read_policies(cluster))
    checked(schedule["spec"]["schedule"], known.server, known.settings.zone, at)
    body = {**schedule, "metadata": metadata}
    evaluated = evaluate(row_of(msgspec.Raw(msgspec.json.encode(body))), body, known, at)
    if evaluated.verdict.refused is not None:
        raise CommandError(evaluated.verdict.refused.message, "correct the schedule")
    policy = evaluated.view.policy.name if evaluated.view.policy is not None else ""
    return Upcoming(tuple(islice(fires_of(evaluated, at, at + ahead, at), most)), policy)
