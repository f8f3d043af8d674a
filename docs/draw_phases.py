"""Draws docs/concepts/phases.svg, the phases of a tenant's request: python -m docs.draw_phases."""

from pathlib import Path

from docs.svg_text import svg_text

WIDTH, HEIGHT = 1000, 300
BOX, TALL = 180, 62
INK, PALE, LINE = "#1c2a33", "#546e7a", "#90a4ae"
PHASES = {  # where it stands, its colour, and what it means
    "New": ((30, 60), "#e3f2fd", ("seen, or waiting for a", "policy, a place, a backup")),
    "BackingOff": ((30, 200), "#fff3e0", ("refused: the spec", "must be corrected")),
    "Created": ((430, 60), "#e8f5e9", ("Velero has it: it waits,", "runs, and ends")),
    "Deleting": ((800, 60), "#f3e5f5", ("on its way out",)),
}
ARROWS = (  # from, to, on which condition, and where that is written
    ((210, 91), (430, 91), "Accepted=True, Queued=True", (222, 82)),
    ((80, 122), (80, 200), "Accepted=False", (88, 165)),
    ((210, 231), (470, 122), "corrected: Accepted=True", (235, 250)),
    ((610, 91), (800, 91), "deleteBackup, or deleted", (622, 82)),
)
SAID = (
    "Succeeded=Unknown: Waiting, then Running, with the place in Velero's queue",
    "Succeeded=True: Completed; DataIncomplete=True if something was left out",
    "Succeeded=False: PartiallyFailed, Failed, with the cause",
)
TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    f'<path d="M0 0 L8 4 L0 8 z" fill="{LINE}"/></marker></defs>'
)


def files() -> dict[str, str]:
    """Return the picture, by its path below docs/."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif">',
        "<title>The phases of a NonAdminBackup and a NonAdminRestore</title>",
        TIP,
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        svg_text(
            (20, 28), "A request: its phase in the box, the condition that moves it on the arrow", 16, INK, weight=600
        ),
    ]
    for (x1, y1), (x2, y2), word, beside in ARROWS:
        parts.append(f'<path d="M{x1} {y1} L{x2} {y2}" stroke="{LINE}" stroke-width="2" marker-end="url(#tip)"/>')
        parts.append(svg_text(beside, word, 12, PALE))
    for name, ((x, y), colour, lines) in PHASES.items():
        parts.append(f'<rect x="{x}" y="{y}" width="{BOX}" height="{TALL}" rx="6" fill="{colour}" stroke="{LINE}"/>')
        parts.append(svg_text((x + 12, y + 20), name, 14, INK, weight=600))
        parts += [svg_text((x + 12, y + 38 + 15 * row), line, 12, PALE) for row, line in enumerate(lines)]
    parts += [svg_text((450, 200 + 24 * row), line, 13, INK) for row, line in enumerate(SAID)]
    return {"concepts/phases.svg": "\n".join([*parts, "</svg>\n"])}


if __name__ == "__main__":
    for path, picture in files().items():
        (Path(__file__).parent / path).write_text(picture)
