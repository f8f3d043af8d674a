"""What the design document requires of skipImmediately, one row per statement: for worlds and for real clusters.

A row is a Schedule `@every` period, what is done to it and when, and what must have become of it at the end. All
times are in periods since its creation, so that a period can be ten minutes of virtual time or some seconds of real
time. What fires is named by what it is counted from: `c2` is two periods after creationTimestamp, `s1` one period
after status.lastSkipped. At five seconds and more a period, whole seconds are exact enough for every row.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

UNTIL = 3.75
"""When a row ends, unless it says otherwise: three periods have passed, and the fourth is not near."""

RUNNING: dict[str, object] = {"skipImmediately": False}
"""A Schedule whose first run nothing skips."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that is done to the spec, as a merge patch: None takes a field away."""

    at: float
    spec: dict[str, object]


@dataclass(frozen=True, slots=True)
class Row:
    """A statement, and what happens if it holds."""

    says: str
    default: bool  # --schedule-skip-immediately of the operator
    spec: dict[str, object]  # of the Schedule when it is created, beside schedule and template
    steps: tuple[Step, ...]
    skips: int  # how often status.lastSkipped moves
    left: bool | None  # spec.skipImmediately at the end
    fires: str
    first_seen: float = 0.0  # from when on the operator runs
    until: float = UNTIL

    def slots(self, period: timedelta, created: datetime, skipped: datetime | None) -> list[datetime]:
        """Return the slots that must have fired by the end, and no others."""
        anchors = {"c": created, "s": skipped}
        found = []
        for word in self.fires.split():
            anchor = anchors[word[0]]
            assert anchor is not None, f"{self.says}: {word}, but nothing was ever skipped"
            found.append(anchor + int(word[1:]) * period)
        return found


def pause(at: float, field: bool | None) -> Step:
    """Pause, with the field as it is to be stored."""
    return Step(at, {"paused": True, "skipImmediately": field})


def unpause(at: float, **flag: bool) -> Step:
    """Unpause; `skipImmediately` is what --skip-immediately of the command line says, if it is there."""
    return Step(at, {"paused": False, **flag})


_CREATED = """
field  default  due  | skips  left   fires
nil    false    no   | 0      nil    c1 c2 c3
true   false    no   | 1      nil    s1 s2 s3
false  false    no   | 0      false  c1 c2 c3
nil    true     no   | 1      nil    s1 s2 s3
true   true     no   | 1      nil    s1 s2 s3
false  true     no   | 0      false  c1 c2 c3
nil    false    yes  | 0      nil    c1 c2 c3
true   false    yes  | 1      nil    s1 s2
false  false    yes  | 0      false  c1 c2 c3
nil    true     yes  | 1      nil    s1 s2
true   true     yes  | 1      nil    s1 s2
false  true     yes  | 0      false  c1 c2 c3
"""

_UNPAUSED = """
stored  flag   default  due  | skips  left   fires
nil     none   false    no   | 0      nil    c1 c2 c3
nil     true   false    no   | 1      nil    s1 s2 s3
nil     false  false    no   | 0      false  c1 c2 c3
true    none   false    no   | 1      nil    s1 s2 s3
true    true   false    no   | 1      nil    s1 s2 s3
true    false  false    no   | 0      false  c1 c2 c3
false   none   false    no   | 0      false  c1 c2 c3
false   true   false    no   | 1      nil    s1 s2 s3
false   false  false    no   | 0      false  c1 c2 c3
nil     none   true     no   | 1      nil    s1 s2 s3
nil     true   true     no   | 1      nil    s1 s2 s3
nil     false  true     no   | 0      false  c1 c2 c3
true    none   true     no   | 1      nil    s1 s2 s3
true    true   true     no   | 1      nil    s1 s2 s3
true    false  true     no   | 0      false  c1 c2 c3
false   none   true     no   | 0      false  c1 c2 c3
false   true   true     no   | 1      nil    s1 s2 s3
false   false  true     no   | 0      false  c1 c2 c3
nil     none   false    yes  | 0      nil    c1 c2 c3
nil     true   false    yes  | 1      nil    s1 s2
nil     false  false    yes  | 0      false  c1 c2 c3
true    none   false    yes  | 1      nil    s1 s2
true    true   false    yes  | 1      nil    s1 s2
true    false  false    yes  | 0      false  c1 c2 c3
false   none   false    yes  | 0      false  c1 c2 c3
false   true   false    yes  | 1      nil    s1 s2
false   false  false    yes  | 0      false  c1 c2 c3
nil     none   true     yes  | 1      nil    s1 s2
nil     true   true     yes  | 1      nil    s1 s2
nil     false  true     yes  | 0      false  c1 c2 c3
true    none   true     yes  | 1      nil    s1 s2
true    true   true     yes  | 1      nil    s1 s2
true    false  true     yes  | 0      false  c1 c2 c3
false   none   true     yes  | 0      false  c1 c2 c3
false   true   true     yes  | 1      nil    s1 s2
false   false  true     yes  | 0      false  c1 c2 c3
"""

_UNPAUSED_AFTER_A_RUN = """
stored  flag   default  due  | skips  left   fires
nil     none   false    no   | 0      nil    c1 c2 c3
nil     true   false    no   | 1      nil    c1 s1 s2
nil     false  false    no   | 0      false  c1 c2 c3
true    none   false    no   | 1      nil    c1 s1 s2
true    true   false    no   | 1      nil    c1 s1 s2
true    false  false    no   | 0      false  c1 c2 c3
false   none   false    no   | 0      false  c1 c2 c3
false   true   false    no   | 1      nil    c1 s1 s2
false   false  false    no   | 0      false  c1 c2 c3
nil     none   true     no   | 1      nil    c1 s1 s2
nil     true   true     no   | 1      nil    c1 s1 s2
nil     false  true     no   | 0      false  c1 c2 c3
true    none   true     no   | 1      nil    c1 s1 s2
true    true   true     no   | 1      nil    c1 s1 s2
true    false  true     no   | 0      false  c1 c2 c3
false   none   true     no   | 0      false  c1 c2 c3
false   true   true     no   | 1      nil    c1 s1 s2
false   false  true     no   | 0      false  c1 c2 c3
nil     none   false    yes  | 0      nil    c1 c2 c3
nil     true   false    yes  | 1      nil    c1 s1
nil     false  false    yes  | 0      false  c1 c2 c3
true    none   false    yes  | 1      nil    c1 s1
true    true   false    yes  | 1      nil    c1 s1
true    false  false    yes  | 0      false  c1 c2 c3
false   none   false    yes  | 0      false  c1 c2 c3
false   true   false    yes  | 1      nil    c1 s1
false   false  false    yes  | 0      false  c1 c2 c3
nil     none   true     yes  | 1      nil    c1 s1
nil     true   true     yes  | 1      nil    c1 s1
nil     false  true     yes  | 0      false  c1 c2 c3
true    none   true     yes  | 1      nil    c1 s1
true    true   true     yes  | 1      nil    c1 s1
true    false  true     yes  | 0      false  c1 c2 c3
false   none   true     yes  | 0      false  c1 c2 c3
false   true   true     yes  | 1      nil    c1 s1
false   false  true     yes  | 0      false  c1 c2 c3
"""

_PAUSED = """
field  default  due  | skips  left   fires
nil    false    yes  | 0      nil    c1
true   false    yes  | 0      true   c1
false  false    yes  | 0      false  c1
nil    true     yes  | 0      nil    c1
true   true     yes  | 0      true   c1
false  true     yes  | 0      false  c1
"""

_WORDS = {"nil": None, "true": True, "false": False}


def _rows(table: str) -> list[dict[str, str]]:
    """Read a table: what stands before the bar, and behind it three columns, of which the last has several words."""
    head, *lines = [line.replace("|", " ").split() for line in table.strip().splitlines()]
    wide = len(head) - 1
    return [dict(zip(head, [*line[:wide], " ".join(line[wide:])], strict=True)) for line in lines]


def _row(says: str, at: dict[str, str], spec: dict[str, object], *steps: Step, first_seen: float = 0.0) -> Row:
    columns = ", ".join(f"{name} {at[name]}" for name in ("field", "stored", "flag", "default", "due") if name in at)
    default = at["default"] == "true"
    return Row(
        f"{says}: {columns}", default, spec, steps, int(at["skips"]), _WORDS[at["left"]], at["fires"], first_seen
    )


def _field(word: str) -> dict[str, object]:
    return {} if word == "nil" else {"skipImmediately": _WORDS[word]}


def _flag(word: str) -> dict[str, bool]:
    return {} if word == "none" else {"skipImmediately": word == "true"}


ROWS: tuple[Row, ...] = (
    *(_row("create", at, _field(at["field"]), first_seen=1.5 if at["due"] == "yes" else 0.0) for at in _rows(_CREATED)),
    *(
        _row(
            "unpause, never run",
            at,
            {"paused": True, **_field(at["stored"])},
            unpause(1.5 if at["due"] == "yes" else 0.5, **_flag(at["flag"])),
        )
        for at in _rows(_UNPAUSED)
    ),
    *(
        _row(
            "unpause, run before",
            at,
            RUNNING,
            pause(1.25, _WORDS[at["stored"]]),
            unpause(2.5 if at["due"] == "yes" else 1.5, **_flag(at["flag"])),
        )
        for at in _rows(_UNPAUSED_AFTER_A_RUN)
    ),
    *(_row("pause", at, RUNNING, pause(1.25, _WORDS[at["field"]])) for at in _rows(_PAUSED)),
    *(_row("create paused", at, {"paused": True, **_field(at["field"])}) for at in _rows(_PAUSED.replace("c1", "  "))),
    Row(
        "the field turns true while it runs",
        default=False,
        spec={},
        steps=(Step(1.5, {"skipImmediately": True}),),
        skips=1,
        left=None,
        fires="c1 s1 s2",
    ),
    Row(
        "true is put back without a pause: it stays, and nothing moves",
        default=False,
        spec={"skipImmediately": True},
        steps=(Step(0.5, {"skipImmediately": True}), Step(1.5, {"skipImmediately": True})),
        skips=1,
        left=True,
        fires="s1 s2 s3",
    ),
    Row(
        "true is put back after it was used for an unpause: it stays, and nothing moves",
        default=False,
        spec={"paused": True, "skipImmediately": True},
        steps=(unpause(1.5), Step(1.75, {"skipImmediately": True})),
        skips=1,
        left=True,
        fires="s1 s2",
    ),
    Row(
        "a pause makes it usable again",
        default=False,
        spec={"paused": True, "skipImmediately": True},
        steps=(unpause(0.25), Step(0.5, {"skipImmediately": True}), Step(0.75, {"paused": True}), unpause(1.5)),
        skips=2,
        left=None,
        fires="s1 s2",
    ),
    Row(
        "the default is applied once, and not to a field that turns false",
        default=True,
        spec={},
        steps=(Step(0.5, {"skipImmediately": False}),),
        skips=1,
        left=False,
        fires="s1 s2 s3",
    ),
    Row(
        "the default, three slots: one is skipped and two are run",
        default=True,
        spec={},
        steps=(),
        skips=1,
        left=None,
        fires="s1 s2",
        first_seen=1.5,
    ),
)
"""Every statement, for whoever runs them: the names (`says`) are all different."""
