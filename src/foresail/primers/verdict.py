"""The verdict of the rules on one CronJob."""

import msgspec

from foresail.api.primer import PLACEHOLDER
from foresail.cron.shift import Shifted
from foresail.primers.fires import Fires
from foresail.primers.observe import Target
from foresail.primers.shape import Shape
from foresail.reporting import Because


class Verdict(msgspec.Struct, frozen=True):
    """What the rules found about one CronJob at one instant."""

    target: Target
    because: Because | None = None  # why nothing is held for it
    fires: Fires | None = None
    duty: int = 0
    shape: Shape | None = None
    count: int = 1
    method: str = PLACEHOLDER  # how capacity is held; what `Auto` has chosen
    method_because: str | None = None  # why `Auto` has not chosen CapacityBuffer
    early: Because | None = None  # why what is held is released before the fire, not after it
    shifted: Shifted | None = None
