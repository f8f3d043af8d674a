"""Draws docs/concepts/cold-and-warm.svg from docs/start-delays.json: python -m docs.draw_start_delays."""

import json
from pathlib import Path

from docs.svg_text import svg_text

DOCS = Path(__file__).parent
ARMS = {
    "cold": "no Primer",
    "held": "method Placeholder",
    "timed": "method CronJob",
    "buffered": "method CapacityBuffer",
}
COLD, WARM, INK, PALE, GRID = "#0072b2", "#d55e00", "#1c2a33", "#546e7a", "#dfe5e8"
LEFT, WIDTH, TOP, BAR, GAP, STEP = 200, 560, 84, 16, 18, 20


def files() -> dict[str, str]:
    """Return the picture, by its path below docs/."""
    title = "Seconds from the fire of a CronJob to its running pod, where a node takes 60 s"
    measured: dict[str, list[float]] = json.loads((DOCS / "start-delays.json").read_text())["start_delays_s"]
    found = {name: [round(each) for each in measured[arm]] for arm, name in ARMS.items()}
    runs = max(map(len, found.values()))
    width, height = LEFT + WIDTH + 60, TOP + len(found) * (runs * BAR + GAP)
    end = (max(max(each) for each in found.values()) // STEP + 1) * STEP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="sans-serif">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        svg_text((20, 28), title, 16, INK, weight=600),
        svg_text((20, 48), "one bar is one run; a fire every 4 min, warm-up 2 min", 13, colour=PALE),
        *_axis(end, height),
    ]
    for row, (name, delays) in enumerate(found.items()):
        y = TOP + row * (runs * BAR + GAP)
        parts.append(svg_text((LEFT - 14, y + runs * BAR / 2 + 3), name, 14, INK, anchor="end"))
        for run, delay in enumerate(delays):
            long = max(WIDTH * delay / end, 2)
            colour, at = (WARM if row else COLD), y + run * BAR
            parts.append(f'<rect x="{LEFT}" y="{at}" width="{long:g}" height="{BAR - 4}" fill="{colour}"/>')
            parts.append(svg_text((LEFT + long + 6, at + BAR - 5), f"{delay} s", 12, INK))
    return {"concepts/cold-and-warm.svg": "\n".join([*parts, "</svg>\n"])}


def _axis(end: int, height: int) -> list[str]:
    parts = []
    for second in range(0, end + 1, STEP):
        x = LEFT + second * WIDTH / end
        parts.append(f'<line x1="{x:g}" y1="{TOP - 6}" x2="{x:g}" y2="{height - 14}" stroke="{GRID}"/>')
        parts.append(svg_text((x, TOP - 12), f"{second} s", 12, anchor="middle", colour=PALE))
    return parts


if __name__ == "__main__":
    for path, picture in files().items():
        (DOCS / path).write_text(picture)
