"""The real clusters of the tests: each starts when the first test asks for it, and is gone after the last one."""

import os
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from testbed import Cluster, Options, TestbedError
from testbed.build import program
from tests.cluster import operators
from tests.cluster.evidence import ends_of_logs
from tests.cluster.versions import in_matrix


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        report.sections.extend(ends_of_logs(item.funcargs))
    return report


_shared: dict[str, Cluster] = {}
"""The clusters of the whole session that run, by the name of their fixture."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After the last test of a file, remove the clusters that no later test asks for: an idle one costs CPU time."""
    if nextitem is not None and nextitem.path == item.path:  # a fixture of this file may still use one
        return
    later = item.session.items[item.session.items.index(item) + 1 :]
    wanted = {name for test in later if isinstance(test, pytest.Function) for name in test.fixturenames}
    for name in _shared.keys() - wanted:
        _shared.pop(name).down()


def _shared_cluster(request: pytest.FixtureRequest, kind: str, options: Options) -> Iterator[Cluster]:
    for cluster in created(kind, options):
        assert request.fixturename is not None
        _shared[request.fixturename] = cluster
        yield cluster


def created(kind: str, options: Options) -> Iterator[Cluster]:
    with Cluster.create(f"pytest-{os.getpid()}-{kind}", in_matrix(options), owned=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that no test breaks, with an audit log."""
    yield from _shared_cluster(request, "plain", Options(audit=True))


@pytest.fixture(scope="session")
def velero_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with one node, Velero and an S3 server."""
    yield from _shared_cluster(request, "velero", Options(velero="velero", nodes=1))


@pytest.fixture(scope="session")
def schedule_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with Velero, an S3 server, an audit log, and what the chart installs for the operator."""
    for cluster in _shared_cluster(request, "schedules", Options(velero="velero", audit=True)):
        operators.install(cluster)
        yield cluster


@pytest.fixture(scope="module")
def own_velero_cluster() -> Iterator[Cluster]:
    """A cluster with Velero for the tests of one file: what others leave in it does not disturb theirs."""
    yield from created("own-velero", Options(velero="velero", nodes=1))


@pytest.fixture(scope="module")
def audited_velero_cluster() -> Iterator[Cluster]:
    """The same with an audit log."""
    yield from created("audited-velero", Options(velero="velero", audit=True))


@pytest.fixture(scope="session")
def karpenter_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with no node at all, and Karpenter, whose nodes take a while to become ready."""
    yield from _shared_cluster(request, "karpenter", Options(karpenter="karpenter", node_seconds=20))


@pytest.fixture(scope="session")
def buffer_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with no node and an audit log, whose Karpenter acts on CapacityBuffers."""
    yield from _shared_cluster(request, "buffers", Options(karpenter="karpenter", capacity_buffers=True, audit=True))


@pytest.fixture(scope="module")
def ha_cluster() -> Iterator[Cluster]:
    """A cluster with a highly available control plane, for the tests of one file; each undoes its faults."""
    yield from created("ha", Options(ha=True))


@pytest.fixture
def doomed_cluster() -> Iterator[Cluster]:
    """A cluster for one test, which may do anything to it."""
    yield from created("doomed", Options())


@pytest.fixture(scope="session")
def eventually() -> Callable[[Callable[[], object], float], None]:
    """Wait until something holds, and fail with the last answer if it does not within that many seconds.

    An object or a field that is not there yet is such an answer, and so is a server that does not answer in time; what
    is asserted on the way fails at once.
    """

    def answer_of(holds: Callable[[], object]) -> tuple[bool, object]:
        try:
            answer = holds()
        except (TestbedError, OSError, LookupError, StopIteration) as not_yet:
            return False, not_yet
        return bool(answer), answer

    def wait(holds: Callable[[], object], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            asked = time.monotonic()
            done, answer = answer_of(holds)
            if done:
                return
            assert time.monotonic() < deadline, f"not within {seconds:g} s; the last answer was {answer!r}"
            time.sleep(max(0.1, time.monotonic() - asked))  # a look that costs a process does not follow on the last

    return wait


@pytest.fixture(scope="session")
def kubectl_as() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run kubectl with somebody's kubeconfig, whatever its exit code."""

    def run(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(program("kube", "kubectl")), f"--kubeconfig={kubeconfig}", "--cache-dir=/dev/null", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run
