"""What the clock on the wall shows: zones for people to read, from the same pinned data as the engine's."""

import io
from functools import cache
from zoneinfo import ZoneInfo

from foresail.cron.tzif import content


@cache
def wall_clock(name: str) -> ZoneInfo:
    """Return a zone whose name the engine has checked, for `datetime.astimezone`."""
    return ZoneInfo.from_file(io.BytesIO(content("zoneinfo", *name.split("/"))), key=name)
