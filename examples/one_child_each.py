"""A whole controller: every Parent gets one ConfigMap of its own, and a status that says so.

Run it against the cluster of your kubeconfig: python examples/one_child_each.py [KUBECONFIG]
"""

import asyncio
import sys
from datetime import datetime

import msgspec

from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.controller import Informer
from foresail.kube.execute import Executor
from foresail.kube.loop import Loop
from foresail.kube.reflector import WatchSpec
from foresail.kube.store import Store
from foresail.plan import Create, Key, Kind, Note, Patch, Plan, Subject

PARENT = Kind("examples.foresail.dev", "v1", "parents", "Parent")
CHILD = Kind("", "v1", "configmaps", "ConfigMap")
OWNER = "examples.foresail.dev/parent-uid"


class Metadata(msgspec.Struct):
    """What is read of an object's metadata: who it is, at which version, and whose."""

    uid: str
    version: str = msgspec.field(name="resourceVersion")
    labels: dict[str, str] = {}


class Object(msgspec.Struct):
    """What is read of a Parent, or of a child of one."""

    metadata: Metadata
    status: dict[str, str] = {}


class Parent(msgspec.Struct, frozen=True, gc=False):
    """What is kept of a Parent; of a child, only the UID of its Parent is."""

    uid: str
    version: str
    done: bool


def parent(read: Object) -> Parent:
    """Return what is kept of a Parent."""
    return Parent(read.metadata.uid, read.metadata.version, bool(read.status.get("child")))


def owner(read: Object) -> str:
    """Return what is kept of a child."""
    return read.metadata.labels.get(OWNER, "")


class OneChildEach:
    """Makes one child for each parent, named after it."""

    name = "one-child-each"

    def __init__(self) -> None:
        self.parents, self.children = Store[Parent](), Store[str]()
        self.informers = (
            Informer(WatchSpec(PARENT, Object, parent), self.parents, lambda change: [change.key]),
            Informer(WatchSpec(CHILD, Object, owner, labels=OWNER), self.children, lambda change: [change.key]),
        )

    def observe(self, key: Key, _now: datetime) -> tuple[Key, Parent, str | None] | None:
        """Read the parent and its child."""
        parent = self.parents.get(key)
        return None if parent is None else (key, parent, self.children.get(key))

    def decide(self, seen: tuple[Key, Parent, str | None], _now: datetime) -> Plan:
        """Make the child if it is not there, then say in the status that it is."""
        key, parent, owned_by = seen
        uid = parent.uid
        mark = {OWNER: uid}  # not the name alone: a parent that is deleted and made again is another parent
        owner = {"apiVersion": PARENT.api_version, "kind": PARENT.name, "name": key.name, "uid": uid}
        create = Create(CHILD, key, {"metadata": {"labels": mark, "ownerReferences": [owner]}}, mark)
        ready = Patch(PARENT, key, {"status": {"child": key.name}}, parent.version, "status")
        made = Note(PARENT, key, uid, "ChildMade", f"ConfigMap {key} belongs to this Parent.")
        status, notes = (None, ()) if parent.done else (ready, (made,))
        return Plan(() if owned_by == uid else (create,), status, notes, subject=Subject(PARENT, key, uid))


async def main(kubeconfig: str | None) -> None:
    """Run the controller until it is ended."""
    async with Client(await connect(kubeconfig)) as client:
        await Loop(client, OneChildEach(), Executor(client), now).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if sys.argv[1:] else None))
