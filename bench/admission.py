"""What one hostile write costs the API server with Foresail's admission policies and without: `make bench-admission`.

The objects are about as large as the API server accepts. Each is sent as a dry run before the charts are installed,
with one SelfServicePolicy and with 100, and changed likewise once it exists. The figures are processor seconds of the
API server for one write, so that other work on the machine counts little. The last line is one JSON object.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial

from bench import MeasurementError
from bench.figures import Bounds, verdict
from foresail.api.marks import FILE_SYSTEM_LABEL, VELERO_ANNOTATIONS_LABEL
from testbed import Cluster, Options
from tests.cluster import tenants
from tests.redteam.oversized import Json, processor_seconds, request_with_labels, worst_objects
from tests.redteam.world import Caller

NAMESPACE = "hostile"
MANY = 100
MOST_SECONDS = 0.2
_UNRELATED = 0.03  # seconds of a core that an API server uses while nobody asks it
_OK = 300

BOUNDS: Bounds = {
    f"with_1_s at most {MOST_SECONDS}": lambda figures: figures["with_1_s"] <= MOST_SECONDS,
    f"with_100_s at most {MOST_SECONDS}": lambda figures: figures["with_100_s"] <= MOST_SECONDS,
}


def main() -> int:
    """Measure, and return 0 if the bound holds."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--writes", type=int, default=10, help="of each object, of which the median counts")
    writes = options.parse_args().writes
    with Cluster.create(f"admission-{os.getpid()}", Options(), owned=True) as cluster:
        return verdict(measured(cluster, writes, tenants.install), BOUNDS)


def measured(cluster: Cluster, writes: int, install: Callable[[Cluster], None]) -> dict[str, object]:
    """Return the figures of all three situations, measured one after the other."""
    cluster.apply(*_namespaces())
    tenants.install_kinds(cluster)
    caller = Caller(cluster.server, cluster.site.admin_trust)
    objects = {**worst_objects(), "request": request_with_labels()}
    without = _costs(cluster, caller, objects, writes)
    install(cluster)
    cluster.apply(*(_policy(number) for number in range(1)))
    _wait_until_refused(caller)
    one = _costs(cluster, caller, objects, writes)
    cluster.apply(*(_policy(number) for number in range(MANY)))
    time.sleep(5)  # until the API server has seen them
    many = _costs(cluster, caller, objects, writes)
    for name, seconds in without.items():
        print(f"{name:28} without {seconds:.3f} s, with 1 {one[name]:.3f} s, with {MANY} {many[name]:.3f} s")
    return {
        "objects": len(without),
        "without_s": round(max(without.values()), 3),
        "with_1_s": round(max(one[name] - without[name] for name in without), 3),
        "with_100_s": round(max(many[name] - without[name] for name in without), 3),
        "seconds_a_write": {name: [round(each[name], 3) for each in (without, one, many)] for name in without},
    }


def _costs(cluster: Cluster, caller: Caller, objects: dict[str, Json], writes: int) -> dict[str, float]:
    """Return the processor seconds of one write by the name of its object: created, and changed by a put."""
    costs = {}
    for name, body in objects.items():
        target, text = _target(body), json.dumps(body)
        at = f"{target}/{body['metadata']['name']}"
        costs[f"create {name}"] = _cost(cluster, partial(_send, caller, "POST", target, text), writes)
        caller.create(target, text)  # the first time, there is no policy that refuses it
        if caller.get(at) is None:
            raise MeasurementError(f"the API server does not take the object {name!r}")
        changed = json.dumps({**body, "metadata": {**body["metadata"], "annotations": _changed(body)}})
        costs[f"update {name}"] = _cost(cluster, partial(_send, caller, "PUT", at, changed), writes)
        print(f"{name}: {costs[f'create {name}']:.3f} s, {costs[f'update {name}']:.3f} s", flush=True)
    return costs


def _changed(body: Json) -> dict[str, str]:
    return {**body["metadata"].get("annotations", {}), "changed": "true"}


def _send(caller: Caller, method: str, target: str, text: str) -> None:
    caller.send(method, f"{target}?dryRun=All", text)


def _cost(cluster: Cluster, write: Callable[[], None], writes: int) -> float:
    """Return the processor seconds of one write; the first one is not counted."""
    write()
    began, used = time.monotonic(), processor_seconds(cluster)
    for _ in range(writes):
        write()
    return max(processor_seconds(cluster) - used - _UNRELATED * (time.monotonic() - began), 0.0) / writes


def _target(body: Json) -> str:
    group, _, version = body["apiVersion"].rpartition("/")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{root}/namespaces/{NAMESPACE}/{body['kind'].lower()}s"


def _namespaces() -> list[Json]:
    """Return the namespace of the tenant, as the operator labels it."""
    labels = {VELERO_ANNOTATIONS_LABEL: "refused", FILE_SYSTEM_LABEL: "refused", "foresail.dev/self-service": "enabled"}
    names = {NAMESPACE: labels, tenants.VELERO: {}}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": own}}
        for name, own in names.items()
    ]


def _policy(number: int) -> Json:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}
    meta = {"name": f"policy-{number:03}"}
    body = {"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta}
    return {**body, "spec": {"namespaceSelector": selector}}


def _wait_until_refused(caller: Caller) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": {_HOOK: "x"}}}
    deadline = time.monotonic() + 60
    while caller.create(f"{_target(body)}?dryRun=All", body).code < _OK:
        if time.monotonic() > deadline:
            raise TimeoutError("the API server does not apply the admission policies")
        time.sleep(0.2)


_HOOK = "pre.hook.backup.velero.io/command"

if __name__ == "__main__":
    sys.exit(main())
