"""Compares restore plans with what real restores then do, on random worlds: `make plan-oracle`."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench.plan_objects import GUARDED, RESOURCES, WIDGETS
from bench.plan_setup import delete, make, namespace_object, wait
from bench.plan_worlds import RandomWorld, random_world
from bench.seeds import read_seeds, seed_parser
from foresail.bucket import trusting
from foresail.cli.access.cluster import Cluster as Access
from foresail.cli.access.cluster import on_cluster
from foresail.cli.restore_plan.plan import read_velero_file
from foresail.cli.restore_plan.planning import MARK, PREFIX
from foresail.cli.tenant.files import Access as BucketAccess
from foresail.plan import Key
from testbed import Cluster, Options, TestbedError
from testbed.audit import Request
from testbed.site import ADMIN

WORLDS = 200
_WORLDS_AT_ONCE = 3
PLANNER = "planner"
_TRUTH = {
    "create": {"created"},
    "unchanged": {"skipped"},
    "differs": {"updated"},
    "exists": {"failed"},
    "refused": {"failed"},
    "not restored": {"skipped", ""},
}
_SCRATCH = ("namespaces", "limitranges")
_DOWNLOADS = "downloadrequests.velero.io"
_MOST_SECONDS = 10.0  # for a plan of 1,000 items
Item = tuple[str, str, str]


@dataclass
class Score:
    """What the comparison has found so far."""

    worlds: int = 0
    items: int = 0
    unpredictable: int = 0
    mispredicted: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)


def prepare_cluster(cluster: Cluster) -> Path:
    """Return the kubeconfig of who plans, and make a policy that refuses ConfigMaps to all but the administrator."""
    cluster.kubectl("create", "clusterrolebinding", PLANNER, "--clusterrole=cluster-admin", f"--user={PLANNER}")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    api = "admissionregistration.k8s.io/v1"
    not_admin = {"name": "not-the-administrator", "expression": f"request.userInfo.username != '{ADMIN}'"}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [not_admin],  # who makes the worlds
        "validations": [{"expression": f"!object.metadata.name.startsWith('{GUARDED}')"}],
    }
    binding = {"policyName": "guarded", "validationActions": ["Deny"]}
    about = {"name": "guarded"}
    cluster.apply(
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": about, "spec": spec},
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": about, "spec": binding},
    )
    cluster.apply(WIDGETS)
    cluster.wait_for_kinds()
    cluster.fault.restart("velero")  # so that it knows the kind
    wait(lambda: not _is_allowed(cluster))
    return cluster.user_kubeconfig(PLANNER)


def _is_allowed(cluster: Cluster) -> bool:
    probe = ("create", "configmap", f"{GUARDED}-probe", "--namespace=default", "--dry-run=server")
    try:
        cluster.kubectl(*probe, f"--as={PLANNER}")
    except TestbedError:
        return False
    return True


def planned(planner: Path, backup: str, world: RandomWorld) -> tuple[dict[str, Any], float]:
    """Return the plan as the command prints it, and how many seconds it took."""
    command = [sys.executable, "-m", "foresail", "plan", backup, *world.options, "--output=json", "--timeout=2m"]
    if world.target:
        command.append(f"--namespace-mappings={world.namespace}:{world.target}")
    began = time.monotonic()
    done = subprocess.run(
        [*command, f"--kubeconfig={planner}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout), time.monotonic() - began


def restored(cluster: Cluster, backup: str, world: RandomWorld) -> dict[Item, str]:
    """Restore for real, and return what Velero did to each item."""
    restore = f"restore-{world.namespace}"
    words = ["restore", "create", restore, f"--from-backup={backup}", *world.options, "--wait"]
    if world.target:
        words.append(f"--namespace-mappings={world.namespace}:{world.target}")
    cluster.velero(*words)
    return resource_list(cluster, restore)


def resource_list(cluster: Cluster, restore: str) -> dict[Item, str]:
    """Return what Velero did to each item of a restore."""
    args = argparse.Namespace(kubeconfig=str(cluster.kubeconfig), context=None)
    access = BucketAccess(trusting(), None)

    async def read(connected: Access) -> bytes | None:
        return await read_velero_file(connected, Key("velero", restore), "RestoreResourceList", access)

    file = on_cluster(args, read)
    lists = msgspec.json.decode(file or b"{}", type=dict[str, list[str]])
    found: dict[Item, str] = {}
    for kind, names in lists.items():
        resource = RESOURCES[kind.rpartition("/")[2]]
        for each in names:
            place, _, action = each.removesuffix(")").rpartition("(")
            namespace, _, name = place.rpartition("/")
            found[resource, namespace, name] = action
    return found


def compare(score: Score, world: RandomWorld, plan: dict[str, Any], truth: dict[Item, str]) -> None:
    """Count what the plan said of each item against what happened."""
    score.worlds += 1
    expected = {(each["resource"], each["namespace"], each["name"]): each for each in plan["items"]}
    for item in sorted({*expected, *truth}):
        score.items += 1
        said, done = expected.get(item), truth.get(item, "")
        outcome = said["outcome"] if said is not None else "(nothing)"
        score.outcomes[outcome] += 1
        if outcome == "not predictable":
            score.unpredictable += 1
        elif done not in _TRUTH.get(outcome, set()):
            why = "" if said is None else f" {said.get('refusedBy', '')} {said.get('reason', '')}"
            score.mispredicted.append(f"{world.namespace}: {'/'.join(item)}: planned {outcome}, was {done or '-'}{why}")


def foreign_writes(cluster: Cluster) -> list[str]:
    """Return the writes of the planner, besides scratch namespaces and download requests."""
    return [f"{each.verb} {each.uri}" for each in cluster.audit(PLANNER) if each.is_write and not is_own_write(each)]


def is_own_write(request: Request) -> bool:
    """Whether a write concerns a scratch namespace or a download request."""
    if request.resource == _DOWNLOADS:
        return True
    name = request.namespace if request.resource == "limitranges" else request.name or request.namespace
    return request.resource in _SCRATCH and name.startswith(PREFIX)


def scratch_namespaces(cluster: Cluster) -> list[str]:
    """Return the scratch namespaces that exist, those that are being deleted included."""
    return [each["metadata"]["name"] for each in cluster.get("namespaces", f"--selector={MARK}")["items"]]


def scratch_namespaces_left(cluster: Cluster) -> list[str]:
    """Return the scratch namespaces that still exist after the time that a deletion takes."""
    with suppress(TimeoutError):
        wait(lambda: not scratch_namespaces(cluster))
    return scratch_namespaces(cluster)


def speed(cluster: Cluster, planner: Path, count: int = 1000) -> float:
    """Return how long the plan of a backup with so many items takes, the download included."""
    name = "many"
    cluster.apply(namespace_object(name, {}))
    objects = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"c-{n}", "namespace": name},
            "data": {"n": str(n)},
        }
        for n in range(count)
    ]
    for first in range(0, count, 250):
        cluster.kubectl(
            "create",
            "--filename=-",
            text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects[first : first + 250]}),
        )
    cluster.velero(
        "backup", "create", "backup-many", f"--include-namespaces={name}", "--snapshot-volumes=false", "--wait"
    )
    world = RandomWorld(name, {}, [], target="many-copy")
    return planned(planner, "backup-many", world)[1]


def run(cluster: Cluster, planner: Path, seeds: range, *, is_loud: bool = True) -> Score:
    """Compare the worlds of these seeds, several at a time."""
    score = Score()
    with ThreadPoolExecutor(_WORLDS_AT_ONCE) as pool:
        for world, plan, truth in pool.map(lambda seed: _lived(cluster, planner, random_world(seed)), seeds):
            before = len(score.mispredicted)
            compare(score, world, plan, truth)
            if is_loud:
                text = f"{world.namespace}: {score.items} items so far, {' '.join(world.options)}"
                print(text, *score.mispredicted[before:], sep="\n  ", file=sys.stderr, flush=True)
    return score


def _lived(cluster: Cluster, planner: Path, world: RandomWorld) -> tuple[RandomWorld, dict[str, Any], dict[Item, str]]:
    """Make a world, plan and do its restore, and delete it."""
    backup = make(cluster, world)
    plan, _ = planned(planner, backup, world)
    truth = restored(cluster, backup, world)
    delete(cluster, world)
    return world, plan, truth


def main() -> int:
    """Run the worlds, and print the figures as JSON on the last line."""
    seeds = read_seeds(WORLDS, seed_parser(__doc__)).seeds
    with Cluster.create(f"plan-oracle-{os.getpid()}", Options(velero="velero", audit=True), owned=True) as cluster:
        planner = prepare_cluster(cluster)
        score = run(cluster, planner, seeds)
        seconds = speed(cluster, planner)
        figures: dict[str, Any] = {
            "worlds": score.worlds,
            "items": score.items,
            "mispredicted": len(score.mispredicted),
            "not_predictable": score.unpredictable,
            "not_predictable_share": round(score.unpredictable / max(score.items, 1), 4),
            "outcomes": dict(score.outcomes),
            "seconds_for_1000_items": round(seconds, 2),
            "foreign_writes": len(foreign_writes(cluster)),
            "scratch_namespaces_left": len(scratch_namespaces_left(cluster)),
        }
    print(json.dumps(figures))
    return 1 if is_failed(figures) else 0


def is_failed(figures: dict[str, Any]) -> bool:
    """Whether a figure is over its bound."""
    counted = ("mispredicted", "foreign_writes", "scratch_namespaces_left")
    return any(figures[name] for name in counted) or figures["seconds_for_1000_items"] > _MOST_SECONDS


if __name__ == "__main__":
    sys.exit(main())
