"""The clusters with a real node: one for all tests, with Velero and its node agent as pods."""

import os
import time
from collections.abc import Iterator

import pytest

from testbed import Cluster, Options
from testbed.node import needs
from tests.node.figures import FOUND
from tests.node.nodes import CHECKOUT, IMAGE, foresail, started


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
    """A cluster with a real node, Velero and its node agent as pods."""
    lines: list[str] = []
    options = Options(velero="velero", node=True)
    with Cluster.create(f"pytest-{os.getpid()}-node", options, say=lines.append, owned=True) as cluster:
        measured["node_ready_s"] = round(started(lines, "kubelet") - started(lines, "kube-scheduler"), 1)
        yield cluster


@pytest.fixture(scope="session")
def installed(node_cluster: Cluster, measured: dict[str, float | bool | None]) -> Cluster:
    """The cluster with the operator in pods, from the image of this checkout."""
    node_cluster.build_image(CHECKOUT, IMAGE)
    began = time.monotonic()
    foresail(node_cluster, "install", f"--image={IMAGE}", "--primers", "--timeout=5m")
    for name in ("foresail", "foresail-primers"):
        node_cluster.kubectl("rollout", "status", f"deployment/{name}", "--namespace=velero", "--timeout=120s")
    measured["install_ready_s"] = round(time.monotonic() - began, 1)
    return node_cluster
