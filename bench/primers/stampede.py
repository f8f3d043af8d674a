"""How late placeholders are when many warm-ups are due in the same minute."""

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench import MeasurementError
from bench.primers.waiting import until
from testbed import Cluster, Options
from tests.cluster import operators, primers

_API = "/apis/foresail.dev/v1alpha1/primers"
_AT_ONCE = 200  # objects in one apply


def stampede(count: int) -> dict[str, object]:
    """Let so many warm-ups be due at the same instant."""
    with (
        Cluster.create("bench-primers", Options(), owned=True) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        primers.install(cluster)
        flags = (f"--primer-placeholders-per-namespace={count}", f"--primer-placeholders={count}")
        with operators.running(cluster, Path(folder), *primers.FLAGS, *flags):
            begins = primers.next_minute(60 + count / 10)
            fire = begins + timedelta(minutes=10)
            schedule = f"{fire.minute} {fire.hour} {fire.day} {fire.month} *"
            names = [f"job-{number}" for number in range(count)]
            for start in range(0, count, _AT_ONCE):
                some = names[start : start + _AT_ONCE]
                cluster.apply(*[primers.cron_job(name, schedule, "none") for name in some])
                cluster.apply(*[primers.primer(name, "10m") for name in some])
            until(lambda: _ready(cluster) == count, 120)
            if datetime.now(UTC) >= begins:  # noqa: TID251 - the clock of the real cluster
                raise MeasurementError("the Primers were not made before the first warm-up: give it more time")
            until(lambda: len(primers.placeholders(cluster)) == count, 900)
            late = sorted(_lateness(each, begins) for each in primers.placeholders(cluster))
    print(f"{count} warm-ups at once: the median came {late[count // 2]:g} s late, the last {late[-1]:g} s", flush=True)
    return {"warm_ups": count, "stampede_p99_s": late[count * 99 // 100 - 1]}


def _ready(cluster: Cluster) -> int:
    return len([each for each in cluster.listed(_API) if each.get("status", {}).get("nextWarmUp")])


def _lateness(pod: dict[str, Any], begins: datetime) -> float:
    # The API server notes whole seconds, rounded down, so up to one more may have passed.
    return (datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) - begins).total_seconds() + 1
