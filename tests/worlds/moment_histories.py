"""Random histories of restores: refused, waiting, edited and allowed again, with kills of the operator at its writes.

A witness watches the objects alone and knows none of the operator's rules. A restore acts when Velero begins it. It
acts late if its requester was told that it was refused or has expired, or if its time since the request is over, and
nobody has edited its spec since.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from foresail.api import velero
from foresail.api.marks import REQUEST_UID
from foresail.api.nonadmin import NON_ADMIN_RESTORE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.process import Moment
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.world import done

BACKUP = Key("red", "shop")
LENGTHS = (10, 30, 60)
"""Minutes that a restore may wait, one for each history."""

WAITS = frozenset({"QuotaExceeded", "BackupNotReady", "LocationUnavailable"})
"""What a tenant reads of a restore that is neither refused nor expired, as the pages for users say."""

_WRITE = timedelta(seconds=2)  # what a decision and its writes may take
_START = timedelta(seconds=15)  # in which an operator that was killed reads the cluster and acts
_BEGUN = ("InProgress", "Completed")
_LIVES = 4  # that are killed, at most


class Witness:
    """Tells which restores act late, from the objects alone."""

    def __init__(self, tenancy: Tenancy, longest: timedelta) -> None:
        self.counts: Counter[str] = Counter()
        self.late: list[str] = []
        self.up_since: datetime | None = None  # of the operator; None while it is down
        self._clock, self._longest = tenancy.clock, longest
        self._asked: dict[str, datetime] = {}  # by the UID of the restore: when its spec was last written
        self._over: dict[str, str] = {}  # the reason for which it is refused or expired since
        tenancy.world.history.listeners.append(self._heard)

    def _heard(self, happening: Happening) -> None:
        if happening.after is None:
            return
        if happening.kind == NON_ADMIN_RESTORE:
            self._request(happening.before, happening.after)
        elif happening.kind == velero.RESTORE:
            self._made(happening.before, happening.after)

    def _request(self, before: Document | None, after: Document) -> None:
        uid = after["metadata"]["uid"]
        if before is None or before["spec"] != after["spec"]:
            self._asked[uid] = self._clock()
            self._over.pop(uid, None)
            self.counts["restores" if before is None else "asked again"] += 1
        for condition in after.get("status", {}).get("conditions", ()):
            is_current = condition["observedGeneration"] == after["metadata"]["generation"]
            is_no = condition["type"] == "Accepted" and condition["status"] == "False"
            if is_no and is_current and condition["reason"] not in WAITS and uid not in self._over:
                self._over[uid] = condition["reason"]
                self.counts["expired" if condition["reason"] == "Expired" else "refused"] += 1

    def _made(self, before: Document | None, after: Document) -> None:
        uid = after["metadata"]["annotations"][REQUEST_UID]
        if before is None:
            self._judge(uid, "made")
        phases = [document.get("status", {}).get("phase", "") for document in (before or {}, after)]
        if phases[1] in _BEGUN and phases[0] not in _BEGUN:
            self.counts["acted"] += 1
            self._judge(uid, "begun")

    def _judge(self, uid: str, word: str) -> None:
        """Note a Velero Restore that is made or begun when it must not be."""
        now = self._clock()
        over = now - self._asked[uid] - self._longest
        if uid in self._over:
            self.late.append(f"{word} after {self._over[uid]}")
        elif over > _WRITE and word == "begun" and (self.up_since is None or now - self.up_since < _START):
            self.counts["begun while the operator was down"] += 1  # nobody else can delete it
        elif over > _WRITE:
            self.late.append(f"{word} {over} too late")


class Story:
    """The people of one history, and what they may do next."""

    def __init__(self, tenancy: Tenancy, chance: random.Random) -> None:
        self._tenancy, self._chance = tenancy, chance
        self._number = 0
        self.velero_works = True

    @property
    def steps(self) -> tuple[Callable[[], None], ...]:
        """What somebody may do; what is named twice is done twice as often."""
        administrator = (self.update, self.policy, self.quota, self.access, self.location, self.backup, self.velero)
        return (self.ask, self.ask, self.edit, self.retry, self.retry, *administrator)

    def ask(self) -> None:
        """Ask for a restore: of the backup, rarely of one that does not exist."""
        self._number += 1
        spec = self._chance.choice(({}, {"existingResourcePolicy": "update"}))
        source = BACKUP.name if self._chance.random() < 0.9 else "other"
        self._tenancy.restore(Key("red", f"r{self._number}"), source, **spec)

    def edit(self) -> None:
        """Edit a restore that is not accepted: the API server refuses it later."""
        found = [each for each in self._restores() if not each.get("status", {}).get("veleroRestore")]
        if found:
            value = self._chance.choice((None, "update", "none"))
            self._write(self._chance.choice(found), restoreSpec={"existingResourcePolicy": value})

    def retry(self) -> None:
        """Ask again for a restore, whatever its state."""
        found = self._restores()
        if found:
            self._write(self._chance.choice(found), retriedAt=self._tenancy.now())

    def _restores(self) -> list[Document]:
        return list(self._tenancy.world.history.present(NON_ADMIN_RESTORE).values())

    def _write(self, restore: Document, **spec: Any) -> None:  # noqa: ANN401 - JSON
        self._tenancy.edit(Key("red", restore["metadata"]["name"]), NON_ADMIN_RESTORE, **spec)

    def update(self, value: list[str] | None = None) -> None:
        """Allow or refuse to change what exists."""
        values = self._chance.choice(([], ["update"])) if value is None else value
        self._policy(restore={"allowed": {"existingResourcePolicies": values}})

    def _policy(self, **spec: Any) -> None:  # noqa: ANN401 - JSON
        done(self._tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": spec}, "admin"))

    def policy(self, value: str = "") -> None:
        """Switch self-service on or off in the namespace."""
        labels = {"foresail.dev/self-service": value or self._chance.choice(("enabled", None))}
        done(self._tenancy.world.merge(NAMESPACE, Key("", "red"), {"metadata": {"labels": labels}}, "admin"))

    def quota(self, most: int | None = None) -> None:
        """Set how many restores may be active."""
        self._policy(quotas={"restores": {"active": self._chance.choice((0, 1, 9)) if most is None else most}})

    def access(self, *, is_allowed: bool | None = None) -> None:
        """Let the requester create everything or nothing."""
        allowed = self._chance.random() < 0.5 if is_allowed is None else is_allowed
        self._tenancy.reviews.may = lambda *_: allowed

    def location(self, *, is_there: bool | None = None) -> None:
        """Delete the location of the backup, or create it."""
        key = Key(VELERO, "default")
        exists = key in self._tenancy.world.history.present(velero.LOCATION)
        wanted = not exists if is_there is None else is_there
        if exists and not wanted:
            done(self._tenancy.world.delete(velero.LOCATION, key))
        elif wanted and not exists:
            self._tenancy.make_location("default", default=True)

    def backup(self, phase: str = "") -> None:
        """Let the backup be complete, running or failed."""
        phases = ("Completed", "Completed", "InProgress", "Failed")
        self._tenancy.velero_says(BACKUP, phase or self._chance.choice(phases))

    def velero(self, *, works: bool | None = None) -> None:
        """Let Velero begin restores, or stop beginning them."""
        self.velero_works = not self.velero_works if works is None else works

    def allow_all(self) -> None:
        """Remove every cause of a refusal or a wait: the trap for what is still armed."""
        self.update(["update"])
        self.policy("enabled")
        self.quota(9)
        self.access(is_allowed=True)
        self.location(is_there=True)
        self.backup("Completed")
        self.velero(works=True)

    async def run_velero(self) -> None:
        """Begin and end restores until cancelled, each after a while."""
        while True:
            await asyncio.sleep(self._chance.uniform(5, 60))
            for name, found in self._tenancy.velero_objects(velero.RESTORE).items():
                phase = found.get("status", {}).get("phase", "")
                later = "InProgress" if phase in velero.WAITING and self.velero_works else ""
                later = "Completed" if phase == "InProgress" else later
                if later and self._chance.random() < 0.7:
                    status = {"status": {"phase": later}}
                    done(self._tenancy.world.merge(velero.RESTORE, Key(VELERO, name), status, "velero"))


async def _run_operator(tenancy: Tenancy, witness: Witness, chance: random.Random, longest: timedelta) -> None:
    """Run the operator; some lives end at a write, and the next one begins soon, or after hours."""
    for _ in range(chance.randrange(_LIVES + 1)):
        died = asyncio.Event()
        process = tenancy.start(Moment(after=chance.random() < 0.5, write=chance.randrange(1, 12)))
        process.on_death = died.set
        witness.up_since = tenancy.clock()
        await died.wait()
        witness.up_since = None
        witness.counts["kills"] += 1
        is_long = chance.random() < 0.2
        await asyncio.sleep(longest.total_seconds() * chance.uniform(0, 1.5) if is_long else chance.uniform(0.05, 30))
        await process.kill()
    tenancy.start()
    witness.up_since = tenancy.clock()


async def _live(seed: int) -> Witness:
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    longest = timedelta(minutes=chance.choice(LENGTHS))
    tenancy = Tenancy(restore_window=chance.choice((0, 1, 2)))
    restore = {"restore": {"startingDeadline": f"{longest // timedelta(minutes=1)}m"}}
    done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": restore}, "admin"))
    story = Story(tenancy, chance)
    story.location(is_there=True)
    tenancy.start()
    tenancy.back_up(BACKUP)
    await tenancy.settle(5)
    name = next(iter(tenancy.velero_objects()))
    stored = {"spec": {"storageLocation": "default"}, "status": {"phase": "Completed"}}
    done(tenancy.world.merge(velero.BACKUP, Key(VELERO, name), stored, "velero"))
    await tenancy.settle(5)
    await tenancy.stop()
    witness = Witness(tenancy, longest)
    tasks = [
        asyncio.create_task(_run_operator(tenancy, witness, chance, longest)),
        asyncio.create_task(story.run_velero()),
    ]
    for _ in range(chance.randrange(6, 18)):
        chance.choice(story.steps)()
        await asyncio.sleep(chance.choice((0.01, 1, 20, 300, longest.total_seconds() * chance.random())))
    await asyncio.sleep(chance.choice((1, longest.total_seconds() * 1.1)))
    story.allow_all()
    await asyncio.sleep(longest.total_seconds() * 1.2)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await tenancy.stop()
    tenancy.check()
    return witness


def live(seed: int) -> Witness:
    """Live through one history, and return what the witness has seen."""
    return virtual_time.run(_live(seed))
