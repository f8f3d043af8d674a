"""Counts the words of the pages for users: `python -m docs.words`, and `make lint` for the pages beyond their budget.

Words are those of the prose and the tables. Blocks of code are not counted: machines write or read them. The pages
below docs/contributing and docs/reference/generated are not for users or not written by hand.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

DOCS = Path(__file__).parent
TOTAL = 40_000
README = 700
BUDGETS = {"tutorial": 700, "how-to": 1_000, "concepts": 1_200, "reference": 2_000, "": 1_500}
"""By folder; a reader of a concept or how-to has ten minutes."""
LONGER = {
    "concepts/self-service-threat-model.md": 2_300,  # each way in, and each that is not closed
    "concepts/coverage.md": 1_400,
    "concepts/schedule-policy.md": 1_600,
    "operations.md": 1_600,
    "runbooks.md": 2_800,  # a section for each alert
}
_BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def words(text: str) -> int:
    """Return how many words a page has outside of its blocks; the bars of a table are none."""
    return sum(1 for word in _BLOCK.sub("", text).split() if re.search(r"\w", word))


def counted(folder: Path = DOCS) -> dict[str, int]:
    """Return the words of each page for users that is written by hand."""
    pages = {page.relative_to(folder).as_posix(): page for page in sorted(folder.rglob("*.md"))}
    others = ("contributing/", "reference/generated/")
    return {name: words(page.read_text()) for name, page in pages.items() if not name.startswith(others)}


def budget(name: str) -> int:
    """Return how many words a page may have."""
    kind = PurePosixPath(name).parts[0] if "/" in name else ""
    return LONGER.get(name, BUDGETS[kind])


def beyond(pages: Mapping[str, int]) -> Iterator[str]:
    """Yield a warning for each page beyond its budget."""
    for name, count in pages.items():
        if count > budget(name):
            yield f"docs/{name} has {count} words, its budget is {budget(name)}: shorten or split it"


def main(*, is_quiet: bool = False) -> int:
    """Print what there is; return 1 if the pages or the README are too long together."""
    pages, readme = counted(), words((DOCS.parent / "README.md").read_text())
    if not is_quiet:
        rows = sorted(pages.items(), key=lambda page: -page[1])
        sys.stdout.writelines(f"{count:6} {budget(name):6} {name}\n" for name, count in rows)
        total = f"{sum(pages.values())} words of {TOTAL} on {len(pages)} pages"
        sys.stdout.write(f"{total}; README {readme} of {README}\n")
    sys.stderr.writelines(f"warning: {each}\n" for each in beyond(pages))
    return int(sum(pages.values()) > TOTAL or readme > README)


if __name__ == "__main__":
    sys.exit(main(is_quiet="--quiet" in sys.argv[1:]))
