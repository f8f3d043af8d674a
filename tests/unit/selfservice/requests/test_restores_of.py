"""Which restores a change of a backup wakes: those of its own namespace, and no others are touched."""

from collections.abc import Hashable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.plan import Key, PartKey
from foresail.selfservice.access.view import LIST, PREFIXES
from foresail.selfservice.controller import SelfService
from foresail.selfservice.families import RESTORES
from foresail.selfservice.requests.file_requests import file_name
from foresail.selfservice.rows.requests import RequestRow, Status
from foresail.selfservice.rows.velero import DownloadRequestRow, File
from foresail.tenancy.records import nacuuid
from tests.unit.selfservice.request_rows import NOW
from tests.unit.selfservice.requests.test_decide import accepted, backup, request


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of all rows that any index brings from now on."""
    found: list[Any] = []
    by = Store.by

    def noted(self: Store[Any], index: str, value: Hashable) -> list[Any]:
        rows = by(self, index, value)
        found.extend(rows)
        return rows

    monkeypatch.setattr(Store, "by", noted)
    return found


def with_restores(status: Status) -> SelfService:
    """Return a controller with many restores of red and one of blue, from a backup of the same name."""
    service = SelfService("velero")
    for key in (*(Key("red", f"r{number}") for number in range(200)), Key("blue", "one")):
        row = request(key=key, uid=str(key), source="nightly", status=status)
        service.cluster.restores.requests.put(key, row)
    return service


def keys(service: SelfService, store: Store[Any], change: Change[Any]) -> list[Key]:
    (one,) = [each for each in service.informers if each.store is store]
    return [key for key in one.keys(change) if isinstance(key, PartKey) and key.part == RESTORES.kind.plural]


def test_a_backup_wakes_the_restores_of_its_own_namespace_and_touches_no_others(touched: list[Any]) -> None:
    service = with_restores(Status())
    old = request(key=Key("blue", "nightly"))
    change: Change[RequestRow] = Change(old.key, old, replace(old, status=Status(phase="Created")), initial=False)
    assert keys(service, service.cluster.backups.requests, change) == [service.cluster.restores.key(Key("blue", "one"))]
    assert len(touched) == 1


def test_the_contents_of_a_backup_wake_the_restores_of_its_own_namespace_and_touch_no_others(
    touched: list[Any],
) -> None:
    service = with_restores(accepted(timedelta(hours=1)))
    of = request(key=Key("blue", "nightly"))
    made = backup(key=Key("velero", nacuuid(of)), owner=of.key)
    service.cluster.backups.velero.put(made.key, made)
    answer = DownloadRequestRow(
        key=Key("velero", file_name(PREFIXES[LIST], made.uid)),
        uid="answer",
        created=NOW,
        owner=None,
        request_uid="",
        target=File(LIST, made.key.name),
        url="",
        expires=None,
        mirror="{}",
    )
    change: Change[DownloadRequestRow] = Change(answer.key, None, answer, initial=False)
    assert keys(service, service.cluster.download_requests, change) == [
        service.cluster.restores.key(Key("blue", "one"))
    ]
    assert len(touched) == 1
