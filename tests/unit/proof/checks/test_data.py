"""What follows from what the canaries of depth Data reached."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from foresail.api.marks import CANARY_CLOSED, CANARY_REACHED
from foresail.api.metadata import Metadata
from foresail.api.pod_problems import ObservedPod
from foresail.api.pods import ContainerState, ContainerStatus, PodStatus, Terminated, Waiting
from foresail.api.restore_check import Assertion, CheckedBackups, CheckRun, RestoreCheckSpec, RestoreCheckStatus
from foresail.plan import Key, Level, ReadResult
from foresail.proof.checks.data import Recorded, overdue, prove_fence
from foresail.proof.checks.data_build import assertion
from foresail.proof.checks.judge import Verdict
from foresail.proof.checks.rows import CheckRow, PodRow, Pods, PodsFound, RestoreRow, pod_row
from foresail.proof.checks.view import CheckView, DataSettings, Found, Query

NOW = datetime(2026, 11, 17, 9, tzinfo=UTC)
RUN = CheckRun("0123456789", "nightly-1", "b", NOW, "Data")
SETTINGS = DataSettings("foresail:1", Key("velero", "foresail-checks"))
CANARY = "foresail-canary-0123456789"


def check(*, allow_unfenced: bool = False) -> CheckRow:
    spec = RestoreCheckSpec(CheckedBackups("nightly"), "Data", allow_unfenced=allow_unfenced)
    return CheckRow(Key("velero", "nightly"), "a", "1", 1, NOW, spec, RestoreCheckStatus())


def canaries(*codes: int, message: str = "reached: API server") -> ReadResult[Pods, PodsFound]:
    names = [f"sandbox-{each}" for each in range(len(codes))]
    rows = [
        PodRow(Key(name, CANARY), "Failed", exit_code=code, message=message)
        for name, code in zip(names, codes, strict=True)
    ]
    query = Pods(RUN.id, tuple((name.replace("sandbox", "source"), name) for name in names))
    return ReadResult(query, PodsFound(tuple(rows)), NOW - timedelta(seconds=1), 1)


def test_one_open_sandbox_of_several_is_enough_to_refuse() -> None:
    found = prove_fence(check(), RUN, SETTINGS, canaries(CANARY_CLOSED, CANARY_REACHED), NOW)
    assert isinstance(found, Verdict)
    assert found.reason == "NotFenced"


def test_an_open_sandbox_that_is_allowed_is_a_warning() -> None:
    found = prove_fence(check(allow_unfenced=True), RUN, SETTINGS, canaries(CANARY_REACHED), NOW)
    assert isinstance(found, Recorded)
    assert found.note is not None
    assert (found.note.reason, found.note.level) == ("NotFenced", Level.WARNING)
    assert found.note.message.startswith("NOT FENCED: ")
    assert (found.run.fence, found.run.reached) == ("NotEnforced", ("API server",))


def test_a_canary_that_reached_something_without_a_word_has_still_reached_it() -> None:
    found = prove_fence(check(), RUN, SETTINGS, canaries(CANARY_REACHED, message=""), NOW)
    assert isinstance(found, Verdict)
    assert found.reason == "NotFenced"


def test_closed_sandboxes_are_recorded_without_a_warning() -> None:
    found = prove_fence(check(), RUN, SETTINGS, canaries(CANARY_CLOSED, CANARY_CLOSED, message="closed"), NOW)
    assert isinstance(found, Recorded)
    assert (found.run.fence, found.note) == ("Enforced", None)


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        (["foresail-assertion-0123456789", "db-0"], "the assertion did not end within 1h"),
        (["db-0"], "was not created within 1h: a ResourceQuota or LimitRange of the backup may refuse it"),
    ],
)
def test_an_assertion_that_did_not_even_start_is_told_from_one_that_did_not_end(pods: list[str], said: str) -> None:
    rows = tuple(PodRow(Key("sandbox-0", each), "Running") for each in pods)
    result: ReadResult[Query, Found] = ReadResult(Pods(RUN.id, (("red", "sandbox-0"),)), PodsFound(rows), NOW, 1)
    restore = RestoreRow(Key("velero", "check-0123456789"), "r", "nightly", "a", RUN.id, phase="Completed")
    view = CheckView(Key("velero", "nightly"), check(), restores=(restore,), read_result=result)
    found = overdue(view, check(), replace(RUN, fence="Enforced", ready_seconds=9))
    assert found is not None
    assert found.reason == "AssertionFailed"
    assert said in found.message


def test_a_quota_on_requests_and_limits_takes_the_pod_of_an_assertion() -> None:
    wanted = Assertion("psql:1", ("count-rows",))
    body: Any = assertion(wanted, {}, Key("sandbox-0", "foresail-assertion-0123456789"), {}, 60).body
    (container,) = body["spec"]["containers"]
    bounds = container["resources"]
    assert bounds["requests"].keys() == bounds["limits"].keys() == {"cpu", "memory"}


def ended(how: Terminated) -> ContainerStatus:
    return ContainerStatus(ContainerState(terminated=how))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (PodStatus("Failed", container_statuses=[ended(Terminated(3, message="a\x1b[31m\nb"))]), (3, "a [31m b", "")),
        (PodStatus("Running", container_statuses=[ended(Terminated(3))]), (None, "", "")),
        (
            PodStatus("Pending", init_container_statuses=[ContainerStatus(ContainerState(Waiting("ErrPull")))]),
            (None, "", "ErrPull"),
        ),
        (PodStatus("Failed", "DeadlineExceeded"), (None, "", "DeadlineExceeded")),
    ],
)
def test_a_pod_has_an_exit_code_only_when_it_has_ended(
    status: PodStatus, expected: tuple[int | None, str, str]
) -> None:
    row = pod_row(ObservedPod(Metadata("a", "b"), status=status))
    assert (row.exit_code, row.message, row.waits) == expected
