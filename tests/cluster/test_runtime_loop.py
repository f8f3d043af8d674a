"""The example controller as its own process, with a ServiceAccount that may do just what it needs."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster.parents import finished, install, owners, parents, uids

EXAMPLE = Path(__file__).parents[2] / "examples" / "one_child_each.py"
USER = "system:serviceaccount:default:one-child-each"
COUNT = 300
KILLS = 3
Eventually = Callable[[Callable[[], object], float], None]


@pytest.fixture(scope="module", autouse=True)
def permitted(cluster: Cluster) -> None:
    install(cluster, "one-child-each")


@contextmanager
def running(cluster: Cluster) -> Iterator[subprocess.Popen[bytes]]:
    kubeconfig = cluster.service_account_kubeconfig("default", "one-child-each")
    with subprocess.Popen([sys.executable, EXAMPLE, kubeconfig]) as process:
        try:
            yield process
            assert process.poll() in (None, -signal.SIGKILL), "it ended by itself"
        finally:
            process.kill()


@pytest.mark.full
def test_killed_again_and_again_it_makes_exactly_one_child_for_each_parent_and_then_falls_silent(
    cluster: Cluster, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    namespace = "killed"
    cluster.kubectl("create", "namespace", namespace)
    names = [f"p-{number:03}" for number in range(COUNT)]
    cluster.apply(*parents(namespace, names))
    done = [0]
    while len(done) <= KILLS:
        with running(cluster) as process:
            eventually(lambda: len(finished(cluster, namespace)) > done[-1] or done[-1] == COUNT, 120)
            process.kill()
            process.wait()
        done.append(len(finished(cluster, namespace)))
    with running(cluster):
        eventually(lambda: finished(cluster, namespace) == set(names), 120)
        assert owners(cluster, namespace) == uids(cluster, namespace)
        since = now()  # not by count: the line about a request may be written late
        time.sleep(3)
        # Other tests leave names behind that are taken, and those are asked for again now and then.
        assert [r for r in cluster.audit(USER) if r.at >= since and r.namespace in ("", namespace)] == []
    figure(f"one child each: {COUNT} parents, killed after {done} of them were finished")


def test_a_child_that_someone_else_made_is_left_alone_and_the_others_go_on(
    cluster: Cluster, eventually: Eventually
) -> None:
    namespace = "taken"
    cluster.kubectl("create", "namespace", namespace)
    cluster.kubectl("create", "configmap", "foreign", "--from-literal=owner=somebody", "--namespace", namespace)
    with running(cluster):
        cluster.apply(*parents(namespace, ["foreign", "free"]))
        eventually(lambda: finished(cluster, namespace) == {"free"}, 120)
        time.sleep(1)
        assert finished(cluster, namespace) == {"free"}
    assert cluster.get("configmap", "foreign", "--namespace", namespace)["data"] == {"owner": "somebody"}
    cluster.kubectl("delete", "parent", "foreign", "--namespace", namespace)  # else every later controller tries it too


ANYTHING: list[object] = ["text", 7, 1.5, True, None, ["a"], {"deep": {"er": []}}]


def set_status(cluster: Cluster, where: str, name: str, status: object) -> None:
    patch = json.dumps([{"op": "add", "path": "/status", "value": status}])
    cluster.kubectl("patch", "parent", name, "-n", where, "--subresource=status", "--type=json", f"--patch={patch}")


def versions(cluster: Cluster, where: str) -> dict[str, str]:
    items = cluster.get("parents", "--namespace", where)["items"]
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}


def test_parents_with_a_wrong_type_in_any_field_are_left_alone_until_mended_and_do_not_disturb_the_others(
    cluster: Cluster, eventually: Eventually
) -> None:
    where = "shapes"
    cluster.kubectl("create", "namespace", where)
    wrong = {f"status-{number}": value for number, value in enumerate(ANYTHING) if value is not None}
    wrong |= {f"child-{number}": {"child": value} for number, value in enumerate(ANYTHING) if value != "text"}
    specs = {f"spec-{number}": value for number, value in enumerate(ANYTHING)}
    cluster.apply(*parents(where, [*wrong, "right", "broken-later"]))
    cluster.apply(*({**parent, "spec": specs[parent["metadata"]["name"]]} for parent in parents(where, list(specs))))
    for name, status in wrong.items():
        set_status(cluster, where, name, status)
    before = versions(cluster, where)
    well = {"right", "broken-later", *specs}  # nobody reads the spec, so nothing in it is wrong
    with running(cluster):
        eventually(lambda: set(owners(cluster, where)) == well, 120)
        eventually(lambda: well <= finished(cluster, where), 60)

        # Broken after it was read: it is not worked on as it was before.
        set_status(cluster, where, "broken-later", {"child": 7})
        cluster.apply(*parents(where, ["after-it"]))
        eventually(lambda: "after-it" in finished(cluster, where), 60)
        cluster.kubectl("delete", "configmap", "broken-later", "--namespace", where)
        time.sleep(2)
        assert set(owners(cluster, where)) == {*well, "after-it"} - {"broken-later"}
        assert {name: versions(cluster, where)[name] for name in wrong} == {name: before[name] for name in wrong}

        for name in (*wrong, "broken-later"):
            set_status(cluster, where, name, {})
        eventually(lambda: owners(cluster, where) == uids(cluster, where), 60)
        eventually(lambda: finished(cluster, where) == set(uids(cluster, where)), 60)
