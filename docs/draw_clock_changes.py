"""Draws docs/concepts/spring.svg and autumn.svg from the cron engine itself: python -m docs.draw_clock_changes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from docs.svg_text import svg_text
from foresail.cron import Dialect, parse
from foresail.cron.zones import load_zoneinfo

ZONE = "Europe/Berlin"
SCHEDULES = ("0 * * * *", "30 2 * * *", "0 3 * * *", "*/30 2 * * *")
PICTURES = {
    "spring.svg": (datetime(2027, 3, 27, 23, tzinfo=UTC), "Spring: the clock jumps from 02:00 to 03:00"),
    "autumn.svg": (datetime(2027, 10, 30, 22, tzinfo=UTC), "Autumn: the clock shows 02:00 to 03:00 twice"),
}
HOURS = 6
FONT = 'font-family="sans-serif"'
LEFT, WIDTH, TOP, LANE = 190, 600, 92, 26
COLOURS = {Dialect.ROBFIG: "#0072b2", Dialect.GOCRON: "#d55e00"}
INK, PALE, GRID = "#1c2a33", "#546e7a", "#dfe5e8"


def files() -> dict[str, str]:
    """Return the pictures, by their paths below docs/."""
    return {f"concepts/{name}": picture(start, title) for name, (start, title) in PICTURES.items()}


def picture(start: datetime, title: str) -> str:
    """Return one night in real time, from left to right, with the wall clock written along it."""
    height = TOP + len(SCHEDULES) * (2 * LANE + 10) + 16
    parts = [svg_text((20, 26), title, 16, INK, weight=600)]
    parts += [
        f'<circle cx="{x}" cy="46" r="5" fill="{COLOURS[dialect]}"/>{svg_text((x + 12, 50), name, 13, INK)}'
        for x, dialect, name in (
            (26, Dialect.ROBFIG, "robfig: CronJob, Velero up to 1.18.2"),
            (330, Dialect.GOCRON, "go-cron: Velero from 1.18.3 on"),
        )
    ]
    parts += _axis(start, height)
    for row, text in enumerate(SCHEDULES):
        y = TOP + 16 + row * (2 * LANE + 10)
        parts.append(svg_text((LEFT - 20, y + LANE / 2 + 4), text, 14, INK, weight=600, anchor="end"))
        for lane, dialect in enumerate(Dialect):
            at = y + lane * LANE
            parts.append(f'<line x1="{LEFT}" y1="{at}" x2="{LEFT + WIDTH}" y2="{at}" stroke="{GRID}"/>')
            parts += _fires(text, dialect, start, at)
    width = LEFT + WIDTH + 40
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" {FONT}>',
            f"<title>{title}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _axis(start: datetime, height: int) -> list[str]:
    wall = load_zoneinfo(ZONE)
    parts = [svg_text((LEFT - 34, TOP - 14), "wall clock", 13, PALE, anchor="end")]
    for hour in range(HOURS + 1):
        at = start + timedelta(hours=hour)
        before, after = (at - timedelta(seconds=1)).astimezone(wall), at.astimezone(wall)
        x = LEFT + hour * WIDTH / HOURS
        changes = before.utcoffset() != after.utcoffset()
        stroke = '#8470a8" stroke-width="3' if changes else GRID
        parts.append(f'<line x1="{x:g}" y1="{TOP - 6}" x2="{x:g}" y2="{height - 16}" stroke="{stroke}"/>')
        shown = f"{before + timedelta(seconds=1):%H:%M} → {after:%H:%M}" if changes else f"{after:%H:%M}"
        parts.append(
            svg_text(
                (x, TOP - 14),
                shown,
                13,
                "#8470a8" if changes else PALE,
                weight=600 if changes else 400,
                anchor="middle",
            )
        )
    return parts


def _fires(text: str, dialect: Dialect, start: datetime, y: float) -> list[str]:
    shown = timedelta(hours=HOURS)
    fires = parse(text, dialect, ZONE).between(start, start + shown + timedelta(seconds=1))
    places = (LEFT + (fire - start) / shown * WIDTH for fire in fires)
    return [f'<circle cx="{x:g}" cy="{y}" r="6" fill="{COLOURS[dialect]}"/>' for x in places]


if __name__ == "__main__":
    for path, text in files().items():
        (Path(__file__).parent / path).write_text(text)
