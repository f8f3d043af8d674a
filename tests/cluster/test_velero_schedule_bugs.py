"""What Velero's own schedule controller does wrong, each mistake shown to be absent here, on a real cluster.

Velero itself is at rest: what it would do to Backups, locations and requests is done by the tests, in their own time.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from foresail.api.instants import whole
from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster.operators import USER, Operator, running
from tests.cluster.schedules import (
    Eventually,
    backups,
    created,
    days_apart,
    end_backups,
    instant_of,
    phase,
    put_status,
    reasons,
    schedule,
    show,
    shown,
    slots,
    velero_at_rest,
)

PERIOD = timedelta(seconds=6)
OFTEN = f"@every {PERIOD.seconds}s"
POLL = 60.0  # seconds: how often Velero's controller looks at every Schedule, and patches it
IDLE = [f"idle-{number:02}" for number in range(20)]
BUSY = (
    "New",
    "Queued",
    "ReadyToStart",
    "InProgress",
    "WaitingForPluginOperations",
    "WaitingForPluginOperationsPartiallyFailed",
    "Finalizing",
    "FinalizingPartiallyFailed",
)


@dataclass(frozen=True)
class Stage:
    """The cluster without a Velero server, and the operator that runs in it unless a test starts another."""

    cluster: Cluster
    operator: Operator
    begun: float  # when the idle Schedules had been seen
    since: datetime  # the same, on the wall

    @contextmanager
    def another(self, folder: Path, *flags: str) -> Iterator[Operator]:
        """Run the operator with other flags for a while."""
        self.operator.kill()
        try:
            with running(self.cluster, folder, *flags) as other:
                yield other
        finally:
            self.operator.start()


@pytest.fixture(scope="module")
def stage(
    schedule_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, eventually: Eventually
) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("bugs")
    with velero_at_rest(schedule_cluster) as cluster, running(cluster, folder) as operator:
        cluster.apply(*(schedule(name, "0 3 29 2 *") for name in IDLE))
        eventually(lambda: all(phase(item) == "Enabled" for item in shown(cluster).values()), 60)
        yield Stage(cluster, operator, time.monotonic(), now())


@contextmanager
def server_arguments(cluster: Cluster, arguments: list[str]) -> Iterator[None]:
    """Give Velero's Deployment other arguments for a while."""
    before = cluster.get("deployment", "velero", "--namespace=velero")["spec"]["template"]["spec"]["containers"][0]
    set_arguments(cluster, arguments)
    try:
        yield
    finally:
        set_arguments(cluster, before["args"])


def set_arguments(cluster: Cluster, arguments: list[str]) -> None:
    change = [{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": arguments}]
    command = ("patch", "deployment", "velero", "--namespace=velero", "--type=json")
    cluster.kubectl(*command, f"--patch={json.dumps(change)}")


@contextmanager
def image_tag(cluster: Cluster, tag: str) -> Iterator[None]:
    """Give Velero's Deployment another image for a while."""
    before = cluster.get("deployment", "velero", "--namespace=velero")["spec"]["template"]["spec"]["containers"][0]
    set_image(cluster, f"velero/velero:{tag}")
    try:
        yield
    finally:
        set_image(cluster, before["image"])


def set_image(cluster: Cluster, image: str) -> None:
    cluster.kubectl("set", "image", "deployment/velero", f"velero={image}", "--namespace=velero")


# Phases


def test_queued_and_every_other_phase_that_has_not_ended_counts_as_busy(stage: Stage, eventually: Eventually) -> None:
    cluster = stage.cluster
    names = {f"busy-{word.lower()}": word for word in BUSY}
    cluster.apply(*(schedule(name, OFTEN) for name in names))
    eventually(lambda: all(slots(cluster, name) for name in names), 60)
    for name, word in names.items():
        put_status(cluster, "backups", backups(cluster, name)[0]["metadata"]["name"], phase=word)
    time.sleep(2 * PERIOD.total_seconds())
    for name, word in names.items():
        assert len(slots(cluster, name)) == 1
        eventually(lambda name=name: stage.operator.figures(name)['held{reason="Busy"}'] == 1, 60)  # type: ignore[misc]
        eventually(lambda name=name, word=word: f"is {word};" in reasons(cluster, name)["Busy"], 60)  # type: ignore[misc]
    for name in names:
        put_status(cluster, "backups", backups(cluster, name)[0]["metadata"]["name"], phase="Completed")
    eventually(lambda: all(len(slots(cluster, name)) == 2 for name in names), 60)
    cluster.kubectl("delete", "schedules.velero.io", *names, "--namespace=velero")


# Expressions


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no-such-day", "0 0 30 2 *"),
        ("manual", "@manual"),
        ("too-rare", "0 0 29 2 1"),
    ],
)
def test_an_expression_that_never_fires_makes_no_backup_instead_of_one_each_minute(
    stage: Stage, eventually: Eventually, name: str, text: str
) -> None:
    stage.cluster.apply(schedule(name, text))
    eventually(lambda: phase(show(stage.cluster, name)) == "FailedValidation", 60)
    eventually(lambda: "NeverFires" in reasons(stage.cluster, name), 60)
    assert slots(stage.cluster, name) == []
    assert text in show(stage.cluster, name)["status"]["validationErrors"][0]


def test_a_schedule_that_was_created_paused_is_validated_too(stage: Stage, eventually: Eventually) -> None:
    stage.cluster.apply(schedule("paused-and-wrong", "every day", paused=True))
    eventually(lambda: phase(show(stage.cluster, "paused-and-wrong")) == "FailedValidation", 60)
    stage.cluster.apply(schedule("paused-and-wrong", "@daily", paused=True))
    eventually(lambda: phase(show(stage.cluster, "paused-and-wrong")) == "Enabled", 60)
    assert "validationErrors" not in show(stage.cluster, "paused-and-wrong")["status"]


def test_an_edited_expression_does_not_run_at_once(stage: Stage, eventually: Eventually) -> None:
    cluster, name = stage.cluster, "edited"
    cluster.apply(schedule(name, "@every 1h"))
    eventually(lambda: phase(show(cluster, name)), 60)
    time.sleep(PERIOD.total_seconds() + 1)
    edited = whole(now())
    cluster.apply(schedule(name, OFTEN))
    eventually(lambda: slots(cluster, name), 60)
    assert slots(cluster, name)[0] >= edited + PERIOD


def test_an_interval_does_not_drift(stage: Stage, eventually: Eventually) -> None:
    cluster, name = stage.cluster, "steady"
    cluster.apply(schedule(name, OFTEN))

    def three() -> bool:
        end_backups(cluster)
        return len(slots(cluster, name)) >= 3

    eventually(three, 60)
    base = created(show(cluster, name))
    assert slots(cluster, name)[:3] == [base + PERIOD, base + 2 * PERIOD, base + 3 * PERIOD]
    cluster.kubectl("delete", "schedules.velero.io", name, "--namespace=velero")


def test_a_name_too_long_for_a_label_is_reported_and_the_longest_that_fits_fires(
    stage: Stage, eventually: Eventually
) -> None:
    cluster, longest = stage.cluster, "n" * 63
    cluster.apply(schedule(longest, OFTEN), schedule(f"{longest}n", OFTEN))
    eventually(lambda: slots(cluster, longest), 60)
    eventually(lambda: "NameTooLong" in reasons(cluster, f"{longest}n"), 60)
    assert "64 characters" in show(cluster, f"{longest}n")["status"]["validationErrors"][0]


# skipImmediately


def test_the_default_true_works_for_every_schedule_and_not_for_the_first_only(
    stage: Stage, tmp_path: Path, eventually: Eventually
) -> None:
    names = [f"default-{number}" for number in range(5)]
    with stage.another(tmp_path, "--schedule-skip-immediately"):
        stage.cluster.apply(*(schedule(name, "@daily") for name in names))
        eventually(lambda: all(instant_of(show(stage.cluster, name), "lastSkipped") is not None for name in names), 60)
    assert not any("skipImmediately" in show(stage.cluster, name)["spec"] for name in names)


# Locations


def test_an_unavailable_location_blocks_the_slot_and_one_run_follows_when_it_is_back(
    stage: Stage, eventually: Eventually
) -> None:
    cluster, name = stage.cluster, "held"
    put_status(cluster, "backupstoragelocations", "default", phase="Unavailable", message="no such bucket")
    try:
        cluster.apply(schedule(name, OFTEN))
        eventually(lambda: "LocationUnavailable" in reasons(cluster, name), 60)
        assert "no such bucket" in reasons(cluster, name)["LocationUnavailable"]
        time.sleep(2 * PERIOD.total_seconds())
        assert slots(cluster, name) == []
        eventually(lambda: stage.operator.figures(name)['held{reason="LocationUnavailable"}'] == 1, 60)
    finally:
        put_status(cluster, "backupstoragelocations", "default", phase="Available", message="")
    back = now()
    eventually(lambda: slots(cluster, name), 60)
    [slot] = slots(cluster, name)
    assert back - PERIOD - timedelta(seconds=1) <= slot
    assert (slot - created(show(cluster, name))) % PERIOD == timedelta()


# Metrics


def test_a_schedule_that_is_deleted_while_paused_loses_its_metrics(stage: Stage, eventually: Eventually) -> None:
    cluster, name = stage.cluster, "gone-while-paused"
    cluster.apply(schedule(name, "@daily", paused=True))
    eventually(lambda: "paused_since_timestamp_seconds" in stage.operator.figures(name), 60)
    assert stage.operator.figures(name)["overdue_seconds"] == 0
    cluster.kubectl("delete", "schedules.velero.io", name, "--namespace=velero")
    eventually(lambda: stage.operator.figures(name) == {}, 60)


def test_a_failed_run_stays_the_last_result_over_a_restart_and_is_not_reset_each_minute(
    stage: Stage, eventually: Eventually
) -> None:
    cluster, name = stage.cluster, "failed"
    cluster.apply(schedule(name, OFTEN))
    eventually(lambda: slots(cluster, name), 60)
    cluster.apply(schedule(name, OFTEN, paused=True))
    put_status(cluster, "backups", backups(cluster, name)[0]["metadata"]["name"], phase="Failed")
    eventually(lambda: stage.operator.figures(name).get('last_result{result="Failed"}') == 1, 60)
    stage.operator.kill()
    stage.operator.start()
    eventually(lambda: stage.operator.figures(name).get('last_result{result="Failed"}') == 1, 60)
    assert 'last_result{result="Completed"}' not in stage.operator.figures(name)


# Which Velero is beside us


def test_while_velero_has_its_own_schedule_controller_on_nothing_fires_and_then_it_does(
    stage: Stage, eventually: Eventually
) -> None:
    cluster, name = stage.cluster, "two-controllers"
    with server_arguments(cluster, ["server"]):
        cluster.apply(schedule(name, OFTEN))
        eventually(lambda: "VeleroSchedules" in reasons(cluster, name), 60)
        assert "--disable-controllers=schedule" in reasons(cluster, name)["VeleroSchedules"]
        time.sleep(PERIOD.total_seconds())
        assert slots(cluster, name) == []
    eventually(lambda: len(slots(cluster, name)) == 1, 60)


def test_day_fields_combine_as_the_velero_release_does_and_a_change_is_reported_before(
    stage: Stage, eventually: Eventually
) -> None:
    cluster, name = stage.cluster, "days"
    text, *fires = days_apart()
    both, either = (each.timestamp() for each in fires)

    def upcoming() -> float | None:
        return stage.operator.figures(name).get("next_run_timestamp_seconds")

    cluster.apply(schedule(name, text))
    eventually(lambda: upcoming() == both, 60)  # the tag of the image tells: v1.18.3
    with image_tag(cluster, "v1.17.2"):
        eventually(lambda: upcoming() == either, 60)
        eventually(lambda: "DialectChanged" in reasons(cluster, name), 60)
        first = datetime.fromtimestamp(either, tz=now().tzinfo).strftime("%Y-%m-%dT")
        assert first in reasons(cluster, name)["DialectChanged"]

        # What Velero itself says counts before the tag.
        eventually(lambda: question(cluster), 60)
        put_status(cluster, "serverstatusrequests", question(cluster), phase="Processed", serverVersion="v1.18.3")
        eventually(lambda: upcoming() == both, 60)
    eventually(lambda: upcoming() == both, 60)


def question(cluster: Cluster) -> str:
    """Return the name of what Velero is asked about its version, as its Deployment stands now; empty if it is not."""
    asked = cluster.get("serverstatusrequests.velero.io", "--namespace=velero")["items"]
    generation = cluster.get("deployment", "velero", "--namespace=velero")["metadata"]["generation"]
    names = (each["metadata"]["name"] for each in asked)
    return next((name for name in names if name.endswith(f"-{generation}")), "")


def test_without_a_version_from_velero_or_its_image_a_flag_gives_it_or_the_run_is_blocked(
    stage: Stage, tmp_path: Path, eventually: Eventually
) -> None:
    cluster, name = stage.cluster, "unknown"
    text, both, either = days_apart()
    with image_tag(cluster, "latest"):
        cluster.apply(schedule(name, text), schedule("clear-to-all", OFTEN))
        eventually(lambda: "DialectUnknown" in reasons(cluster, name), 60)
        eventually(lambda: stage.operator.figures(name)['held{reason="DialectUnknown"}'] == 1, 60)
        assert "next_run_timestamp_seconds" not in stage.operator.figures(name)
        eventually(lambda: slots(cluster, "clear-to-all"), 60)
        for flag, wanted in (("robfig", either), ("go-cron", both)):
            with stage.another(tmp_path, f"--velero-dialect={flag}") as other:
                eventually(lambda other=other, wanted=wanted: comes_next(other, name, wanted), 60)  # type: ignore[misc]
    with stage.another(tmp_path, "--velero-dialect=robfig") as other:  # the image tells again, and counts more
        eventually(lambda: comes_next(other, name, both), 60)


def comes_next(operator: Operator, name: str, wanted: datetime) -> bool:
    return operator.figures(name).get("next_run_timestamp_seconds") == wanted.timestamp()


# Silence: the last test, for it looks back on all that went before


def test_idle_schedules_get_no_patch_each_minute(stage: Stage) -> None:
    time.sleep(max(POLL + 5 - (time.monotonic() - stage.begun), 0))
    asked = [each for each in stage.cluster.audit(USER) if each.at >= stage.since and each.name in IDLE]
    assert asked == []
