"""A flood of tenants' own locations: what is kept of each, and how many reconciles a deletion costs."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

import msgspec

from foresail.api import nonadmin
from foresail.kube.reflector import Change
from foresail.plan import Key, PartKey
from foresail.selfservice.controller import SelfService
from foresail.selfservice.locations.reader import SecretReader
from foresail.selfservice.locations.view import LocationView
from foresail.selfservice.rows.locations import TenantLocationRow, tenant_location_row
from foresail.tenancy.namespaces import NamespaceRow
from tests.unit.selfservice.policies import policy

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
MANY, MOST = 500, 3


def row(number: int, authority: int = 0) -> TenantLocationRow:
    created = (BEGIN + timedelta(seconds=number)).isoformat()
    metadata = {"namespace": "red", "name": f"n{number * 7919 % MANY:04}", "uid": str(number)}
    stored = {"bucket": "red-backups", "caCert": b64encode(bytes(authority)).decode()}
    asked = {"backupStorageLocationSpec": {"objectStorage": stored}}
    wire = msgspec.json.encode({"metadata": {**metadata, "creationTimestamp": created}, "spec": asked})
    return tenant_location_row(msgspec.json.decode(wire, type=nonadmin.Location))


def crowded() -> SelfService:
    """Return a controller that knows many locations of a namespace whose policy allows three."""
    service = SelfService("velero", secrets=SecretReader(None))
    cluster, rules = service.cluster, policy(locations={"allowed": True, "maximum": MOST})
    cluster.namespaces.put(Key("", "red"), NamespaceRow("uid-red", {}, is_terminating=False))
    cluster.policies.put(rules.key, rules)
    for number in range(MANY):
        fed(service, None, row(number * 37 % MANY))  # in any order
    return service


def fed(service: SelfService, old: TenantLocationRow | None, new: TenantLocationRow | None) -> list[Key]:
    """Return what a change concerns besides the changed location and what was made for it, which may be garbage now."""
    store = service.cluster.tenant_locations
    (one,) = [each for each in service.informers if each.store is store]
    given = new or old
    assert given is not None
    if new is None:
        store.remove(given.key)
    else:
        store.put(new.key, new)
    change = Change(given.key, old, new, initial=False)
    found = [*one.learn(change), *one.keys(change)]
    others = [each for each in found if isinstance(each, PartKey) and each.part not in service.garbage.parts]
    return [each for each in others if each != service.locations.key(given.key)]


def test_a_deletion_wakes_only_the_location_that_is_within_the_limit_now() -> None:
    service = crowded()
    for number in range(5):
        woken = fed(service, row(number), None)
        assert woken == [service.locations.key(row(number + MOST).key)]


def test_a_location_knows_how_many_are_before_it_also_after_it_was_created_again() -> None:
    service = crowded()
    for number in (0, 1, 250, MANY - 1):
        view = service.observe(service.locations.key(row(number).key), BEGIN)
        assert isinstance(view, LocationView)
        assert view.earlier == number
    again = msgspec.structs.replace(row(0), uid="again", created=BEGIN + timedelta(days=1))
    fed(service, row(0), again)
    view = service.observe(service.locations.key(again.key), BEGIN)
    assert isinstance(view, LocationView)
    assert view.earlier == MANY - 1


def test_of_a_large_spec_nothing_is_kept() -> None:
    assert not row(0, authority=8 << 10).is_oversized
    large = row(0, authority=32 << 10)
    assert (large.is_oversized, large.spec) == (True, "")
