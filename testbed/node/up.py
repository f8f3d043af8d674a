"""How a node comes up, in order, and what must be removed after its processes have been killed."""

import shutil
from collections.abc import Callable
from pathlib import Path

from testbed.node import cgroups, csi, images, needs, network, programs, storage
from testbed.processes import Program
from testbed.site import Site

PROGRAMS: dict[str, Callable[[Site], Program]] = {
    programs.NODE: programs.node,
    network.FORWARDER: network.forwarder,
    programs.REGISTRY: programs.registry,
    programs.CONTAINERD: programs.containerd,
    programs.KUBELET: programs.kubelet,
    programs.KUBE_PROXY: programs.kube_proxy,
    programs.LOCAL_PATH: storage.provisioner,
}
COMPONENTS = ["kube-node", "containerd", "pause", "velero-helpers", "velero-aws-helpers", "local-path"]
# The images hold Velero, whether a cluster runs it or not.
COMPONENTS_OF_IMAGES = ["velero", "velero-aws"]


def start_node(site: Site, start: Callable[..., None]) -> None:
    """Start the node and return when it is ready."""
    needs.require()
    programs.prepare(site)
    shutil.copytree(images.registry_folder(), programs.registry_data(site), dirs_exist_ok=True)
    start(programs.NODE)
    network.connect(site, programs.first_process(site))
    start(network.FORWARDER, programs.REGISTRY, programs.CONTAINERD)
    start(programs.KUBELET, programs.KUBE_PROXY)
    storage.prepare_storage(site)
    start(programs.LOCAL_PATH)
    if site.options.csi:
        csi.start_csi(site, start)


def remove_node(site: Site) -> None:
    """Remove what is left of a node whose processes have ended."""
    network.disconnect(site)


def remove_groups(folder: Path) -> None:
    """Remove the control groups of the cluster in that folder, if there are any."""
    cgroups.remove(folder)
