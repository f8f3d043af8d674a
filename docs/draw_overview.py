"""Draws docs/overview.svg, who asks Foresail for what: python -m docs.draw_overview."""

from pathlib import Path

from docs.svg_text import svg_text

WIDTH, HEIGHT = 1000, 427
INK, PALE, LINE = "#1c2a33", "#546e7a", "#90a4ae"
BOXES = (  # x, y, width, height, colour, title, lines
    (20, 40, 260, 76, "#e3f2fd", "A team", ("writes a NonAdminBackup or a", "NonAdminRestore in its namespace")),
    (
        20,
        137,
        260,
        76,
        "#e3f2fd",
        "An administrator",
        ("writes Schedules, SchedulePolicies", "and SelfServicePolicies"),
    ),
    (20, 234, 260, 76, "#e3f2fd", "An owner of CronJobs", ("writes a Primer:", "warm 15 minutes before the job")),
    (20, 331, 260, 76, "#e3f2fd", "An auditor", ("asks what is protected,", "writes a RestoreCheck")),
    (390, 10, 250, 407, "#fdf0dc", "Foresail", ()),
    (770, 40, 210, 76, "#e8f5e9", "Velero", ("copies objects and volumes", "as cluster administrator")),
    (770, 156, 210, 57, "#eeeaf5", "Bucket", ("the backups",)),
    (770, 234, 210, 76, "#eeeaf5", "Nodes", ("the autoscaler adds them", "before the job is due")),
    (770, 331, 210, 76, "#eeeaf5", "Sandbox", ("a fenced namespace, where", "the backup is restored")),
)
INSIDE = (  # in the box of Foresail
    (74, "self-service", "may this team do it? whose turn is it?"),
    (171, "schedules", "is it due? is the last run finished?"),
    (268, "primers", "which capacity, at which minute?"),
    (365, "proof", "is it covered? does it restore?"),
)
ARROWS = (  # from, to, word
    ((280, 78), (390, 78), "request"),
    ((280, 175), (390, 175), "schedule"),
    ((280, 272), (390, 272), "primer"),
    ((280, 369), (390, 369), "check"),
    ((640, 369), (770, 369), "restore"),
    ((640, 68), (770, 68), "Backup, Restore"),
    ((640, 175), (770, 100), "Backup"),
    ((640, 272), (770, 272), "placeholder"),
    ((875, 116), (875, 156), ""),
)
TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="5" markerHeight="5" orient="auto">'
    f'<path d="M0 0 L8 4 L0 8 z" fill="{LINE}"/></marker></defs>'
)


def files() -> dict[str, str]:
    """Return the picture, by its path below docs/."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif">',
        "<title>Teams, administrators, owners of CronJobs and auditors ask Foresail, and Foresail asks Velero</title>",
        TIP,
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for (x1, y1), (x2, y2), word in ARROWS:
        parts.append(f'<path d="M{x1} {y1} L{x2} {y2}" stroke="{LINE}" stroke-width="2" marker-end="url(#tip)"/>')
        parts.append(svg_text(((x1 + x2) / 2, (y1 + y2) / 2 - 8 - abs(y2 - y1) / 6), word, 13, PALE, anchor="middle"))
    for x, y, width, height, colour, title, lines in BOXES:
        parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{colour}" stroke="{LINE}"/>'
        )
        parts.append(svg_text((x + 14, y + 25), title, 16, INK, weight=600))
        parts += [svg_text((x + 14, y + 46 + 18 * row), line, 13, PALE) for row, line in enumerate(lines)]
    for y, name, question in INSIDE:
        parts.append(svg_text((404, y), name, 14, INK, weight=600))
        parts.append(svg_text((404, y + 18), question, 12, PALE))
    return {"overview.svg": "\n".join([*parts, "</svg>\n"])}


if __name__ == "__main__":
    for path, picture in files().items():
        (Path(__file__).parent / path).write_text(picture)
