"""Tokens that are replaced in time, too late, and not at all for a while, under running processes."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from testbed import Cluster, kubeconfig
from tests.cluster.parents import finished, owners, parents, uids
from tests.cluster.replicas import ACCOUNT, LEASE, Replica, holder, permit

POD = Path(__file__).with_name("pod_replica.py")
LIFE = 12  # seconds, and up to ten more: long enough to start two processes in
WHERE = "tokens"
Eventually = Callable[[Callable[[], object], float], None]
KubectlAs = Callable[..., subprocess.CompletedProcess[str]]


class TokenFile:
    """The file that the processes read, as the kubelet would keep it, and the token that was in it before."""

    def __init__(self, cluster: Cluster, folder: Path, kubectl_as: KubectlAs) -> None:
        self.cluster, self.folder, self.path = cluster, folder, folder / "token"
        self._kubectl_as = kubectl_as
        self._present = ""
        self._before = ""

    def replace(self) -> None:
        self._before, self._present = self._present, self.cluster.expiring_token("default", ACCOUNT, LIFE)
        fresh = self.folder / "fresh"
        fresh.write_text(self._present)
        fresh.rename(self.path)

    def present_is_refused(self) -> bool:
        return self._is_refused(self._present)

    def one_before_is_refused(self) -> bool:
        return self._is_refused(self._before)

    def kubeconfig(self, user: dict[str, str]) -> Path:
        authority = self.cluster.site.pki / "ca.crt"
        return kubeconfig.write(self.folder / f"{'-'.join(user)}.kubeconfig", self.cluster.server, authority, user)

    def _is_refused(self, token: str) -> bool:
        done = self._kubectl_as(self.kubeconfig({"token": token}), "get", "parents", "--all-namespaces")
        return done.returncode != 0 and "You must be logged in to the server" in done.stderr


@pytest.fixture
def token(cluster: Cluster, tmp_path: Path, kubectl_as: KubectlAs) -> TokenFile:
    permit(cluster)
    cluster.kubectl("create", "namespace", WHERE)
    file = TokenFile(cluster, tmp_path, kubectl_as)
    file.replace()
    return file


@pytest.fixture
def both(cluster: Cluster, token: TokenFile, eventually: Eventually) -> Iterator[dict[str, Replica]]:
    """Two replicas that read the same token: one through its kubeconfig, one as a pod does."""
    folder, address = token.folder, urlsplit(cluster.server)
    (folder / "ca.crt").write_bytes((cluster.site.pki / "ca.crt").read_bytes())
    pod = {"KUBERNETES_SERVICE_HOST": str(address.hostname), "KUBERNETES_SERVICE_PORT": str(address.port)}
    with ExitStack() as stack:
        by_file = Replica(token.kubeconfig({"tokenFile": str(token.path)}), folder / "by-file.log")
        stack.callback(by_file.kill)
        in_pod = Replica(folder, folder / "in-pod.log", POD, environment=pod)
        stack.callback(in_pod.kill)
        replicas = {each.identity: each for each in (by_file, in_pod)}
        eventually(lambda: all(each.is_ready() for each in replicas.values()), 30)
        eventually(lambda: holder(cluster) in replicas, 10)
        yield replicas
    cluster.kubectl("delete", "lease", LEASE)


def test_a_token_that_is_replaced_in_time_goes_unnoticed_and_one_that_has_expired_is_outlived(
    cluster: Cluster,
    token: TokenFile,
    both: dict[str, Replica],
    eventually: Eventually,
    figure: Callable[[str], None],
) -> None:
    def finish(name: str) -> float:
        begun = time.monotonic()
        cluster.apply(*parents(WHERE, [name]))
        eventually(lambda: name in finished(cluster, WHERE), 20)
        return time.monotonic() - begun

    # Replaced while it holds: the old one is refused, and both go on with the new one.
    token.replace()
    eventually(token.one_before_is_refused, LIFE + 20)
    token.replace()  # for whoever has not needed the last one yet, that has expired too
    finish("in-time")
    assert not any(each.said("leads no longer") for each in both.values())

    # Not replaced: it is refused, and then there is not even a file. Nobody leads, and nobody ends.
    leader = both[holder(cluster)]
    eventually(token.present_is_refused, LIFE + 20)
    token.path.unlink()
    eventually(lambda: leader.said("leads no longer"), 20)
    assert leader.said("the credentials for the API server cannot be read, trying again")
    cluster.apply(*parents(WHERE, ["late"]))
    time.sleep(3)
    assert finished(cluster, WHERE) == {"in-time"}
    token.replace()
    took = finish("late")

    # Each of the two, for each has its own way to its token.
    leader = both.pop(holder(cluster))
    leader.process.terminate()
    assert leader.process.wait(10) == 0
    finish("by-the-other")
    assert holder(cluster) in both
    assert owners(cluster, WHERE) == uids(cluster, WHERE)
    figure(f"tokens: work went on {took:.1f} s after an expired token was replaced")
