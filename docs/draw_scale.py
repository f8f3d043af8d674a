"""Draws docs/contributing/scale.svg from docs/contributing/scale.json: python -m docs.draw_scale."""

import json
from pathlib import Path
from typing import Any

from docs.svg_text import svg_text

DOCS = Path(__file__).parent
PANELS = (
    ("rss_mib", "memory", "MiB"),
    ("cold_start_s", "cold start", "s"),
    ("scrape_cpu_ms", "CPU of a scrape", "ms"),
    ("reconcile_cpu_ms", "CPU of a reconcile", "ms"),
    ("request_to_created_ms", "a request, alone", "ms"),
    ("writes_per_s", "writes in a burst", "per s"),
)
BAR, INK, PALE, GRID = "#0072b2", "#1c2a33", "#546e7a", "#dfe5e8"
WIDTH, HEIGHT, PLOT, LEFT, TOP, COLUMNS = 260, 220, 120, 30, 96, 3


def files() -> dict[str, str]:
    """Return the picture, by its path below docs/."""
    rows: list[dict[str, Any]] = json.loads((DOCS / "contributing" / "scale.json").read_text())["rows"]
    sizes = ", ".join(f"{row['backups']:,}" for row in rows)
    title = "What one operator costs among 1, 3 and 10 times as many objects"
    width, height = 2 * LEFT + COLUMNS * WIDTH - 30, TOP + HEIGHT * (len(PANELS) // COLUMNS) - 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="sans-serif">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        svg_text((LEFT, 32), title, 17, INK, weight=600),
        svg_text(
            (LEFT, 54),
            f"{sizes} finished backups of tenants, and a tenth as many Schedules; one run on a busy machine",
            13,
            colour=PALE,
        ),
    ]
    for number, panel in enumerate(PANELS):
        x, y = LEFT + number % COLUMNS * WIDTH, TOP + number // COLUMNS * HEIGHT
        parts += _panel(x, y, panel, rows)
    return {"contributing/scale.svg": "\n".join([*parts, "</svg>\n"])}


def _panel(x: int, y: int, panel: tuple[str, str, str], rows: list[dict[str, Any]]) -> list[str]:
    name, text, unit = panel
    most = max(row[name] for row in rows)
    step = (WIDTH - 40) / len(rows)
    floor = y + 24 + PLOT
    parts = [svg_text((x, y), f"{text}, {unit}", 14, INK, weight=600)]
    for number, row in enumerate(rows):
        long = max(PLOT * 0.86 * row[name] / most, 1)
        at = x + number * step + 8
        middle = at + (step - 16) / 2
        parts.append(f'<rect x="{at:g}" y="{floor - long:g}" width="{step - 16:g}" height="{long:g}" fill="{BAR}"/>')
        parts.append(svg_text((middle, floor - long - 6), f"{row[name]:g}", 13, INK, anchor="middle"))
        parts.append(
            svg_text(
                (middle, floor + 18), f"{row['backups'] // rows[0]['backups']} x", 13, anchor="middle", colour=PALE
            )
        )
    parts.append(f'<line x1="{x}" y1="{floor}" x2="{x + WIDTH - 40}" y2="{floor}" stroke="{GRID}" stroke-width="2"/>')
    return parts


if __name__ == "__main__":
    for path, picture in files().items():
        (DOCS / path).write_text(picture)
