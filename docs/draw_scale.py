"""Draws docs/contributing/scale.svg and whole.svg from the JSON of their measurements: python -m docs.draw_scale."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.svg_text import svg_text

DOCS = Path(__file__).parent
BAR, INK, PALE, GRID = "#0072b2", "#1c2a33", "#546e7a", "#dfe5e8"
WIDTH, HEIGHT, PLOT, LEFT, TOP, COLUMNS = 260, 220, 120, 30, 96, 3

Row = dict[str, Any]
Panel = tuple[str, str, str]


@dataclass(frozen=True)
class Growth:
    """One picture of how cost grows: a panel for each figure, a bar for each size."""

    title: str
    objects: str
    panels: tuple[Panel, ...]


PICTURES = {
    "scale": Growth(
        "What one operator costs among 1, 3 and 10 times as many objects",
        "finished backups of tenants, and a tenth as many Schedules; one run on a busy machine",
        (
            ("rss_mib", "memory", "MiB"),
            ("cold_start_s", "cold start", "s"),
            ("scrape_cpu_ms", "CPU of a scrape", "ms"),
            ("reconcile_cpu_ms", "CPU of a reconcile", "ms"),
            ("request_to_created_ms", "a request, alone", "ms"),
            ("writes_per_s", "writes in a burst", "per s"),
        ),
    ),
    "whole": Growth(
        "What one operator of each kind costs, all in one cluster",
        "backups of tenants, and everything else in proportion; one run for each size",
        (
            ("memory_mib", "memory of all four", "MiB"),
            ("cold_start_s", "cold start of all", "s"),
            ("scrape_ms", "CPU of the dearest scrape", "ms"),
            ("idle_millicores", "CPU while idle", "millicores"),
            ("due_p99_s", "due to created, 99 %", "s"),
            ("failover_s", "failover", "s"),
        ),
    ),
}


def rows_of(name: str) -> list[Row]:
    """Return what was measured, one row for each size."""
    rows: list[Row] = json.loads((DOCS / "contributing" / f"{name}.json").read_text())["rows"]
    return rows


def files() -> dict[str, str]:
    """Return the pictures, by their paths below docs/."""
    return {f"contributing/{name}.svg": _drawn(growth, rows_of(name)) for name, growth in PICTURES.items()}


def _drawn(growth: Growth, rows: list[Row]) -> str:
    sizes = ", ".join(f"{row['backups']:,}" for row in rows)
    width, height = 2 * LEFT + COLUMNS * WIDTH - 30, TOP + HEIGHT * (len(growth.panels) // COLUMNS) - 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="sans-serif">',
        f"<title>{growth.title}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        svg_text((LEFT, 32), growth.title, 17, INK, weight=600),
        svg_text((LEFT, 54), f"{sizes} {growth.objects}", 13, colour=PALE),
    ]
    for number, panel in enumerate(growth.panels):
        x, y = LEFT + number % COLUMNS * WIDTH, TOP + number // COLUMNS * HEIGHT
        parts += _panel(x, y, panel, rows)
    return "\n".join([*parts, "</svg>\n"])


def _panel(x: int, y: int, panel: Panel, rows: list[Row]) -> list[str]:
    name, text, unit = panel
    most = max(row.get(name, 0) for row in rows)
    step = (WIDTH - 40) / len(rows)
    floor = y + 24 + PLOT
    parts = [svg_text((x, y), f"{text}, {unit}", 14, INK, weight=600)]
    for number, row in enumerate(rows):
        value = row.get(name)
        long = 0 if value is None else max(PLOT * 0.86 * value / most, 1)
        at = x + number * step + 8
        middle = at + (step - 16) / 2
        parts.append(f'<rect x="{at:g}" y="{floor - long:g}" width="{step - 16:g}" height="{long:g}" fill="{BAR}"/>')
        shown = "not run" if value is None else f"{value:g}"
        parts.append(svg_text((middle, floor - long - 6), shown, 13, INK, anchor="middle"))
        times = f"{row['backups'] // rows[0]['backups']} x"
        parts.append(svg_text((middle, floor + 18), times, 13, anchor="middle", colour=PALE))
    parts.append(f'<line x1="{x}" y1="{floor}" x2="{x + WIDTH - 40}" y2="{floor}" stroke="{GRID}" stroke-width="2"/>')
    return parts


if __name__ == "__main__":
    for path, picture in files().items():
        (DOCS / path).write_text(picture)
