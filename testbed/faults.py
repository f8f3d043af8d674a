"""What can go wrong in a cluster, done on purpose to its real components."""

import http.client
import shutil
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from testbed import links, processes
from testbed.api import request
from testbed.control_plane import etcd_data
from testbed.credentials import user_kubeconfig
from testbed.errors import TestbedError
from testbed.node.network import server_addresses
from testbed.pki import make_authority
from testbed.processes import Program
from testbed.replicas import APISERVER, ETCD, Member, members, names
from testbed.site import ADMIN, Site

_GRACE_SECONDS = 90.0  # the API server waits up to a minute for open watches
_ROLL_SECONDS = 10.0  # and this long in a rolling restart, as with a grace period


class Faults:
    """Kills, freezes and restarts components by name, and takes etcd's history away.

    In a highly available control plane a name such as kube-apiserver means all replicas, kube-apiserver-1 one of them.
    """

    def __init__(self, site: Site, program_named: Callable[[str], Program]) -> None:
        self._site = site
        self._program_named = program_named
        self._telling = threading.Lock()

    def kill(self, component: str) -> None:
        """End a component with SIGKILL, its children too, and return when they are gone."""
        for each in self._running(component):
            processes.kill(self._site.folder, each)

    def terminate(self, component: str) -> None:
        """End a component with SIGTERM and return when it has finished what it had under way."""
        for each in self._running(component):
            processes.terminate(self._site.folder, each, _GRACE_SECONDS)

    def stop(self, component: str) -> None:
        """Freeze a component: its connections stay open, and nobody answers."""
        for each in self._running(component):
            processes.send(self._site.folder, signal.SIGSTOP, each)

    def cont(self, component: str) -> None:
        """Let a frozen component go on."""
        for each in self._running(component):
            processes.send(self._site.folder, signal.SIGCONT, each)

    def start(self, component: str) -> None:
        """Start a component that was ended, where it was, and return when it is ready."""
        programs = [self._program_named(each) for each in names(self._site.options, component)]
        for each in programs:
            if processes.running(self._site.folder, each.name):
                raise TestbedError(f"{each.name} runs already", "end it first: kill() or terminate()")
        for each in programs:
            processes.start(self._site.folder, each)
        for each in programs:
            processes.wait_ready(self._site.folder, each)

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
        member = members(self._site.options)[0]
        revision = int(self._etcd(member, "maintenance/status", {})["header"]["revision"])
        self._etcd(member, "kv/compaction", {"revision": revision, "physical": True})
        return revision

    def save_etcd(self) -> Path:
        """Copy what etcd has stored, while it is down, and return the copy's folder when API servers have it back."""
        folder = self._site.folder / "etcd-saved"
        shutil.rmtree(folder, ignore_errors=True)
        self.kill(ETCD)
        for each in members(self._site.options):
            shutil.copytree(etcd_data(self._site, each), folder / each.name)
        self.start(ETCD)
        for name in names(self._site.options, APISERVER):
            processes.wait_ready(self._site.folder, self._program_named(name))
        return folder

    def restore_etcd(self, folder: Path) -> None:
        """Put a copy back into every member, and start the API servers again; whoever talks to them lives on."""
        self.kill(APISERVER)
        self.kill(ETCD)
        for each in members(self._site.options):
            shutil.rmtree(etcd_data(self._site, each))
            shutil.copytree(folder / each.name, etcd_data(self._site, each))
        self.start(ETCD)
        self.start(APISERVER)

    # Of a highly available control plane

    def freeze_cache(self, server: str) -> None:
        """Let an API server hear nothing from its watches of etcd, while it reads and writes as always."""
        self._tell(lambda state: state.frozen.append(server))

    def release_cache(self, server: str) -> None:
        """Let it hear what it has missed, in order."""
        self._tell(lambda state: state.frozen.remove(server))

    def cut_off(self, member: str) -> None:
        """Let nothing pass between an etcd member and the others; its API server still reaches it."""
        self._tell(lambda state: state.cut.append(member))

    def rejoin(self, member: str) -> None:
        """Let it take part again."""
        self._tell(lambda state: state.cut.remove(member))

    def lead_to(self, *servers: str) -> None:
        """Let the common address lead to these API servers only, to all if there are none; other streams are cut."""

        def lead(state: links.State) -> None:
            state.led = list(servers)

        self._tell(lead)

    def leader(self) -> str:
        """Return the member that leads etcd, as most of the others have it."""
        return self._leader().name

    def move_leader(self) -> str:
        """Let another member lead etcd; return which."""
        leader = self._leader()
        other = next(each for each in members(self._site.options) if each != leader)
        identity = self._etcd(other, "maintenance/status", {})["header"]["member_id"]
        self._etcd(leader, "maintenance/transfer-leadership", {"targetID": identity})
        return other.name

    def roll(self, component: str) -> None:
        """Restart one replica after the other, each with a grace period of ten seconds."""
        for each in self._running(component):
            with suppress(TestbedError):
                processes.terminate(self._site.folder, each, _ROLL_SECONDS)
            processes.kill(self._site.folder, each)
            self.start(each)

    def _leader(self) -> Member:
        led = {}
        for each in members(self._site.options):
            with suppress(OSError, TestbedError):
                status = self._etcd(each, "maintenance/status", {})
                if status.get("leader") == status["header"]["member_id"]:
                    led[int(status["raftTerm"])] = each  # one that is cut off may not know yet that it leads no more
        if not led:
            raise TestbedError("no member of etcd leads", "wait for an election; most members must run")
        return led[max(led)]

    def _etcd(self, member: Member, call: str, body: object) -> dict[str, Any]:
        answer = request("POST", f"{self._site.url(member.client, 'http')}/v3/{call}", body=body)
        content: dict[str, Any] = answer.json()
        if answer.code != http.client.OK:
            raise TestbedError(f"{member.name} refused {call}: {answer.text}", "does it run, and has it a leader?")
        return content

    def _tell(self, change: Callable[[links.State], None]) -> None:
        if not self._site.options.ha:
            raise TestbedError("a single control plane has no links", "bring the cluster up with --ha")
        with self._telling:
            state = links.told(self._site)
            change(state)
            links.tell(self._site, state)

    def _running(self, component: str) -> list[str]:
        """Return the names of all replicas of a component, which must run."""
        found = names(self._site.options, component)
        for each in found:
            self._program_named(each)
            if not processes.running(self._site.folder, each):
                raise TestbedError(f"{each} is not running", f"start it: fault.start({each!r})")
        return found
