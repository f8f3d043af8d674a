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
from foresail.kube.execute import Executor
from foresail.kube.loop import Loop, Watched
from foresail.kube.reflector import Interest
from foresail.kube.store import Store
from foresail.plan import Create, Key, Kind, Note, Patch, Plan, Subject

PARENT = Kind("examples.foresail.dev", "v1", "parents", "Parent")
CHILD = Kind("", "v1", "configmaps", "ConfigMap")
OWNER = "examples.foresail.dev/parent-uid"


class Metadata(msgspec.Struct, frozen=True):
    """What is kept of an object: who it is, at which version, and whose."""

    uid: str
    version: str = msgspec.field(name="resourceVersion")
    labels: dict[str, str] = {}


class Row(msgspec.Struct, frozen=True):
    """A Parent, or a child of one."""

    metadata: Metadata
    status: dict[str, str] = {}


class OneChildEach:
    """Makes one child for each parent, named after it."""

    name = "one-child-each"

    def __init__(self) -> None:
        self.parents, self.children = Store[Row](), Store[Row]()
        self.watched = (
            Watched(Interest(PARENT, Row, lambda row: row), self.parents, lambda change: [change.key]),
            Watched(Interest(CHILD, Row, lambda row: row, labels=OWNER), self.children, lambda change: [change.key]),
        )

    def observe(self, key: Key) -> tuple[Key, Row, Row | None] | None:
        """Read the parent and its child."""
        parent = self.parents.get(key)
        return None if parent is None else (key, parent, self.children.get(key))

    def decide(self, seen: tuple[Key, Row, Row | None], _now: datetime) -> Plan:
        """Make the child if it is not there, then say in the status that it is."""
        key, parent, child = seen
        uid = parent.metadata.uid
        mark = {OWNER: uid}  # not the name alone: a parent that is deleted and made again is another parent
        owner = {"apiVersion": PARENT.api_version, "kind": PARENT.name, "name": key.name, "uid": uid}
        create = Create(CHILD, key, {"metadata": {"labels": mark, "ownerReferences": [owner]}}, mark)
        ready = Patch(PARENT, key, {"status": {"child": key.name}}, parent.metadata.version, "status")
        has_child = child is not None and child.metadata.labels.get(OWNER) == uid
        made = Note(PARENT, key, uid, "ChildMade", f"ConfigMap {key} belongs to this Parent.")
        status, notes = (None, ()) if parent.status.get("child") else (ready, (made,))
        return Plan(() if has_child else (create,), status, notes, subject=Subject(PARENT, key, uid))


async def main(kubeconfig: str | None) -> None:
    """Run the controller until it is ended."""
    async with Client(await connect(kubeconfig)) as client:
        await Loop(client, OneChildEach(), Executor(client), now).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if sys.argv[1:] else None))
