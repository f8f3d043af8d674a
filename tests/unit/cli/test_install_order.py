"""In which order `foresail install` writes, and who runs the Schedules when it fails or is ended in between."""

import asyncio
import copy
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
import pytest

from foresail.api import velero
from foresail.api.apps import DEPLOYMENT
from foresail.api.core import CONFIG_MAP, NAMESPACE
from foresail.api.marks import CHECK_LABEL, OBSERVED, ROLLBACK_FINALIZER
from foresail.api.nonadmin import NON_ADMIN_LOCATION
from foresail.api.pods import POD
from foresail.api.rollback import ROLLBACK
from foresail.cli.errors import CommandError
from foresail.cli.install.install import install
from foresail.cli.install.manifests import CAPABILITIES, InstallOptions, operators
from foresail.cli.install.objects import Patience
from foresail.cli.install.uninstall import _Uninstall
from foresail.cli.main import parser
from foresail.kube.clock import now
from foresail.kube.lease import LEASE
from foresail.plan import Body, Key, Kind
from foresail.schedules.velero_server import schedule_controller_is_off

if TYPE_CHECKING:
    from foresail.cli.access.cluster import Cluster

T = TypeVar("T")
VELERO, FORESAIL, PRIMERS = (Key("velero", name) for name in ("velero", "foresail-schedules", "foresail-primers"))
OFF = "--disable-controllers=schedule"
STATUS = {"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2, "replicas": 2}
OURS = [{"manager": "foresail-cli", "operation": "Apply"}]


class Stored:
    """As much of a cluster as the command asks for; every write is recorded, and some may fail."""

    def __init__(self, *words: str, capabilities: tuple[str, ...] = (), leads: bool = True) -> None:
        self.objects: dict[tuple[str, Key], dict[str, Any]] = {}
        self.writes: list[str] = []
        self.leads = leads
        self.may_list = True  # what a review answers
        self.interrupted = False  # the next read of an object is ended by Ctrl-C
        self.before_write: Callable[[str], None] = lambda _: None
        container = {"name": "velero", "image": "velero", "command": ["/velero"], "args": ["server", *words]}
        spec = {"replicas": 2, "template": {"spec": {"containers": [container]}}}
        self.put(DEPLOYMENT, VELERO, {"spec": spec, "status": STATUS}, [])
        if capabilities:
            for each in operators(InstallOptions(capabilities, "velero", "velero", "foresail:1")):
                self.put(each.kind, each.key, dict(each.body))

    def put(self, kind: Kind, key: Key, body: Body, managed: Sequence[dict[str, Any]] = OURS) -> dict[str, Any]:
        found: dict[str, Any] = copy.deepcopy(dict(body))
        meta = {**found.get("metadata", {}), "name": key.name, "namespace": key.namespace, "generation": 1}
        found["metadata"] = {**meta, "uid": str(key), "managedFields": managed}
        if kind.name == "CustomResourceDefinition":
            found["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
        if kind == DEPLOYMENT:
            found["status"] = STATUS
        self.objects[kind.name, key] = found
        return found

    @property
    def runs_its_schedules(self) -> bool:
        container = self.objects["Deployment", VELERO]["spec"]["template"]["spec"]["containers"][0]
        return not schedule_controller_is_off(container["args"])

    def _write(self, said: str) -> None:
        self.before_write(said)
        self.writes.append(said)

    async def listed(self, kind: Kind, namespace: str, *_: str) -> list[msgspec.Raw]:
        found = [each for (name, key), each in self.objects.items() if name == kind.name]
        return [
            msgspec.Raw(msgspec.json.encode(each))
            for each in found
            if not namespace or each["metadata"]["namespace"] == namespace
        ]

    async def listed_if_known(self, kind: Kind, namespace: str = "") -> list[msgspec.Raw]:
        return await self.listed(kind, namespace)

    async def knows(self, _: Kind) -> bool:
        return True

    async def discovered(self) -> None:
        return None

    async def reviewed(self, _: Kind, body: dict[str, Any]) -> msgspec.Raw:
        assert body["spec"]["resourceAttributes"]["resource"] == "nonadminbackups"
        return msgspec.Raw(msgspec.json.encode({"status": {"allowed": self.may_list}}))

    async def server_time(self) -> datetime:
        return now()

    async def if_there(self, kind: Kind, key: Key, of: type[T]) -> T | None:
        if kind == LEASE and self.leads and ("Deployment", key) in self.objects:
            lease = {"spec": {"holderIdentity": "one", "renewTime": now()}}
            return msgspec.json.decode(msgspec.json.encode(lease), type=of)
        found = self.objects.get((kind.name, key))
        return None if found is None else msgspec.json.decode(msgspec.json.encode(found), type=of)

    async def read(self, kind: Kind, key: Key, of: type[T]) -> T:
        if self.interrupted and kind == DEPLOYMENT:
            self.interrupted = False
            raise asyncio.CancelledError
        return cast("T", await self.if_there(kind, key, of))

    async def apply(self, kind: Kind, key: Key, body: Body, **_: bool) -> msgspec.Raw:
        self._write(f"apply {kind.name} {key}")
        return msgspec.Raw(msgspec.json.encode(self.put(kind, key, body)))

    async def create(self, kind: Kind, key: Key, body: Body, **_: bool) -> msgspec.Raw:
        self._write(f"create {kind.name} {key}")
        return msgspec.Raw(msgspec.json.encode(self.put(kind, key, body)))

    async def merge_by_name(self, kind: Kind, key: Key, body: dict[str, Any], **_: bool) -> None:
        changed = body["spec"]["template"]["spec"]["containers"][0]
        self._write(f"velero {'off' if schedule_controller_is_off(changed['args']) else 'on'}")
        self.objects[kind.name, key]["spec"]["template"]["spec"]["containers"][0].update(changed)

    async def merged_if_same(self, kind: Kind, key: Key, _: Body) -> bool:
        self._write(f"release {kind.name} {key}")
        return True

    async def delete(self, kind: Kind, key: Key, _: str, **__: bool) -> None:
        self._write(f"delete {kind.name} {key}")
        del self.objects[kind.name, key]


def run(stored: Stored, *words: str) -> int:
    args = parser().parse_args(["install", "--confirm", *words])
    return asyncio.run(install(cast("Cluster", stored), args, Patience(now() + timedelta(seconds=0.1))))


@pytest.mark.parametrize("off", ["--rollback=false", "--self-service=false"])
def test_rollback_is_not_switched_off_amid_a_rollback(off: str) -> None:
    stored = Stored(OFF, capabilities=("schedules", "self-service", "rollback"))
    back = {"metadata": {"finalizers": [ROLLBACK_FINALIZER]}, "status": {"phase": "Replacing"}}
    stored.put(ROLLBACK, Key("shop", "back"), back)
    with pytest.raises(CommandError, match=r"Rollback shop/back \(Replacing\) has not ended") as refusal:
        run(stored, off)
    assert stored.writes == []
    assert "foresail rollback undo" in (refusal.value.hint or "")
    stored.put(ROLLBACK, Key("shop", "back"), {**back, "status": {"phase": "Undone"}})
    assert run(stored, off) == 0


def test_foresail_is_not_uninstalled_amid_a_rollback() -> None:
    stored = Stored(OFF, capabilities=("schedules", "self-service", "rollback"))
    back = {"metadata": {"finalizers": [ROLLBACK_FINALIZER]}, "status": {"phase": "Undoing"}}
    stored.put(ROLLBACK, Key("shop", "back"), back)
    args = parser().parse_args(["uninstall", "--confirm"])
    patience = Patience(now() + timedelta(seconds=0.1))
    with pytest.raises(CommandError, match=r"Rollback shop/back \(Undoing\) has not ended"):
        asyncio.run(_Uninstall(cast("Cluster", stored), args, patience).run())
    assert stored.writes == []


def fail_at(text: str, error: BaseException) -> Callable[[str], None]:
    def check(said: str) -> None:
        if said == text:
            raise error

    return check


REFUSED = CommandError("refused", "allow it")


def test_schedules_go_back_to_velero_before_their_operator_and_its_permissions_go() -> None:
    stored = Stored(OFF, capabilities=("schedules", "primers"))
    assert run(stored, "--schedules=false") == 0
    ends, back = stored.writes.index("delete Deployment velero/foresail-schedules"), stored.writes.index("velero on")
    assert back < ends < stored.writes.index("delete Role velero/foresail-schedules")
    assert stored.writes.index("apply Deployment velero/foresail-primers") < ends


def test_permissions_of_schedules_stay_until_the_operator_without_them_is_leader() -> None:
    stored = Stored(OFF, capabilities=("schedules", "self-service"))
    assert run(stored, "--schedules=false") == 0
    applied = stored.writes.index("apply Deployment velero/foresail-self-service")
    assert stored.writes.index("velero on") < applied
    assert applied < stored.writes.index("delete Role velero/foresail-schedules")


def test_the_recovery_key_is_there_before_the_operator_and_is_created_once() -> None:
    stored = Stored(OFF, capabilities=("schedules",))
    assert run(stored, "--self-service") == 0
    created = stored.writes.index("create Secret velero/foresail-record-key")
    assert created < stored.writes.index("apply Deployment velero/foresail-self-service")
    stored.writes.clear()
    assert run(stored) == 0
    assert "create Secret velero/foresail-record-key" not in stored.writes


def test_schedules_that_cannot_go_back_keep_their_operator() -> None:
    stored = Stored(OFF, capabilities=("schedules", "primers"))
    stored.before_write = fail_at("velero on", REFUSED)
    with pytest.raises(CommandError, match="refused"):
        run(stored, "--schedules=false")
    assert [each for each in stored.writes if each.startswith("delete")] == []


def test_a_second_run_gives_back_schedules_that_nobody_runs() -> None:
    stored = Stored(OFF, capabilities=("primers",))
    assert run(stored, "--schedules=false") == 0
    assert stored.runs_its_schedules


def test_a_schedule_controller_that_others_switched_off_stays_off_with_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored = Stored(OFF)
    assert run(stored, "--schedules=false", "--primers", "--image=foresail:1") == 0
    assert not stored.runs_its_schedules
    assert "warning: Velero's schedule controller is off in Deployment velero/velero" in capsys.readouterr().err


def test_the_operator_leads_before_velero_is_changed() -> None:
    stored = Stored()
    assert run(stored, "--image=foresail:1") == 0
    assert stored.writes.index("apply Deployment velero/foresail-schedules") < stored.writes.index("velero off")
    assert not stored.runs_its_schedules


@pytest.mark.parametrize(
    ("found", "read_in"), [("Europe/Berlin", "Europe/Berlin"), ("Nowhere/Land", "UTC"), ("", "UTC")]
)
def test_the_operator_reads_schedules_in_the_time_zone_of_velero(found: str, read_in: str) -> None:
    stored = Stored()
    container = stored.objects["Deployment", VELERO]["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "OTHER"}, {"name": "TZ", "value": found}]
    assert run(stored, "--image=foresail:1") == 0
    args = stored.objects["Deployment", FORESAIL]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f"--velero-time-zone={read_in}" in args


@pytest.mark.parametrize("capabilities", [(), ("schedules",)])
def test_velero_is_not_touched_while_no_operator_leads(capabilities: tuple[str, ...]) -> None:
    stored = Stored(capabilities=capabilities, leads=False)
    with pytest.raises(CommandError, match=r"no replica .* holds the Lease; Velero still runs the Schedules"):
        run(stored, "--image=foresail:2")
    assert [each for each in stored.writes if each.startswith("velero")] == []


def stuck_at(stored: Stored, text: str) -> Callable[[str], None]:
    """Let no rollout of Velero end from one write on, until the next one."""

    def check(said: str) -> None:
        if said.startswith("velero"):
            stored.objects["Deployment", VELERO]["status"] = {} if said == text else STATUS

    return check


def test_a_rollout_that_does_not_end_is_undone_and_velero_runs_the_schedules_again() -> None:
    stored = Stored()
    stored.before_write = stuck_at(stored, "velero off")
    with pytest.raises(CommandError, match="its rollout has not finished; Velero runs the Schedules again"):
        run(stored, "--image=foresail:1")
    assert stored.writes[-2:] == ["velero off", "velero on"]


def test_schedules_that_velero_does_not_take_back_stay_with_the_operator() -> None:
    stored = Stored(OFF, capabilities=("schedules", "primers"))
    stored.before_write = stuck_at(stored, "velero on")
    with pytest.raises(CommandError, match="its rollout has not finished; the operator runs the Schedules again"):
        run(stored, "--schedules=false")
    assert stored.writes[-2:] == ["velero on", "velero off"]
    assert [each for each in stored.writes if each.startswith("delete")] == []


def test_where_no_operator_leads_a_slow_rollout_to_velero_is_not_undone() -> None:
    stored = Stored(OFF, capabilities=("schedules", "primers"), leads=False)
    stored.before_write = stuck_at(stored, "velero on")
    with pytest.raises(CommandError, match="its rollout has not finished; maybe no Schedule runs"):
        run(stored, "--schedules=false")
    assert stored.runs_its_schedules


def test_the_command_waits_until_the_last_server_with_the_controller_has_ended() -> None:
    stored = Stored()
    container = {"image": "velero", "command": ["/velero"], "args": ["server"]}
    stored.put(POD, Key("velero", "velero-old"), {"spec": {"containers": [container]}, "status": {"phase": "Running"}})
    with pytest.raises(CommandError, match="its rollout has not finished"):
        run(stored, "--image=foresail:1")


def test_ctrl_c_during_the_rollout_leaves_the_schedules_to_velero_again(capsys: pytest.CaptureFixture[str]) -> None:
    stored = Stored()

    def interrupt(said: str) -> None:
        stored.interrupted = said == "velero off"

    stored.before_write = interrupt
    with pytest.raises(asyncio.CancelledError):
        run(stored, "--image=foresail:1")
    assert stored.writes[-2:] == ["velero off", "velero on"]
    assert "interrupted; Velero runs the Schedules again" in capsys.readouterr().err


def test_schedules_that_cannot_be_given_back_hide_not_why_it_failed() -> None:
    stored = Stored()
    stuck, refuse = stuck_at(stored, "velero off"), fail_at("velero on", REFUSED)

    def both(said: str) -> None:
        refuse(said)
        stuck(said)

    stored.before_write = both
    with pytest.raises(CommandError, match=r"rollout has not finished; maybe no Schedule runs: refused") as raised:
        run(stored, "--image=foresail:1")
    assert "`foresail doctor` reports who runs the Schedules" in (raised.value.hint or "")


def test_a_failed_run_says_that_nobody_runs_the_schedules_if_they_were_off_before() -> None:
    stored = Stored(OFF, capabilities=("schedules",), leads=False)
    with pytest.raises(CommandError, match=r"holds the Lease; no Schedule runs\n"):
        run(stored)


def test_a_rollout_of_velero_has_time_of_its_own() -> None:
    spent = Patience(now() + timedelta(seconds=0.4))
    asked = []

    async def holds_the_second_time() -> bool:
        asked.append(now())
        return len(asked) > 1

    async def late() -> None:
        await asyncio.sleep(0.5)
        await spent.at_least(timedelta(minutes=2)).wait("a replica leads", holds_the_second_time, REFUSED)

    asyncio.run(late())


def test_a_second_run_releases_what_a_capability_held_that_the_first_one_switched_off() -> None:
    stored = Stored(OFF, capabilities=("schedules", "primers"))
    stored.put(velero.SCHEDULE, Key("velero", "nightly"), {"metadata": {"annotations": {OBSERVED: "x"}}})
    stored.before_write = fail_at("release Schedule velero/nightly", REFUSED)
    with pytest.raises(CommandError, match="refused"):
        run(stored, "--schedules=false")
    stored.before_write = lambda _: None
    assert run(stored, "--schedules=false") == 0
    assert "release Schedule velero/nightly" in stored.writes
    assert ("Role", Key("velero", "foresail-schedules")) not in stored.objects


@pytest.mark.parametrize("words", [("--tenant-locations=false",), ("--self-service=false",)])
def test_locations_of_tenants_are_released_before_the_permissions_go(words: tuple[str, ...]) -> None:
    """Else nobody would remove the finalizer, and namespaces with a location could never be deleted."""
    stored = Stored(OFF, capabilities=("schedules", "self-service"))
    assert run(stored, "--tenant-locations") == 0
    assert "apply ClusterRole foresail-tenant-locations" in stored.writes
    finalizers: dict[str, Any] = {"f:metadata": {"f:finalizers": {}}}
    meta = {"finalizers": ["nonadminbackupstoragelocation.oadp.openshift.io/finalizer"]}
    managed: list[dict[str, Any]] = [{"manager": "foresail", "fieldsV1": finalizers}]
    stored.put(NON_ADMIN_LOCATION, Key("shop", "mine"), {"metadata": meta}, managed)
    stored.writes.clear()
    assert run(stored) == 0
    assert not [each for each in stored.writes if each.startswith(("release", "delete"))]
    assert run(stored, *words) == 0
    released = stored.writes.index("release NonAdminBackupStorageLocation shop/mine")
    assert released < stored.writes.index("delete ClusterRole foresail-tenant-locations")
    assert stored.writes.index("apply Deployment velero/foresail-schedules") < released


CHECKED = {"metadata": {"labels": {CHECK_LABEL: "u"}}}
SANDBOX, PRODUCTION = Key("", "foresail-check-0123456789-abcdef"), Key("", "production")


def with_checks(phase: str) -> Stored:
    stored = Stored(OFF, capabilities=("schedules", "restore-checks"))
    stored.put(velero.RESTORE, Key("velero", "check-0123456789"), {**CHECKED, "status": {"phase": phase}})
    for kind, key in (
        (velero.DOWNLOAD_REQUEST, Key("velero", "check-0123456789-contents")),
        (CONFIG_MAP, Key("velero", "check-0123456789-modifiers")),
        (CONFIG_MAP, Key("velero", "check-0123456789-evidence")),
        (CONFIG_MAP, Key("velero", "settings")),
        (NAMESPACE, SANDBOX),
        (NAMESPACE, PRODUCTION),
    ):
        stored.put(kind, key, CHECKED)
    return stored


def test_sandboxes_go_before_the_fence_and_evidence_stays() -> None:
    stored = with_checks("Completed")
    assert run(stored) == 0
    assert not [each for each in stored.writes if each.startswith("delete")], "an upgrade keeps them"
    assert run(stored, "--restore-checks=false") == 0
    removed = [each.removeprefix("delete ") for each in stored.writes if each.startswith("delete")]
    made = removed.index(f"Namespace {SANDBOX}")
    assert removed.index("Deployment velero/foresail-checks") < removed.index("Restore velero/check-0123456789") < made
    assert made < removed.index("ValidatingAdmissionPolicy foresail-sandbox-names")
    assert {("Namespace", PRODUCTION), ("ConfigMap", Key("velero", "check-0123456789-evidence"))} <= set(stored.objects)
    assert {"DownloadRequest velero/check-0123456789-contents", "ConfigMap velero/check-0123456789-modifiers"} <= set(
        removed
    )


def test_the_fence_stays_while_velero_restores_into_a_sandbox() -> None:
    stored = with_checks("InProgress")
    with pytest.raises(CommandError, match="still restores velero/check-0123456789"):
        run(stored, "--restore-checks=false")
    assert ("Namespace", SANDBOX) in stored.objects
    assert ("ValidatingAdmissionPolicy", Key("", "foresail-sandbox-names")) in stored.objects
    stored.objects["Restore", Key("velero", "check-0123456789")]["status"]["phase"] = "Completed"
    assert run(stored, "--restore-checks=false") == 0
    assert ("Namespace", SANDBOX) not in stored.objects


@pytest.mark.parametrize("is_there", [True, False])
def test_a_rival_keeps_self_service_off_at_first_and_never_switches_it_off(
    capsys: pytest.CaptureFixture[str], *, is_there: bool
) -> None:
    stored = Stored(OFF, capabilities=CAPABILITIES[: 2 if is_there else 1])
    spec = {"replicas": 0, "template": {"spec": {"containers": [{"name": "x", "image": "non-admin-controller"}]}}}
    stored.put(DEPLOYMENT, Key("team", "mine"), {"spec": spec})
    assert run(stored, "--self-service") == 0
    assert (("Deployment", Key("velero", "foresail-self-service")) in stored.objects) == is_there
    said = capsys.readouterr().err
    assert f"self-service stays {'on' if is_there else 'off'}" in said
    assert "kubectl delete deployment mine -n team" in said


def test_a_deployment_that_only_looks_like_a_rival_does_not_block_a_first_self_service() -> None:
    stored = Stored(OFF, capabilities=("schedules",))
    stored.may_list = False
    spec = {"replicas": 1, "template": {"spec": {"containers": [{"name": "x", "image": "non-admin-controller"}]}}}
    stored.put(DEPLOYMENT, Key("team", "mine"), {"spec": spec})
    assert run(stored, "--self-service") == 0
    assert ("Deployment", Key("velero", "foresail-self-service")) in stored.objects


def test_where_a_tool_manages_velero_what_a_restart_would_lose_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    stored = Stored()
    stored.objects["Deployment", VELERO]["metadata"]["annotations"] = {"meta.helm.sh/release-name": "velero"}
    stored.put(velero.BACKUP, Key("velero", "nightly-1"), {"status": {"phase": "InProgress"}})
    with pytest.raises(CommandError, match=r"has not switched Velero's schedule controller off; Velero runs"):
        run(stored, "--image=foresail:1")
    said = capsys.readouterr().err
    assert "warning: the change restarts Velero, which would lose what has not ended: Backup nightly-1; wait" in said


def test_where_a_tool_manages_velero_it_is_said_when_nothing_would_be_lost(capsys: pytest.CaptureFixture[str]) -> None:
    stored = Stored()
    stored.objects["Deployment", VELERO]["metadata"]["annotations"] = {"meta.helm.sh/release-name": "velero"}
    running = stored.put(velero.BACKUP, Key("velero", "nightly-1"), {"status": {"phase": "InProgress"}})
    listed = stored.listed

    async def ends(kind: Kind, namespace: str, *words: str) -> list[msgspec.Raw]:
        found = await listed(kind, namespace, *words)
        if kind == velero.BACKUP:
            running["status"]["phase"] = "Completed"  # when it is listed the next time
        return found

    stored.listed = ends  # type: ignore[method-assign]
    with pytest.raises(CommandError, match=r"has not switched Velero's schedule controller off; Velero runs"):
        run(stored, "--image=foresail:1")
    said = capsys.readouterr().err
    assert said.index("lose what has not ended: Backup nightly-1") < said.index("make the change now")
