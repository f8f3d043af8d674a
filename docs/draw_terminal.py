"""Draws docs/terminal.svg from the tutorial, whose commands and output a test checks on a real cluster.

python -m docs.draw_terminal
"""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = "tutorial/first-backup.md"
COMMANDS = (
    "foresail backup create first --wait",
    "kubectl delete configmap prices",
    "foresail restore create undo --from-backup first --wait",
    "kubectl get configmap prices -o jsonpath='{.data.tea}'",
    "foresail backup explain first",
)
BACK, BAR, TEXT, PROMPT, COMMAND, GOOD = "#1c2a33", "#263842", "#cfd8dc", "#80cbc4", "#ffffff", "#a5d6a7"
SIZE, LINE, LEFT, TOP, COLUMN = 13, 20, 22, 62, 7.83
STYLE = (
    "<style>text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    f"font-size:{SIZE}px;white-space:pre}}</style>"
)


def transcript() -> list[tuple[str, str]]:
    """Return the lines of the terminal: what kind of line, and its text."""
    text = (DOCS / PAGE).read_text()
    lines: list[tuple[str, str]] = []
    for command in COMMANDS:
        found = re.search(rf"^\$ {re.escape(command)}\n((?:(?!```|\$ ).*\n)*)", text, re.MULTILINE)
        if found is None:
            raise ValueError(f"{PAGE} has no command {command!r}: correct COMMANDS in {Path(__file__).name}")
        lines.append(("command", command))
        lines += [("output", each) for each in found[1].splitlines()]
    return lines


def files() -> dict[str, str]:
    """Return the picture, by its path below docs/."""
    title = "A team backs up its namespace, deletes something, and restores it"
    return {"terminal.svg": drawn(transcript(), title, "ann, namespace shop")}


def drawn(lines: Sequence[tuple[str, str]], title: str, bar: str) -> str:
    """Return the picture of a terminal with these lines: what kind of line, and its text."""
    width = round(2 * LEFT + COLUMN * max(len(text) + 2 for _, text in lines))
    height = TOP + LINE * len(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        STYLE,
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACK}"/>',
        f'<path d="M0 8a8 8 0 0 1 8-8h{width - 16}a8 8 0 0 1 8 8v24H0z" fill="{BAR}"/>',
        *(f'<circle cx="{20 + 18 * at}" cy="16" r="5" fill="#546e7a"/>' for at in range(3)),
        f'<text x="{width / 2:g}" y="21" fill="{TEXT}" text-anchor="middle">{escape(bar)}</text>',
    ]
    for number, (kind, text) in enumerate(lines):
        parts.append(f'<text x="{LEFT}" y="{TOP + LINE * number}" fill="{TEXT}">{_line(kind, text)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _line(kind: str, text: str) -> str:
    if kind == "command":
        return f'<tspan fill="{PROMPT}">$ </tspan><tspan fill="{COMMAND}" font-weight="600">{escape(text)}</tspan>'
    return re.sub(r"^(\s+)(ok)(?=\s)", rf'\1<tspan fill="{GOOD}">\2</tspan>', escape(text))


if __name__ == "__main__":
    for path, picture in files().items():
        (DOCS / path).write_text(picture)
