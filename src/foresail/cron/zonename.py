"""Which zone names a schedule may carry, by the rules of Go's `LoadLocation` and of each dialect."""

from foresail.cron.dialect import Dialect
from foresail.cron.errors import CronError
from foresail.cron.tzif import names

_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_-+:")
_LONGEST = 64
_ALLOWED = "a zone of the IANA database in its own spelling, such as Europe/Berlin or UTC"


def checked_zone(name: str) -> str:
    """Return the zone that a setting or a `timeZone` field names; `Local` is refused, it says nothing."""
    if name == "UTC" or name in names():
        return name
    raise CronError(f"{name!r} is not a time zone", text=name, field="time zone", allowed=_ALLOWED)


def split_zone(text: str, dialect: Dialect, local: str) -> tuple[str, int]:
    """Return the zone of a schedule and where its fields begin; without a prefix the zone is `local`."""
    if not text.startswith(("TZ=", "CRON_TZ=")):
        return local, 0
    begin = text.index("=") + 1
    end = text.find(" ", begin)
    if end < 0:
        # robfig crashes on this one, so nothing that survives can mean anything by it.
        raise CronError(
            "nothing follows the time zone",
            text=text,
            field="time zone",
            column=begin,
            allowed="TZ=Zone FIELDS",
        )
    name = text[begin:end]
    if dialect is Dialect.GOCRON:
        if len(name) > 1 and name[0] == name[-1] and name[0] in "\"'":
            name = name[1:-1]
        if not name or len(name) > _LONGEST or not _SAFE.issuperset(name):
            raise CronError(
                f"{name!r} is not a time zone",
                text=text,
                field="time zone",
                column=begin + 1,
                allowed=_ALLOWED,
            )
    if name in {"", "UTC"}:
        return "UTC", end
    if name == "Local":
        return local, end
    if name not in names():
        raise CronError(
            f"{name!r} is not a time zone", text=text, field="time zone", column=begin + 1, allowed=_ALLOWED
        )
    return name, end
