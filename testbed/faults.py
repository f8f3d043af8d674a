"""What can go wrong in a cluster, done on purpose to its real components."""

import signal
from collections.abc import Callable
from pathlib import Path

from testbed import processes
from testbed.api import request
from testbed.control_plane import APISERVER
from testbed.credentials import user_kubeconfig
from testbed.errors import TestbedError
from testbed.node.network import server_addresses
from testbed.pki import make_authority
from testbed.ports import Port
from testbed.processes import Program
from testbed.site import ADMIN, Site

_GRACE_SECONDS = 90.0  # the API server waits up to a minute for open watches


class Faults:
    """Kills, freezes and restarts components by name, and takes etcd's history away."""

    def __init__(self, site: Site, program_named: Callable[[str], Program]) -> None:
        self._site = site
        self._program_named = program_named

    def kill(self, component: str) -> None:
        """End a component with SIGKILL, its children too, and return when they are gone."""
        self._must_run(component)
        processes.kill(self._site.folder, component)

    def terminate(self, component: str) -> None:
        """End a component with SIGTERM and return when it has finished what it had under way."""
        self._must_run(component)
        processes.terminate(self._site.folder, component, _GRACE_SECONDS)

    def stop(self, component: str) -> None:
        """Freeze a component: its connections stay open, and nobody answers."""
        self._must_run(component)
        processes.send(self._site.folder, signal.SIGSTOP, component)

    def cont(self, component: str) -> None:
        """Let a frozen component go on."""
        self._must_run(component)
        processes.send(self._site.folder, signal.SIGCONT, component)

    def start(self, component: str) -> None:
        """Start a component that was ended, where it was, and return when it is ready."""
        program = self._program_named(component)
        if processes.running(self._site.folder, component):
            raise TestbedError(f"{component} runs already", "end it first: kill() or terminate()")
        processes.start(self._site.folder, program)
        processes.wait_ready(self._site.folder, program)

    def restart(self, component: str) -> None:
        """Kill a component and start it again."""
        self.kill(component)
        self.start(component)

    def replace_authority(self) -> Path:
        """Restart the API server with a certificate of a new authority; return that authority's own.

        The testbed and its kubectl trust both then. Whoever else read the old one does not know the new one.
        """
        pki, new = self._site.pki, self._site.folder / "new-pki"
        make_authority(new, server_addresses(self._site))
        self.kill(APISERVER)
        (pki / "ca.crt").write_bytes((pki / "ca.crt").read_bytes() + (new / "ca.crt").read_bytes())
        for name in ("server.crt", "server.key"):
            (pki / name).write_bytes((new / name).read_bytes())
        user_kubeconfig(self._site, self._site.admin_kubeconfig, ADMIN, ["system:masters"])
        self._site.admin_trust.load_verify_locations(new / "ca.crt")
        self.start(APISERVER)
        return new / "ca.crt"

    def compact_etcd(self) -> int:
        """Take away every revision of etcd but the newest; return that revision."""
        etcd = self._site.url(Port.ETCD, "http")
        status = request("POST", f"{etcd}/v3/maintenance/status", body={}).json()
        revision = int(status["header"]["revision"])
        answer = request("POST", f"{etcd}/v3/kv/compaction", body={"revision": revision, "physical": True})
        if "error" in answer.json():
            raise TestbedError(f"etcd did not compact at revision {revision}: {answer.text}", "is etcd running?")
        return revision

    def _must_run(self, component: str) -> None:
        self._program_named(component)
        if not processes.running(self._site.folder, component):
            raise TestbedError(f"{component} is not running", f"start it: fault.start({component!r})")
