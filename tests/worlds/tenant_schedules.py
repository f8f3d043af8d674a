"""NonAdminSchedules in a world: their runs, their skips, and a Velero that completes what it is asked for."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from foresail.api.instants import instant
from foresail.api.marks import SCHEDULE_UID, SLOT
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.kube.loop import LoopTiming
from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.history import Happening
from tests.worlds.process import CALM, Moment
from tests.worlds.tenancy import Tenancy
from tests.worlds.world import done

NAS = Key("red", "nightly")


class TenantScene(Tenancy):
    """A tenancy with NonAdminSchedules, whose policy allows runs as often as a test needs them."""

    def __init__(self, timing: LoopTiming = CALM, **schedules: Any) -> None:  # noqa: ANN401 - JSON
        super().__init__(timing=timing)
        self.runs: list[tuple[Key, str, datetime, datetime]] = []  # name, schedule's UID, slot, created
        self.skips: dict[Key, list[str]] = {}
        self.world.history.listeners.append(self._listened)
        self.set_schedules(**{"minimumInterval": "1s", **schedules})

    def set_schedules(self, **schedules: Any) -> None:  # noqa: ANN401 - JSON
        spec = {"spec": {"schedules": schedules}}
        done(self.world.merge(SELF_SERVICE_POLICY, Key("", "default"), spec, "admin"))

    def slots(self) -> list[datetime]:
        return [slot for _, _, slot, _ in self.runs]

    def found(self, key: Key = NAS) -> Document:
        found = self.request(key, NON_ADMIN_SCHEDULE)
        assert found is not None
        return found

    def says(self, name: str, key: Key = NAS) -> tuple[str, str, str]:
        return self.condition(key, name, NON_ADMIN_SCHEDULE)

    def asks(self) -> str:
        """Return the digest of the rules that wait for an approval, as the status has it."""
        document = self.world.history.present(NON_ADMIN_SCHEDULE)[NAS]
        return str(json.loads(document["status"]["observed"]["record"])["asks"])

    def backups(self) -> list[str]:
        return sorted(key.name for key in self.world.history.present(NON_ADMIN_BACKUP))

    async def until(self, moment: datetime) -> None:
        await asyncio.sleep((moment - self.clock()) / timedelta(seconds=1))

    def _listened(self, happening: Happening) -> None:
        after = happening.after
        if after is None:
            return
        marks = after["metadata"].get("annotations", {})
        if happening.kind == NON_ADMIN_BACKUP and happening.before is None and SLOT in marks:
            slot = instant(marks[SLOT])
            assert slot is not None
            self.runs.append((happening.key, marks[SCHEDULE_UID], slot, self.clock()))
        skipped = after.get("status", {}).get("lastSkipped")
        if happening.kind == NON_ADMIN_SCHEDULE and skipped:
            seen = self.skips.setdefault(happening.key, [])
            if not seen or seen[-1] != skipped:
                seen.append(skipped)


Story = Callable[[TenantScene], Awaitable[None]]


def tell(story: Story, *, works: bool = True, dies: list[Moment] | None = None, **schedules: Any) -> TenantScene:  # noqa: ANN401
    """Live through a story with the controller running, and with a Velero that works."""

    async def live() -> TenantScene:
        scene = TenantScene(**schedules)
        tasks = [asyncio.create_task(scene.velero_works())] if works else []
        if dies is None:
            scene.start()
        else:
            tasks.append(asyncio.create_task(scene.keep_running(dies, 1)))
        await story(scene)
        for each in tasks:
            each.cancel()
        scene.check()
        await scene.stop()
        return scene

    return virtual_time.run(live())
