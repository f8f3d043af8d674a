"""Which Velero is beside us, and how it is asked."""

from datetime import datetime, timedelta

import msgspec
import pytest

from foresail.api.apps import Deployment, StartedPod
from foresail.cron import Dialect
from foresail.plan import Create, Key
from foresail.schedules.decide import decide
from foresail.schedules.observe import VeleroServer
from foresail.schedules.velero_server import (
    REQUEST_INTERVAL,
    DeploymentRow,
    VeleroView,
    VersionRequest,
    decide_version_request,
    deployment_row,
    dialect_of,
    identify_server,
    pod_row,
    request_name,
    schedule_controller_is_off,
    scheduling_pod,
    version_request,
)
from tests.unit.schedules.rows import DAY, GO_CRON, HOUR, NOON, schedule, view, watched

OFF = "--disable-controllers=schedule"
SERVER = DeploymentRow(
    Key("velero", "velero"), "abcdefgh-1", 3, "v1.18.3", has_schedule_controller=False, is_rolled_out=True
)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("v1.18.3", Dialect.GOCRON),
        ("1.18.3", Dialect.GOCRON),
        ("v1.18.4", Dialect.GOCRON),
        ("v1.19.0", Dialect.GOCRON),
        ("v2.0.0", Dialect.GOCRON),
        ("v1.18.2", Dialect.ROBFIG),
        ("v1.18.10", Dialect.GOCRON),
        ("v1.9.7", Dialect.ROBFIG),
        ("v1.18.3-rc.1", Dialect.GOCRON),
        ("v1.18.2+build", Dialect.ROBFIG),
        ("v1.17.2-dev", Dialect.ROBFIG),
        ("main", None),
        ("", None),
        ("latest", None),
        ("v1.18", None),
        ("v1.18.x", None),
        ("9" * 5000 + ".1.1", None),
        ("\u0661.\u0661\u0668.\u0663", None),
    ],
)
def test_the_dialect_follows_from_the_version(version: str, expected: Dialect | None) -> None:
    assert dialect_of(version) is expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["server"], False),
        (["server", "--disable-controllers=schedule"], True),
        (["server", "--disable-controllers", "schedule"], True),
        (["server", "--disable-controllers=gc,schedule"], True),
        (["server", "--disable-controllers=gc, schedule"], True),
        (["server", "--disable-controllers", "gc,schedule"], True),
        (["server", "--disable-controllers=gc", "--disable-controllers=schedule"], True),
        (["server", "--disable-controllers=gc"], False),
        (["server", "--disable-controllers=schedules"], False),
        (["server", "--disable-controllers"], False),
        (["server", "schedule"], False),
        (["server", "--features=schedule"], False),
        (["server", "--restore-only"], True),
        (["server", "--restore-only=true"], True),
        (["server", "--restore-only=1"], True),
        (["server", "--restore-only=false"], False),
        (["server", "--restore-only=untrue"], False),
    ],
)
def test_the_arguments_tell_whether_velero_schedules_itself(arguments: list[str], expected: bool) -> None:
    assert schedule_controller_is_off(arguments) is expected


def deployed(*containers: dict[str, object], generation: int = 3, **status: int) -> DeploymentRow | None:
    metadata = {"name": "velero", "namespace": "velero", "uid": "abcdefgh-1", "generation": generation}
    spec = {"template": {"spec": {"containers": containers}}}
    data = msgspec.json.encode({"metadata": metadata, "spec": spec, "status": status})
    return deployment_row(msgspec.json.decode(data, type=Deployment))


def server(image: str = "velero/velero:v1.18.3", *args: str) -> dict[str, object]:
    return {"image": image, "command": ["/velero"], "args": ["server", *args]}


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("velero/velero:v1.18.3", "v1.18.3"),
        ("registry.local:5000/a/velero:v1.17.2@sha256:0123", "v1.17.2"),
        ("registry.local:5000/velero", ""),
        ("velero@sha256:0123", ""),
        ("own/backup-tool:1.18.3", "1.18.3"),
    ],
)
def test_the_tag_follows_the_name_of_the_image(image: str, expected: str) -> None:
    row = deployed({"image": "proxy:v9.9.9"}, server(image))
    assert row is not None
    assert row.tag == expected


def test_a_deployment_that_runs_no_velero_server_is_nothing_to_us() -> None:
    assert deployed() is None
    assert deployed({"image": "nginx:1", "args": ["server"]}) is None
    assert deployed({"image": "velero/velero:v1.18.3", "args": ["node-agent", "server-like"]}) is None


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, False),
        ({"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1}, True),
        ({"observedGeneration": 3, "replicas": 2, "updatedReplicas": 1}, False),
        ({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1}, False),
    ],
)
def test_a_deployment_is_rolled_out_when_nothing_old_is_left(status: dict[str, int], expected: bool) -> None:
    row = deployed(server(), **status)
    assert row is not None
    assert row.is_rolled_out is expected


@pytest.mark.parametrize(
    ("tag", "answer", "flag", "expected"),
    [
        ("v1.17.2", "v1.18.3", Dialect.ROBFIG, VeleroServer(Dialect.GOCRON, "v1.18.3")),
        ("v1.17.2", "", Dialect.GOCRON, VeleroServer(Dialect.ROBFIG, "v1.17.2")),
        ("v1.17.2", "main", Dialect.GOCRON, VeleroServer(Dialect.ROBFIG, "v1.17.2")),
        ("main", "", Dialect.GOCRON, VeleroServer(Dialect.GOCRON, version_requested=NOON)),
        ("main", "", None, VeleroServer(None, version_requested=NOON)),
        ("main", "main", None, VeleroServer(None)),
    ],
)
def test_the_answer_counts_before_the_tag_and_that_before_the_flag(
    tag: str, answer: str, flag: Dialect | None, expected: VeleroServer
) -> None:
    assert identify_server([msgspec.structs.replace(SERVER, tag=tag)], answer, flag, NOON) == expected


def test_one_server_that_schedules_itself_is_enough() -> None:
    other = msgspec.structs.replace(SERVER, has_schedule_controller=True)
    assert identify_server([SERVER, other], "", None).has_schedule_controller


# Asking


def test_velero_is_asked_once_for_each_state_of_its_deployment() -> None:
    first = version_request([SERVER], None, NOON)
    assert first == VersionRequest("abcdefgh-3", NOON)
    assert version_request([SERVER], first, NOON + 5 * DAY) == first
    changed = msgspec.structs.replace(SERVER, generation=4)
    assert version_request([changed], first, NOON + HOUR) == VersionRequest("abcdefgh-4", NOON + HOUR)
    assert version_request([msgspec.structs.replace(changed, is_rolled_out=False)], first, NOON) is None


def test_without_a_deployment_velero_is_asked_each_day() -> None:
    first = version_request([], None, NOON)
    assert first == VersionRequest("20260310", NOON)
    assert version_request([], first, NOON + REQUEST_INTERVAL - timedelta(seconds=1)) == first
    assert version_request([], first, NOON + REQUEST_INTERVAL) == VersionRequest("20260311", NOON + REQUEST_INTERVAL)


def test_a_request_is_made_once_and_its_name_is_the_same_after_a_restart() -> None:
    unasked = VeleroView("velero", (SERVER,), None, frozenset())
    plan = decide_version_request(unasked, NOON)
    asked = plan.claim(VersionRequest)
    assert isinstance(asked, VersionRequest)
    (create,) = plan.actions
    assert isinstance(create, Create)
    assert create.key == Key("velero", "foresail-abcdefgh-3")
    assert create.mark == {"foresail.dev/asks-about": "abcdefgh-3"}
    assert asked is not None
    stands = VeleroView("velero", (SERVER,), asked, frozenset({request_name(asked)}))
    assert decide_version_request(stands, NOON).actions == ()
    rolling = msgspec.structs.replace(SERVER, is_rolled_out=False)
    assert decide_version_request(VeleroView("velero", (rolling,), asked, frozenset()), NOON).writes == ()


@pytest.mark.parametrize("servers", [(SERVER,), ()])
@pytest.mark.parametrize("now", [NOON, NOON + HOUR, NOON + REQUEST_INTERVAL, NOON + 9.5 * REQUEST_INTERVAL])
def test_the_next_reconcile_is_always_in_the_future(servers: tuple[DeploymentRow, ...], now: datetime) -> None:
    """A day after the question it lay behind: the operator looked again at once, for ever."""
    asked = version_request(
        servers, VersionRequest("abcdefgh-3", NOON) if servers else VersionRequest("20260310", NOON), now
    )
    assert asked is not None
    plan = decide_version_request(VeleroView("velero", servers, asked, frozenset({request_name(asked)})), now)
    assert plan.wake_at is not None
    assert now < plan.wake_at <= now + REQUEST_INTERVAL


def pod(name: str, *words: str, phase: str = "Running", image: str = "velero/velero:v1.18.3") -> StartedPod:
    container = {"image": image, "command": ["/velero"], "args": ["server", *words]}
    found = {"metadata": {"name": name, "namespace": "velero"}, "spec": {"containers": [container]}}
    return msgspec.convert({**found, "status": {"phase": phase}}, StartedPod)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], None),
        ([pod("new", OFF)], None),
        ([pod("new", OFF), pod("old")], "old"),
        ([pod("new", OFF), pod("old", phase="Pending")], "old"),
        ([pod("new", OFF), pod("old", phase="Succeeded"), pod("older", phase="Failed")], None),
    ],
)
def test_a_pod_with_the_schedule_controller_counts_until_it_has_ended(
    pods: list[StartedPod], expected: str | None
) -> None:
    found = scheduling_pod(pod_row(each) for each in pods)
    assert (found.name if found else None) == expected


def test_a_pod_that_runs_no_server_has_no_row() -> None:
    other = pod("agent")
    other.spec.containers[0].args[:] = ["node-agent", "server-less"]
    assert pod_row(other) is None


def wrapped(command: list[str], args: list[str], image: str) -> Deployment:
    containers = [{"image": image, "command": command, "args": args}]
    body = {
        "metadata": {"name": "velero", "namespace": "velero"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
    return msgspec.convert(body, Deployment)


@pytest.mark.parametrize(
    ("command", "args", "image", "is_on"),
    [
        (["/velero"], ["server"], "velero/velero:v1.18.3", True),
        (["velero"], ["server"], "registry/backup:v1", True),
        (["velero"], ["server", OFF], "registry/backup:v1", False),
        (["/bin/sh", "-c"], ["/velero server --uploader-type=kopia"], "velero/velero:v1.18.3", True),
        (["/bin/sh", "-c"], [f"/velero server {OFF}"], "registry/backup:v1", False),
        (["sh", "-c", f"exec velero server {OFF} --log-level=debug"], [], "registry/backup:v1", False),
        (["/bin/bash", "-ec"], [f". /vault/secrets/env && exec /velero server '{OFF}'"], "b:1", False),
        (["/bin/sh", "-c"], [f"set -e\nsource /vault/env\n/velero server \\\n  {OFF}\n"], "b:1", False),
        (["/bin/sh", "-c"], [f"/velero server; echo {OFF}"], "b:1", True),
        (["/bin/sh", "-c"], ["/velero server $VELERO_FLAGS"], "b:1", True),
        (["/bin/sh", "-c"], ["/velero server 'unfinished"], "b:1", True),
    ],
)
def test_servers_behind_a_shell_or_with_a_renamed_image_are_recognised(
    command: list[str], args: list[str], image: str, is_on: bool
) -> None:
    row = deployment_row(wrapped(command, args, image))
    assert row is not None
    assert row.has_schedule_controller is is_on


@pytest.mark.parametrize(
    ("args", "days"),
    [
        (["server"], 30),
        (["server", "--default-backup-ttl=48h"], 2),
        (["server", "--default-backup-ttl", "72h0m0s"], 3),
        (["server", "--default-backup-ttl", "a week"], None),
    ],
)
def test_how_long_backups_live_by_default_is_known(args: list[str], days: int | None) -> None:
    row = deployment_row(wrapped([], args, "velero/velero:v1.18.3"))
    assert row is not None
    assert identify_server([row], "", None).default_ttl == (timedelta(days=days) if days is not None else None)


@pytest.mark.parametrize(
    ("command", "args", "image"),
    [
        ([], ["server"], "registry.example/backup/server:1"),
        (["/bin/sh", "-c"], ["/start.sh"], "velero/velero:v1.18.3"),
        (["/bin/sh", "-c"], ["echo velero is a server"], "b:1"),
    ],
)
def test_unrecognised_server_may_run_schedules_unless_an_administrator_says_that_it_does_not(
    command: list[str], args: list[str], image: str
) -> None:
    row = deployment_row(wrapped(command, args, image))
    assert row is None
    server = identify_server([], "", Dialect.GOCRON)
    assert server.runs_schedules
    assert not msgspec.structs.replace(server, is_recognised=True).runs_schedules


def test_pod_of_a_server_without_a_deployment_is_enough() -> None:
    pod = {
        "metadata": {"name": "velero-0", "namespace": "velero"},
        "spec": {"containers": [{"command": ["/velero"], "args": ["server", OFF]}]},
    }
    server = identify_server([], "", None, pods=[None, pod_row(msgspec.convert(pod, StartedPod))])
    assert not server.runs_schedules


def test_unrecognised_server_blocks_a_run_and_is_reported() -> None:
    row = watched(schedule(last_backup=NOON - HOUR))
    found = view(row, server=msgspec.structs.replace(GO_CRON, is_recognised=False))
    plan = decide(found, NOON)
    assert plan.actions == ()
    assert plan.status is None
    (note,) = plan.notes
    assert note.reason == "VeleroSchedules"
    assert "--velero-schedules-off" in note.message
    assert len(note.message.split()) <= 30
    assert decide(view(row), NOON).actions
