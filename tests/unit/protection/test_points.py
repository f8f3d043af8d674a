"""The points in time of a Protection are exactly the backups that a restore of its team would accept."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from foresail.api import mirrored, velero
from foresail.api.instants import stamp
from foresail.api.marks import NAMESPACE_UIDS, PROTECTION_CLASS
from foresail.plan import Key
from foresail.protection.rows import NamespaceRow, backup_row
from foresail.protection.rules import restorable_points
from foresail.protection.view import Choice, NamespaceView
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.requests.points import not_restorable
from foresail.selfservice.requests.view import RequestView, Source
from foresail.selfservice.rows.locations import LocationRow, location_row
from foresail.selfservice.rows.velero import velero_row
from foresail.tenancy.namespaces import NamespaceRow as TenantNamespaceRow
from tests.unit.selfservice.request_rows import new_request

NOW = datetime(2026, 6, 1, 2, tzinfo=UTC)
CREATED = NOW - timedelta(days=1)
OWN = "uid-of-shop"
MAIN = location_row(
    msgspec.convert({"metadata": {"name": "main", "namespace": "velero", "uid": "l"}, "spec": {}}, mirrored.Location)
)

_annotations = st.fixed_dictionaries(
    {
        NAMESPACE_UIDS: st.sampled_from(
            [f'{{"shop":"{OWN}","bank":"b"}}', '{"shop":"of an earlier one"}', '{"bank":"b"}', "", "[]", '{"shop":7}']
        )
    },
    optional={
        PROTECTION_CLASS: st.sampled_from(["gold", "silver", "gone", ""]),
        "openshift.io/oadp-nab-origin-name": st.just("daily"),
        "openshift.io/oadp-nab-origin-namespace": st.just("shop"),
    },
)
_phases = st.sampled_from(["", "New", "InProgress", "Finalizing", *velero.TERMINAL, "OfTomorrow"])
_backups = st.builds(
    lambda annotations, phase, ends, expires, location, going: {
        "metadata": {
            "name": "gold-1-20260531010000-0a1b2c3d",
            "namespace": "velero",
            "uid": "x",
            "creationTimestamp": stamp(CREATED),
            "annotations": annotations,
            **({"deletionTimestamp": stamp(NOW)} if going else {}),
        },
        "spec": {"storageLocation": location},
        "status": {
            "phase": phase,
            **({"completionTimestamp": stamp(CREATED + ends)} if ends is not None else {}),
            **({"expiration": stamp(NOW + expires)} if expires is not None else {}),
        },
    },
    _annotations,
    _phases,
    st.sampled_from([None, timedelta(), timedelta(minutes=5), -timedelta(hours=1)]),
    st.sampled_from([None, timedelta(), timedelta(days=1), -timedelta(seconds=1)]),
    st.sampled_from(["main", "gone", ""]),
    st.booleans(),
)


def is_listed(backup: dict[str, Any]) -> bool:
    """Whether the Protection of the namespace has the backup among its points."""
    row = backup_row(msgspec.convert(backup, velero.Backup))
    namespace = NamespaceRow(Key("", "shop"), OWN, CREATED)
    known = (row,) if row is not None and row.has(namespace) else ()
    view = NamespaceView(
        row=namespace,
        chosen=Choice("gold"),
        schedules=(),
        runs={},
        backups=known,
        policies={},
        open_classes=frozenset({"gold"}),
        locations=frozenset({"main"}),
    )
    return bool(restorable_points(view, NOW))


def is_accepted(backup: dict[str, Any]) -> bool:
    """Whether a restore of the team goes ahead from the backup."""
    raw = msgspec.json.decode(msgspec.json.encode(backup), type=mirrored.Mirrored)
    row = velero_row(raw, BACKUPS)
    location: LocationRow | None = MAIN if backup["spec"]["storageLocation"] == "main" else None
    view = RequestView(
        family=RESTORES,
        request=new_request(key=Key("shop", "back"), point=row.key.name),
        velero_namespace="velero",
        namespace=TenantNamespaceRow(OWN, {}, is_terminating=False),
        source=Source(None, row, by_tenants=row.protection_class == "gold"),
        source_location=location,
    )
    return not_restorable(view, NOW) is None


@given(_backups)
def test_a_point_is_listed_if_and_only_if_a_restore_accepts_it(backup: dict[str, Any]) -> None:
    assert is_listed(backup) == is_accepted(backup)


def test_there_are_points() -> None:
    status = {"phase": "Completed", "expiration": stamp(NOW + timedelta(days=1)), "completionTimestamp": stamp(NOW)}
    backup = {
        "metadata": {
            "name": "gold-1-20260531010000-0a1b2c3d",
            "namespace": "velero",
            "uid": "x",
            "creationTimestamp": stamp(CREATED),
            "annotations": {PROTECTION_CLASS: "gold", NAMESPACE_UIDS: f'{{"shop":"{OWN}"}}'},
        },
        "spec": {"storageLocation": "main"},
        "status": status,
    }
    assert is_listed(backup)
    assert is_accepted(backup)
