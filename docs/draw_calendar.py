"""Draws docs/concepts/calendar.svg as `foresail schedule calendar --svg` would: python -m docs.draw_calendar."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec

from foresail.cli.cron.load import load_of, pile_line
from foresail.cli.cron.svg import load_picture
from foresail.cli.schedule.calendar import timetable
from foresail.cli.schedule.snapshot import EvaluatedSchedule, NamespaceSnapshot, backups_by_schedule, evaluate, row_of
from foresail.cron import Dialect
from foresail.plan import Key
from foresail.schedules.observe import LocationRow, VeleroServer
from foresail.schedules.settings import Settings

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
FIRST, DAYS, PILES = date(2026, 11, 16), 7, 2
SCHEDULES = {
    **{f"team-{number}": "0 0 * * *" for number in range(1, 7)},  # what everybody writes
    "shop": "30 2 * * *",
    "bank": "0 */6 * * *",
    "orders": "*/30 8-18 * * 1-5",
    "archive": "0 3 * * 0",
    "ledger": "15 22 * * 1-5",
}


def files() -> dict[str, str]:
    """Return the picture, by its path below docs/."""
    timetables = [timetable(_sight(each), NOW) for each in SCHEDULES]
    load = load_of(timetables, [FIRST + timedelta(days=each) for each in range(DAYS)], "UTC", NOW)
    return {"concepts/calendar.svg": load_picture(load, [pile_line(each) for each in load.piles[:PILES]])}


def _sight(name: str) -> EvaluatedSchedule:
    wire = {
        "apiVersion": "velero.io/v1",
        "kind": "Schedule",
        "metadata": {"name": name, "namespace": "velero", "uid": name, "creationTimestamp": "2026-11-14T12:00:00Z"},
        "spec": {"schedule": SCHEDULES[name], "template": {}},
        "status": {"phase": "Enabled"},
    }
    location = LocationRow(Key("velero", "default"), is_default=True, is_read_only=False, phase="Available", message="")
    known = NamespaceSnapshot(
        server=VeleroServer(Dialect.GOCRON, "v1.18.3"),
        backups=backups_by_schedule(()),
        locations=(location,),
        operator="foresail-0",
        settings=Settings(),
    )
    return evaluate(row_of(msgspec.Raw(msgspec.json.encode(wire))), wire, known, NOW)


if __name__ == "__main__":
    for path, text in files().items():
        (Path(__file__).parent / path).write_text(text)
