"""Compares plans of rollbacks with what the Rollbacks then do, on random worlds: `make rollback-plan-oracle`.

A team with `edit` in its namespace backs it up, changes it, asks for the plan, and runs the command that the plan ends
with. What every object is afterwards is judged here by what the API server had at the backup and before the Rollback.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.plan_objects import RESOURCES, WIDGETS, Document
from bench.plan_setup import wait
from bench.rollback_worlds import RollbackWorld, random_rollback, resource_of
from bench.seeds import read_seeds, seed_parser
from testbed import Cluster, Options
from tests.cluster import operators, rollbacks, tenants
from tests.cluster.tenants import Tenant

WORLDS = 100
_WORLDS_AT_ONCE = 5
_BACKUP, _NAME = "before", "back"
_NEVER_LISTED = ("customresourcedefinitions", "priorityclasses", "namespaces", "endpointslices", "controllerrevisions")
_KINDS = tuple(
    resource for resource in (*RESOURCES.values(), "daemonsets.apps") if resource.partition(".")[0] not in _NEVER_LISTED
)
"""All kinds with a namespace that a world may have, but for what only controllers make."""

_CHANGING = ("endpoints",)
"""Written by controllers all the time."""

_MARKS = ("velero.io/", "deployment.kubernetes.io/", "deprecated.daemonset.template.generation")
_OF_THE_CLUSTER = ("clusterIP", "clusterIPs", "healthCheckNodePort")
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - a type
_DRY = ("--dry-run", "--timeout=5m")
_ABSENT = object()
Item = tuple[str, str]
State = dict[Item, Document]


# What the plan says


@dataclass(frozen=True)
class Said:
    """A plan, as a team reads it."""

    created: frozenset[Item] = frozenset()
    changed: Mapping[Item, tuple[str, ...]] = field(default_factory=dict)
    """With the fields; a last one of "…" if not all of them are shown."""
    added_to: Mapping[Item, tuple[str, ...]] = field(default_factory=dict)
    """ServiceAccounts, with the fields."""
    refused: frozenset[Item] = frozenset()
    deleted: frozenset[Item] = frozenset()
    kept: frozenset[Item] = frozenset()
    restored: frozenset[str] = frozenset()
    """Kinds that come back and are not compared."""
    unchanged: int = 0
    command: tuple[str, ...] = ()
    in_the_way: str = ""


_MORE = re.compile(r"(.*) and \d+ more$")


def read_plan(out: str, err: str) -> Said:
    """Return what the output of a dry run says."""
    rows = [re.split(r"\s{2,}", line.rstrip()) for line in out.splitlines()[1:] if line.strip()]
    by_word: dict[str, list[list[str]]] = {}
    for word, *rest in rows:
        by_word.setdefault(word, []).append(rest)
    command = re.search(r"foresail (rollback create .* --wait)$", err, re.MULTILINE)
    unchanged = [rest[0].split()[0] for rest in by_word.get("unchanged", [])]
    return Said(
        created=_items(by_word, "create"),
        changed={_item(rest[0]): _fields(rest[1:]) for rest in by_word.get("change", [])},
        added_to={_item(rest[0]): _fields(rest[1:]) for rest in by_word.get("add to", [])},
        refused=_items(by_word, "cannot be changed back"),
        deleted=_items(by_word, "delete"),
        kept=_items(by_word, "keep, not in the backup"),
        restored=frozenset(_resource(rest[0]) for rest in by_word.get("restore, not compared", [])),
        unchanged=int(unchanged[0]) if unchanged else 0,
        command=tuple(shlex.split(command[1])) if command else (),
        in_the_way=err if "cannot begin" in err else "",
    )


def _items(by_word: Mapping[str, list[list[str]]], word: str) -> frozenset[Item]:
    return frozenset(_item(rest[0]) for rest in by_word.get(word, []))


def _item(text: str) -> Item:
    resource, _, name = text.partition("/")
    return resource, name


def _fields(rest: list[str]) -> tuple[str, ...]:
    text = rest[0] if rest else ""
    more = _MORE.match(text)
    return (*(more[1] if more else text).split(", "), *(("…",) if more else ()))


def _resource(word: str) -> str:
    """Return the resource of Kind.group or plural.group."""
    kind = word.partition(".")[0]
    return RESOURCES.get(kind, "daemonsets.apps" if kind == "DaemonSet" else word)


# What happens


def observed(cluster: Cluster, namespace: str) -> State:
    """Return every object of a namespace that no controller has made, in the order of their kinds."""
    found = {}
    for body in cluster.get(",".join(_KINDS), f"--namespace={namespace}")["items"]:
        metadata = body["metadata"]
        is_made = any(each.get("controller") for each in metadata.get("ownerReferences", []))
        if not is_made and "deletionTimestamp" not in metadata and resource_of(body) not in _CHANGING:
            found[resource_of(body), metadata["name"]] = body
    return found


def settled(cluster: Cluster, namespace: str) -> State:
    """Return the objects of a namespace once nothing changes any more."""
    last = observed(cluster, namespace)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(1.5)
        now = observed(cluster, namespace)
        if {item: exact(body) for item, body in now.items()} == {item: exact(body) for item, body in last.items()}:
            return now
        last = now
    raise TimeoutError(f"namespace {namespace} does not settle")


def exact(body: Document) -> Document:
    """Return what must stay if nothing touches an object: all but what Velero and controllers note."""
    found = {name: value for name, value in body.items() if name != "status"}
    metadata = body["metadata"]
    found["metadata"] = {
        "labels": _own(metadata.get("labels", {})),
        "annotations": _own(metadata.get("annotations", {})),
        "owners": metadata.get("ownerReferences", []),
        "finalizers": metadata.get("finalizers", []),
    }
    if body.get("type") == _TOKEN:
        found["data"] = sorted(body.get("data", {}))  # Velero restores no token, so Kubernetes issues another one
    return found


def _own(words: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in words.items() if not name.startswith(_MARKS)}


def written(body: Document) -> Document:
    """Return what a team has written into an object: without owners, and without what the cluster assigns."""
    found = exact(body)
    metadata = found["metadata"]
    found["metadata"] = {"labels": metadata["labels"], "annotations": metadata["annotations"]}
    if body["kind"] == "Service":
        spec = {name: value for name, value in body["spec"].items() if name not in _OF_THE_CLUSTER}
        spec["ports"] = [{name: value for name, value in each.items() if name != "nodePort"} for each in spec["ports"]]
        found["spec"] = {**spec, "isHeadless": body["spec"].get("clusterIP") == "None"}
    if body.get("type") == _TOKEN:
        found.pop("data", None)
        found["metadata"]["annotations"].pop("kubernetes.io/service-account.uid", None)
    return found


def differing(one: Any, other: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON is any
    """Yield the paths of values that differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in {*one, *other}:
            below = f"{path}.{name}" if path else name
            yield from differing(one.get(name, _ABSENT), other.get(name, _ABSENT), below)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from differing(*pair, f"{path}[{index}]")
    elif one != other:
        yield path


# The judgement


@dataclass
class Score:
    """What the comparison has found so far."""

    worlds: int = 0
    items: int = 0
    mispredicted: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Lived:
    """A world with its plan, and its objects at the backup, before the Rollback and after it."""

    world: RollbackWorld
    said: Said
    backup: State
    before: State
    after: State
    phase: str
    message: str
    seconds: float


def judge(score: Score, lived: Lived) -> None:
    """Count what the plan said of each object against what happened."""
    score.worlds += 1
    score.seconds.append(lived.seconds)
    expected = ("Refused", "Undone") if lived.said.in_the_way else ("Completed",)
    score.outcomes["in the way"] += bool(lived.said.in_the_way)
    if lived.phase not in expected:
        problem = f"{lived.phase}, not {' or '.join(expected)}: {lived.message}"
        score.mispredicted.append(f"{lived.world.namespace}: {problem}")
    for item in sorted({*lived.backup, *lived.before, *lived.after}):
        score.items += 1
        outcome, problem = verdict(lived, item)
        score.outcomes[outcome] += 1
        if problem:
            score.mispredicted.append(f"{lived.world.namespace}: {'/'.join(item)}: planned {outcome}: {problem}")
    named = sum(item in lived.backup for item in lived.before if _is_counted(lived, item))
    if not lived.said.in_the_way and named != lived.said.unchanged:
        text = f"planned {lived.said.unchanged} unchanged, and {named} objects are"
        score.mispredicted.append(f"{lived.world.namespace}: {text}")


_COMPARED = frozenset(
    (
        *("configmaps", "services", "serviceaccounts", "deployments.apps", "statefulsets.apps", "daemonsets.apps"),
        *("cronjobs.batch", "ingresses.networking.k8s.io"),
        *("horizontalpodautoscalers.autoscaling", "poddisruptionbudgets.policy"),
    )
)
"""The kinds that a plan compares object by object; a policy leaves NetworkPolicies out unless it says otherwise."""


def _is_counted(lived: Lived, item: Item) -> bool:
    said, only = lived.said, _only(lived.world)
    is_chosen = only is None or item[0] in only
    is_said = item in said.changed or item in said.added_to or item in said.refused
    return item[0] in _COMPARED and is_chosen and not is_said


_SHORT = {"hpa": "horizontalpodautoscalers.autoscaling"}


def _only(world: RollbackWorld) -> frozenset[str] | None:
    """Return the resources in --only; None without it."""
    if "--only" not in world.options:
        return None
    words = world.options[world.options.index("--only") + 1].split(",")
    return frozenset(
        _SHORT.get(word, next((each for each in _KINDS if each.partition(".")[0] == word), word)) for word in words
    )


def verdict(lived: Lived, item: Item) -> tuple[str, str]:
    """Return what the plan said of an object, and what is wrong with that; empty if nothing is."""
    before, after, old = (
        _unscaled(lived, item, state.get(item)) for state in (lived.before, lived.after, lived.backup)
    )
    outcome = "leave" if lived.said.in_the_way else _outcome(lived, item)
    if outcome == "create":
        return outcome, "it existed" if before is not None else _unlike(after, old)
    if outcome == "change":
        fields = lived.said.changed[item]
        return outcome, _changed(fields, lived.before.get(item), lived.backup.get(item)) or _unlike(after, old)
    if outcome == "add":
        return outcome, _added(lived.said.added_to[item], before, after, old)
    if outcome == "restore":
        return outcome, _unlike(after, old)
    if outcome.startswith("delete"):
        return outcome, "it still exists" if after is not None else ""
    return outcome, _touched(before, after, may_be_another=_is_created_again(lived, item))


def _unscaled(lived: Lived, item: Item, body: Document | None) -> Document | None:
    """Return an object without its replicas if an autoscaler sets them, at any time."""
    scaled = {
        (_resource(each["spec"]["scaleTargetRef"]["kind"]), each["spec"]["scaleTargetRef"]["name"])
        for state in (lived.before, lived.after, lived.backup)
        for each in state.values()
        if each["kind"] == "HorizontalPodAutoscaler"
    }
    if body is None or item not in scaled:
        return body
    return {**body, "spec": {name: value for name, value in body["spec"].items() if name != "replicas"}}


def _is_created_again(lived: Lived, item: Item) -> bool:
    """Whether the prune of a Rollback that is undone deletes an object: the undo creates another one, as written."""
    return bool(lived.said.in_the_way) and "--prune" in lived.world.options and item not in lived.backup


def _outcome(lived: Lived, item: Item) -> str:
    said = lived.said
    outcomes = (
        ("create", item in said.created),
        ("change", item in said.changed),
        ("add", item in said.added_to),
        ("refused", item in said.refused),
        ("delete", item in said.deleted),
        ("keep", item in said.kept),
        ("restore", item[0] in said.restored and item in lived.backup),
        ("delete with its owner", _goes_with_its_owner(lived, item)),
    )
    return next((outcome for outcome, is_it in outcomes if is_it), "leave")


def _unlike(after: Document | None, old: Document | None) -> str:
    """Return how an object is not as in the backup."""
    if after is None or old is None:
        return "it does not exist" if after is None else "it is not in the backup"
    fields = sorted(differing(written(after), written(old)))
    return f"it is not as in the backup: {', '.join(fields)}" if fields else ""


def _touched(before: Document | None, after: Document | None, *, may_be_another: bool) -> str:
    """Return how an object is not as it was before; another one in its place needs only what its team has written."""
    if before is None or after is None:
        return "" if before is after else ("it was created" if before is None else "it was deleted")
    is_another = before["metadata"].get("uid") != after["metadata"].get("uid")
    seen = written if is_another and may_be_another else exact
    fields = sorted(differing(seen(after), seen(before)))
    if fields:
        return f"it was changed: {', '.join(fields)}"
    return "it was deleted and created again" if is_another and not may_be_another else ""


def _changed(fields: tuple[str, ...], before: Document | None, old: Document | None) -> str:
    """Return what is wrong with the fields of a plan; an object is never said to change if it is as in the backup."""
    if before is None or old is None:
        return "it did not exist" if before is None else "it is not in the backup"
    real = sorted(differing(written(before), written(old)))
    if not real:
        return f"it was as in the backup, and the plan names {', '.join(fields)}"
    missing = [path for path in real if path != "spec.isHeadless" and not any(map(path.startswith, fields))]
    if missing and "…" not in fields:
        return f"the plan does not name {', '.join(missing)}"
    return ""


def _added(fields: tuple[str, ...], before: Document | None, after: Document | None, old: Document | None) -> str:
    """Return how a ServiceAccount is not as it was with what the backup has beside that."""
    if before is None or after is None or old is None:
        return "it did not exist" if before is None else "it is not in the backup" if old is None else "it was deleted"
    expected, source = written(before), written(old)
    for part in ("labels", "annotations"):
        expected["metadata"][part] = {**source["metadata"][part], **expected["metadata"][part]}
    for part in ("imagePullSecrets", "secrets"):
        now = expected.get(part, [])
        more = [each for each in source.get(part, []) if each["name"] not in {other["name"] for other in now}]
        expected |= {part: [*now, *more]} if more else {}
    wrong = sorted(differing(written(after), expected))
    if wrong:
        return f"it is not as it was with what the backup has: {', '.join(wrong)}"
    missing = [path for path in differing(expected, written(before)) if not any(map(path.startswith, fields))]
    if missing and "…" not in fields:
        return f"the plan does not name {', '.join(missing)}"
    return "" if expected != written(before) else "there was nothing to add"


def _goes_with_its_owner(lived: Lived, item: Item) -> bool:
    """Whether the owner of an object is among what the plan deletes: the garbage collector deletes it too."""
    body = lived.before.get(item)
    owners = body["metadata"].get("ownerReferences", []) if body is not None else []
    return any(("configmaps", owner["name"]) in lived.said.deleted for owner in owners)


# The worlds


def live(cluster: Cluster, world: RollbackWorld) -> Lived:
    """Make a world, back it up, let it change, plan and roll back, and delete it."""
    namespace = world.namespace
    team = tenants.arrive(cluster, namespace, wait)
    _apply(cluster, world, world.objects)
    settled(cluster, namespace)
    team.back_up(_BACKUP, snapshotVolumes=False)
    team.wait(f"nonadminbackup/{_BACKUP}", "--for=jsonpath={.status.veleroBackup.status.phase}=Completed")
    backup = settled(cluster, namespace)
    _change(cluster, world)
    before = settled(cluster, namespace)
    planned = _foresail(team, "rollback", "create", "--to", _BACKUP, *world.options, *_DRY, f"--namespace={namespace}")
    said = read_plan(planned.stdout, planned.stderr)
    if not said.command and not said.in_the_way:
        raise RuntimeError(f"{namespace}: {planned.stdout}{planned.stderr}")
    began, message = time.monotonic(), ""
    if said.in_the_way:
        home = rollbacks.Home(cluster, team)
        only = _only(world)
        chosen = {"only": sorted(only)} if only is not None else {}
        home.ask(_NAME, to=_BACKUP, prune="--prune" in world.options, **chosen)
        wait(lambda: home.phase(_NAME) in rollbacks.ENDED, 600)
    else:
        message = _foresail(team, *said.command[:2], _NAME, *said.command[2:], "--timeout=10m").stderr[-600:]
    seconds = time.monotonic() - began
    status = cluster.get("rollbacks.foresail.dev", _NAME, f"--namespace={namespace}")["status"]
    message = status.get("failure") or message
    after = settled(cluster, namespace)
    lived = Lived(world, said, backup, before, after, status["phase"], message, seconds)
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
    return lived


def _foresail(team: Tenant, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "foresail", *words],
        env={**os.environ, "KUBECONFIG": str(team.kubeconfig), "COLUMNS": "500"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def _apply(cluster: Cluster, world: RollbackWorld, bodies: list[Document]) -> None:
    """Apply objects, those that own others first."""
    uids: dict[str, str] = {}
    for body in sorted(bodies, key=lambda each: each["metadata"]["name"] in world.owners):
        owner = world.owners.get(body["metadata"]["name"], "")
        if owner and owner not in uids:
            made = cluster.get("configmaps", owner, f"--namespace={world.namespace}")
            uids[owner] = made["metadata"]["uid"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uids.get(owner)}
        more = {"ownerReferences": [reference]} if owner else {}
        cluster.apply({**body, "metadata": {**body["metadata"], **more}})


def _change(cluster: Cluster, world: RollbackWorld) -> None:
    """Let everything happen that happens between the backup and the Rollback."""
    for body in (*world.removed, *world.replaced):
        name = f"{resource_of(body)}/{body['metadata']['name']}"
        cluster.kubectl("delete", name, f"--namespace={world.namespace}", "--grace-period=0", "--force")
    _apply(cluster, world, [*world.changed, *world.replaced, *world.added])


@contextmanager
def serving(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Install both charts, let the policy allow everything that a plan needs, and run the operators."""
    cluster.apply(WIDGETS)
    cluster.apply(_may_edit_widgets("rbac.authorization.k8s.io/aggregate-to-edit", "*"))
    cluster.apply(_may_edit_widgets("foresail.dev/aggregate-to-rollback", "deletecollection"))
    cluster.wait_for_kinds()
    cluster.fault.restart("velero")  # so that it knows the kind
    tenants.install(cluster, rollback=True, contents=True)
    rollbacks.allow(cluster)
    patch = json.dumps({"spec": {"downloads": {"contents": "Allowed"}}})
    cluster.kubectl("patch", "selfservicepolicy", "foresail-default", "--type=merge", f"--patch={patch}")
    with ExitStack() as stack:
        for flags in (("--schedules=false", "--self-service"), rollbacks.FLAGS):
            stack.enter_context(operators.running(cluster, folder, *flags))
        yield


def _may_edit_widgets(label: str, verb: str) -> Document:
    """Return the ClusterRole by which an administrator adds a kind to others."""
    rule = {"apiGroups": ["shop.example"], "resources": ["widgets"], "verbs": [verb]}
    about = {"name": f"widgets-{label.partition('/')[2]}", "labels": {label: "true"}}
    api = "rbac.authorization.k8s.io/v1"
    return {"apiVersion": api, "kind": "ClusterRole", "metadata": about, "rules": [rule]}


def run(cluster: Cluster, seeds: range, *, is_loud: bool = True) -> Score:
    """Compare the worlds of these seeds, several at a time."""
    score = Score()
    with ThreadPoolExecutor(_WORLDS_AT_ONCE) as pool:
        for lived in pool.map(lambda seed: live(cluster, random_rollback(seed)), seeds):
            earlier = len(score.mispredicted)
            judge(score, lived)
            if is_loud:
                text = f"{lived.world.namespace}: {lived.seconds:.0f} s, {score.items} items so far"
                options = " ".join(lived.world.options)
                print(f"{text} {options}", *score.mispredicted[earlier:], sep="\n  ", file=sys.stderr, flush=True)
    return score


def main() -> int:
    """Run the worlds, and print the figures as JSON on the last line."""
    seeds = read_seeds(WORLDS, seed_parser(__doc__)).seeds
    name = f"rollback-oracle-{os.getpid()}"
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.create(name, Options(velero="velero"), owned=True) as cluster,
        serving(cluster, Path(folder)),
    ):
        score = run(cluster, seeds)
    figures = {
        "worlds": score.worlds,
        "items": score.items,
        "mispredicted": len(score.mispredicted),
        "outcomes": dict(score.outcomes),
        "seconds_of_a_rollback": round(sorted(score.seconds)[len(score.seconds) // 2], 1),
    }
    print(json.dumps(figures))
    return 1 if score.mispredicted else 0


if __name__ == "__main__":
    sys.exit(main())
