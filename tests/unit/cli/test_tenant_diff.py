"""`foresail backup diff`: what changed since a backup, with the names of fields and never a value."""

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.main import main
from foresail.cli.tenant.diff import diff_text
from foresail.cli.tenant.field_changes import changed_since, fields_of, written_since
from foresail.cli.tenant.held import Change, HeldKind, LiveObject
from foresail.proof.restore_plan.items import Item, ItemKey
from foresail.selfservice.access.discovery import CORE
from tests.unit.cli.canned import Canned, canned
from tests.unit.cli.test_tenant import condition, wire
from tests.unit.console.test_console import SERVED
from tests.unit.console.test_console_restore import FILES, Answers, bucket, decoded
from tests.unit.console.test_report import REVIEWS, TENANTS

START = datetime(2026, 11, 16, tzinfo=UTC)
BEFORE, LATER = "2026-11-15T23:59:59Z", "2026-11-17T00:00:00Z"
NAMESPACE = "/api/v1/namespaces/shop"
DENIED = "BackupContents holds every object; ask a cluster administrator for downloads.contents: Allowed in the policy"


def body_of(kind: str, name: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, **content}


def item(resource: str, body: dict[str, Any]) -> Item:
    return Item(ItemKey(resource, "shop", body["metadata"]["name"]), body)


def archive(*items: Item) -> bytes:
    """Return the contents of a backup."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as content:
        for each in items:
            data = json.dumps(each.body).encode()
            entry = tarfile.TarInfo(f"resources/{each.key.resource}/namespaces/shop/{each.key.name}.json")
            entry.size = len(data)
            content.addfile(entry, io.BytesIO(data))
    return file.getvalue()


def write(time: str, fields: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    return {"manager": "kubectl", "time": time, "fieldsV1": fields, "subresource": subresource}


def live(body: dict[str, Any], *writes: dict[str, Any], created: str = BEFORE) -> dict[str, Any]:
    metadata = {**body["metadata"], "uid": "u", "resourceVersion": "7", "creationTimestamp": created}
    return {**body, "metadata": {**metadata, "managedFields": list(writes)}}


SETTINGS = item("configmaps", body_of("ConfigMap", "settings", data={"tea": "3", "old": "1"}))
SAME = item("configmaps", body_of("ConfigMap", "same", data={"a": "b"}))
LOST = item("configmaps", body_of("ConfigMap", "lost"))
KEY = item("secrets", body_of("Secret", "key", data={"password": "b2xk"}, type="Opaque"))
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NOW_SETTINGS = live(
    {**SETTINGS.body, "data": {"tea": "999", "new": "1"}}, write(LATER, {"f:data": {"f:tea": {}, "f:new": {}}})
)
NOW_SAME = live(SAME.body, write(BEFORE, {"f:data": {"f:a": {}}}), write(LATER, {"f:status": {}}, "status"))
NOW_KEY = live({**KEY.body, "data": {"password": "bmV3"}}, write(LATER, {"f:data": {"f:password": {}}}))
ROGUE = live(body_of("ConfigMap", "rogue"), created=LATER)
NAMES = {"v1/ConfigMap": ["shop/settings", "shop/same", "shop/lost"], "v1/Secret": ["shop/key"]}


def listed(*items: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "1"}, "items": list(items)}


def backup(**velero: str) -> dict[str, Any]:
    status = {
        "phase": "Created",
        "conditions": [condition("Succeeded", "True", "Completed", "Backup completed")],
        "veleroBackup": {
            "name": "b",
            "spec": {},
            "status": {"phase": "Completed", "startTimestamp": "2026-11-16T00:00:00Z", **velero},
        },
    }
    return wire(metadata={"name": "first"}, status=status, spec={"backupSpec": {}})


@contextmanager
def cluster(folder: Path, *, denied: str = "", **answers: Any) -> Iterator[Canned]:  # noqa: ANN401 - JSON
    """Serve the namespace and its backup; contents only if they are not denied."""
    files = {
        "BackupContents": archive(SETTINGS, SAME, LOST, KEY),
        "BackupVolumeInfos": gzip.compress(b"[]"),
        "BackupResourceList": gzip.compress(json.dumps(NAMES).encode()),
    }
    kinds: dict[str, str] = {}
    with bucket(**files) as url:

        def signed(path: str, sent: dict[str, Any]) -> dict[str, Any]:
            if "spec" in sent:
                kinds[sent["metadata"]["name"]] = sent["spec"]["target"]["kind"]
            name = sent["metadata"]["name"] if "spec" in sent else path.rpartition("/")[2]
            metadata = {"name": name, "namespace": "shop", "uid": "d", "creationTimestamp": LATER}
            velero = {"status": {"phase": "Processed", "downloadURL": f"{url}/{kinds[name]}"}}
            status: dict[str, Any] = {"velero": velero}
            if denied and kinds[name] == "BackupContents":
                status = {"conditions": [condition("Processed", "False", denied, DENIED)]}
            target = {"target": {"kind": kinds[name], "name": "first"}}
            return {"metadata": metadata, "spec": target, "status": status}

        held = {
            FILES: signed,
            REVIEWS: {"status": {"allowed": True}},
            "/apis": {"items": []},
            NAMESPACE: {"metadata": {"name": "shop", "labels": SERVED}},
            f"{TENANTS}/nonadminbackups/first": backup(),
            f"{NAMESPACE}/configmaps": listed(NOW_SETTINGS, NOW_SAME, ROGUE),
            f"{NAMESPACE}/secrets": listed(NOW_KEY),
            f"{NAMESPACE}/configmaps/settings": NOW_SETTINGS,
            f"{NAMESPACE}/configmaps/same": NOW_SAME,
            f"{NAMESPACE}/secrets/key": NOW_KEY,
            **answers,
        }
        with canned(folder, Answers(held)) as server:
            yield server


def diff(server: Canned, *words: str) -> int:
    return main(["backup", "diff", "first", "-n", "shop", "--kubeconfig", str(server.kubeconfig), *words])


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_what_changed_is_grouped_and_named_by_field_without_a_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path) as server:
        assert diff(server) == 0
    told = capsys.readouterr()
    assert rows(told.out) == [
        ["CHANGE", "KIND", "NAME", "FIELDS"],
        ["gone", "ConfigMap", "lost"],
        ["new", "ConfigMap", "rogue"],
        ["changed", "ConfigMap", "settings", "data.new,", "data.old,", "data.tea"],
        ["changed", "Secret", "key", "data.password"],
    ]
    assert not {"b2xk", "bmV3", "999"} & set(told.out.split())


@pytest.mark.parametrize("denied", ["TargetNotServed", "ContentsDenied"])
def test_without_the_contents_the_api_servers_record_of_writes_names_the_fields(
    denied: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path, denied=denied) as server:
        assert diff(server) == 0
    told = capsys.readouterr()
    assert rows(told.out)[3:] == [
        ["written", "ConfigMap", "settings", "data.new,", "data.tea"],
        ["written", "Secret", "key", "data.password"],
    ]
    assert "hint: you may not read the contents of the backup, so fields are those of whoever wrote" in told.err
    assert "may still be the same" in told.err
    assert all("DELETE" not in each or "nonadmindownloadrequests" in each for each in server.asked)


def test_a_write_without_a_time_may_be_newer_than_the_backup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server notes no time when somebody scales a Deployment."""
    scaled = {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}, "subresource": "scale"}
    later = write(LATER, {"f:status": {}}, "status")
    answers = {f"{NAMESPACE}/configmaps": listed(live(SAME.body, scaled, later))}
    with cluster(tmp_path, denied="ContentsDenied", **answers) as server:
        assert diff(server) == 0
    assert ["written", "ConfigMap", "same", "spec.replicas"] in rows(capsys.readouterr().out)


def test_programs_get_every_change_and_how_it_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with cluster(tmp_path) as server:
        assert diff(server, "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["namespace"], told["name"], told["comparedWith"]) == ("shop", "first", "contents")
    assert told["changes"][2] == {
        "change": "changed",
        "kind": "ConfigMap",
        "name": "settings",
        "fields": ["data.new", "data.old", "data.tea"],
    }
    with cluster(tmp_path, denied="ContentsDenied") as server:
        assert diff(server, "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["comparedWith"] == "writes"


def test_a_backup_without_a_start_has_no_writes_since(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = {f"{TENANTS}/nonadminbackups/first": backup(startTimestamp="soon")}
    with cluster(tmp_path, denied="ContentsDenied", **named) as server:
        assert diff(server) == 0
    told = capsys.readouterr()
    assert "written" not in told.out
    assert "hint: which objects changed is not known" in told.err


def test_a_plan_that_may_not_read_contents_names_the_command_that_needs_them_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path, denied="TargetNotServed") as server:
        words = ["restore", "plan", "--from-backup", "first", "-n", "shop", "--kubeconfig", str(server.kubeconfig)]
        assert main(words) == 1
    assert "foresail backup diff first -n shop needs no such permission. Ask a " in capsys.readouterr().err


# The rules


def test_the_record_of_a_write_is_read_as_paths() -> None:
    containers: dict[str, Any] = {'k:{"name":"web"}': {".": {}, "f:image": {}, "f:args": {}}}
    fields = {
        "f:metadata": {"f:annotations": {".": {}, "f:a/b": {}}},
        "f:spec": {"f:template": {"f:spec": {"f:containers": containers}}, "f:finalizers": {'v:"x"': {}}},
        "f:status": {"f:phase": {}},
    }
    assert fields_of(fields) == (
        "metadata.annotations.a/b",
        "spec.finalizers[x]",
        "spec.template.spec.containers[name=web].args",
        "spec.template.spec.containers[name=web].image",
    )
    assert fields_of({"f:data": 1, "k:{": {}, "v:[": {}, "odd": {"f:x": {}}}) == ("data",)


CONFIG_MAPS = next(each for each in CORE if each.plural == "configmaps")
HELD = [HeldKind("ConfigMap", "", "v1", ("a", "b", "c"))]


def test_only_what_the_backup_has_and_someone_wrote_since_counts() -> None:
    objects = [
        LiveObject("a"),
        LiveObject("b", is_written=True, fields=("data.x",)),
        LiveObject("c", is_recreated=True, fields=("data.x",)),
        LiveObject("new", is_written=True),
    ]
    assert written_since(HELD, {CONFIG_MAPS: objects}) == [
        Change("created again", "ConfigMap", "c", ("data.x",)),
        Change("written", "ConfigMap", "b", ("data.x",)),
    ]


def test_a_status_and_what_the_cluster_sets_are_no_changes() -> None:
    before = item("configmaps", {**body_of("ConfigMap", "a"), "status": {"x": 1}})
    now = {**live(body_of("ConfigMap", "a")), "status": {"x": 2}}
    assert changed_since([before], {before.key: now}) == []
    assert changed_since([before], {}) == []


def test_without_differences_it_says_what_it_knows() -> None:
    assert diff_text([], is_exact=True) == "No differences."
    assert diff_text([], is_exact=False) == "Nothing is gone, new or written since the backup began."
    many = Change("changed", "ConfigMap", "a", tuple(f"data.{number}" for number in range(9)))
    assert "data.4 and 4 more" in diff_text([many], is_exact=True)


def test_a_start_that_is_no_time_is_none() -> None:
    assert decoded(backup(startTimestamp="soon")).started is None
    assert decoded(backup()).started == START
