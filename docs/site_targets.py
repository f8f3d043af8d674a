"""Fails on links of the built site that lead nowhere: `make docs-site` runs it.

python -m docs.site_targets build/site

Links are empty if a page was renamed in a hurry; mkdocs accepts them. Alerts link to their runbooks, and programs to
reasons, from outside of the site, so mkdocs does not know these links.
"""

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from docs.generate import metrics, reasons

RUNBOOKS, REASONS = "runbooks.html", "reference/generated/reasons.html"


class _Page(HTMLParser):
    """Collects the anchors of a page and its empty links."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.empty = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors.add(values.get("id") or "")
        self.empty += tag == "a" and "href" in values and values["href"] in (None, "", "#")


def parsed(text: str) -> _Page:
    """Return what a page has."""
    page = _Page()
    page.feed(text)
    return page


def dead(folder: Path) -> Iterator[str]:
    """Yield each link that leads nowhere."""
    for path in sorted(folder.rglob("*.html")):
        page = parsed(path.read_text())
        if page.empty:
            yield f"{path.relative_to(folder)} has {page.empty} links to nothing"
    wanted = {RUNBOOKS: [rule["alert"].lower() for rule in metrics.alerts()], REASONS: reasons.anchors()}
    for name, targets in wanted.items():
        path = folder / name
        known = parsed(path.read_text()).anchors if path.exists() else set()
        yield from (f"{name} has no anchor {target}" for target in targets if target not in known)


def main(folder: Path) -> int:
    """Print each of them; return 1 if there are any."""
    found = list(dead(folder))
    sys.stdout.writelines(f"{each}\n" for each in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
