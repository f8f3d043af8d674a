"""What the tests on a real node ask of it: pods, what they print, and what they leave on the machine."""

import io
import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from foresail.cli.main import main
from testbed import Cluster, Options
from testbed.node import cgroups, network, programs
from testbed.node.images import BUSYBOX
from testbed.node.needs import command
from tests.cluster.pages import README, steps
from tests.node.figures import FOUND

CHECKOUT = Path(__file__).parent.parent.parent
INSTALL = steps(README, "Install")[0].command
IMAGE, PAUSE_IMAGE = (INSTALL.split(f"{flag} ")[1].split()[0] for flag in ("--image", "--primer-pause-image"))
OPTIONS = Options(velero="velero", node=True, csi=True)
_SPACES = ("pid", "net", "mnt")


def started(lines: list[str], component: str) -> float:
    """Return the second at which the testbed reported a component to be ready."""
    (line,) = [line for line in lines if line.startswith(f"{component} is ready")]
    found = re.search(r"after ([\d.]+) s", line)
    assert found
    return float(found[1])


def foresail(cluster: Cluster, *words: str) -> str:
    """Run the command line as the administrator and return what it reported; it must succeed."""
    code, said = _foresail(cluster, *words)
    assert code == 0, said
    return said


def foresail_fails(cluster: Cluster, *words: str) -> str:
    """Run the command line as the administrator and return what it reported; it must fail."""
    code, said = _foresail(cluster, *words)
    assert code == 1, said
    return said


def _foresail(cluster: Cluster, *words: str) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([words[0], f"--kubeconfig={cluster.kubeconfig}", *words[1:]])
    return code, out.getvalue() + err.getvalue()


def pod(name: str, namespace: str, *words: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON is any
    """Return a pod of a few tools that runs these words of a shell."""
    container = {"name": "main", "image": BUSYBOX, "command": ["sh", "-c", *words], **spec.pop("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }


def namespace(name: str) -> dict[str, Any]:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def claim(name: str, namespace: str, storage_class: str | None = None) -> dict[str, Any]:
    """Return a claim for a volume, which a provisioner makes on demand: of the default class, or of another."""
    chosen = {} if storage_class is None else {"storageClassName": storage_class}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **chosen},
    }


def eventually(is_so: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.2)


def wait_ready(cluster: Cluster, what: str, where: str, seconds: int = 120) -> None:
    """Wait until an object is Ready."""
    cluster.kubectl("wait", "--for=condition=Ready", what, f"--namespace={where}", f"--timeout={seconds}s")


def is_identical(before: str, after: str) -> bool:
    """Whether data came back as it was; the run's figure is true only if all of it did."""
    FOUND["data_identical"] = before == after and FOUND["data_identical"] is not False
    return before == after


class Outside:
    """What a node has on the machine, seen without asking the testbed: counted while it is up and after its end."""

    def __init__(self, cluster: Cluster) -> None:
        self._folder = str(cluster.folder)
        self._spaces = {
            (Path("/proc") / str(programs.first_process(cluster.site)) / "ns" / kind).readlink() for kind in _SPACES
        }
        self._link = network.link_name(cluster.site)
        self._group = cgroups.name(cluster.folder)

    def left(self) -> dict[str, list[str]]:
        """Return the processes, mounts, links and control groups that there are."""
        return {
            "processes": self._processes(),
            "mounts": [line for line in _mounts() if self._folder in line],
            "links": [path.name for path in Path("/sys/class/net").iterdir() if path.name == self._link],
            "groups": [str(found) for found in Path("/sys/fs/cgroup").glob(f"**/{self._group}")],
            "files": [self._folder] if Path(self._folder).exists() else [],
        }

    def _processes(self) -> list[str]:
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                spaces = {(entry / "ns" / kind).readlink() for kind in _SPACES}
                words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if spaces & self._spaces or self._folder.encode() in words:
                found.append(f"{entry.name} {words[:80]!r}")
        return found


def _mounts() -> list[str]:
    return Path("/proc/self/mountinfo").read_text().splitlines()


def rules() -> list[str]:
    """Return the machine's packet filter rules, without their counters."""
    done = subprocess.run([command("nft"), "-j", "list", "ruleset"], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout or "{}").get("nftables", [])
    return [json.dumps(each) for each in found if "metainfo" not in each]


def touched() -> list[str]:
    """Return what is in the folders to which programs of a node write unless they are kept from it."""
    places: tuple[str, ...] = (
        "/var/lib/kubelet",
        "/var/lib/cni",
        "/var/lib/containerd",
        "/opt/containerd",
        "/opt/cni",
        "/var/log/pods",
    )
    places += ("/run/netns", "/run/containerd", "/run/runc", "/run/kubelet-pki", "/run/cni-addresses")
    return [str(file) for place in places for file in [Path(place), *Path(place).glob("*")] if file.exists()]


_AGENT = ("daemonset", "node-agent", "--namespace=velero")
_CONFIG = ("configmap", "node-agent-config", "--namespace=velero")


def ignore_delayed_binding(cluster: Cluster) -> None:
    """Configure the node agent as the page about operations says; no other test minds, but where it is checked."""
    settings = json.dumps({"restorePVC": {"ignoreDelayBinding": True}})
    cluster.kubectl("create", *_CONFIG, f"--from-literal=config.json={settings}")
    path = "/spec/template/spec/containers/0/args/-"
    _restart_agent(cluster, [{"op": "add", "path": path, "value": "--node-agent-configmap=node-agent-config"}])


def mind_delayed_binding(cluster: Cluster) -> None:
    """Configure the node agent as it was before, by its last argument."""
    cluster.kubectl("delete", *_CONFIG)
    args = cluster.get(*_AGENT)["spec"]["template"]["spec"]["containers"][0]["args"]
    _restart_agent(cluster, [{"op": "remove", "path": f"/spec/template/spec/containers/0/args/{len(args) - 1}"}])


def _restart_agent(cluster: Cluster, change: list[dict[str, str]]) -> None:
    cluster.kubectl("patch", *_AGENT, "--type=json", f"--patch={json.dumps(change)}")
    cluster.kubectl("rollout", "status", "daemonset/node-agent", "--namespace=velero", "--timeout=180s")
