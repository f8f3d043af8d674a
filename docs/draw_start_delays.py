"""Draws docs/concepts/cold-and-warm.svg: python docs/draw_start_delays.py."""

from pathlib import Path

SECONDS = {"no Primer": 26, "method Placeholder": 1, "method CronJob": 0}
"""As docs/benchmarks.md has them, measured by tests/cluster/test_primers.py."""
COLD, WARM, INK = "#0072b2", "#d55e00", "#1c2a33"
LEFT, WIDTH, TOP, LANE = 170, 560, 60, 44


def files() -> dict[str, str]:
    """Return the picture, by its path below docs/."""
    title = "Seconds from the fire of a CronJob to its running pod, where a node takes 20 s"
    width, height = LEFT + WIDTH + 60, TOP + LANE * len(SECONDS) + 10
    longest = max(SECONDS.values())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="sans-serif">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(20, 28, title, 16, 600),
    ]
    for row, (name, value) in enumerate(SECONDS.items()):
        y = TOP + row * LANE
        long = max(WIDTH * value / longest, 2)
        colour = COLD if value == longest else WARM
        parts += [
            _text(LEFT - 14, y + 18, name, 14, anchor="end"),
            f'<rect x="{LEFT}" y="{y}" width="{long:g}" height="26" rx="3" fill="{colour}"/>',
            _text(LEFT + long + 8, y + 18, f"{value} s", 14, 600),
        ]
    return {"concepts/cold-and-warm.svg": "\n".join([*parts, "</svg>\n"])}


def _text(x: float, y: float, text: str, size: int, weight: int = 400, anchor: str = "start") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" fill="{INK}" '
        f'text-anchor="{anchor}">{text}</text>'
    )


if __name__ == "__main__":
    for path, picture in files().items():
        (Path(__file__).parent / path).write_text(picture)
