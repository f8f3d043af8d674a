"""The clusters with a real node: one for all tests, with Velero and its node agent as pods.

CI runs the tests with the mark `sample`, `make test-node` all of them.
"""

import os
import time
from collections.abc import Iterator

import pytest

from testbed import Cluster
from testbed.node import needs
from testbed.node.images import PAUSE
from tests.cluster.pages import reading
from tests.node.figures import FOUND
from tests.node.nodes import CHECKOUT, IMAGE, INSTALL, OPTIONS, PAUSE_IMAGE, started
from tests.node.tenant_database import Database, create_database


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave these tests out where they cannot run, and say so: they are the only ones that may be left out."""
    here = [item for item in items if "tests/node/" in item.nodeid]
    if here and (lacks := needs.missing()):
        items[:] = [item for item in items if item not in here]
        config.hook.pytest_deselected(items=here)
        for item in here:
            print(f"NOT TESTED: {item.nodeid}: this machine lacks {', '.join(lacks)}")


@pytest.fixture(scope="session")
def measured() -> dict[str, float | bool | None]:
    """Where a test writes what it measured."""
    return FOUND


@pytest.fixture(scope="session")
def node_cluster(measured: dict[str, float | bool | None]) -> Iterator[Cluster]:
    """A cluster with a real node, volumes with snapshots, Velero and its node agent as pods."""
    lines: list[str] = []
    with Cluster.create(f"pytest-{os.getpid()}-node", OPTIONS, say=lines.append, owned=True) as cluster:
        measured["node_ready_s"] = round(started(lines, "kubelet") - started(lines, "kube-scheduler"), 1)
        yield cluster


@pytest.fixture(scope="session")
def installed(
    node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, measured: dict[str, float | bool | None]
) -> Cluster:
    """The cluster with the operator in pods: the image of this checkout, installed by the README's own command."""
    node_cluster.build_image(CHECKOUT, IMAGE)
    node_cluster.tag_image(PAUSE, PAUSE_IMAGE)
    began = time.monotonic()
    with reading(node_cluster, tmp_path_factory.mktemp("reader") / "clone") as reader:
        reader.type(INSTALL)
    for name in ("foresail-schedules", "foresail-self-service", "foresail-primers", "foresail-rollback"):
        node_cluster.kubectl("rollout", "status", f"deployment/{name}", "--namespace=velero", "--timeout=120s")
    measured["install_ready_s"] = round(time.monotonic() - began, 1)
    return node_cluster


@pytest.fixture(scope="session")
def served(installed: Cluster) -> Cluster:
    """The same cluster, whose registry has an image with PostgreSQL."""
    installed.add_postgres()
    return installed


@pytest.fixture(scope="session")
def database(served: Cluster, request: pytest.FixtureRequest) -> Database:
    """A tenant's database with rows, backed up on one path; a test that loses it brings it back."""
    return create_database(served, f"ledger-{request.param.name}", request.param)
