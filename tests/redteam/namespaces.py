"""Attacks across the life of a namespace: what one team queued reaches the team that gets the name next."""

import http.client

from tests.redteam.attack import attack
from tests.redteam.world import NAB, NAR, World, body_of, config, may_edit, namespace, path, until, user

_LEFT = ("configmaps", "pods", "serviceaccounts", "secrets")


def _old_team(world: World, name: str) -> None:
    """Give a namespace to the hostile tenant, with a pod and a backup in it."""
    world.cluster.apply(namespace(name), may_edit(name, "mallory"), config(name))
    until(lambda: world.hostile.get(path(NAB, name)) is not None, 30, "the tenant may ask")
    pod = {"containers": [{"name": "spy", "image": "spy"}]}
    world.hostile.create(path("pods", name), body_of("Pod", "spy", pod))
    world.hostile.create(path("configmaps", name), {**body_of("ConfigMap", "poison"), "data": {"x": "y"}})
    world.ask(NAB, "one", {"backupSpec": {}}, name)
    world.finished(NAB, "one", name)
    world.ask(NAR, "first", {"restoreSpec": {"backupName": "one"}}, name)  # then the operator knows the contents
    world.finished(NAR, "first", name)
    for each in (path("pods", name, "spy") + "?gracePeriodSeconds=0", path("configmaps", name, "poison")):
        world.hostile.delete(each)


def _delete(world: World, name: str) -> None:
    world.admin.delete(path("namespaces", name=name))
    until(lambda: not world.admin.get(path("namespaces", name=name)), 60, f"namespace {name} is gone")


def _queue(world: World, name: str, plural: str) -> None:
    """Ask for something that Velero, which is stopped, does not begin."""
    spec = {"restoreSpec": {"backupName": "one"}} if plural == NAR else {"backupSpec": {}}
    answer = world.ask(plural, "queued", spec, name)
    if answer.code != http.client.CREATED:
        raise RuntimeError(f"nothing to queue: {answer.text}")
    made = "restores" if plural == NAR else "backups"
    until(lambda: world.made_for(made, name, "queued"), 60, "Velero has it in its queue")


def _settle(world: World, name: str) -> None:
    """Wait until Velero has done whatever it still has for a namespace."""

    def is_idle() -> bool:
        found = [*world.made_for("restores", name), *world.made_for("backups", name)]
        return all(each.get("status", {}).get("phase", "") not in {"", "New", "Queued", "InProgress"} for each in found)

    until(is_idle, 90, "Velero has nothing left to do")


@attack
def restore_into_the_namespace_of_the_next_team(world: World) -> list[str]:
    """Queue a restore, and have the namespace deleted and given to another team before Velero begins."""
    name = "moved"
    _old_team(world, name)
    with world.velero_stopped():
        _queue(world, name, NAR)
        _delete(world, name)
        world.cluster.apply(namespace(name), may_edit(name, "vic"))
        until(lambda: world.victim.get(path(NAB, name)) is not None, 30, "the next team may ask")
    _settle(world, name)
    return [
        f"{plural} {each['metadata']['name']} of the old team is there"
        for plural in _LEFT
        for each in world.admin.items(path(plural, name))
        if each["metadata"]["name"] in {"spy", "poison"}
    ]


@attack
def resurrect_a_deleted_namespace(world: World) -> list[str]:
    """Queue a restore and have the namespace deleted, so that Velero makes it again, opt-in included."""
    name = "risen"
    _old_team(world, name)
    with world.velero_stopped():
        _queue(world, name, NAR)
        _delete(world, name)
    _settle(world, name)
    return ["the namespace is back"] if world.admin.get(path("namespaces", name=name)) else []


@attack
def back_up_the_namespace_of_the_next_team(world: World) -> list[str]:
    """Queue a backup, and have the namespace given to another team before Velero begins."""
    name = "watched"
    _old_team(world, name)
    with world.velero_stopped():
        _queue(world, name, NAB)
        made = world.made_for("backups", name, "queued")[0]["metadata"]["name"]
        _delete(world, name)
        world.cluster.apply(namespace(name), may_edit(name, "vic"))
        until(lambda: world.victim.get(path(NAB, name)) is not None, 30, "the next team may ask")
        secret = {**body_of("Secret", "next"), "stringData": {"password": "of-the-next-team"}}
        world.victim.create(path("secrets", name), secret)
    _settle(world, name)
    stored = (world.cluster.site.bucket / "backups" / made).exists()
    taken = stored and "next" in world.contents(made).get("secrets", set())
    return ["the next team's Secret is in the old team's backup"] if taken else []


@attack
def keep_the_backups_of_a_namespace_made_again(world: World) -> list[str]:
    """Restore a backup of the namespace that had the name before."""
    name = "again"
    _old_team(world, name)
    _delete(world, name)
    world.cluster.apply(namespace(name), may_edit(name, "mallory"))
    until(lambda: world.hostile.get(path(NAB, name)) is not None, 30, "the tenant may ask")
    world.ask(NAR, "back", {"restoreSpec": {"backupName": "one"}}, name)
    world.decided(NAR, "back", name)
    found = ["it was restored"] if world.made_for("restores", name, "back") else []
    inherited = [each["metadata"]["name"] for each in world.admin.items(path(NAB, name))]
    other = user(world.cluster, "vic").get(path(NAB, name))
    found += ["the victim may read it"] if other is not None else []
    return found + [f"NonAdminBackup {each} came by itself" for each in inherited]
