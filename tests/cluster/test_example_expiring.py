"""The controller of docs/contributing/design/runtime.md, as its own process with only the permissions it needs."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster.kinds import rule, service_account

EXAMPLE = Path(__file__).parents[2] / "examples" / "expiring.py"
USER = "system:serviceaccount:default:expiring"
Eventually = Callable[[Callable[[], object], float], None]


def config_map(name: str, expires: str | None) -> dict[str, Any]:
    noted = {} if expires is None else {"annotations": {"examples.foresail.dev/expires": expires}}
    metadata = {"name": name, "namespace": "default", "labels": {"expiring": ""}, **noted}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"large": "x" * 10_000}}


def test_it_has_less_than_sixty_lines() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 60


def test_each_is_deleted_at_its_instant_and_no_other_is_touched(cluster: Cluster, eventually: Eventually) -> None:
    cluster.apply(*service_account("expiring", rule("", ["configmaps"], "list", "watch", "delete")))
    cluster.apply(
        config_map("passed", "2020-02-02T02:02:02Z"),
        config_map("much-later", datetime(2100, 1, 1, tzinfo=UTC).isoformat()),
        config_map("no-instant", "tomorrow"),
        config_map("no-zone", "2020-02-02T02:02:02"),
        config_map("says-nothing", None),
    )

    def left() -> set[str]:
        return set(cluster.kubectl("get", "configmaps", "-l", "expiring", "-o", "name").split())

    kubeconfig = cluster.service_account_kubeconfig("default", "expiring")
    with subprocess.Popen([sys.executable, EXAMPLE, kubeconfig], stderr=subprocess.PIPE, text=True) as process:
        try:
            eventually(lambda: "configmap/passed" not in left(), 120)
            at = now().replace(microsecond=0) + timedelta(seconds=8)
            cluster.apply(config_map("soon", at.isoformat()))
            eventually(lambda: "configmap/soon" not in left(), 60)
            asked = {each.name: each.at for each in cluster.audit(USER) if each.verb == "delete"}
            assert at <= asked["soon"] < at + timedelta(seconds=5)
            assert asked.keys() == {"passed", "soon"}
            assert left() == {f"configmap/{name}" for name in ("much-later", "no-instant", "no-zone", "says-nothing")}
            assert process.poll() is None
        finally:
            process.kill()
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
