"""Makes random schedules, valid and not, and the instants from which it is worth asking them."""

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from foresail.cron.zones import DAY, load_zone, zone_names

if TYPE_CHECKING:
    from collections.abc import Callable

ZONES = (
    "UTC", "Africa/Cairo", "Asia/Beirut", "Australia/Lord_Howe", "America/Santiago",
    "Antarctica/Troll", "Europe/Dublin", "Asia/Kathmandu", "Europe/Berlin", "Europe/London",
    "Europe/Lisbon", "Europe/Chisinau", "Europe/Kyiv", "Europe/Moscow", "America/New_York",
    "America/Chicago", "America/Los_Angeles", "America/Anchorage", "America/Adak", "America/Havana",
    "America/Nuuk", "America/Scoresbysund", "America/St_Johns", "America/Miquelon",
    "America/Asuncion", "America/Sao_Paulo", "America/Mexico_City", "America/Port-au-Prince",
    "Pacific/Easter", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Norfolk", "Pacific/Apia",
    "Pacific/Kiritimati", "Pacific/Pago_Pago", "Australia/Sydney", "Australia/Adelaide",
    "Australia/Eucla", "Asia/Jerusalem", "Asia/Gaza", "Asia/Tehran", "Asia/Kolkata", "Asia/Tokyo",
    "Asia/Almaty", "Asia/Amman", "Atlantic/Azores", "Africa/Casablanca", "Africa/El_Aaiun",
    "Africa/Monrovia", "Etc/GMT-14", "Etc/GMT+12", "Antarctica/Casey",
)  # fmt: skip
FIRST, _LAST = 1704067200, 1924991999  # 2024 to 2030
_LOW = (0, 0, 1, 1, 0)
_HIGH = (59, 23, 31, 12, 6)
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_MACROS = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
    "@triggered",
    "@manual",
    "@none",
    "@reboot",
]
_BLANKS = (" ", " ", " ", "  ", "\t", "\n", "\u00a0", "\u2003", "\u3000", "\u0085", "\u1680", "\v")
_ODD_ZONES = (
    "", "Local", "utc", "europe/berlin", "Europe/../Europe/Berlin", "Europe//Berlin", "./UTC",
    "/UTC", "\\UTC", "Europe", "Europe/Berlin/", '"Europe/Berlin"', "'UTC'", '"UTC', "Mars/Olympus",
    "GMT", "EST5EDT", "zone.tab", "..", "Factory", "Etc/GMT+5", "Etc/GMT-3", "posix/UTC",
    "__init__.py", "tzdata.zi", "A" * 65,
)  # fmt: skip
_JUNK = "0123456789*?,-/+ LW#HhR@.TZ=\u0130\u0131\u017f\u212a\u0660\uff11_\x00\x1c\x85xye"
_UNITS = ("h", "m", "s", "ms", "us", "\u00b5s", "\u03bcs", "ns")


@dataclass(frozen=True, slots=True)
class Spec:
    """A text and the class it was made in."""

    text: str
    kind: str


class SpecMaker:
    """A source of random schedules, the same for the same seed."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._kinds: list[tuple[int, str, Callable[[], str]]] = [
            (30, "as people write them", self._usual),
            (27, "any fields", self._any_fields),
            (10, "rare or impossible dates", self._rare),
            (6, "macro", self._macro),
            (6, "@every", self._every),
            (15, "one character off", self._damaged),
            (3, "values out of bounds", self._out_of_bounds),
            (3, "junk", self._junk),
        ]

    def make(self) -> Spec:
        """Return one more spec."""
        kinds = self._kinds
        _, kind, maker = self._random.choices(kinds, [weight for weight, _, _ in kinds])[0]
        return Spec(self._prefix() + maker(), kind)

    def _prefix(self) -> str:
        draw = self._random.random()
        if draw < 0.8:
            return ""
        word = self._random.choice(("TZ=", "CRON_TZ="))
        if draw < 0.95:
            return word + self._random.choice(ZONES) + self._random.choice((" ", " ", "  ", " \t"))
        name = self._random.choice((*_ODD_ZONES, *self._random.choices(sorted(zone_names()), k=9)))
        return word + name + self._random.choice((" ", " ", " ", "", "\t"))

    def _usual(self) -> str:
        pick = self._random.choice
        minute = pick(("0", "0", "30", "15", "*/5", "*/15", "*/10", "0,30", "*", str(self._random.randrange(60))))
        hour = pick(("*", "*", "0", "1", "2", "3", "*/6", "8-18", "22", str(self._random.randrange(24))))
        day = pick(("*", "*", "*", "*", "1", "15", "1,15", "*/2", "1-7", "L", "31"))
        month = pick(("*", "*", "*", "*", "*/3", "1", "3", "10", "JAN-MAR"))
        weekday = pick(("*", "*", "*", "0", "1-5", "MON", "5", "SAT,SUN", "6", "7", "FRI-MON"))
        return f"{minute} {hour} {day} {month} {weekday}"

    def _any_fields(self) -> str:
        text = self._field(0)
        for place in range(1, 5):
            text += self._random.choice(_BLANKS) + self._field(place)
        return text

    def _field(self, place: int) -> str:
        if self._random.random() < (0.15, 0.25, 0.45, 0.6, 0.5)[place]:
            return self._random.choice("**?")
        items = [self._item(place) for _ in range(self._random.choice((1, 1, 1, 2, 3)))]
        return ("," if self._random.random() < 0.01 else "") + ",".join(items)

    def _item(self, place: int) -> str:
        draw = self._random.random()
        if draw < 0.45:
            return self._value(place)
        step = f"/{self._random.choice((1, 2, 3, 4, 5, 7, 10, 15, 20, 25, 30, 61, 99))}"
        if draw < 0.6:
            return self._random.choice("*?") + step
        if draw < 0.7:
            return self._value(place) + step
        ends = [self._value(place), self._value(place)]
        if self._random.random() < 0.75:
            ends.sort(key=lambda word: int(word) if word.isdigit() else 0)
        return "-".join(ends) + (step if self._random.random() < 0.4 else "")

    def _value(self, place: int) -> str:
        value = self._random.randint(_LOW[place], _HIGH[place])
        named = {3: _MONTHS, 4: _WEEKDAYS}.get(place)
        if named and self._random.random() < 0.4:
            word = named[value - _LOW[place]]
            return self._random.choice((word, word.lower(), word.title()))
        return self._random.choice(("",) * 12 + ("0", "+", "00")) + str(value)

    def _rare(self) -> str:
        pick = self._random.choice
        day = pick(("29", "30", "31", "31", "13", "1", "29-31", ",", "1"))
        month = pick(("2", "2", "*", "4", "2,4", "FEB", "1", "3", "11"))
        weekday = pick(("*", "*", "*", "5", "1", "0", "FRI", "?"))
        return f"{self._field(0)} {self._field(1)} {day} {month} {weekday}"

    def _macro(self) -> str:
        macro = self._random.choice(_MACROS)
        return self._random.choice((macro,) * 8 + (macro.title(), macro + " ", " " + macro, macro[1:]))

    def _every(self) -> str:
        text = self._random.choice(("",) * 9 + ("-", "+"))
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            digits = self._random.choice((1, 1, 2, 2, 3, 5, 10, 19, 20))
            number = str(self._random.randrange(10**digits))
            draw = self._random.random()
            if draw < 0.2:
                number += "." + str(self._random.randrange(10 ** self._random.choice((1, 2, 9, 19, 25))))
            elif draw < 0.25:
                number = self._random.choice((".5", "5.", ".", "", "1..5", "9223372036854775808"))
            text += number + self._random.choice((*_UNITS[:3] * 4, *_UNITS, "d", "", "H"))
        return self._random.choice(("@every ",) * 9 + ("@every", "@every  ", "@Every ")) + text

    def _damaged(self) -> str:
        text = list(self._random.choice((self._usual, self._any_fields, self._macro, self._every))())
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            at = self._random.randrange(len(text) + 1)
            text[at : at + self._random.choice((0, 1))] = self._random.choice((*_JUNK, "", *"0123*,-/15" * 4))
        return "".join(text)

    def _out_of_bounds(self) -> str:
        words = [self._field(place) for place in range(5)]
        place = self._random.randrange(5)
        big = self._random.choice((_HIGH[place] + 1, _HIGH[place] + 2, 100, 2**31, 2**63 - 1, 2**63, 10**25))
        low = self._random.choice((0, self._random.randint(_LOW[place], _HIGH[place])))
        words[place] = self._random.choice(
            (
                f"{big}",
                f"{big}-{low}",
                f"{big}/2",
                f"{low}-{big}",
                f"*/{big}",
                f"{big}-{low}/2",
                f"{low}/{big}",
                "0",
            )
        )
        return " ".join(words)

    def _junk(self) -> str:
        return "".join(self._random.choices(_JUNK, k=self._random.choice((0, 1, 3, 9, 20))))


class StartMaker:
    """A source of instants: round each change of clocks of 2024 to 2030 in turn, and elsewhere."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.changes = [
            (name, start) for name in ZONES for start in load_zone(name).near.starts if FIRST <= start <= _LAST
        ]
        self._turn = 0

    def make(self) -> tuple[str, int, int]:
        """Return a zone, a second since 1970 and microseconds beyond it."""
        random = self._random
        draw = random.random()
        micros = random.choice((0, 0, 0, 1, 500_000, 999_999))
        if draw < 0.7:
            name, change = self.changes[self._turn % len(self.changes)]
            self._turn += 1
            reach = random.choice((2, 4000, 4 * 3600, 86400, 4 * 86400, 40 * 86400))
            return name, change + random.randint(-reach, reach), micros
        name = random.choice(ZONES)
        if draw < 0.85:
            return name, random.randint(FIRST, _LAST), micros
        if draw < 0.9:
            return (
                name,
                random.randint(2024, 2030) * 31556952 - 62167219200 + random.randint(-90000, 90000),
                micros,
            )
        if draw < 0.95:
            return name, random.randint(_LAST, 20_000_000_000), micros
        return name, random.randint(_earliest(name), FIRST), micros


def _earliest(name: str) -> int:
    """Return from when on a zone can be asked: the libraries never return where a zone skips a whole day."""
    table = load_zone(name).near
    skips = [
        start
        for start, before, after in zip(table.starts[1:], table.offsets, table.offsets[1:], strict=False)
        if after - before >= DAY
    ]
    return max([*skips, -3_500_000_000])
