"""Volumes with real snapshots: the CSI host-path driver on the node, and the controllers beside the cluster."""

import http.client
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testbed.api import request
from testbed.build import cached_folder, component_named, program
from testbed.kubectl import apply, kubectl, wait_for_kinds
from testbed.node.needs import command, search_path
from testbed.node.programs import first_process, folder, inside
from testbed.processes import Program, log_file
from testbed.site import NODE_NAME, Site

DRIVER = "hostpath.csi.k8s.io"
CLASS, WAITING_CLASS = "csi-hostpath", "csi-hostpath-wait"
HOSTPATH, REGISTRAR = "csi-hostpath", "csi-registrar"
CONTROLLER, PROVISIONER, SNAPSHOTTER = "snapshot-controller", "csi-provisioner", "csi-snapshotter"
COMPONENTS = ["csi-hostpath", "csi-registrar", "csi-provisioner", "csi-snapshotter"]
_PLUGINS = Path("/var/lib/kubelet/plugins") / HOSTPATH
_SOCKET = _PLUGINS / "csi.sock"
_REGISTRATION = Path("/var/lib/kubelet/plugins_registry") / f"{DRIVER}-reg.sock"
# A sidecar ends when it has lost its driver; in a pod, the kubelet would start it again.
_AGAIN = 'while :; do "$@"; sleep 0.2; done'


def volumes_folder(site: Site) -> Path:
    """Return the folder in which the driver keeps volumes, each in a folder named by its handle, and snapshots."""
    return folder(site) / "csi"


def start_csi(site: Site, start: Callable[..., None]) -> None:
    """Create the kinds and classes of snapshots, and start the driver and its controllers."""
    for kinds in sorted(cached_folder(component_named("csi-snapshotter")).glob("*.yaml")):
        kubectl(site, "apply", "--server-side", f"--filename={kinds}")
    wait_for_kinds(site)
    apply(site, [_driver(), _storage_class(CLASS, "Immediate"), _storage_class(WAITING_CLASS, "WaitForFirstConsumer")])
    apply(site, [_snapshot_class()])
    volumes_folder(site).mkdir()
    (folder(site) / "kubelet" / "plugins" / HOSTPATH).mkdir(parents=True)
    start(HOSTPATH)  # before its sidecars: each asks it at once who it is
    start(REGISTRAR, CONTROLLER, PROVISIONER, SNAPSHOTTER)


def hostpath(site: Site) -> Program:
    """Return the driver, which makes a folder for each volume and a compressed archive for each snapshot."""
    return Program(
        HOSTPATH,
        inside(
            site, str(program("csi-hostpath", "hostpathplugin")),
            f"--drivername={DRIVER}",
            f"--endpoint=unix://{_SOCKET}",
            f"--nodeid={NODE_NAME}",
            f"--statedir={volumes_folder(site)}",
            "--logtostderr",
            "--v=4",  # with each call
        ),
        {"PATH": search_path()},
        lambda: _listens(site),
    )  # fmt: skip


def registrar(site: Site) -> Program:
    """Return the program that tells the kubelet where the driver listens."""
    words = (str(program("csi-registrar", "csi-registrar")), DRIVER, str(_SOCKET), str(_REGISTRATION))
    return Program(REGISTRAR, inside(site, *words), {"PATH": search_path()}, lambda: _is_registered(site))


def controller(site: Site) -> Program:
    """Return the controller that joins VolumeSnapshots with their contents."""
    words = [str(program("csi-snapshotter", CONTROLLER)), f"--kubeconfig={site.admin_kubeconfig}", "--v=2"]
    return Program(CONTROLLER, words, {}, _says(site, CONTROLLER, "Starting snapshot controller"))


def provisioner(site: Site) -> Program:
    """Return the sidecar that lets the driver make volumes."""
    return _sidecar(site, PROVISIONER, "csi-provisioner", "Started provisioner controller")


def snapshotter(site: Site) -> Program:
    """Return the sidecar that lets the driver make snapshots."""
    return _sidecar(site, SNAPSHOTTER, "csi-snapshotter", "Starting CSI snapshotter")


PROGRAMS: dict[str, Callable[[Site], Program]] = {
    HOSTPATH: hostpath,
    REGISTRAR: registrar,
    CONTROLLER: controller,
    PROVISIONER: provisioner,
    SNAPSHOTTER: snapshotter,
}


def _sidecar(site: Site, name: str, component: str, ready: str) -> Program:
    words = [str(program(component, name)), f"--kubeconfig={site.admin_kubeconfig}", "--v=2"]
    words.append(f"--csi-address={_socket(site)}")
    return Program(name, [command("sh"), "-c", _AGAIN, name, *words], {}, _says(site, name, ready))


def _socket(site: Site) -> str:
    """Return the driver's socket by a path that is short for any cluster: one may have at most 107 characters."""
    return f"/proc/{first_process(site)}/root{_SOCKET}"


def _listens(site: Site) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(_socket(site))
        except OSError:  # also if a driver that was killed has left its socket
            return False
    return True


def _says(site: Site, name: str, words: str) -> Callable[[], bool]:
    """Return whether a component has said these words since now: it listens on no port that could be asked."""
    log = log_file(site.folder, name)
    before = log.stat().st_size if log.exists() else 0

    def said() -> bool:
        return log.exists() and words.encode() in log.read_bytes()[before:]

    return said


def _is_registered(site: Site) -> bool:
    path = f"/apis/storage.k8s.io/v1/csinodes/{NODE_NAME}"
    try:
        answer = request("GET", site.server + path, site.admin_trust)
    except OSError:
        return False
    if answer.code != http.client.OK:
        return False
    return any(driver["name"] == DRIVER for driver in answer.json()["spec"].get("drivers") or [])


def _driver() -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        "spec": {
            "attachRequired": False,  # nobody attaches here, and by default a pod would wait for that
            "podInfoOnMount": True,
            "fsGroupPolicy": "File",
            "volumeLifecycleModes": ["Persistent"],
        },
    }


def _storage_class(name: str, binding: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": DRIVER,
        "volumeBindingMode": binding,
        "reclaimPolicy": "Delete",
    }


def _snapshot_class() -> dict[str, Any]:
    return {
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshotClass",
        "metadata": {"name": CLASS, "labels": {"velero.io/csi-volumesnapshot-class": "true"}},
        "driver": DRIVER,
        "deletionPolicy": "Delete",
    }
