"""What docs/concepts/protection.md says of who is in the backups of which class, written from that page alone.

It imports nothing of the operator's. Time is real: an exemption holds or not when it is asked for.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

LABEL, REASON, UNTIL = (f"foresail.dev/protection{end}" for end in ("", "-reason", "-until"))
EXCLUDE = "velero.io/exclude-from-backup"
_DAY = len("2027-01-31")


@dataclass
class Namespace:
    """What a namespace says, and the classes that take it."""

    name: str
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taken_by: set[str] = field(default_factory=set)
    good: set[str] = field(default_factory=set)  # those of them that have a good backup of it since they take it

    def is_exempt(self, now: datetime) -> bool:
        """Whether it is exempt: the label none, a reason, and a date that is to come."""
        if self.labels.get(LABEL) != "none" or not self.annotations.get(REASON, "").strip():
            return False
        text = self.annotations.get(UNTIL, "")
        try:
            if len(text) == _DAY:
                return datetime.fromisoformat(f"{text}T23:59:59+00:00") > now
            until = datetime.fromisoformat(text)
        except ValueError:
            return False
        return until.tzinfo is not None and until > now


@dataclass
class Protected:
    """Classes by name, each with whether it is the default, and the namespaces."""

    classes: dict[str, bool] = field(default_factory=dict)
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset({"velero", "foresail"})

    def settle(self, now: datetime) -> None:
        """Put every namespace where it belongs; it leaves its old class only when that is allowed at once."""
        for each in self.namespaces.values():
            if each.labels.get(EXCLUDE) == "true" or each.is_exempt(now):
                each.taken_by.clear()
            elif wanted := self.class_of(each):
                each.taken_by = {wanted} if wanted in each.good else {*each.taken_by, wanted}
            each.good &= each.taken_by

    def class_of(self, namespace: Namespace) -> str:
        """Return the class that a namespace gets, which says neither none nor that it is excluded."""
        named = namespace.labels.get(LABEL, "")
        if named in self.classes:
            return named
        if namespace.name.startswith("kube-") or namespace.name in self.foreign:
            return ""
        return min((name for name, is_default in self.classes.items() if is_default), default="")

    def backed_up(self, of: str, names: set[str]) -> None:
        """Note a good backup of a class, after which whoever belongs there leaves the others."""
        for name in names & self.namespaces.keys():
            if of in self.namespaces[name].taken_by:
                self.namespaces[name].good.add(of)

    def members(self) -> dict[str, set[str]]:
        """Return the namespaces that the backups of each class hold."""
        found: dict[str, set[str]] = {}
        for each in self.namespaces.values():
            for of in each.taken_by:
                found.setdefault(of, set()).add(each.name)
        return found


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)  # noqa: TID251 - real time
