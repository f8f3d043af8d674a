"""The table of full runs, oracles and measurements in the contributors' page about make targets."""

import re
from pathlib import Path

from bench.__main__ import TABLE
from docs.generate.tables import code, table

_PART = re.compile(r"(<!-- measurements: written by `make docs` -->\n).*(<!-- end of measurements -->\n)", re.DOTALL)

FILE = Path(__file__).parents[2] / "docs" / "contributing" / "make-targets.md"


def page() -> str:
    """Return the page as it is with its table as it should be."""
    rows = ((code(f"make {name}"), entry["what"], entry["time"]) for name, entry in TABLE.items())
    written = table(("command", "what it does", "how long"), rows)
    return _PART.sub(lambda page: f"{page[1]}\n{written}\n{page[2]}", FILE.read_text())
