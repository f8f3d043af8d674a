"""Tokens that are replaced in time, too late, and not at all for a while, under running processes."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from testbed import Cluster, kubeconfig
from tests.cluster.meanwhile import meanwhile
from tests.cluster.parents import finished, owners, parents, uids
from tests.cluster.replicas import ACCOUNT, LEASE, Replica, holder, permit

POD = Path(__file__).with_name("pod_replica.py")
LIFE = 12  # seconds, and up to ten more
WHERE = "tokens"
Eventually = Callable[[Callable[[], object], float], None]
KubectlAs = Callable[..., subprocess.CompletedProcess[str]]


class TokenFile:
    """The file that the processes read."""

    def __init__(self, cluster: Cluster, folder: Path, kubectl_as: KubectlAs) -> None:
        self.cluster, self.folder, self.path = cluster, folder, folder / "token"
        self.present = ""
        self._kubectl_as = kubectl_as

    def replace(self) -> None:
        self.present = self.cluster.expiring_token("default", ACCOUNT, LIFE)
        fresh = self.folder / "fresh"
        fresh.write_text(self.present)
        fresh.rename(self.path)

    @contextmanager
    def replaced_in_time(self) -> Iterator[None]:
        """Replace the token long before it expires until the block ends, as the kubelet does."""
        self.replace()
        with meanwhile(self.replace, every=LIFE / 4):
            yield

    def kubeconfig(self, user: dict[str, str]) -> Path:
        authority = self.cluster.site.pki / "ca.crt"
        return kubeconfig.write(self.folder / f"{'-'.join(user)}.kubeconfig", self.cluster.server, authority, user)

    def is_refused(self, token: str) -> bool:
        done = self._kubectl_as(self.kubeconfig({"token": token}), "get", "parents", "--all-namespaces")
        return done.returncode != 0 and "You must be logged in to the server" in done.stderr


@pytest.fixture
def token(cluster: Cluster, tmp_path: Path, kubectl_as: KubectlAs) -> TokenFile:
    permit(cluster)
    cluster.kubectl("create", "namespace", WHERE)
    return TokenFile(cluster, tmp_path, kubectl_as)


@pytest.fixture
def both(cluster: Cluster, token: TokenFile) -> Iterator[dict[str, Replica]]:
    """Two replicas that read the same token: one through its kubeconfig, one as a pod does."""
    folder, address = token.folder, urlsplit(cluster.server)
    (folder / "ca.crt").write_bytes((cluster.site.pki / "ca.crt").read_bytes())
    pod = {"KUBERNETES_SERVICE_HOST": str(address.hostname), "KUBERNETES_SERVICE_PORT": str(address.port)}
    token.replace()
    with ExitStack() as stack:
        by_file = Replica(token.kubeconfig({"tokenFile": str(token.path)}), folder / "by-file.log")
        stack.callback(by_file.kill)
        in_pod = Replica(folder, folder / "in-pod.log", POD, environment=pod)
        stack.callback(in_pod.kill)
        yield {each.identity: each for each in (by_file, in_pod)}
    cluster.kubectl("delete", "lease", LEASE, "--ignore-not-found")


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
        eventually(lambda: name in finished(cluster, WHERE), 60)
        return time.monotonic() - begun

    # Replaced while it holds: the old one is refused, and both go on with the new one.
    with token.replaced_in_time():
        eventually(lambda: all(each.is_ready() for each in both.values()), 120)
        eventually(lambda: holder(cluster) in both, 30)
        old = token.present
        eventually(lambda: token.is_refused(old), LIFE + 60)
        finish("in-time")
        assert not any(each.said("lost leadership") for each in both.values())
        leader = both[holder(cluster)]

    # Not replaced: it is refused, and then there is not even a file. Nobody leads, and nobody ends.
    eventually(lambda: token.is_refused(token.present), LIFE + 60)
    token.path.unlink()
    eventually(lambda: leader.said("lost leadership"), 60)
    eventually(lambda: leader.said("cannot read the credentials for the API server, retrying"), 60)
    cluster.apply(*parents(WHERE, ["late"]))
    time.sleep(3)
    assert finished(cluster, WHERE) == {"in-time"}
    with token.replaced_in_time():
        took = finish("late")

        # Each of the two, for each has its own way to its token.
        leader = both.pop(holder(cluster))
        leader.process.terminate()
        assert leader.process.wait(60) == 0
        finish("by-the-other")
        assert holder(cluster) in both
        assert owners(cluster, WHERE) == uids(cluster, WHERE)
    figure(f"tokens: work went on {took:.1f} s after an expired token was replaced")
