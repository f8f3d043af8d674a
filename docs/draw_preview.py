"""Draws docs/how-to/preview.svg: what `foresail protection preview` prints of a made-up cluster, by its own code.

python -m docs.draw_preview
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from docs.draw_terminal import drawn
from foresail.api.protection import ProtectionClass
from foresail.api.schedule_policy import SchedulePolicy
from foresail.cli.protection.preview import Past, Snapshot, previewed
from foresail.plan import Key
from foresail.protection.rows import NamespaceRow, class_row
from foresail.protection.view import Classes
from foresail.slots.policy_timing import policy_row

DOCS = Path(__file__).parent
NOW = datetime(2026, 11, 19, 15, tzinfo=UTC)
CLASS = {
    "metadata": {"name": "gold", "uid": "u", "generation": 1},
    "spec": {"schedule": "0 1 * * *", "schedulePolicy": "nights", "template": {"ttl": "720h"}},
}
POLICY = {"metadata": {"name": "nights"}, "spec": {"selector": {"names": ["gold-*"]}, "spread": {"within": "2h"}}}
LABELLED, PROTECTED = 140, 118
"""Namespaces in the cluster with the label, and those of them that a Schedule takes already."""


def snapshot() -> Snapshot:
    """Return the cluster that is previewed."""
    names = [f"team-{number:03}" for number in range(LABELLED)]
    rows = {name: NamespaceRow(Key("", name), f"uid-{name}", NOW, asked="gold") for name in names}
    classes = Classes({"gold": class_row(msgspec.convert(CLASS, ProtectionClass))})
    policies = (policy_row(msgspec.convert(POLICY, SchedulePolicy)),)
    past = Past(84, timedelta(seconds=22))
    return Snapshot(rows, classes, (), frozenset(names[:PROTECTED]), policies, past, 2)


def files() -> dict[str, str]:
    """Return the picture, by its path below docs/."""
    lines = [("command", "foresail protection preview -f class.yaml")]
    lines += [("output", line) for line in previewed(snapshot(), "gold", NOW)]
    return {"how-to/preview.svg": drawn(lines, "The preview of a ProtectionClass", "an administrator")}


if __name__ == "__main__":
    for path, picture in files().items():
        (DOCS / path).write_text(picture)
