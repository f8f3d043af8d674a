"""Kills the operators amid random changes of labels, classes, exemptions and namespaces: `make protection-kills`.

A real API server, a real Velero and both operators. Every version of Namespaces, Schedules and Backups that the API
server served is recorded, and judged afterwards: nobody who was in a Schedule is ever in none, and no slot has two
Backups of one class and namespace. The last line is one JSON object.
"""

import argparse
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from foresail.kube.clock import now
from foresail.kube.crash_injection import VARIABLE
from foresail.kube.json_stream import truncate_depth
from testbed import Cluster, Options
from testbed.build import program
from testbed.errors import TestbedError
from tests.cluster.operators import Operator

CHANGES, KILLS = 500, 200
GRACE = timedelta(seconds=10)
"""How long after an exemption, and how young, a namespace may be in no Schedule."""

AIM_SECONDS = 60.0
"""How long a process that dies at a write may live: on a busy machine it takes long to start."""

LABEL, REASON, UNTIL = (f"foresail.dev/protection{end}" for end in ("", "-reason", "-until"))
EXCLUDE = "velero.io/exclude-from-backup"
MARK, SLOT = "foresail.dev/protection-class", "foresail.dev/slot"
PATHS = {
    "namespace": "/api/v1/namespaces",
    "schedule": "/apis/velero.io/v1/namespaces/velero/schedules",
    "backup": "/apis/velero.io/v1/namespaces/velero/backups",
}
PROTECTION = ("--schedules=false", "--protection", "--lease-name=foresail-protection")
_CHARTS = Path(__file__).parents[1] / "charts"


@dataclass(frozen=True)
class Version:
    """One change that the API server served, and when it was heard of."""

    revision: int
    kind: str
    is_deleted: bool
    body: dict[str, Any]
    at: datetime

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self.body["metadata"]["name"])


@dataclass
class Judged:
    """What was wrong."""

    versions: int = 0
    unprotected: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)


def judged(versions: Iterable[Version]) -> Judged:
    """Judge every version in its order; it knows nothing of the operator's rules."""
    found = Judged()
    present: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in PATHS}
    since: dict[tuple[str, str], datetime] = {}
    may_leave: dict[str, datetime] = {}
    slots: set[tuple[str, str, str]] = set()
    for version in sorted(versions, key=lambda each: each.revision):
        found.versions += 1
        if version.is_deleted:
            present[version.kind].pop(version.name, None)
        else:
            is_new = version.name not in present[version.kind]
            present[version.kind][version.name] = version.body
            if version.kind == "backup" and is_new:
                found.doubled += _taken_twice(version.body, slots)
        if version.kind != "backup":
            found.unprotected += _left(present, since, may_leave, version.at)
    return found


def _taken_twice(backup: dict[str, Any], slots: set[tuple[str, str, str]]) -> Iterator[str]:
    annotations = backup["metadata"].get("annotations", {})
    if MARK not in annotations:
        return
    for name in backup["spec"].get("includedNamespaces", ()):
        slot = (annotations[MARK], name, annotations[SLOT])
        if slot in slots:
            yield " ".join(slot)
        slots.add(slot)


def _left(
    present: dict[str, dict[str, dict[str, Any]]],
    since: dict[tuple[str, str], datetime],
    may_leave: dict[str, datetime],
    at: datetime,
) -> Iterator[str]:
    members = Counter(
        name for row in present["schedule"].values() for name in row["spec"]["template"].get("includedNamespaces", ())
    )
    known = set()
    for name, namespace in present["namespace"].items():
        identity = name, namespace["metadata"]["uid"]
        known.add(identity)
        if _is_exempt(namespace, at):
            may_leave[name] = at
        if members[name]:
            since.setdefault(identity, at)
        elif identity in since:
            is_old = at - since.pop(identity) > GRACE
            was_exempt = name in may_leave and at - may_leave[name] <= GRACE
            if is_old and not was_exempt and "deletionTimestamp" not in namespace["metadata"]:
                yield f"{name} at {at.isoformat()}"
    for identity in since.keys() - known:
        del since[identity]


def _is_exempt(namespace: dict[str, Any], at: datetime) -> bool:
    labels = namespace["metadata"].get("labels") or {}
    annotations = namespace["metadata"].get("annotations") or {}
    if labels.get(EXCLUDE) == "true":
        return True
    until = annotations.get(UNTIL) or "2000-01-01T00:00:00Z"
    return labels.get(LABEL) == "none" and bool(annotations.get(REASON)) and datetime.fromisoformat(until) > at


@contextmanager
def recording(cluster: Cluster, kind: str, into: list[Version]) -> Iterator[None]:
    """Record every change of a kind from one watch."""
    path = PATHS[kind]
    present = cluster.collection(path)
    into += [_version(kind, item, is_deleted=False) for item in present["items"]]
    where = urlsplit(cluster.server)
    wire = http.client.HTTPSConnection(where.hostname or "", where.port, context=cluster.site.admin_trust, timeout=60)
    version = present["metadata"]["resourceVersion"]
    wire.request("GET", f"{path}?watch=true&resourceVersion={version}&timeoutSeconds=36000")
    stream = wire.getresponse()
    assert wire.sock is not None  # noqa: S101 - the request has opened it
    wire.sock.settimeout(None)

    def read() -> None:
        with suppress(OSError, http.client.HTTPException, ValueError):  # it is shut down in the end
            for line in stream:
                event = json.loads(truncate_depth(line))
                into.append(_version(kind, event["object"], is_deleted=event["type"] == "DELETED"))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        with suppress(OSError):
            wire.sock.shutdown(socket.SHUT_RDWR)
        reader.join()
        wire.close()


def _version(kind: str, item: dict[str, Any], *, is_deleted: bool) -> Version:
    return Version(int(item["metadata"]["resourceVersion"]), kind, is_deleted, item, now())


class Crowd:
    """People and tools that change what namespaces and classes say."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._chance = random.Random(seed)  # noqa: S311 - to spread, not to hide
        self.changes = 0

    def classify(self, name: str, **spec: object) -> None:
        """Write a class."""
        body = {"schedule": "* * * * *", "template": {"snapshotVolumes": False, "ttl": "24h"}, **spec}
        kind = {"apiVersion": "foresail.dev/v1alpha1", "kind": "ProtectionClass", "metadata": {"name": name}}
        self._apply({**kind, "spec": body})

    def change(self) -> None:
        """Change something."""
        self.changes += 1
        chance = self._chance
        name = f"team-{chance.randrange(12)}"
        match chance.choice(("ask", "ask", "ask", "ask", "exempt", "drop", "class", "exclude")):
            case "ask":
                asked = chance.choice(("gold", "silver", "gold", "silver", "glod", "none", ""))
                self._write(name, {LABEL: asked or None}, {REASON: None, UNTIL: None})
            case "exempt":
                until = datetime.now(UTC) + timedelta(seconds=chance.randrange(5, 300))  # noqa: TID251 - real time
                self._write(name, {LABEL: "none"}, {REASON: "a test", UNTIL: f"{until:%Y-%m-%dT%H:%M:%SZ}"})
            case "drop":
                self._try("delete", "namespace", name, "--wait=false", "--ignore-not-found")
            case "exclude":
                self._write(name, {EXCLUDE: chance.choice(("true", None))}, {})
            case _:
                size = chance.randrange(1, 5)
                broken = {"schedule": "no expression"} if chance.random() < 0.2 else {}
                self.classify(chance.choice(("gold", "silver")), namespacesPerBackup=size, **broken)

    def _write(self, name: str, labels: dict[str, str | None], annotations: dict[str, str | None]) -> None:
        self._try("create", "namespace", name)
        patch = json.dumps({"metadata": {"labels": labels, "annotations": annotations}})
        self._try("patch", "namespace", name, "--type=merge", f"--patch={patch}")

    def _apply(self, body: dict[str, Any]) -> None:
        self._cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=json.dumps(body))

    def _try(self, *words: str) -> None:
        with suppress(TestbedError):  # it exists, or is being deleted
            self._cluster.kubectl(*words)


def prepare(cluster: Cluster) -> None:
    """Install both charts with protection."""
    for chart, switch in (("foresail-crds", ""), ("foresail", "--set=protection.enabled=true")):
        command = [str(program("helm", "helm")), "template", "foresail", str(_CHARTS / chart), "--namespace=velero"]
        text = subprocess.run([*command, *filter(None, [switch])], capture_output=True, text=True, check=True).stdout
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=text)
        cluster.wait_for_kinds()
    cluster.restart_velero("schedule")


def lived(cluster: Cluster, folder: Path, changes: int, kills: int, seed: int) -> dict[str, Any]:
    """Change and kill so often, then let everything settle, and judge what was recorded."""
    chance = random.Random(seed + 1)  # noqa: S311 - to spread, not to hide
    versions: list[Version] = []
    crowd = Crowd(cluster, seed)
    crowd.classify("gold", namespacesPerBackup=3)
    crowd.classify("silver", namespacesPerBackup=2)
    operators = [Operator(cluster, folder, *PROTECTION), Operator(cluster, folder, "--record-namespaces")]
    deaths: Counter[str] = Counter()
    with ExitStack() as stack:
        for kind in PATHS:
            stack.enter_context(recording(cluster, kind, versions))
        for each in operators:
            stack.callback(each.kill)
            each.start()
        for number in range(kills):
            while crowd.changes * kills < changes * (number + 1):
                crowd.change()
                time.sleep(chance.uniform(0.0, 0.5))
            victim = operators[chance.random() < 0.25]
            is_aimed = chance.random() < 0.5
            victim.kill()
            side, count = chance.choice(("before", "after")), chance.randrange(1, 6)
            process = victim.begin(**({VARIABLE: f"{side}:{count}"} if is_aimed else {}))
            crowd.change()
            deadline = time.monotonic() + (AIM_SECONDS if is_aimed else chance.uniform(0.0, 3.0))
            while process.poll() is None and time.monotonic() < deadline:
                if is_aimed and victim.said("became leader"):
                    crowd.change()  # so that there is something to write
                time.sleep(0.05)
            deaths["at_a_write" if process.poll() is not None else "at_random"] += 1
            victim.kill()
            victim.begin()
            print(f"{number + 1} of {kills} kills, {crowd.changes} changes, {len(versions)} versions", flush=True)
        time.sleep(60)
    found = judged(versions)
    for text in (*found.unprotected, *found.doubled):
        print(f"wrong: {text}")
    return {
        "changes": crowd.changes,
        "kills": kills,
        **deaths,
        "versions": found.versions,
        "backups": len({each.name for each in versions if each.kind == "backup"}),
        "unprotected": len(found.unprotected),
        "doubled": len(found.doubled),
    }


def main() -> int:
    """Bring up a cluster, change and kill so often on it, and print what was found; 0 if all is right."""
    parser = argparse.ArgumentParser(prog="python -m bench.protection_kills", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="part of the 500 changes and 200 kills")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.create(f"protection-kills-{os.getpid()}", Options(velero="velero"), owned=True) as cluster,
    ):
        prepare(cluster)
        changes, kills = (max(round(each * args.size), 1) for each in (CHANGES, KILLS))
        figures = lived(cluster, Path(folder), changes, kills, args.seed)
    print(json.dumps({**figures, "seconds": round(time.monotonic() - began)}))
    return int(bool(figures["unprotected"] or figures["doubled"]))


if __name__ == "__main__":
    sys.exit(main())
