"""What of a real node can be known without one."""

import json
import os
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from testbed import Cluster, Options, TestbedError
from testbed.__main__ import main
from testbed.cluster import components_of
from testbed.components import COMPONENTS
from testbed.node import cgroups, csi, forward, images, needs, network
from testbed.site import Site
from tests.node import __main__ as node_tests
from tests.node.nodes import OPTIONS as NODE_OPTIONS


@pytest.fixture(autouse=True)
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "foresail" / "testbed"


def test_without_root_and_packages_it_says_what_is_missing_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], clusters: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(needs, "_found", lambda name: None if name == "runc" else name)
    assert main(["up", "--velero", "--node"]) == 1
    said = capsys.readouterr().err
    assert "lacks: root, package runc" in said
    assert "apt-get install" in said
    assert not clusters.exists()
    with pytest.raises(TestbedError, match="root"):
        Cluster.create("one", Options(node=True))


def test_root_without_the_rights_of_a_node_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(needs, "_found", lambda name: name)
    monkeypatch.setattr(needs, "command", {"unshare": "/bin/false", "ip": "ip"}.__getitem__)
    assert needs.missing() == [
        "the rights to make namespaces, mounts, links and control groups (a privileged container has them)"
    ]


def test_the_command_needs_prints_what_is_missing_and_the_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs, "missing", lambda: ["root", "package runc"])
    assert main(["needs"]) == 1
    assert capsys.readouterr().out == "root\npackage runc\n"
    monkeypatch.setattr(needs, "missing", list)
    assert main(["needs"]) == 0
    assert main(["needs", "--packages"]) == 0
    assert capsys.readouterr().out.split() == list(needs.PACKAGES.values())


def test_tests_on_a_node_that_cannot_run_are_named_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [f"tests/node/{file.name}" for file in sorted(Path(node_tests.__file__).parent.glob("test_*.py"))]
    monkeypatch.setattr(needs, "missing", lambda: ["root"])
    assert node_tests.main([]) == 0
    said = capsys.readouterr().out
    assert all(f"NOT TESTED: {file}: this machine lacks root\n" in said for file in files)
    monkeypatch.setattr(needs, "missing", list)
    monkeypatch.setattr(node_tests, "not_built", lambda: ["containerd"])
    assert node_tests.main([node_tests.ONLY_IF_BUILT]) == 0
    assert all(f"NOT TESTED: {file}: not built yet: containerd\n" in capsys.readouterr().out for file in files[:1])


def test_a_version_of_velero_without_an_image_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "missing", list)
    with pytest.raises(TestbedError, match=r"no image of velero-1\.17"):
        Cluster.create("one", Options(node=True, velero="velero-1.17"))


def test_volumes_with_snapshots_need_a_real_node(capsys: pytest.CaptureFixture[str], clusters: Path) -> None:
    assert main(["up", "--velero", "--csi"]) == 1
    assert "hint: use --csi with --node" in capsys.readouterr().err
    assert not clusters.exists()


def test_a_cluster_with_snapshots_has_the_programs_for_them_and_others_have_not() -> None:
    plain = Site.claim("plain", Options(node=True), None)
    with_snapshots = Site.claim("snapshots", Options(node=True, csi=True), None)
    assert not set(csi.PROGRAMS) & set(Cluster(plain).components)
    assert set(csi.PROGRAMS) <= set(Cluster(with_snapshots).components)
    assert not set(csi.COMPONENTS) & set(components_of(plain.options))
    assert set(csi.COMPONENTS) <= set(components_of(with_snapshots.options))
    assert set(csi.COMPONENTS) <= set(components_of(NODE_OPTIONS)), "tests/node build and need them"


def test_an_option_that_nobody_chose_is_not_written_so_that_another_checkout_can_read_the_file(clusters: Path) -> None:
    Site.claim("plain", Options(velero="velero"), None)
    assert json.loads((clusters / "plain" / "cluster.json").read_text())["options"] == {"velero": "velero"}
    made = Site.claim("real", Options(node=True), None)
    assert Site.open("real") == made


def test_an_option_that_only_another_checkout_knows_does_not_keep_this_one_from_its_clusters(clusters: Path) -> None:
    made = Site.claim("newer", Options(node=True), None)
    file = clusters / "newer" / "cluster.json"
    content = json.loads(file.read_text())
    content["options"]["not_yet_known"] = True
    file.write_text(json.dumps(content))
    assert Site.open("newer") == made
    assert Site.claim("mine", Options(), None).block != made.block


def test_clusters_side_by_side_share_neither_link_nor_address_nor_group(clusters: Path) -> None:
    sites = [Site(clusters / str(block), block, Options(node=True), None) for block in range(700)]
    for of in (network.machine_address, network.node_address, network.link_name, lambda s: cgroups.name(s.folder)):
        assert len({of(site) for site in sites}) == len(sites)
    assert not {network.machine_address(s) for s in sites} & {network.node_address(s) for s in sites}
    assert max(len(network.link_name(site)) for site in sites) <= 15, "the longest name that the kernel takes"


@pytest.mark.parametrize("hierarchies", [("",), ("cpu", "memory", "unified")], ids=["version 2", "version 1"])
def test_control_groups_are_made_in_every_hierarchy_and_removed_with_all_below_them(
    hierarchies: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = tmp_path / "cgroup"
    for each in hierarchies:
        (mounted / each).mkdir(parents=True, exist_ok=True)
    if hierarchies == ("",):
        (mounted / "cgroup.controllers").touch()
    else:
        (mounted / "alias").symlink_to(mounted / "cpu")
    monkeypatch.setattr(cgroups, "_MOUNTED", mounted)
    cgroups.create(tmp_path / "cluster")
    made = [mounted / each / cgroups.name(tmp_path / "cluster") for each in hierarchies]
    for group in made:
        (group / "kubepods" / "pod1" / "container").mkdir(parents=True)
    (mounted / hierarchies[0] / "another").mkdir()
    cgroups.remove(tmp_path / "cluster")
    assert not any(group.exists() for group in made)
    assert (mounted / hierarchies[0] / "another").exists()


def test_a_layer_has_the_files_for_anyone_and_a_home_for_its_user(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"program")
    image = images.Image("any:1", {"bin/tool": program}, "1000", (), ("bin/sh",), ("home/tool",))
    images.write_layer(image, tmp_path / "layer.tar")
    with tarfile.open(tmp_path / "layer.tar") as layer:
        found = {each.name: (oct(each.mode), each.uid, each.linkname) for each in layer}
    assert found == {
        "bin": ("0o755", 0, ""),
        "tmp": ("0o1777", 0, ""),
        "home/tool": ("0o755", 1000, ""),
        "bin/tool": ("0o755", 0, ""),
        "bin/sh": ("0o777", 0, "/bin/tool"),
    }


def test_what_only_a_real_node_needs_is_not_built_for_others() -> None:
    usual = [name for name, component in COMPONENTS.items() if component.is_usual]
    assert "kubelet" not in [program for name in usual for program in COMPONENTS[name].programs]
    assert "kube-1.34" not in usual
    assert len(usual) == 10


@pytest.mark.parametrize(
    ("name", "repository"),
    [
        ("busybox:1", "library/busybox:1"),
        ("velero/velero:v1", "velero/velero:v1"),
        ("example.com/team/app:2", "team/app:2"),
        ("localhost/app:2", "app:2"),
        ("registry:5000/app:2", "app:2"),
    ],
)
def test_an_image_is_found_whatever_registry_its_name_asks_for(name: str, repository: str) -> None:
    assert images.repository(name) == repository


def test_the_base_of_an_image_is_what_its_stages_build_upon() -> None:
    text = (
        "FROM python:3.11-slim AS build\nRUN true\nFROM build AS more\nFROM python:3.11-slim\nCOPY --from=build /a /a\n"
    )
    assert images.base_names(text) == ["python:3.11-slim"]
    named = "ARG BASE=python:3.11-slim\nFROM ${BASE} AS build\nFROM ${BASE}\nCOPY --from=build /a /a\n"
    assert images.base_names(named) == ["python:3.11-slim"]


def test_the_base_of_the_projects_own_image_is_one_that_can_be_had() -> None:
    (base,) = images.base_names((Path(__file__).parent.parent.parent.parent / "Containerfile").read_text())
    assert base.startswith("python:3.")


def test_the_forwarder_passes_bytes_both_ways_and_tells_the_end_of_either_side() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        words = [sys.executable, str(Path(forward.__file__)), "127.0.0.2", str(port)]
        with subprocess.Popen(words) as process:
            try:
                client = _connected("127.0.0.2", port)
                accepted, _ = server.accept()
                client.sendall(b"asked")
                client.shutdown(socket.SHUT_WR)
                assert _all(accepted) == b"asked"
                accepted.sendall(b"answered" * 100_000)
                accepted.close()
                assert _all(client) == b"answered" * 100_000
                client.close()
            finally:
                process.kill()


def _connected(address: str, port: int) -> socket.socket:
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection((address, port))
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def _all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))
