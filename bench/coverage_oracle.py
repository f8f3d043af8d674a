"""Compares what coverage says of random Backup specs with the archives that real Velero writes: `make coverage-oracle`.

The last line is JSON: `specs` and `differences`, with the items that were compared and the specs of each second.
"""

import gzip
import json
import os
import re
import shutil
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec

from bench.coverage_worlds import EXCLUDE, MARK, POLICIES, VELERO, Document, Objects, Specs, definitions, namespaces
from bench.seeds import read_seeds, seed_parser
from foresail.api.specs import BackupSpec
from foresail.scope.covered import Namespaces, Scope, covered, scope_of
from foresail.scope.discovery import CLAIMS, PODS, VOLUMES, Discovery, kinds_of
from foresail.scope.releases import LATEST, Release
from foresail.scope.resource_policies import Policies, PolicyError, config_map_of, policies_of
from foresail.scope.volumes import BackedUp, pod_volumes, why_no_snapshot
from foresail.scope.world import ItemKey, World, claims_of, world_of
from testbed import Cluster, Options
from testbed.api import Answer, request

SPECS = 10_000
RELEASES = {"1.18": ("velero", Release.V1_18), "1.17": ("velero-1.17", Release.V1_17)}
EPOCH = 50
"""So many specs see the same labels of namespaces; between them, two namespaces get or lose the exclusion label."""

_AT_ONCE = 4
_PAUSE = 0.15
_LONG = 5.0
"""A Backup that takes longer may be one on which Velero has crashed: its log tells."""

_FINE = (("DELETE", HTTPStatus.NOT_FOUND), ("POST", HTTPStatus.CONFLICT))
_BACKUPS = "/apis/velero.io/v1/namespaces/velero/backups"
_ENDED = ("Completed", "PartiallyFailed", "Failed", "FailedValidation")
_ITEM = re.compile(r"resources/(?P<kind>[^/]+)/(?:namespaces/(?P<namespace>[^/]+)|cluster)/(?P<name>[^/]+)\.json")
_POD_VOLUMES = re.compile(r"pod (?P<namespace>[^/ ]+)/(?P<name>\S+) has volumes to backup: \[(?P<volumes>[^\]]*)\]")
_SKIPPED = re.compile(r'Summary for skipped PVs: (?P<json>.*?)" (?:backup|logSource)=')
_CRASH = re.compile(r'msg="Observed a panic" .*? name=(?P<name>\S+) ')
_NO_SNAPSHOTTER = "no applicable volumesnapshotter found"
_VOLATILE = ("backups.velero.io", "events", "events.events.k8s.io", "leases.coordination.k8s.io")


@dataclass
class Score:
    """What the comparison has found so far."""

    specs: int = 0
    items: int = 0
    volumes: int = 0
    refused: int = 0
    crashes: int = 0
    differences: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """What Velero did: whether it ran the spec, what is in the archive, and how it saved which claims."""

    is_refused: bool
    is_crash: bool = False
    items: frozenset[ItemKey] = frozenset()
    pod_volumes: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    snapshots: frozenset[str] = frozenset()
    reason: str = ""


class Server:
    """The API server of a cluster, and Velero's bucket."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.paths: dict[str, str] = {}
        self.has_queue = cluster.site.options.velero == VELERO  # since 1.18

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request and raise if it fails."""
        answer = request(method, self.cluster.server + path, self.cluster.site.admin_trust, body)
        if answer.code >= HTTPStatus.MULTIPLE_CHOICES and (method, answer.code) not in _FINE:
            raise RuntimeError(f"{method} {path}: {answer.text[:500]}")
        return answer

    def discovery(self) -> Discovery:
        """Return the kinds as Velero's discovery has them: the preferred version of each."""
        lists = [("", self._resources("", "/api/v1"))]
        for group in self.ask("GET", "/apis").json()["groups"]:
            preferred = group["preferredVersion"]["groupVersion"]
            versions = [preferred, *(each["groupVersion"] for each in group["versions"])]
            known: set[str] = set()
            for version in dict.fromkeys(versions):
                found = self._resources(group["name"], f"/apis/{version}", known)
                known |= {str(each["name"]) for each in found}
                lists.append((group["name"], found))
        return kinds_of(lists)

    def _resources(self, group: str, path: str, known: set[str] | None = None) -> list[Document]:
        found = [each for each in self.ask("GET", path).json()["resources"] if each["name"] not in (known or ())]
        for each in found:
            self.paths[f"{each['name']}.{group}" if group else each["name"]] = f"{path}/{each['name']}"
        return found

    def world(self, discovery: Discovery) -> World:
        """Return all objects of the kinds that Velero backs up."""
        return world_of(discovery, self.objects(discovery))

    def objects(self, discovery: Discovery) -> Iterator[tuple[str, Document]]:
        """Yield the objects with their kinds; there is always a Backup: the one that runs."""
        for kind in discovery.kinds:
            for each in self.cluster.listed(self.paths[kind.full_name]):
                yield kind.full_name, each
        yield "backups.velero.io", {"metadata": {"namespace": VELERO, "name": "any"}}

    def create(self, objects: Sequence[Document]) -> None:
        """Create objects of one round, several at a time."""
        with ThreadPoolExecutor(4) as pool:
            failed = [each for each in pool.map(self._create, objects) if each]
        if failed:
            raise RuntimeError("\n".join(failed))

    def _create(self, body: Document) -> str:
        group, _, version = body["apiVersion"].rpartition("/")
        plural = {"Endpoints": "endpoints", "Ingress": "ingresses", "NetworkPolicy": "networkpolicies"}
        kind = body["kind"]
        name = plural.get(kind) or (f"{kind.lower()}es" if kind.endswith("ss") else f"{kind.lower()}s")
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        if namespace := body["metadata"].get("namespace"):
            path += f"/namespaces/{namespace}"
        if kind == "Event":
            body["metadata"]["name"] = f"{MARK}-{body['metadata']['name']}"
        try:
            self.ask("POST", f"{path}/{name}", body)
        except RuntimeError as error:
            return str(error)
        return ""


def prepare(server: Server) -> Discovery:
    """Make the world, and start Velero again so that it knows all kinds."""
    cluster = server.cluster
    server.create(definitions())
    cluster.wait_for_kinds()
    server.create(namespaces())
    discovery = server.discovery()
    specs = Specs(discovery)
    server.create(
        [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"policy-{number}", "namespace": VELERO},
             "data": {"policy": specs.policy(number)}}
            for number in range(POLICIES)
        ]
    )  # fmt: skip
    objects = Objects()
    server.create(objects.cluster)
    _wait(lambda: len(_accounts(server)) >= len(namespaces()))
    server.create(objects.namespaced)
    for namespace, name in objects.running:
        _patch(
            cluster, "pod", name, {"status": {"phase": "Running"}}, f"--namespace={namespace}", "--subresource=status"
        )
    _leaving(server)
    _speed_up(cluster)
    _settle(server, discovery)
    return discovery


def _accounts(server: Server) -> list[Document]:
    names = {each["metadata"]["name"] for each in namespaces()}
    found = server.cluster.listed("/api/v1/serviceaccounts")
    return [each for each in found if each["metadata"]["name"] == "default" and each["metadata"]["namespace"] in names]


def _patch(cluster: Cluster, kind: str, name: str, patch: Document, *more: str) -> None:
    cluster.kubectl("patch", kind, name, "--type=merge", f"--patch={json.dumps(patch)}", *more)


def _leaving(server: Server) -> None:
    """Make a namespace that is being deleted, and an object of another one that is."""
    server.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leaving"}}])
    for namespace in ("leaving", "alpha-0"):
        about = {"name": "leaving", "namespace": namespace, "finalizers": ["shop.example/never"]}
        server.create([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}])
        server.ask("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/leaving")
    server.ask("DELETE", "/api/v1/namespaces/leaving")


def _speed_up(cluster: Cluster) -> None:
    """Let Velero ask the API server as often as it likes, and start it again."""
    deployment = cluster.get("deployment", "velero", "--namespace=velero")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    arguments = [*container["args"], "--client-qps=2000", "--client-burst=2000", "--backup-sync-period=24h"]
    if cluster.site.options.velero == VELERO:
        arguments.append(f"--concurrent-backups={_AT_ONCE}")
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": arguments}]
    cluster.kubectl(
        "patch", "deployment", "velero", "--namespace=velero", "--type=json", f"--patch={json.dumps(patch)}"
    )
    cluster.fault.restart("velero")


def _settle(server: Server, discovery: Discovery) -> None:
    """Wait until the controllers have made what they make of the world."""
    last: object = None

    def is_settled() -> bool:
        nonlocal last
        now = {_comparable(each.key) for each in server.world(discovery).items}
        pending = [each for each in server.cluster.listed("/api/v1/persistentvolumeclaims")
                   if each["spec"].get("volumeName") and each["status"]["phase"] != "Bound"]  # fmt: skip
        is_same, last = now == last, now
        return is_same and not pending

    _wait(is_settled, pause=3)


def _wait(holds: Any, seconds: float = 120, pause: float = 0.5) -> None:  # noqa: ANN401
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError("the cluster does not settle")
        time.sleep(pause)


def mark(cluster: Cluster, *, is_excluded: bool) -> None:
    """Give two namespaces the exclusion label, or take it from them."""
    for name in ("beta-1", "gamma-2"):
        labels = EXCLUDE if is_excluded else dict.fromkeys(EXCLUDE)
        _patch(cluster, "namespace", name, {"metadata": {"labels": labels}})


def outcomes(server: Server, specs: Sequence[tuple[str, Document]]) -> Iterator[Outcome]:
    """Let Velero run these specs, several at a time, and yield in their order what came of each."""
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        yield from pool.map(lambda each: _run(server, *each), specs)
    finally:  # Ctrl-C waits for those that run, not for all
        pool.shutdown(cancel_futures=True)


def _run(server: Server, name: str, spec: Document) -> Outcome:
    about = {"name": name, "namespace": VELERO}
    body: Document = {"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": about, "spec": spec}
    if server.has_queue:
        # Velero's queue runs Backups with common namespaces one after another. Their scope does not depend on it.
        body["status"] = {"phase": "ReadyToStart"}
    made = server.ask("POST", _BACKUPS, body).json()
    if server.has_queue:  # Velero starts such a Backup when it is changed
        made["metadata"]["annotations"] = {"shop.example/start": "now"}
        server.ask("PUT", f"{_BACKUPS}/{name}", made)
    began = time.monotonic()
    while True:
        time.sleep(_PAUSE)
        status: Document = server.ask("GET", f"{_BACKUPS}/{name}").json().get("status") or {}
        if status.get("phase") in _ENDED:
            return _outcome(server, name, status)
        if time.monotonic() > began + _LONG:
            if _has_crashed(server, name):
                return Outcome(is_refused=True, is_crash=True, reason="Velero crashed")
            began = time.monotonic()


def _has_crashed(server: Server, name: str) -> bool:
    with server.cluster.log("velero").open(errors="replace") as lines:
        return any((found := _CRASH.search(each)) and found["name"] == name for each in lines)


def _outcome(server: Server, name: str, status: Document) -> Outcome:
    folder = server.cluster.site.bucket / "backups" / name
    reason = "; ".join([*status.get("validationErrors", []), status.get("failureReason", "")])
    if not (folder / f"{name}.tar.gz").exists():
        found = Outcome(status["phase"] == "FailedValidation", reason=f"{status['phase']}: {reason}")
    else:
        found = _read(folder, name, status["phase"])
    return found


def delete(server: Server, names: Iterable[str]) -> None:
    """Delete Backups that ended a while ago: one that Velero finalizes twice would block it for ten minutes."""
    for name in names:
        shutil.rmtree(server.cluster.site.bucket / "backups" / name, ignore_errors=True)
        server.ask("DELETE", f"{_BACKUPS}/{name}")


def _read(folder: Any, name: str, phase: str) -> Outcome:  # noqa: ANN401
    items: set[ItemKey] = set()
    with tarfile.open(folder / f"{name}.tar.gz") as archive:
        for each in archive:
            if found := _ITEM.fullmatch(each.name):
                items.add(ItemKey(found["kind"], found["namespace"] or "", found["name"]))
    log = gzip.decompress((folder / f"{name}-logs.gz").read_bytes()).decode(errors="replace")
    volumes = {(each["namespace"], each["name"]): each["volumes"].split() for each in _POD_VOLUMES.finditer(log)}
    skipped: list[Document] = []
    if summary := _SKIPPED.search(log):
        skipped = json.loads(summary["json"].replace('\\"', '"').replace("\\\\", "\\")) or []
    asked = {each["name"] for each in skipped if any(reason["reason"] == _NO_SNAPSHOTTER for reason in each["reasons"])}
    return Outcome(
        is_refused=False, items=frozenset(items), pod_volumes=volumes, snapshots=frozenset(asked), reason=phase
    )


def compare(score: Score, name: str, spec: Document, world: "Bodies", outcome: Outcome) -> None:
    """Count what differs between coverage and Velero for one spec."""
    score.specs += 1
    score.refused += outcome.is_refused and not outcome.is_crash
    score.crashes += outcome.is_crash
    typed = msgspec.convert(spec, BackupSpec)
    found: list[str] = []
    try:
        policies = world.policy(typed)
        scope = scope_of(typed, world.items.discovery, Namespaces.of(world.items.namespaces), policies, world.release)
        expected, is_refused = covered(typed, world.items, policies, world.release), bool(scope.refused)
    except PolicyError:
        policies, scope, expected, is_refused = None, None, frozenset(), True
    if is_refused != outcome.is_refused:
        found.append(f"refused {is_refused}, by Velero {outcome.is_refused} ({outcome.reason})")
    if scope is not None and not is_refused:
        chosen = {key: world.file_system(scope, key, policies) for key in expected if key.kind == PODS}
        failed = {key for key, volumes in chosen.items() if volumes and world.is_running(key)}
        expected -= failed  # there is no node agent, so Velero fails to back up these pods
        # Velero also judges the volumes of pods that it then fails to back up
        logged = {key: outcome.pod_volumes[key[1:]] for key in chosen if key[1:] in outcome.pod_volumes}
        found += _pairs("volumes of", {key: volumes for key, volumes in chosen.items() if volumes}, logged)
        asked = world.snapshots(typed, outcome.items, covered(typed, world.items, policies, world.release), policies)
        found += _pairs("snapshot of", asked, {key: key.name in outcome.snapshots for key in asked})
        score.volumes += len(logged) + len(asked)
    ours, theirs = set(map(_comparable, expected)) - {None}, set(map(_comparable, outcome.items)) - {None}
    score.items += len(theirs)
    found += [f"only ours: {each}" for each in sorted(map(str, ours - theirs))[:5]]
    found += [f"only Velero's: {each}" for each in sorted(map(str, theirs - ours))[:5]]
    if found:
        score.differences.append(f"{name}: {json.dumps(spec)}\n    " + "\n    ".join(found) + f"\n    {outcome.reason}")


def _pairs(what: str, ours: Mapping[ItemKey, object], theirs: Mapping[ItemKey, object]) -> list[str]:
    keys = [key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key)]
    return [f"{what} {'/'.join(key)}: ours {ours.get(key)}, Velero's {theirs.get(key)}" for key in keys[:5]]


def _comparable(key: ItemKey) -> ItemKey | None:
    """Return an item as it is compared: those that come and go at any time are not."""
    if key.kind in _VOLATILE and not key.name.startswith(MARK):
        return None if key.kind != "backups.velero.io" else ItemKey(key.kind, key.namespace, "any")
    return key


class Bodies:
    """The world with the bodies of what decides about volumes."""

    def __init__(self, server: Server, discovery: Discovery, release: Release) -> None:
        objects = list(server.objects(discovery))
        self.release = release
        self.items = world_of(discovery, objects)
        self.bodies = {
            ItemKey(kind, each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
            for kind, each in objects
            if kind in (CLAIMS, PODS, VOLUMES)
        }
        self._policies = {
            each["metadata"]["name"]: each["data"]
            for each in server.cluster.listed(f"/api/v1/namespaces/{VELERO}/configmaps")
            if each["metadata"]["name"].startswith("policy-")
        }

    def policy(self, spec: BackupSpec) -> Policies | None:
        """Return the resource policy of a spec."""
        name = config_map_of(spec)
        return policies_of(self._policies.get(name), self.release) if name else None

    def is_running(self, pod: ItemKey) -> bool:
        """Whether a pod runs."""
        return bool(self.bodies[pod]["status"].get("phase") == "Running")

    def file_system(self, scope: Scope, key: ItemKey, policies: Policies | None) -> list[str]:
        """Return the volumes of a pod that Velero chooses for file-system backup."""
        pod = self.bodies[key]
        names = pod_volumes(scope.spec, pod, self._claims(key.namespace), policies)
        claims = scope.discovery.resolve(CLAIMS)
        if claims is not None and scope.kinds.includes(claims):
            return names
        mounted = {each["name"] for each in pod["spec"]["volumes"] if "persistentVolumeClaim" in each}
        return [each for each in names if each not in mounted]

    def _claims(self, namespace: str) -> dict[str, tuple[Document, Document | None]]:
        return {
            key.name: (body, self.bodies.get(ItemKey(VOLUMES, "", body["spec"].get("volumeName", ""))))
            for key, body in self.bodies.items()
            if key.kind == CLAIMS and key.namespace == namespace
        }

    def snapshots(
        self, spec: BackupSpec, archived: frozenset[ItemKey], items: frozenset[ItemKey], policies: Policies | None
    ) -> dict[ItemKey, bool]:
        """Return whether Velero asks for a snapshot of each volume, of the claims in the archive and in our items."""
        found: dict[ItemKey, bool] = {}
        for key in archived & items:
            if key.kind != CLAIMS:
                continue
            claim, volume = self._claims(key.namespace)[key.name]
            volume_key = ItemKey(VOLUMES, "", claim["spec"].get("volumeName", ""))
            if volume is None:
                continue
            pods = [self.bodies[each] for each in self.bodies if each.kind == PODS and each.namespace == key.namespace]
            mounting = [each for each in pods if key.name in claims_of(each)]
            backed_up = BackedUp(mounting, volume_key in items)
            found[volume_key] = not why_no_snapshot(spec, claim, volume, mounting, policies, backed_up, has_csi=False)
        return found


def run(cluster: Cluster, seeds: range, release: Release = LATEST, *, is_loud: bool = True) -> Score:
    """Compare the specs of these seeds."""
    server, score = Server(cluster), Score()
    discovery = prepare(server)
    random_specs = Specs(discovery)
    began = time.monotonic()
    earlier: list[str] = []
    for first in range(seeds.start, seeds.stop, EPOCH):
        mark(cluster, is_excluded=(first // EPOCH) % 2 == 1)
        os.truncate(cluster.log("velero"), 0)  # of all specs, it has gigabytes
        world = Bodies(server, discovery, release)
        chunk = [(f"spec-{seed}", random_specs.spec(seed)) for seed in range(first, min(first + EPOCH, seeds.stop))]
        for (name, spec), outcome in zip(chunk, outcomes(server, chunk), strict=True):
            before = len(score.differences)
            compare(score, name, spec, world, outcome)
            for each in score.differences[before:]:
                print(each, file=sys.stderr, flush=True)
        delete(server, earlier)
        earlier = [name for name, _ in chunk]
        if is_loud:
            rate = score.specs / (time.monotonic() - began)
            print(f"{score.specs} specs, {len(score.differences)} differ, {rate:.1f}/s", file=sys.stderr, flush=True)
    return score


def main() -> int:
    """Run the specs, and print the figures as JSON on the last line."""
    parser = seed_parser(__doc__)
    parser.add_argument("--velero", choices=RELEASES, default="1.18")
    options = read_seeds(SPECS, parser)
    velero = options.args.velero
    component, release = RELEASES[velero]
    with Cluster.create(f"coverage-oracle-{os.getpid()}", Options(velero=component), owned=True) as cluster:
        began = time.monotonic()
        score = run(cluster, options.seeds, release)
        seconds = time.monotonic() - began
    figures = {
        "specs": score.specs,
        "differences": len(score.differences),
        "velero": velero,
        "items": score.items,
        "volumes": score.volumes,
        "refused": score.refused,
        "crashes": score.crashes,
        "seconds": round(seconds),
        "specs_per_second": round(score.specs / seconds, 2),
    }
    print(json.dumps(figures))
    return 1 if score.differences else 0


if __name__ == "__main__":
    sys.exit(main())
