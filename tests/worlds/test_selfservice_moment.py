"""A restore acts when it was asked for or not at all: refused is final, and waiting ends."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.plan import Key
from foresail.selfservice.access.contents import Contents
from tests.worlds import virtual_time
from tests.worlds.process import Moment
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.test_selfservice_withdrawal import KINDS, edit_policy, forbid, handed_over, label
from tests.worlds.world import done

HOUR = timedelta(hours=1)
UPDATE = {"existingResourcePolicies": ["none", "update"]}
Act = Callable[[Tenancy], None]


def accepted(tenancy: Tenancy) -> tuple[str, str]:
    return tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)[:2]


def deadline(tenancy: Tenancy) -> str:
    found: str = tenancy.status(NAR, NON_ADMIN_RESTORE).get("startingDeadline", "")
    return found


def retry(tenancy: Tenancy) -> None:
    tenancy.edit(NAR, NON_ADMIN_RESTORE, retriedAt=tenancy.now())


def edit(tenancy: Tenancy) -> None:
    tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec={"restorePVs": False})


def allow_update(tenancy: Tenancy) -> None:
    edit_policy(tenancy, restore={"allowed": UPDATE})


def allow_all(tenancy: Tenancy) -> None:
    tenancy.reviews.may = lambda *_: True


def forbid_all(tenancy: Tenancy) -> None:
    allow_update(tenancy)
    tenancy.reviews.may = lambda *_: False


def fail_backup(tenancy: Tenancy) -> None:
    allow_update(tenancy)
    tenancy.velero_says(NAB, "Failed")


REFUSALS: dict[str, tuple[str, Act, Act]] = {
    "the policy refuses a field": ("PolicyViolation", lambda _: None, allow_update),
    "the policy refuses the size": (
        "PolicyViolation",
        lambda tenancy: edit_policy(tenancy, restore={"maximumObjects": 1, "allowed": UPDATE}),
        lambda tenancy: edit_policy(tenancy, restore={"maximumObjects": 100}),
    ),
    "no policy": ("NoPolicy", lambda tenancy: label(tenancy, None), lambda tenancy: label(tenancy, "enabled")),
    "no access": ("AccessDenied", forbid_all, allow_all),
    "a failed backup": (
        "InvalidRestoreSpec",
        fail_backup,
        lambda tenancy: tenancy.velero_says(NAB, "Completed"),
    ),
}


@pytest.mark.parametrize("restarts", [False, True], ids=["in one life", "across a restart"])
@pytest.mark.parametrize("cause", REFUSALS)
def test_a_refused_restore_starts_only_by_an_act_of_its_requester(cause: str, *, restarts: bool) -> None:
    reason, refuse, allow = REFUSALS[cause]

    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.held = Contents(kinds=KINDS.kinds, counts=(2, 2, 2))
        await backed_up(tenancy)
        refuse(tenancy)
        tenancy.restore(NAR, NAB.name, existingResourcePolicy="update")
        await tenancy.settle(120)
        assert accepted(tenancy) == ("False", reason)
        assert tenancy.status(NAR, NON_ADMIN_RESTORE)["phase"] == "BackingOff"
        if restarts:
            await tenancy.stop()
        allow(tenancy)
        allow_update(tenancy)
        if restarts:
            tenancy.start()
        await tenancy.settle(1500)
        assert accepted(tenancy) == ("False", reason), "nobody asked again"
        assert tenancy.velero_objects(velero.RESTORE) == {}
        retry(tenancy)
        await tenancy.settle(30)
        assert len(tenancy.velero_objects(velero.RESTORE)) == 1

    tell(story)


def test_an_edit_of_the_spec_is_an_act_of_the_requester() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name, existingResourcePolicy="update")
        await tenancy.settle(30)
        assert accepted(tenancy) == ("False", "PolicyViolation")
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec={"existingResourcePolicy": None})
        await tenancy.settle(30)
        assert len(tenancy.velero_objects(velero.RESTORE)) == 1

    tell(story)


def test_a_retry_that_is_refused_again_waits_for_the_next_one() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name, existingResourcePolicy="update")
        await tenancy.settle(30)
        retry(tenancy)
        await tenancy.settle(30)
        assert accepted(tenancy) == ("False", "PolicyViolation")
        allow_update(tenancy)
        await tenancy.settle(1000)
        assert tenancy.velero_objects(velero.RESTORE) == {}
        retry(tenancy)
        await tenancy.settle(30)
        assert len(tenancy.velero_objects(velero.RESTORE)) == 1

    tell(story)


def full(tenancy: Tenancy) -> None:
    tenancy.set_quotas(restores={"active": 0})


def not_full(tenancy: Tenancy) -> None:
    tenancy.set_quotas(restores={"active": 5})


def lose_location(tenancy: Tenancy) -> None:
    done(tenancy.world.delete(velero.LOCATION, Key(VELERO, "default")))


def run_backup_again(tenancy: Tenancy) -> None:
    tenancy.velero_says(NAB, "InProgress")


WAITS: dict[str, tuple[str, Act, Act]] = {
    "quota": ("QuotaExceeded", full, not_full),
    "location": ("LocationUnavailable", lose_location, lambda tenancy: tenancy.make_location("default")),
    "backup": ("BackupNotReady", run_backup_again, lambda tenancy: tenancy.velero_says(NAB, "Completed")),
}


async def with_location(tenancy: Tenancy) -> None:
    """Back up to a location that exists, so that it can be lost."""
    tenancy.make_location("default", default=True)
    tenancy.back_up(NAB, ttl="720h")
    await tenancy.settle()
    found = tenancy.made_for(NAB)
    assert found is not None
    spec = {"spec": {"storageLocation": "default"}}
    done(tenancy.world.merge(velero.BACKUP, Key(VELERO, found["metadata"]["name"]), spec, "velero"))
    tenancy.velero_says(NAB, "Completed", progress={"totalItems": 3, "itemsBackedUp": 3})
    await tenancy.settle()


@pytest.mark.parametrize("wait", WAITS)
def test_a_restore_that_waits_says_until_when_and_expires(wait: str) -> None:
    reason, hinder, allow = WAITS[wait]

    async def story(tenancy: Tenancy) -> None:
        await with_location(tenancy)
        hinder(tenancy)
        asked = tenancy.clock()
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(60)
        status, said, message = tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)
        assert (status, said) == ("False", reason)
        by = stamp(asked + HOUR)
        assert deadline(tenancy) == by
        assert message.endswith(f"It expires at {by}")
        await tenancy.stop()
        tenancy.start()
        await tenancy.settle(3530)
        assert accepted(tenancy) == ("False", reason)
        await tenancy.settle(30)
        assert accepted(tenancy) == ("False", "Expired")
        assert tenancy.status(NAR, NON_ADMIN_RESTORE)["phase"] == "BackingOff"
        allow(tenancy)
        await tenancy.settle(1000)
        await tenancy.stop()
        tenancy.start()
        await tenancy.settle(1000)
        assert accepted(tenancy) == ("False", "Expired"), "that is final"
        assert tenancy.velero_objects(velero.RESTORE) == {}
        retry(tenancy)
        await tenancy.settle(30)
        assert len(tenancy.velero_objects(velero.RESTORE)) == 1
        assert deadline(tenancy) > stamp(tenancy.clock())

    tell(story)


@pytest.mark.parametrize("wait", WAITS)
def test_a_restore_that_waits_starts_within_its_time(wait: str) -> None:
    _, hinder, allow = WAITS[wait]

    async def story(tenancy: Tenancy) -> None:
        await with_location(tenancy)
        hinder(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(3500)
        allow(tenancy)
        await tenancy.settle(30)
        tenancy.velero_says(NAR, velero.COMPLETED, NON_ADMIN_RESTORE)
        await tenancy.settle(1000)
        assert tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)[0] == "True"

    tell(story)


def test_a_restore_that_waits_for_its_turn_expires() -> None:
    async def live() -> None:
        tenancy = Tenancy(restore_window=1)
        tenancy.start()
        await backed_up(tenancy)
        first = Key("red", "first")
        tenancy.restore(first, NAB.name)
        await tenancy.settle(5)
        tenancy.velero_says(first, "InProgress", NON_ADMIN_RESTORE)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(60)
        assert tenancy.condition(NAR, "Queued", NON_ADMIN_RESTORE)[1] == "WaitingForTurn"
        assert tenancy.condition(NAR, "Queued", NON_ADMIN_RESTORE)[2].endswith(f"It expires at {deadline(tenancy)}")
        await tenancy.settle(3600)
        assert accepted(tenancy) == ("False", "Expired")
        tenancy.velero_says(first, velero.COMPLETED, NON_ADMIN_RESTORE)
        await tenancy.settle(1000)
        assert len(tenancy.velero_objects(velero.RESTORE)) == 1
        assert "veleroRestore" not in tenancy.status(NAR, NON_ADMIN_RESTORE), "its spec can be edited"
        await tenancy.stop()

    virtual_time.run(live())


def test_the_policy_says_how_long_a_restore_may_wait() -> None:
    async def story(tenancy: Tenancy) -> None:
        edit_policy(tenancy, restore={"startingDeadline": "5m"})
        asked = tenancy.clock()
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(60)
        assert deadline(tenancy) == stamp(asked + timedelta(minutes=5))
        edit_policy(tenancy, restore={"startingDeadline": "5h"})
        await tenancy.settle(300)
        assert accepted(tenancy) == ("False", "Expired"), "a promise that was made holds"

    tell(story)


@pytest.mark.parametrize(("skew", "waits", "outcome"), [(-HOUR / 6, 60, "expires"), (HOUR / 6, 400, "runs")])
def test_the_deadline_of_a_restore_is_by_the_api_servers_clock(skew: timedelta, waits: float, outcome: str) -> None:
    """Its clock gave the time at which the restore was created; the operator's may be slow or fast."""

    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        edit_policy(tenancy, restore={"startingDeadline": "5m"})
        full(tenancy)
        assert tenancy.controller is not None
        tenancy.controller.cluster.skew = lambda: skew
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(waits)
        not_full(tenancy)
        await tenancy.settle(60)
        assert len(tenancy.velero_objects(velero.RESTORE)) == (1 if outcome == "runs" else 0)
        assert accepted(tenancy) == (("False", "Expired") if outcome == "expires" else ("True", "RestoreAccepted"))

    tell(story)


def test_a_restore_that_was_asked_for_long_before_the_operator_started_expires_at_once() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        await tenancy.stop()
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(3700)
        tenancy.start()
        await tenancy.settle(60)
        assert accepted(tenancy) == ("False", "Expired")
        assert tenancy.velero_objects(velero.RESTORE) == {}

    tell(story)


def test_an_edit_long_before_the_operator_started_has_expired_too() -> None:
    async def story(tenancy: Tenancy) -> None:
        await with_location(tenancy)
        tenancy.restore(NAR, NAB.name, existingResourcePolicy="update")
        await tenancy.settle(30)
        assert accepted(tenancy) == ("False", "PolicyViolation")
        await tenancy.stop()
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec={"existingResourcePolicy": None})
        await tenancy.settle(3700)
        tenancy.start()
        await tenancy.settle(60)
        assert accepted(tenancy) == ("False", "Expired")

    tell(story)


def test_what_velero_does_not_begin_in_time_is_withdrawn() -> None:
    async def story(tenancy: Tenancy) -> None:
        await handed_over(tenancy)
        succeeded = tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)
        assert succeeded[1] == "Waiting"
        assert succeeded[2].endswith(f"It expires at {deadline(tenancy)}")
        await tenancy.settle(3500)
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is not None
        await tenancy.settle(120)
        assert tenancy.velero_objects(velero.RESTORE) == {}
        for kind in ("Accepted", "Succeeded"):
            assert tenancy.condition(NAR, kind, NON_ADMIN_RESTORE)[:2] == ("False", "Expired")
        retry(tenancy)
        await tenancy.settle(1000)
        assert tenancy.velero_objects(velero.RESTORE) == {}, "its Velero Restore existed, so it needs another request"

    tell(story)


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
@pytest.mark.parametrize("write", [1, 2])
def test_what_is_withdrawn_late_is_expired_whenever_the_operator_is_killed(write: int, *, after: bool) -> None:
    async def story(tenancy: Tenancy) -> None:
        await handed_over(tenancy)
        await tenancy.settle(10)
        await tenancy.stop()
        process = tenancy.start(Moment(after=after, write=write), workers=1)
        await tenancy.settle(3700)
        assert process.died
        await tenancy.stop()
        tenancy.start()
        await tenancy.settle(60)
        assert tenancy.velero_objects(velero.RESTORE) == {}
        for kind in ("Accepted", "Succeeded"):
            assert tenancy.condition(NAR, kind, NON_ADMIN_RESTORE)[:2] == ("False", "Expired")

    tell(story)


def test_what_velero_began_in_time_goes_on() -> None:
    async def story(tenancy: Tenancy) -> None:
        await handed_over(tenancy)
        tenancy.velero_says(NAR, "InProgress", NON_ADMIN_RESTORE)
        await tenancy.settle(7200)
        assert tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)[:2] == ("Unknown", "Running")

    tell(story)


def test_a_backup_waits_as_long_as_it_takes() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.set_quotas(active=0)
        tenancy.back_up(NAB)
        await tenancy.settle(20_000)
        assert tenancy.condition(NAB, "Accepted")[1] == "QuotaExceeded"
        assert "startingDeadline" not in tenancy.status(NAB, NON_ADMIN_BACKUP)
        tenancy.set_quotas(active=1)
        await tenancy.settle()
        assert tenancy.status(NAB)["phase"] == "Created"

    tell(story)


def test_a_policy_without_the_field_means_an_hour() -> None:
    async def story(tenancy: Tenancy) -> None:
        policy: Any = tenancy.world.history.present(SELF_SERVICE_POLICY)[Key("", "default")]
        assert "restore" not in policy["spec"]
        forbid(tenancy, "secrets")
        asked = tenancy.clock()
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(5)
        assert deadline(tenancy) == stamp(asked + HOUR)

    tell(story)
