"""Tenants with buckets of their own in a world: Secrets, locations, approvals, and a Velero that checks buckets."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from foresail.api import core, velero
from foresail.api.nonadmin import NON_ADMIN_LOCATION, NON_ADMIN_LOCATION_REQUEST
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.kube.failures import Failure
from foresail.plan import Key, Kind
from foresail.selfservice.access.reader import AccessReader
from foresail.selfservice.controller import SelfService
from foresail.selfservice.locations.reader import SecretReader
from tests.worlds.documents import Document
from tests.worlds.history import Happening
from tests.worlds.process import Moment, Process
from tests.worlds.reviews import Reviewer, Reviews
from tests.worlds.roles import Grant, Role
from tests.worlds.tenancy import ORDER, VELERO, Tenancy, asked_by_tenant
from tests.worlds.virtual_time import run
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, done

T = TypeVar("T")
OWN = Key("red", "mine")
KEYS = "[default]\naws_access_key_id=AKIDEXAMPLE\naws_secret_access_key={}\n"
FIRST, SECOND = "wJalrXUtnFEMI/K7MDENG", "a-key-that-is-another"
_LOCATIONS, _REQUESTS = "nonadminbackupstoragelocations", "nonadminbackupstoragelocationrequests"
GRANTS = frozenset(
    {
        *(Grant(f"{_LOCATIONS}.oadp.openshift.io", verb, everywhere=True) for verb in ("list", "watch", "patch")),
        Grant(f"{_LOCATIONS}.oadp.openshift.io/status", "patch", everywhere=True),
        *(
            Grant(f"{_REQUESTS}.oadp.openshift.io", verb, everywhere=False)
            for verb in ("get", "list", "watch", "create", "delete")
        ),
        Grant(f"{_REQUESTS}.oadp.openshift.io/status", "patch", everywhere=False),
        *(
            Grant("backupstoragelocations.velero.io", verb, everywhere=False)
            for verb in ("get", "create", "patch", "delete")
        ),
        *(Grant("secrets", verb, everywhere=False) for verb in ("create", "patch")),
    }
)
"""What `selfService.locations.enabled` of the chart adds."""


class _Reader(Reviewer):
    """The API server as the reader of Secrets sees it: what the tenants granted, it may read."""

    def __init__(self, visitor: Visitor, reviews: Reviews, tenancy: "OwnLocations") -> None:
        super().__init__(visitor, reviews)
        self._tenancy = tenancy

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        assert kind == core.SECRET
        self._tenancy.secrets_read += 1
        role = Role("self-service", GRANTS | {Grant("secrets", "get", everywhere=True)})
        visitor = Visitor(self._tenancy.world, role=role if key in self._tenancy.granted else Role("self-service"))
        return await visitor.get(kind, key, of)


class OwnLocations(Tenancy):
    """A world whose policy allows locations of tenants."""

    def __init__(self, approval: str = "Required", **rules: Any) -> None:  # noqa: ANN401 - JSON
        kinds = (NON_ADMIN_LOCATION, NON_ADMIN_LOCATION_REQUEST)
        super().__init__(also=[*map(Definition, kinds)])
        self.granted = {Key("red", "keys"), Key("blue", "keys")}
        self.secrets_read = 0
        self.reachable = True  # whether Velero reaches the buckets
        self.seen: dict[str, list[str]] = {}  # the phases of each location, in their order
        open_rules = {"allowed": True, "approval": approval, "endpoints": ["s3.corp.example"], "restores": "Limited"}
        self.set_rules(**{**open_rules, **rules})
        self.world.history.listeners.append(self._noticed)

    def set_rules(self, **rules: Any) -> None:  # noqa: ANN401 - JSON
        done(self.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"locations": rules}}, "admin"))

    # The tenant

    def write_secret(self, secret: str = FIRST, namespace: str = "red", content: str = "") -> None:
        data = {"cloud": b64encode((content or KEYS.format(secret)).encode()).decode(), "other": "AAAA"}
        key = Key(namespace, "keys")
        if key in self.world.history.present(core.SECRET):
            done(self.world.merge(core.SECRET, key, {"data": data}, "tenant"))
        else:
            done(self.world.create(core.SECRET, {"metadata": {"name": "keys"}, "data": data}, "tenant", namespace))

    def ask(self, key: Key = OWN, **changes: Any) -> str:  # noqa: ANN401 - JSON
        spec = {
            "provider": "aws",
            "objectStorage": {"bucket": f"{key.namespace}-backups"},
            "credential": {"name": "keys", "key": "cloud"},
            "config": {"region": "eu-west-1"},
            **changes,
        }
        body = {"metadata": asked_by_tenant(key.name), "spec": {"backupStorageLocationSpec": spec}}
        return str(done(self.world.create(NON_ADMIN_LOCATION, body, "tenant", key.namespace))["metadata"]["uid"])

    def location(self, key: Key = OWN) -> Document:
        return self.status(key, NON_ADMIN_LOCATION)

    def said(self, condition: str, key: Key = OWN) -> tuple[str, str, str]:
        return self.condition(key, condition, NON_ADMIN_LOCATION)

    # Velero's namespace

    def approval(self, key: Key = OWN) -> Document | None:
        found = self.world.history.present(NON_ADMIN_LOCATION_REQUEST).values()
        of = [each for each in found if _is_of(each, key)]
        assert len(of) <= 1
        return of[0] if of else None

    def decide(self, decision: str, key: Key = OWN, **spec: str) -> None:
        found = self.approval(key)
        assert found is not None
        at = Key(VELERO, found["metadata"]["name"])
        body = {"spec": {"approvalDecision": decision, **spec}}
        done(self.world.merge(NON_ADMIN_LOCATION_REQUEST, at, body, "admin"))

    def made(self, key: Key = OWN) -> Document | None:
        """Return the Velero location."""
        found = [each for each in self.velero_objects(velero.LOCATION).values() if _is_of(each, key)]
        assert len(found) <= 1
        return found[0] if found else None

    def copied(self, key: Key = OWN) -> str:
        """Return the credentials in Velero's namespace; empty if there are none."""
        found = self.world.history.present(core.SECRET)
        of = [each for at, each in found.items() if at.namespace == VELERO and _is_of(each, key)]
        assert len(of) <= 1
        return b64decode(of[0]["data"]["cloud"]).decode() if of else ""

    # The controller

    def start(self, dies: Moment | None = None, workers: int = 16) -> Process:
        visitor = Visitor(self.world, weather=self.weather, role=Role("self-service", GRANTS))
        reader = AccessReader(Reviewer(visitor, self.reviews), self.reviews.contents)
        secrets = SecretReader(_Reader(visitor, self.reviews, self))
        controller = SelfService(VELERO, fetch=self._fetched, limits=self.limits, access=reader, secrets=secrets)
        controller.cluster.skew = timedelta
        self.controller = controller
        self.process = Process(visitor, controller, dies=dies, workers=workers, emit=self.notes.add)
        return self.process

    def check(self) -> None:
        super().check()
        for phases in self.seen.values():
            assert phases == sorted(phases, key=ORDER.index), f"phases went back: {phases}"

    def _noticed(self, happening: Happening) -> None:
        after, before = happening.after, happening.before
        if after is None:
            return
        if happening.kind == NON_ADMIN_LOCATION:
            self.seen.setdefault(after["metadata"]["uid"], []).append(after.get("status", {}).get("phase", ""))
        if happening.kind == velero.LOCATION and (before is None or before.get("spec") != after.get("spec")):
            asyncio.get_running_loop().call_later(0.05, self.validate, happening.key)

    def validate(self, key: Key) -> None:
        """Let Velero check a bucket, as it does when a spec has changed."""
        found = self.world.history.present(velero.LOCATION).get(key)
        if found is None:
            return
        is_good = self.reachable and Key(VELERO, key.name) in self.world.history.present(core.SECRET)
        status = {"phase": "Available" if is_good else "Unavailable", "lastValidationTime": self.now()}
        done(self.world.merge(velero.LOCATION, key, {"status": status}, "velero"))


def _is_of(found: Document, key: Key) -> bool:
    marks = found["metadata"].get("annotations", {})
    name, namespace = (marks.get(f"openshift.io/oadp-nabsl-origin-{each}") for each in ("name", "namespace"))
    return (namespace, name) == (key.namespace, key.name)


def live(story: Callable[[OwnLocations], Awaitable[None]], approval: str = "Required", **rules: Any) -> None:  # noqa: ANN401
    """Run a story in a world of its own; at its end nothing moves any more."""

    async def whole() -> None:
        tenancy = OwnLocations(approval, **rules)
        tenancy.start()
        await story(tenancy)
        await tenancy.settle()
        tenancy.check()
        await tenancy.check_silence()
        await tenancy.stop()

    run(whole())
