"""The checks of the red team's part data path see canaries and changes, and its cycles judge each attack."""

import gzip
import io
import tarfile
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from testbed.node import programs
from tests.redteam import cycles
from tests.redteam.attack import Attack
from tests.redteam.canaries import Canaries, readable
from tests.redteam.modules import DATA_PATH, PARTS, STOLEN_TOKENS
from tests.redteam.node_world import NodeWorld, _wrong_in_host
from tests.redteam.score import Score
from tests.redteam.world import World


def test_the_parts_on_a_node_and_with_stolen_tokens_are_large_enough() -> None:
    parts = {part.name: part.attacks() for part in PARTS}
    assert len(parts[DATA_PATH]) >= 40
    assert sum(one.control is not None for one in parts[DATA_PATH]) >= 12
    assert len(parts[STOLEN_TOKENS]) >= 500


@dataclass
class Site:
    """As much of a cluster as the search for canaries needs."""

    folder: Path
    site: Any = field(init=False)

    def __post_init__(self) -> None:
        self.site = self


class Admin:
    """An administrator who sees one volume and one pod of the hostile tenant."""

    def __init__(self, volume: Path) -> None:
        ref = {"namespace": "hostile", "name": "data"}
        self._volume = {"metadata": {"name": "v"}, "spec": {"claimRef": ref, "local": {"path": str(volume)}}}

    def items(self, target: str) -> list[dict[str, Any]]:
        if target.endswith("/persistentvolumes"):
            return [self._volume]
        if target.endswith("/pods"):
            return [{"metadata": {"name": "reader", "uid": "u"}}]
        return [{"data": {"x": "canary-in-an-object"}}] if target.endswith("/configmaps") else []


def archive(file: Path, name: str, content: bytes) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tarball:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tarball.addfile(member, io.BytesIO(content))
    file.parent.mkdir(parents=True)
    file.write_bytes(gzip.compress(packed.getvalue()))


def test_canaries_are_found_wherever_a_tenant_can_read_and_links_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "folder", lambda _site: tmp_path / "node")
    volume, elsewhere = tmp_path / "volume", tmp_path / "elsewhere"
    empty_dir = tmp_path / "node/kubelet/pods/u/volumes/kubernetes.io~empty-dir/cache"
    log = tmp_path / "node/pod-logs/hostile_reader_u/main"
    for folder in (volume / "deep", elsewhere, empty_dir, log):
        folder.mkdir(parents=True)
    (volume / "deep" / "file").write_text("x canary-in-a-volume x")
    (elsewhere / "file").write_text("canary-elsewhere")
    (volume / "link").symlink_to(elsewhere / "file")
    (volume / "folder").symlink_to(elsewhere)
    (empty_dir / "file").write_text("canary-in-an-empty-dir")
    (log / "0.log").write_text("canary-in-a-log")
    archive(tmp_path / "bucket/b.tar.gz", "resources/x.json", b"canary-in-an-archive")
    names = ("object", "volume", "empty-dir", "log", "archive")
    texts = {name: f"canary-in-a{'n' if name[0] in 'aeo' else ''}-{name}" for name in names}
    texts["elsewhere"] = "canary-elsewhere"
    admin, cluster = cast("Any", Admin(volume)), cast("Any", Site(tmp_path))
    places = readable(cluster, admin, "hostile", [tmp_path / "bucket"])
    found = {text.removeprefix("has canary ") for held in Canaries(texts).in_texts(places).values() for text in held}
    assert found == set(names)


def test_a_changed_canary_and_a_new_file_beside_it_are_noticed(tmp_path: Path) -> None:
    kept = Canaries()
    kept.place("one", tmp_path / "folder" / "canary")
    kept.folders["volume"] = tmp_path / "folder"
    before = kept.fingerprints()
    (tmp_path / "folder" / "new").write_text("x")
    assert {name for name, digest in kept.fingerprints().items() if digest != before[name]} == {"folder of volume"}
    (tmp_path / "folder" / "new").unlink()
    assert kept.fingerprints() == before
    kept.files["one"].write_text("changed")
    assert {name for name, digest in kept.fingerprints().items() if digest != before[name]} == set(before)
    kept.files["one"].unlink()
    assert kept.fingerprints()["canary one"] != before["canary one"]


@pytest.mark.parametrize(
    "worse",
    [
        {"nodeSelector": {"mine": "x"}},
        {"nodeSelector": {"kubernetes.io/hostname": "mine"}},
        {"hostNetwork": True},
        {"volumes": [{"name": "x", "hostPath": {"path": "/"}}]},
        {"serviceAccountName": "default"},
        {"initContainers": [{"name": "x"}]},
    ],
)
def test_a_pod_of_velero_with_what_a_tenant_asked_for_is_noticed(worse: dict[str, Any]) -> None:
    volumes = [{"name": "host", "hostPath": {"path": "/var/lib/kubelet/pods"}}]
    spec = {"serviceAccountName": "velero", "nodeSelector": {"kubernetes.io/os": "linux"}, "volumes": volumes}
    assert _wrong_in_host({"metadata": {}, "spec": spec}) == []
    assert _wrong_in_host({"metadata": {}, "spec": {**spec, **worse}})


def test_a_pod_of_velero_mounts_the_volume_of_one_pod_only_to_copy_files() -> None:
    folder = [{"name": "host", "hostPath": {"path": "/var/lib/kubelet/pods/uid/volumes/x"}}]
    spec = {"serviceAccountName": "velero", "volumes": folder}
    for kind, is_wrong in (("PodVolumeBackup", False), ("DataUpload", True)):
        found = {"metadata": {"ownerReferences": [{"kind": kind}]}, "spec": spec}
        assert bool(_wrong_in_host(found)) == is_wrong


class Calm(NodeWorld):
    """A world in which nothing belongs to anybody."""

    def belongings(self) -> dict[str, str]:
        return {}

    def breaches(self) -> dict[str, list[str]]:
        return dict(self.breached)

    def clear(self, *namespaces: str) -> None:
        assert not namespaces


def calm() -> Calm:
    nobody: Any = None
    return Calm(nobody, nobody, nobody, nobody, nobody, nobody, nobody, 0)


Steps = Generator[None, None, list[str]]


def steps_of(name: str, taken: list[str], achieved: list[str]) -> Callable[[NodeWorld], Steps]:
    def steps(_world: NodeWorld) -> Steps:
        taken.append(f"{name} plants")
        yield
        taken.append(f"{name} looks")
        return achieved

    return steps


def tried(monkeypatch: pytest.MonkeyPatch, cycle: cycles.Cycle, *succeeding: str) -> tuple[Score, list[str], list[str]]:
    """Run a cycle with two attacks; return the score, the steps taken and who was tried alone."""
    taken: list[str] = []
    members = {name: steps_of(name, taken, ["it did"] if name in succeeding else []) for name in "ab"}
    monkeypatch.setattr(cycles, "CYCLES", {cycle: members})
    alone: list[str] = []

    def run_each(_world: World, wanted: list[Attack], _score: Score) -> None:
        alone.extend(one.name for one in wanted)

    monkeypatch.setattr(cycles, "run_each", run_each)
    score = Score()
    attacks = [Attack(name, "Try it.", lambda _: []) for name in "abc"]
    cycles.run_cycles(calm(), attacks, score)
    return score, taken, alone


def test_the_attacks_of_a_cycle_take_their_steps_together_and_each_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def cycle(_world: NodeWorld, step: Callable[[], None]) -> None:
        step()

    score, taken, alone = tried(monkeypatch, cycle, "b")
    assert taken == ["a plants", "b plants", "a looks", "b looks"]
    assert (score.attacks, score.succeeded) == (3, {"b": ["it did"]}), "c is in no cycle"
    assert alone == []


def test_what_a_cycle_does_not_decide_is_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_world: NodeWorld, _step: Callable[[], None]) -> None:
        raise TimeoutError

    def is_breached(world: NodeWorld, step: Callable[[], None]) -> None:
        step()
        world.breached["canary"] = ["was read"]

    for cycle in (breaks, is_breached):
        score, _, alone = tried(monkeypatch, cycle)
        assert score.attacks == 1
        assert alone == ["a", "b"]


def test_attacks_without_a_cycle_are_tried_alone_if_one_breaks_or_nobody_knows_which_succeeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone: list[str] = []
    monkeypatch.setattr(cycles, "CYCLES", {})
    monkeypatch.setattr(cycles, "run_each", lambda _world, wanted, _score: alone.extend(one.name for one in wanted))

    def breaks(_world: World) -> list[str]:
        raise TimeoutError

    def breaches(world: World) -> list[str]:
        cast("NodeWorld", world).breached["canary"] = ["was read"]
        return []

    score = Score()
    cycles.run_cycles(calm(), [Attack("a", "Try.", breaks), Attack("b", "Try.", lambda _: [])], score)
    assert (score.attacks, alone) == (1, ["a"])
    cycles.run_cycles(calm(), [Attack("c", "Try.", breaches), Attack("d", "Try.", lambda _: [])], score)
    assert (score.attacks, alone) == (1, ["a", "c", "d"])
