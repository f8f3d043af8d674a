"""A sample of takeovers for each capability, and the one that stopped Schedules; `make takeover` tries them all."""

from collections.abc import Callable

import pytest

from foresail.schedules.controller import Schedules
from foresail.schedules.observe import VeleroServer
from tests.worlds.takeover import LIVES, Life, Point, faults, live, points

MOST = 60  # so many points are tried, spread over a life


def sample(every: list[Point]) -> list[Point]:
    return every[:: -(-len(every) // MOST)]


@pytest.mark.repeats
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_a_follower_takes_over_at_any_point_and_nobody_is_left_waiting(
    life: Life, figure: Callable[[str], None]
) -> None:
    whole = live(life)
    assert whole.stuck == set()
    tried = sample(points(whole))
    assert [each for point in tried for each in faults(life, point, whole)] == []
    figure(f"{life.name}: {len(tried)} of {len(points(whole))} takeovers, nobody is stuck")


@pytest.mark.repeats
def test_a_leader_that_remembers_its_question_alone_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new leader did not know what its predecessor had asked Velero, and held DialectUnknown for ever."""
    server = Schedules._velero_server  # noqa: SLF001 - as it was

    def forgetful(self: Schedules, now: object) -> VeleroServer:
        found: VeleroServer = server(self, now)  # type: ignore[arg-type]
        return found if self._version_request is not None else VeleroServer(None)

    monkeypatch.setattr(Schedules, "_velero_server", forgetful)
    life = next(each for each in LIVES if each.name == "schedules")
    whole = live(life)
    found = [each for point in sample(points(whole)) for each in faults(life, point, whole)]
    assert any("velero/differs waits for" in each for each in found)
