"""The judge of rollback plans reads what a team reads, and finds what a plan says wrongly."""

from typing import Any

from bench.plan_objects import Document
from bench.rollback_oracle import Lived, Said, Score, judge, read_plan
from bench.rollback_worlds import RollbackWorld, random_rollback
from foresail.api.rollback import NamedGroup, RollbackPlan, RollbackSpec
from foresail.cli.rollback.plan import plan_text

FOUND, LEFT, EXTRA = ("configmaps", "found"), ("configmaps", "left"), ("configmaps", "extra")


def config(name: str, **data: str) -> Document:
    metadata = {"name": name, "uid": data.get("key", ""), "labels": {"velero.io/restore-name": "x"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def lived(said: Said, after: dict[tuple[str, str], Document], phase: str = "Completed") -> Lived:
    backup = {FOUND: config("found", key="old"), LEFT: config("left", key="same")}
    before = {FOUND: config("found", key="new"), LEFT: config("left", key="same"), EXTRA: config("extra")}
    return Lived(RollbackWorld("shop", []), said, backup, before, after, phase, "", 1.0)


def mispredicted(said: Said, after: dict[tuple[str, str], Document], **more: Any) -> list[str]:  # noqa: ANN401
    score = Score()
    judge(score, lived(said, after, **more))
    return score.mispredicted


GOOD = Said(changed={FOUND: ("data.key",)}, kept=frozenset({EXTRA}), unchanged=1)
AFTER = {FOUND: config("found", key="old"), LEFT: config("left", key="same"), EXTRA: config("extra")}


def test_a_plan_that_comes_true_has_no_faults() -> None:
    assert mispredicted(GOOD, AFTER) == []


def test_each_fault_of_a_plan_is_found() -> None:
    as_before = {**AFTER, FOUND: config("found", key="new")}
    assert "not as in the backup: data.key" in mispredicted(GOOD, as_before)[0]
    assert "it was changed: data.key" in mispredicted(GOOD, {**AFTER, LEFT: config("left", key="x")})[0]
    without = {item: body for item, body in AFTER.items() if item != EXTRA}
    assert "planned keep: it was deleted" in mispredicted(GOOD, without)[0]
    pruned = Said(changed=GOOD.changed, deleted=frozenset({EXTRA}), unchanged=1)
    assert "planned delete: it still exists" in mispredicted(pruned, AFTER)[0]
    assert mispredicted(pruned, without) == []
    created = Said(changed=GOOD.changed, created=frozenset({LEFT}), kept=GOOD.kept)
    assert "planned create: it existed" in mispredicted(created, AFTER)[0]
    silent = Said(kept=GOOD.kept, unchanged=2)
    assert "planned leave: it was changed" in mispredicted(silent, AFTER)[0]
    other = Said(changed={FOUND: ("data.more",)}, kept=GOOD.kept, unchanged=1)
    assert "the plan does not name data.key" in mispredicted(other, AFTER)[0]
    needless = Said(changed={**GOOD.changed, LEFT: ("data.key",)}, kept=GOOD.kept)
    assert "planned change: it was as in the backup" in mispredicted(needless, AFTER)[0]
    assert "Undone, not Completed" in mispredicted(GOOD, AFTER, phase="Undone")[0]
    assert "planned 3 unchanged, and 1 objects are" in mispredicted(Said(**{**vars(GOOD), "unchanged": 3}), AFTER)[0]


def test_what_an_added_object_owns_goes_with_it_if_it_is_pruned() -> None:
    owned = config("owned")
    owned["metadata"]["ownerReferences"] = [{"kind": "ConfigMap", "name": "extra"}]
    world = lived(Said(deleted=frozenset({EXTRA}), changed=GOOD.changed, unchanged=1), {})
    item = ("secrets", "owned")
    world.before[item] = {**owned, "kind": "Secret"}
    world.after.update({FOUND: AFTER[FOUND], LEFT: AFTER[LEFT]})
    score = Score()
    judge(score, world)
    assert (score.mispredicted, score.outcomes["delete with its owner"]) == ([], 1)


def undone(before: Document, after: Document, *options: str) -> list[str]:
    item = (f"{before['kind'].lower()}s", before["metadata"]["name"])
    world = RollbackWorld("shop", [], options=[*options])
    score = Score()
    judge(score, Lived(world, Said(in_the_way="cannot begin"), {}, {item: before}, {item: after}, "Undone", "", 1.0))
    return score.mispredicted


def test_an_undo_leaves_objects_as_they_were_but_for_what_kubernetes_writes() -> None:
    def service(uid: str, address: str, port: int) -> Document:
        spec = {"type": "NodePort", "clusterIP": address, "ports": [{"port": 80, "nodePort": port}]}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "uid": uid}, "spec": spec}

    first = service("1", "10.0.0.1", 30001)
    assert "spec.ports[0].nodePort" in undone(first, service("1", "10.0.0.1", 30002))[0], "clients know the port"
    assert "it was changed" in undone(first, service("2", "10.0.0.2", 30002))[0]
    assert "deleted and created again" in undone(first, service("2", "10.0.0.1", 30001))[0]
    assert undone(first, service("2", "10.0.0.2", 30002), "--prune") == [], "prune deletes it, the undo creates another"

    def token(*values: str) -> Document:
        body = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token"}
        return {**body, "metadata": {"name": "token", "uid": "1"}, "data": dict.fromkeys(values, "x")}

    another: Document = {**token("token"), "data": {"token": "y"}}
    assert undone(token("token"), another) == [], "Velero restores none, and Kubernetes issues another"
    assert undone(token("token"), token()) != []
    generation = {"deprecated.daemonset.template.generation": "2"}
    daemons: Document = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "log"}, "spec": {}}
    assert undone(daemons, {**daemons, "metadata": {"name": "log", "annotations": generation}}) == []


def test_what_an_autoscaler_scales_has_any_number_of_replicas() -> None:
    def web(replicas: int) -> Document:
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {"replicas": replicas},
        }

    target = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}}
    scaler: Document = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": target}
    item, scalers = ("deployments.apps", "web"), ("horizontalpodautoscalers.autoscaling", "web")

    def judged(more: dict[tuple[str, str], Document]) -> list[str]:
        score = Score()
        before, after = {item: web(1), **more}, {item: web(2), **more}
        judge(score, Lived(RollbackWorld("shop", []), Said(), {}, before, after, "Completed", "", 1.0))
        return score.mispredicted

    assert "it was changed: spec.replicas" in judged({})[0]
    assert judged({scalers: scaler}) == []
    planned, score = Said(changed={item: ("spec.replicas",)}, unchanged=1), Score()
    old, now = ({item: web(number), scalers: scaler} for number in (1, 2))
    judge(score, Lived(RollbackWorld("shop", []), planned, old, now, now, "Completed", "", 1.0))
    assert score.mispredicted == [], "they differed, and an autoscaler may have set them again since"


def test_a_service_account_keeps_what_it_has_and_gets_what_the_backup_has() -> None:
    def account(*pulls: str, **notes: str) -> Document:
        metadata = {"name": "web", "uid": "1", "annotations": notes}
        references = [{"name": name} for name in pulls]
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "imagePullSecrets": references}

    item = ("serviceaccounts", "web")

    def judged(after: Document, *fields: str) -> list[str]:
        said, score = Said(added_to={item: fields}), Score()
        backup, before = account("old", role="x"), account("new", note="1")
        world = RollbackWorld("shop", [])
        judge(score, Lived(world, said, {item: backup}, {item: before}, {item: after}, "Completed", "", 1.0))
        return score.mispredicted

    both = account("new", "old", note="1", role="x")
    assert judged(both, "imagePullSecrets", "metadata.annotations.role") == []
    assert "the plan does not name metadata.annotations.role" in judged(both, "imagePullSecrets")[0]
    assert "not as it was with what the backup has" in judged(account("old", role="x"), "imagePullSecrets")[0]


def test_the_plan_is_read_as_it_is_printed() -> None:
    plan = RollbackPlan(
        created=NamedGroup(1, ("services/web",)),
        existing=NamedGroup(3, ("configmaps/a", "configmaps/b", "deployments.apps/web")),
        not_compared=NamedGroup(2, ("Secret", "Widget.shop.example")),
        extra=NamedGroup(1, ("configmaps/added",)),
        left_out=NamedGroup(1, ("Pod",)),
    )
    fields = {"deployments.apps/web": [f"spec.f{number}" for number in range(7)], "configmaps/a": ["data.key"]}
    spec = RollbackSpec(to="before")
    hint = "hint: to do exactly this: foresail rollback create --to before -n shop --plan-digest 0a --wait"
    said = read_plan(plan_text(spec, plan, fields), hint)
    assert said.created == {("services", "web")}
    assert said.changed[FOUND[0], "a"] == ("data.key",)
    assert said.changed["deployments.apps", "web"] == (*(f"spec.f{number}" for number in range(5)), "…")
    assert said.kept == {("configmaps", "added")}
    assert said.restored == {"secrets", "widgets.shop.example"}
    assert said.unchanged == 1
    assert said.command == ("rollback", "create", "--to", "before", "-n", "shop", "--plan-digest", "0a", "--wait")


def test_a_world_depends_on_its_seed_alone_and_worlds_have_every_kind() -> None:
    worlds = [random_rollback(seed) for seed in range(30)]
    assert worlds[7] == random_rollback(7)
    assert len({body["kind"] for world in worlds for body in world.objects}) >= 20
    for what in ("removed", "changed", "replaced", "added", "owners"):
        assert sum(bool(getattr(world, what)) for world in worlds) > 10, what
    assert {"--prune", "--only"} <= {option for world in worlds for option in world.options}
