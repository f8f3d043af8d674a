"""What the doctor says about storage locations of tenants: they are never an administrator's problem."""

from dataclasses import replace

from foresail.api import nonadmin, velero
from foresail.api.metadata import Metadata
from foresail.cli.doctor.finding import Finding, Grade
from foresail.cli.doctor.locations import locations
from tests.unit.cli.test_doctor import HEALTHY, LOCATION

_RECORD = {"openshift.io/oadp-nabsl-origin-namespace": "shop", "openshift.io/oadp-nabsl-origin-name": "mine"}


def of_tenant(phase: str) -> velero.Location:
    return velero.Location(
        Metadata("shop-mine-1", annotations=_RECORD),
        status=velero.LocationStatus(phase, message="dial tcp 10.0.0.1: refused"),
    )


def asked(phase: str) -> nonadmin.Approval:
    of = nonadmin.RequestedLocation(name="mine", namespace="shop")
    return nonadmin.Approval(Metadata("shop-mine-1"), status=nonadmin.ApprovalStatus(phase, of))


def found(*places: velero.Location, approvals: tuple[nonadmin.Approval, ...] = ()) -> list[Finding]:
    seen = replace(HEALTHY, locations=places, approvals=approvals)
    return [each for each in locations(seen) if each.grade is not Grade.GOOD]


def test_a_bucket_of_a_tenant_that_cannot_be_reached_is_a_warning_and_shows_no_address() -> None:
    assert found(LOCATION, of_tenant("Available")) == []
    [closed] = found(LOCATION, of_tenant("Unavailable"))
    assert (closed.grade, closed.says) == (
        Grade.WARNING,
        "shop/mine: Velero cannot use these locations of tenants",
    )


def test_a_location_of_a_tenant_replaces_none_of_the_administrator_and_is_never_advised_as_the_default() -> None:
    [none] = found(of_tenant("Available"))
    assert (none.grade, none.says) == (Grade.PROBLEM, "there is no BackupStorageLocation")
    plain = velero.Location(Metadata("main"), status=LOCATION.status)
    [undefaulted] = found(of_tenant("Available"), plain)
    assert "set main --default" in undefaulted.fix


def test_a_location_that_waits_for_approval_is_named() -> None:
    [waiting] = found(LOCATION, approvals=(asked("Pending"), asked("Approved"), asked("Rejected")))
    assert (waiting.grade, waiting.says) == (Grade.WARNING, "shop/mine: waiting for approval")
