"""Kill and start the API server under a flood of forbidden objects by a tenant: `make api-server-starts`.

While an API server starts, no admission policy may be off, not even for a moment. The last line is one JSON object:
`starts`, `sent` (requests that were answered), `admitted` (forbidden objects that exist), `harmless` (objects without
such annotations that were admitted, or the flood proves nothing) and `used_by_a_backup` (hooks that Velero ran after).
"""

import argparse
import http.client
import itertools
import json
import os
import sys
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field

from foresail.api.marks import FILE_SYSTEM_LABEL, VELERO_ANNOTATIONS_LABEL
from testbed import Cluster, Options, control_plane
from tests.cluster import tenants
from tests.redteam.annotations import ADDITIONAL, BACKUP_HOOK
from tests.redteam.oversized import Json, cron_job, pod
from tests.redteam.world import Caller, may_edit, namespace, path, user

HOME = "flooded"
_FLOODERS = 4
_AFTER = 3.0  # seconds for which the flood goes on once the API server is ready
_FOR_FILES = {"backup.velero.io/backup-volumes": "data"}


@dataclass
class Flood:
    """Requests of a tenant that never stop, whether the API server is there or not."""

    codes: Counter[str] = field(default_factory=Counter)
    harmless: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, number: int, sender: Caller) -> None:
        """Send forbidden objects one after the other, and now and then a harmless one."""
        with closing(sender) as caller:
            for count in itertools.count(1):
                if self._ended.is_set():
                    break
                name = f"flood-{number}-{count}"
                plural, body = forbidden(name, count)
                self._sent(caller, plural, body)
                if count % 20 == 0:
                    self._send_harmless(caller, name)

    def _send_harmless(self, caller: Caller, name: str) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        if self._sent(caller, "configmaps", body, counts=False) == http.client.CREATED:
            with self._lock:
                self.harmless += 1

    def _sent(self, caller: Caller, plural: str, body: Json, *, counts: bool = True) -> int:
        code = 0
        with suppress(http.client.HTTPException, OSError):
            code = caller.create(path(plural, HOME), body).code
        if not code:
            time.sleep(0.01)  # nobody listens
        elif counts:
            with self._lock:
                self.codes[str(code)] += 1
        return code

    def end(self) -> None:
        """Stop sending."""
        self._ended.set()


def forbidden(name: str, number: int) -> tuple[str, Json]:
    """Return an object with annotations that Velero acts on, in turn on a pod, in a template, and on anything else."""
    greedy = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": ADDITIONAL}}
    sorts = (
        ("pods", pod(name, BACKUP_HOOK)),
        ("cronjobs", cron_job(name, {}, BACKUP_HOOK, {})),
        ("configmaps", greedy),
        ("pods", pod(name, _FOR_FILES)),
    )
    return sorts[number % len(sorts)]


def flooded(cluster: Cluster, starts: int) -> dict[str, int]:
    """Kill and start the API server so many times under the flood, and return what came through."""
    flood = Flood()
    senders = [user(cluster, "mallory") for _ in range(_FLOODERS)]
    threads = [threading.Thread(target=flood.send, args=pair, daemon=True) for pair in enumerate(senders)]
    for each in threads:
        each.start()
    try:
        for number in range(starts):
            time.sleep(_AFTER)
            cluster.fault.kill(control_plane.APISERVER)
            cluster.fault.start(control_plane.APISERVER)
            print(f"start {number + 1}: {dict(flood.codes)}", flush=True)
        time.sleep(_AFTER)
    finally:
        flood.end()
        for each in threads:
            each.join(60)
    with closing(Caller(cluster.server, cluster.site.admin_trust)) as admin:
        stored = [each for plural in ("pods", "cronjobs", "configmaps") for each in admin.items(path(plural, HOME))]
    keys = {*ADDITIONAL, *BACKUP_HOOK, *_FOR_FILES}
    admitted = sum(any(key in json.dumps(each) for key in keys) for each in stored)
    return {
        "starts": starts,
        "sent": sum(flood.codes.values()),
        "admitted": max(admitted, flood.codes[str(int(http.client.CREATED))]),
        "harmless": flood.harmless,
    }


def furnish(cluster: Cluster) -> None:
    """Install the charts, and give a tenant a namespace that is labelled as the operator does it."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tenants.VELERO}})
    tenants.install(cluster)
    home = namespace(HOME)
    home["metadata"]["labels"] |= {VELERO_ANNOTATIONS_LABEL: "refused", FILE_SYSTEM_LABEL: "refused"}
    cluster.apply(home)
    cluster.apply(may_edit(HOME, "mallory"))
    deadline = time.monotonic() + 60
    with closing(user(cluster, "mallory")) as caller:
        while caller.create(f"{path('pods', HOME)}?dryRun=All", pod("x", BACKUP_HOOK)).code != http.client.FORBIDDEN:
            if time.monotonic() > deadline:
                raise TimeoutError("the API server does not apply the admission policies")
            time.sleep(0.2)


def hooks_of_a_backup(cluster: Cluster) -> int:
    """Return how many hooks an administrator's backup of the namespace ran."""
    cluster.velero("backup", "create", "after", f"--include-namespaces={HOME}", "--wait")
    found = cluster.get("backups.velero.io", "after", f"--namespace={tenants.VELERO}")["status"]
    return int(found.get("hookStatus", {}).get("hooksAttempted", 0))


def main() -> int:
    """Run it; 0 if nothing came through."""
    parser = argparse.ArgumentParser(prog="python -m tests.redteam.api_server_starts", description=__doc__)
    parser.add_argument("--starts", type=int, default=30)
    starts = parser.parse_args().starts
    options = Options(velero="velero", nodes=1)
    with Cluster.create(f"starts-{os.getpid()}", options, owned=True) as cluster:
        furnish(cluster)
        found = flooded(cluster, starts)
        found["used_by_a_backup"] = hooks_of_a_backup(cluster)
    print(json.dumps(found))
    return 0 if found["harmless"] and not found["admitted"] and not found["used_by_a_backup"] else 1


if __name__ == "__main__":
    sys.exit(main())
