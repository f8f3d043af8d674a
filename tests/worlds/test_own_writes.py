"""A look waits until the stores know what the look before it wrote: nothing is written twice, nothing refused."""

import pytest
from one_child_each import PARENT

from foresail.kube import loop
from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.scene import Scene

KEY = Key("red", "a")


def writes_with_a_nudge(lag: float) -> int:
    """Let someone edit a parent just as it gets its child, behind watches that lag; return how many writes it took."""

    async def live() -> int:
        scene = Scene()
        scene.weather.lag = lag
        process = scene.start()
        scene.make_parent(KEY)
        scene.world.history.listeners.append(
            lambda happening: scene.edit_parent(KEY, 1) if happening.kind == PARENT and not edited(happening) else None
        )
        await scene.settle()
        scene.check()
        await scene.stop()
        return len(process.visitor.writes)

    def edited(happening: object) -> bool:
        after = getattr(happening, "after", None)
        return after is None or "spec" in after or "status" not in after

    return virtual_time.run(live())


def test_a_look_at_an_object_waits_for_the_echo_of_its_own_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert writes_with_a_nudge(lag=1.0) == 2
    monkeypatch.setattr(loop, "_UNSEEN", 0.0)
    assert writes_with_a_nudge(lag=1.0) > 2


def test_a_store_that_never_catches_up_does_not_hold_a_look_for_ever() -> None:
    assert writes_with_a_nudge(lag=20.0) >= 2
