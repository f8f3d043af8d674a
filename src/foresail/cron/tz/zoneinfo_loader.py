"""Loads `ZoneInfo` objects for display from the pinned `tzdata`; apart, since `zoneinfo` is slow to import."""

import io
from functools import cache
from zoneinfo import ZoneInfo

from foresail.cron.tz.tzdata_reader import read_tzdata


@cache
def load_zoneinfo(name: str) -> ZoneInfo:
    """Return a zone for `datetime.astimezone`; the name must be valid."""
    return ZoneInfo.from_file(io.BytesIO(read_tzdata("zoneinfo", *name.split("/"))), key=name)
