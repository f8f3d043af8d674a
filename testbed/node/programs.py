"""The programs of a node: its first process, which holds the namespaces, and those that enter them."""

import http.client
import json
from pathlib import Path
from typing import Any

from testbed.api import is_ok, request
from testbed.build import cached_folder, component_named, program
from testbed.credentials import user_kubeconfig
from testbed.errors import TestbedError
from testbed.kubectl import apply
from testbed.node import cgroups, network
from testbed.node.needs import command, search_path
from testbed.places import HERE
from testbed.ports import Port
from testbed.processes import Program, running
from testbed.site import NODE_NAME, Site

NODE, REGISTRY, CONTAINERD, KUBELET, KUBE_PROXY = "node", "registry", "containerd", "kubelet", "kube-proxy"
LOCAL_PATH = "local-path-provisioner"
_NAMESPACES = ("--pid", "--mount", "--net", "--uts", "--ipc")
_SOCKET = "/run/containerd/containerd.sock"
_PAUSE_IMAGE = "testbed.foresail.dev/pause:1"
_CNI_PROGRAMS = "/usr/lib/cni"


def folder(site: Site) -> Path:
    """Return the folder with everything of the node: its configuration, images, volumes and logs."""
    return site.folder / "node"


def registry_data(site: Site) -> Path:
    """Return the folder with the images of the node's registry."""
    return folder(site) / "registry"


def prepare(site: Site) -> None:
    """Write the configuration of every program of the node, and make its control groups."""
    here = folder(site)
    for name in ("kubelet", "log", "containerd", "pod-logs", "volumes", "registry", "cni", "images/_default"):
        (here / name).mkdir(parents=True, exist_ok=True)
    server = f"https://{network.machine_address(site)}:{site.port(Port.APISERVER)}"
    user_kubeconfig(site, here / "kubelet.kubeconfig", f"system:node:{NODE_NAME}", ["system:nodes"], server)
    user_kubeconfig(site, here / "kube-proxy.kubeconfig", "system:kube-proxy", (), server)
    (here / "resolv.conf").write_text("")
    (here / "containerd.toml").write_text(_containerd(site))
    (here / "images/_default/hosts.toml").write_text(_hosts())
    for name, content in {
        "kubelet.json": _kubelet(site),
        "kube-proxy.json": _kube_proxy(site),
        "registry.json": _registry(site),
        "cni/10-testbed.conflist": _pod_network(),
    }.items():
        (here / name).write_text(json.dumps(content, indent=2))
    cgroups.create(site.folder)
    apply(site, [_endpoints(site)])


def node(site: Site) -> Program:
    """Return the node's first process: when it ends, every process, mount and link of the node is gone."""
    return Program(
        NODE,
        [
            command("unshare"), "--fork", "--kill-child", "--mount-proc", *_NAMESPACES,
            str(HERE / "node" / "init.sh"), str(folder(site)), NODE_NAME, str(program("pause", "pause")),
        ],
        {"PATH": search_path()},
        lambda: (pid := _first_process(site)) is not None and Path(f"/proc/{pid}/comm").read_text().strip() == "pause",
    )  # fmt: skip


def first_process(site: Site) -> int:
    """Return the id of the node's first process as the machine sees it."""
    pid = _first_process(site)
    if pid is None:
        raise TestbedError(f"the node of cluster {site.name!r} is not running", "take the cluster down")
    return pid


def _first_process(site: Site) -> int | None:
    for process in running(site.folder, NODE):
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ids = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
        if len(ids) > 1 and ids[-1] == "1":
            return process.pid
    return None


def inside(site: Site, *words: str) -> list[str]:
    """Return the command line that runs these words in the node's namespaces."""
    return [command("nsenter"), f"--target={first_process(site)}", *_NAMESPACES, *words]


def registry(site: Site) -> Program:
    """Return the registry from which the node pulls every image, whatever registry its name asks for."""
    return Program(
        REGISTRY,
        inside(site, command("docker-registry"), "serve", str(folder(site) / "registry.json")),
        {"PATH": search_path(), "OTEL_TRACES_EXPORTER": "none"},
        lambda: is_ok(f"http://{network.node_address(site)}:{network.REGISTRY_PORT}/v2/"),
    )


def containerd(site: Site) -> Program:
    """Return containerd, which finds its shim and runc on its PATH."""
    programs = cached_folder(component_named("containerd"))
    return Program(
        CONTAINERD,
        inside(site, str(program("containerd", "containerd")), "--config", str(folder(site) / "containerd.toml")),
        {"PATH": search_path(programs)},
        lambda: Path(f"/proc/{first_process(site)}/root{_SOCKET}").is_socket(),
    )


def kubelet(site: Site) -> Program:
    """Return the kubelet; it is ready when its Node is."""
    here = folder(site)
    return Program(
        KUBELET,
        inside(
            site, str(program("kube-node", "kubelet")),
            f"--config={here / 'kubelet.json'}",
            f"--kubeconfig={here / 'kubelet.kubeconfig'}",
            "--root-dir=/var/lib/kubelet",
            "--cert-dir=/run/kubelet-pki",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={network.node_address(site)}",
        ),
        {"PATH": search_path()},
        lambda: _node_is_ready(site),
    )  # fmt: skip


def kube_proxy(site: Site) -> Program:
    """Return kube-proxy, which lets pods reach Services."""
    return Program(
        KUBE_PROXY,
        inside(site, str(program("kube-node", "kube-proxy")), f"--config={folder(site) / 'kube-proxy.json'}"),
        {"PATH": search_path()},
        lambda: is_ok(f"http://{network.node_address(site)}:10256/healthz"),
    )


def _node_is_ready(site: Site) -> bool:
    try:
        answer = request("GET", f"{site.server}/api/v1/nodes/{NODE_NAME}", site.admin_trust)
    except OSError:
        return False
    if answer.code != http.client.OK:
        return False
    conditions = answer.json().get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _endpoints(site: Site) -> dict[str, Any]:
    """Return where pods find the API server behind the Service `kubernetes`."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [network.machine_address(site)], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": site.port(Port.APISERVER), "protocol": "TCP"}],
    }


def _containerd(site: Site) -> str:
    here = folder(site)
    return f"""version = 3
root = '{here / "containerd"}'
state = '/run/containerd'
# Both would write outside the node's folders.
disabled_plugins = ['io.containerd.nri.v1.nri', 'io.containerd.internal.v1.opt']

[grpc]
  address = '{_SOCKET}'

[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '{_PAUSE_IMAGE}'
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = '{here / "images"}'

[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true  # else no pod starts where root lacks CAP_SYS_RESOURCE
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['{_CNI_PROGRAMS}']
    conf_dir = '{here / "cni"}'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = '{command("runc")}'
      SystemdCgroup = false
"""


def _hosts() -> str:
    """Return where images come from: whatever registry a name asks for, from the node's own and nowhere else."""
    server = f"http://127.0.0.1:{network.REGISTRY_PORT}"
    return f'server = "{server}"\n[host."{server}"]\n  capabilities = ["pull", "resolve"]\n'


def _kubelet(site: Site) -> dict[str, Any]:
    here = folder(site)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{_SOCKET}",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroups.name(site.folder)}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": ["pods"],
        "failSwapOn": False,
        "address": network.node_address(site),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(site.pki / "ca.crt")},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "clusterDomain": "cluster.local",
        "resolvConf": str(here / "resolv.conf"),
        "healthzBindAddress": "127.0.0.1",
        "podLogsDir": str(here / "pod-logs"),
        "volumePluginDir": "/run/volume-plugins",
        # The machine's disk is not the node's: only a full one may evict pods.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "serializeImagePulls": False,
        "makeIPTablesUtilChains": False,
        "protectKernelDefaults": False,
    }


def _kube_proxy(site: Site) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(folder(site) / "kube-proxy.kubeconfig")},
        "clusterCIDR": network.PODS,
        "hostnameOverride": NODE_NAME,
        "healthzBindAddress": f"{network.node_address(site)}:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "conntrack": {"maxPerCore": 0},  # the limit is the machine's, not the node's
    }


def _registry(site: Site) -> dict[str, Any]:
    return {
        "version": "0.1",
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(registry_data(site))}, "delete": {"enabled": True}},
        "http": {"addr": f"0.0.0.0:{network.REGISTRY_PORT}"},
    }


def _pod_network() -> dict[str, Any]:
    return {
        "cniVersion": "1.0.0",
        "name": "testbed",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "ipMasq": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni-addresses",
                    "ranges": [[{"subnet": network.PODS}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
