"""Downloads with hostile input: whatever a tenant writes, only the own files are asked for, never by their words."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.api import mirrored, nonadmin
from foresail.api.requests import DownloadTarget
from foresail.plan import Create, Delete, Key, Plan, ReadResult
from foresail.selfservice.access.view import SecretsCheck, SecretsChecked
from foresail.selfservice.downloads.decide import PREFIX, RETRY, SILENCE, decide
from foresail.selfservice.downloads.targets import SERVED
from foresail.selfservice.downloads.view import DownloadRow, DownloadView, download_row
from foresail.selfservice.requests.file_requests import file_name
from foresail.selfservice.requests.rules import UNSEEN
from foresail.selfservice.requests.status import CREATED
from foresail.selfservice.rows.requests import Copy, Status
from foresail.selfservice.rows.velero import DownloadRequestRow, File, VeleroRow, download_request_row
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.records import nacuuid
from tests.unit.selfservice.request_rows import NOW, new_request

RED = NamespaceRow("red-uid", {}, is_terminating=False)
BACKUP = new_request(spec="", status=Status(CREATED))
VELERO = VeleroRow(
    key=Key("velero", nacuuid(BACKUP)),
    uid="v",
    created=NOW,
    owner=BACKUP.key,
    request_uid=BACKUP.uid,
    namespace_uid=RED.uid,
    is_orphaned=False,
    is_terminating=False,
    phase="Completed",
    queue_position=0,
    expires=None,
    mirror="{}",
    spec="{}",
)


def asking(kind: str, name: str = "shop") -> DownloadRow:
    return DownloadRow(Key("red", "why"), "d1", "1", 1, NOW, False, File(kind, name), "", None, Status())  # noqa: FBT003


def answered(url: str, target: File, expires: datetime | None = None, request_uid: str = "d1") -> DownloadRequestRow:
    key = Key("velero", file_name(PREFIX, "d1"))
    return DownloadRequestRow(
        key, "a", NOW, Key("red", "why"), request_uid, target, url, expires, '{"downloadURL":"u"}'
    )


def view(request: DownloadRow, velero: VeleroRow | None = VELERO, *answers: DownloadRequestRow) -> DownloadView:
    return DownloadView(request, "velero", RED, BACKUP, velero, velero, answers)


def creates(plan: Plan) -> list[Create]:
    return [each for each in plan.actions if isinstance(each, Create)]


@given(kind=st.text() | st.sampled_from(msgspec.json.schema(DownloadTarget)["enum"]), name=st.text())
def test_whatever_is_asked_for_velero_is_asked_for_a_served_file_of_the_own_backup_or_nothing(
    kind: str, name: str
) -> None:
    for each in creates(decide(view(asking(kind, name)), NOW)):
        assert kind in SERVED
        assert each.body["spec"] == {"target": {"kind": kind, "name": VELERO.key.name}}


@pytest.mark.parametrize(
    "change",
    [
        {"owner": Key("blue", "shop")},
        {"owner": Key("red", "other")},
        {"owner": None},
        {"request_uid": ""},
        {"request_uid": "another"},
        {"namespace_uid": ""},
        {"namespace_uid": "blue-uid"},
        {"key": Key("velero", "nightly")},
        {"phase": "FailedValidation"},
        {"phase": "Deleting"},
        {"phase": "InProgress"},
        {"phase": "NeverHeardOf"},
    ],
    ids=str,
)
def test_a_velero_backup_that_is_not_ours_or_has_no_files_is_not_asked_about(change: dict[str, object]) -> None:
    plan = decide(view(asking("BackupLog"), msgspec.structs.replace(VELERO, **change)), NOW)
    assert creates(plan) == []
    assert plan.status is not None
    assert creates(decide(view(asking("BackupLog")), NOW)), "it is the change that makes the difference"


def test_the_url_of_an_answer_is_shown_only_if_it_is_of_the_file_that_was_meant() -> None:
    right = File("BackupLog", VELERO.key.name)
    plan = decide(view(asking("BackupLog"), VELERO, answered("u", right, NOW + timedelta(minutes=1))), NOW)
    assert plan.status is not None
    assert "velero" in str(plan.status.body)
    for wrong in (File("BackupContents", right.name), File("BackupLog", "nightly")):
        plan = decide(view(asking("BackupLog"), VELERO, answered("u", wrong, NOW + timedelta(minutes=1))), NOW)
        assert plan.status is None
        assert [type(each) for each in plan.actions] == [Delete]


def test_an_answer_without_our_record_is_neither_shown_nor_deleted() -> None:
    right = File("BackupLog", VELERO.key.name)
    plan = decide(view(asking("BackupLog"), VELERO, answered("u", right, request_uid="")), NOW)
    assert [type(each) for each in plan.actions] == [Create]  # which the executor ends: the name is taken


def test_a_url_that_names_no_end_is_good_for_ten_minutes() -> None:
    request = msgspec.structs.replace(asking("BackupLog"), url="u")
    assert decide(view(request), NOW) == Plan(wake_at=NOW + timedelta(minutes=10))
    assert [type(each) for each in decide(view(request), NOW + timedelta(minutes=10)).actions] == [Delete]


def test_a_silent_velero_is_reported_after_a_minute_and_not_requeued() -> None:
    right = answered("", File("BackupLog", VELERO.key.name))
    plan = decide(view(asking("BackupLog"), VELERO, right), NOW)
    assert plan.wake_at == NOW + SILENCE
    plan = decide(view(asking("BackupLog"), VELERO, right), NOW + SILENCE)
    assert plan.wake_at is None
    assert "VeleroSilent" in str(plan.status)


def test_a_velero_backup_that_was_made_a_moment_ago_is_not_called_missing() -> None:
    made = nonadmin.Condition("Queued", "True", "BackupScheduled", "", "2026-01-01T00:00:00Z", 1)
    status = Status(CREATED, (made,), Copy(nacuuid(BACKUP)))
    lagging = msgspec.structs.replace(
        view(asking("BackupLog"), None), about=msgspec.structs.replace(BACKUP, status=status)
    )
    assert decide(lagging, NOW) == Plan(wake_at=NOW + UNSEEN)
    assert "NonAdminBackupNotAvailable" in str(decide(lagging, NOW + UNSEEN).status)


def test_nothing_is_done_in_a_terminating_namespace() -> None:
    going = msgspec.structs.replace(
        view(asking("BackupLog")), namespace=NamespaceRow("red-uid", {}, is_terminating=True)
    )
    assert decide(going, NOW) == Plan()


def test_the_message_never_repeats_more_than_a_line_of_what_a_tenant_wrote() -> None:
    plan = decide(view(asking("X" * 100_000 + "\n")), NOW)
    assert len(plan.notes[0].message) < 300


def test_rows_are_read_from_what_the_api_server_sends() -> None:
    meta = {"name": "why", "namespace": "red", "uid": "d1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    reply = {"downloadURL": "u", "expiration": "2026-01-01T00:10:00Z", "phase": "Processed"}
    target = {"kind": "BackupLog", "name": "shop"}
    document = {"metadata": meta, "spec": {"target": target}, "status": {"velero": {"status": reply}}}
    row = download_row(msgspec.json.decode(msgspec.json.encode(document), type=nonadmin.Download))
    assert (row.url, row.expires, row.target) == ("u", NOW + timedelta(minutes=10), File("BackupLog", "shop"))
    document = {"metadata": meta, "spec": {"target": target}, "status": reply}
    answer = download_request_row(msgspec.json.decode(msgspec.json.encode(document), type=mirrored.Download))
    assert (answer.url, answer.owner, answer.request_uid) == ("u", None, "")


def test_without_a_policy_a_download_waits_and_velero_is_not_asked() -> None:
    plan = decide(msgspec.structs.replace(view(asking("BackupLog")), has_policy=False), NOW)
    assert plan.actions == ()
    assert plan.status is not None
    status = msgspec.convert(plan.status.body["status"], dict[str, Any])
    assert (status["phase"], [each["reason"] for each in status["conditions"]]) == ("New", ["NoPolicy"])


# Contents

CONTENTS = msgspec.structs.replace(asking("BackupContents"), requester="ann", requester_groups=("devs",))
QUESTION = SecretsCheck("red", "ann", ("devs",))


def contents(answer: SecretsChecked | None, asked: datetime = NOW, request: DownloadRow = CONTENTS) -> DownloadView:
    result = None if answer is None else ReadResult(QUESTION, answer, asked, 1)
    return msgspec.structs.replace(view(request), allows_contents=True, read_result=result)


def test_contents_are_asked_for_only_with_a_fresh_yes_about_this_very_requester() -> None:
    assert decide(contents(None), NOW) == Plan(reads=(QUESTION,))
    yes = SecretsChecked(is_allowed=True)
    assert creates(decide(contents(yes), NOW))
    assert decide(contents(yes), NOW + timedelta(seconds=61)) == Plan(reads=(QUESTION,))
    eve = msgspec.structs.replace(CONTENTS, requester="eve")
    assert decide(contents(yes, request=eve), NOW) == Plan(reads=(SecretsCheck("red", "eve", ("devs",)),))


def test_the_url_of_contents_is_shown_only_with_a_fresh_yes() -> None:
    reply = answered("u", File("BackupContents", VELERO.key.name), NOW + timedelta(minutes=10))
    seen = msgspec.structs.replace(contents(SecretsChecked(is_allowed=True)), answers=(reply,))
    assert "velero" in str(decide(seen, NOW).status)
    assert decide(seen, NOW + timedelta(seconds=61)) == Plan(reads=(QUESTION,))


def test_an_api_server_that_does_not_answer_is_asked_again_later_and_nothing_is_handed_out() -> None:
    seen = contents(SecretsChecked(problem="it is away"))
    assert decide(seen, NOW) == Plan(wake_at=NOW + RETRY)
    assert decide(seen, NOW + RETRY) == Plan(reads=(QUESTION,))


@pytest.mark.parametrize("user", ["", "system:serviceaccount:velero:velero", "system:serviceaccount:kube-system:x"])
def test_nobody_and_system_accounts_get_no_contents(user: str) -> None:
    request = msgspec.structs.replace(CONTENTS, requester=user)
    seen = msgspec.structs.replace(contents(None, request=request), reserved=frozenset({"velero"}))
    plan = decide(seen, NOW)
    assert (plan.actions, plan.reads) == ((), ())
    assert "ContentsDenied" in str(plan.status)


def test_a_request_that_velero_restored_has_no_requester() -> None:
    meta = {"name": "why", "namespace": "red", "uid": "d1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    stamps = {"annotations": {"foresail.dev/requester": "ann"}, "labels": {}}
    labels = {"velero.io/restore-name": "r"}
    for marks, user in ((stamps, "ann"), ({**stamps, "labels": labels}, "")):
        document = msgspec.json.encode({"metadata": {**meta, **marks}})
        assert download_row(msgspec.json.decode(document, type=nonadmin.Download)).requester == user
