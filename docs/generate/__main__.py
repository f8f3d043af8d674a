"""Writes every page; `files` is what a test compares."""

from pathlib import Path

from docs.generate import (
    chart,
    commands,
    kinds,
    licences,
    measurements,
    metrics,
    modules,
    reasons,
    settings,
    stolen_tokens,
)

FOLDER = Path(__file__).parents[1] / "reference" / "generated"
PAGES = {
    "commands.md": commands.page,
    "kinds.md": kinds.page,
    "licences.md": licences.page,
    "metrics.md": metrics.page,
    "reasons.md": reasons.page,
    "settings.md": settings.page,
    "stolen-tokens.md": stolen_tokens.page,
}


def files() -> dict[str, str]:
    """Return the text of each page, by its name."""
    return {
        name: f"<!-- Written by `make docs`: change the code, not this page. -->\n\n{page()}"
        for name, page in PAGES.items()
    }


def main(folder: Path = FOLDER) -> None:
    """Write the pages, and take away what is none of them any more."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for name, text in files().items():
        (folder / name).write_text(text)
    if folder == FOLDER:
        chart.FILE.write_text(chart.readme())
        chart.KINDS.write_text(chart.kinds_chart())
        modules.FILE.write_text(modules.page())
        measurements.FILE.write_text(measurements.page())


if __name__ == "__main__":
    main()
