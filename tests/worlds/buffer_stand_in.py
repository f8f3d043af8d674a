"""Stands in for the part of an autoscaler that keeps free nodes for CapacityBuffers, in virtual time."""

from foresail.api.capacity_buffers import PROVISIONING, READY, capacity_buffer
from foresail.api.instants import stamp
from foresail.plan import Key
from tests.worlds.documents import Document
from tests.worlds.history import Happening
from tests.worlds.kubernetes_stand_in import ME, Kubernetes
from tests.worlds.world import done

BUFFER = capacity_buffer()
_ANSWERS, _PASSES = 0.5, 30.0  # seconds until it answers, and between its looks at all buffers


class Buffering:
    """Makes a node for each place of a buffer that has none, and refills it when somebody takes the place."""

    def __init__(self, cluster: Kubernetes) -> None:
        self.cluster, self.world = cluster, cluster.world
        self.refilled = 0  # nodes that were made because others had been taken
        self.refuses: str | None = None  # the beginning of the names of buffers that it cannot use
        self._had = set[Key]()  # buffers for which all nodes have been there once
        cluster.kept = self._wanted
        self.world.history.listeners.append(self._heard)

    def _heard(self, happening: Happening) -> None:
        if happening.kind == BUFFER and happening.before is None:
            self.cluster.later(_ANSWERS, lambda: self._look(happening.key))
        elif happening.kind == BUFFER and happening.after is not None:
            before, after = (each["spec"]["replicas"] for each in (happening.before or {}, happening.after))
            if before != after:
                self.cluster.later(_ANSWERS, lambda: self._answer(happening.key))

    def _wanted(self) -> int:
        buffers = self.world.history.present(BUFFER).values()
        return sum(each["status"].get("replicas", 0) for each in buffers if "status" in each)

    def _look(self, key: Key) -> None:
        if self.refuses is not None and key.name.startswith(self.refuses):
            self._refuse(key)
        elif self._answer(key):
            self.cluster.later(_PASSES, lambda: self._look(key))

    def _refuse(self, key: Key) -> None:
        condition = {"type": READY, "status": "False", "reason": "Wrong", "message": "no such class"}
        condition["lastTransitionTime"] = stamp(self.world.clock())
        done(self.world.merge(BUFFER, key, {"status": {"conditions": [condition]}}, ME, "status"))

    def _answer(self, key: Key) -> bool:
        buffer = self.world.history.present(BUFFER).get(key)
        if buffer is None:
            return False
        replicas = buffer["spec"]["replicas"]
        missing = replicas - len(self.cluster.free)
        if missing > self.cluster.coming:
            self.refilled += key in self._had
            self.cluster.make_nodes(missing - self.cluster.coming, lambda: self._answer(key))
        elif missing <= 0:
            self._had.add(key)
        conditions = [self._condition(buffer, READY, is_true=True)]
        conditions.append(self._condition(buffer, PROVISIONING, is_true=0 < replicas <= len(self.cluster.free)))
        body = {"status": {"replicas": replicas, "conditions": conditions}}
        if buffer.get("status") != body["status"]:
            done(self.world.merge(BUFFER, key, body, ME, "status"))
        return True

    def _condition(self, buffer: Document, kind: str, *, is_true: bool) -> Document:
        status = str(is_true)
        old = next((each for each in buffer.get("status", {}).get("conditions", ()) if each["type"] == kind), None)
        since = old["lastTransitionTime"] if old and old["status"] == status else stamp(self.world.clock())
        return {"type": kind, "status": status, "reason": "Looked", "message": "", "lastTransitionTime": since}
