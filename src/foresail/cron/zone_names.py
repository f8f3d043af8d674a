"""Validates zone names by the rules of Go's `LoadLocation` and of each dialect."""

from foresail.cron.dialect import CronError, Dialect
from foresail.cron.zones import zone_names

_GOCRON_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_-+:")
_MAX_LENGTH = 64
_ALLOWED = "a zone of the IANA database in its own spelling, such as Europe/Berlin or UTC"


def is_zone(name: str) -> bool:
    """Whether a zone of the IANA database has this name."""
    return name == "UTC" or name in zone_names()


def validate_zone_name(name: str) -> str:
    """Return the name of a setting or a `timeZone` field if it is valid; `Local` is refused as ambiguous."""
    if is_zone(name):
        return name
    raise CronError(f"{name!r} is not a time zone", text=name, field="time zone", allowed=_ALLOWED)


def split_zone_prefix(text: str, dialect: Dialect, local: str) -> tuple[str, int]:
    """Return the zone of a schedule and where its fields begin; the zone is `local` without a prefix."""
    if not text.startswith(("TZ=", "CRON_TZ=")):
        return local, 0
    begin = text.index("=") + 1
    end = text.find(" ", begin)
    if end < 0:
        # robfig crashes on this.
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
        if not name or len(name) > _MAX_LENGTH or not _GOCRON_CHARACTERS.issuperset(name):
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
    if name not in zone_names():
        raise CronError(
            f"{name!r} is not a time zone", text=text, field="time zone", column=begin + 1, allowed=_ALLOWED
        )
    return name, end
