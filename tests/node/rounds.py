"""Up and down with a real node, again and again: `make node-rounds ROUNDS=20`.

Each round has Velero, its node agent, a pod and a volume of the CSI driver. What is left is counted from outside,
without the testbed. The last line is one JSON object.
"""

import argparse
import json
import os
import sys
import time

from testbed import Cluster
from testbed.__main__ import main as testbed
from testbed.node.csi import CLASS
from tests.node.nodes import OPTIONS, Outside, claim, pod, rules, touched, wait_ready

WRITES = "date > /data/date; sleep 3600"


def main(rounds: int) -> int:
    """Live through the rounds; the exit code is 1 if anything is left after one of them."""
    if code := testbed(["build", "--node"]):
        return code
    found: list[int] = []
    seconds: list[float] = []
    for number in range(1, rounds + 1):
        began = time.monotonic()
        left = one_round(f"round-{os.getpid()}-{number}")
        seconds.append(time.monotonic() - began)
        found.append(sum(map(len, left.values())))
        print(f"round {number} of {rounds}: {seconds[-1]:.0f} s, {found[-1]} leftovers", flush=True)
        for kind, each in left.items():
            print(*(f"  {kind}: {one}" for one in each), sep="\n", end="\n" if each else "")
    median = sorted(seconds)[len(seconds) // 2] if seconds else 0
    print(json.dumps({"rounds": rounds, "leftovers": sum(found), "round_s": round(median)}))
    return 1 if sum(found) else 0


def one_round(name: str) -> dict[str, list[str]]:
    """Bring a cluster up, use it, take it down, and return what is left of it on the machine."""
    rules_before, touched_before = rules(), touched()
    with Cluster.create(name, OPTIONS, owned=True) as cluster:
        mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        cluster.apply(
            claim("data", "default", CLASS), pod("store", "default", WRITES, container=mount, volumes=[volume])
        )
        wait_ready(cluster, "pod/store", "default")
        outside = Outside(cluster)
        seen = outside.left()
        missing = [kind for kind in ("processes", "links", "groups", "files") if not seen[kind]]
        if missing:
            raise SystemExit(f"{name}: nothing is counted while the node is up: {', '.join(missing)}")
    return {
        **outside.left(),
        "rules": sorted(set(rules()) - set(rules_before)),
        "touched": sorted(set(touched()) - set(touched_before)),
    }


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=20, help="how often the cluster comes up (%(default)s)")
    sys.exit(main(options.parse_args().rounds))
