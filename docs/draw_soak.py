"""Draws docs/contributing/soak.svg from docs/contributing/soak.json: python -m docs.draw_soak.

docs/contributing/soak.json is the file `curve.json` that `make soak` leaves in build/soak.
"""

import json
from pathlib import Path
from typing import Any

from docs.svg_text import svg_text

DOCS = Path(__file__).parent
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")
INK, PALE, GRID = "#1c2a33", "#546e7a", "#dfe5e8"
WIDTH, HEIGHT, LEFT, TOP, PLOT = 800, 380, 60, 92, 220
STEP = 20  # MiB between two lines of the grid


def files() -> dict[str, str]:
    """Return the picture, by its path below docs/."""
    curve: dict[str, Any] = json.loads((DOCS / "contributing" / "soak.json").read_text())
    lives: list[dict[str, Any]] = curve["lives"]
    most = STEP * (1 + max(int(mib) for life in lives for _, mib in life["samples"]) // STEP)
    last = max(minute for life in lives for minute, _ in life["samples"])
    title = "Memory of each replica through the soak"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        svg_text((LEFT, 32), title, 17, INK, weight=600),
        svg_text(
            (LEFT, 54),
            f"{curve['minutes']} minutes, {curve['faults']} faults; MiB by minutes of each process",
            13,
            PALE,
        ),
    ]
    floor = TOP + PLOT
    for mib in range(0, most + 1, STEP):
        y = floor - PLOT * mib / most
        parts.append(f'<line x1="{LEFT}" y1="{y:g}" x2="{WIDTH - 30}" y2="{y:g}" stroke="{GRID}"/>')
        parts.append(svg_text((LEFT - 8, y + 4), str(mib), 12, PALE, anchor="end"))
    minutes = range(0, int(last) + 1, 10)
    parts += [svg_text((_x(minute, last), floor + 20), f"{minute}", 12, PALE, anchor="middle") for minute in minutes]
    for number, life in enumerate(lives):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{_x(minute, last):.1f},{floor - PLOT * mib / most:.1f}" for minute, mib in life["samples"])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        grows = "" if life["slope"] is None else f", {life['slope']:+g} MiB/h"
        x, y = LEFT + number % 3 * 240, HEIGHT - 32 + number // 3 * 18
        parts.append(f'<rect x="{x}" y="{y - 9}" width="18" height="4" fill="{colour}"/>')
        parts.append(svg_text((x + 26, y - 2), f"{life['name']}{grows}", 13, INK))
    return {"contributing/soak.svg": "\n".join([*parts, "</svg>\n"])}


def _x(minute: float, last: float) -> float:
    return LEFT + (WIDTH - 30 - LEFT) * minute / last


if __name__ == "__main__":
    for path, picture in files().items():
        (DOCS / path).write_text(picture)
