"""A hook of mkdocs: a link out of docs/ leads to a copy of that file in the site, and fails if there is none."""

import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()(\.\./[^)#\s]+)(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of the repository that pages lead to, as plain text."""
    pages = [each for each in files if each.is_documentation_page() and each.inclusion.is_included()]
    wanted = {path for page in pages for link in LINK.findall(page.content_string) if (path := outside(page, link))}
    for path in sorted(wanted):
        if not (ROOT / path).exists():
            raise PluginError(f"a link leads to {path}, which is not there")
        if (ROOT / path).is_file():
            files.append(File.generated(config, f"source/{path}.txt", content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Lead links out of docs/ to those copies; a folder has none, so its name stays without a link."""

    def replaced(found: re.Match[str]) -> str:
        path = outside(page.file, found[1])
        if path is None:
            return found[1]
        up = "../" * (len(PurePosixPath(page.file.src_uri).parts) - 1)
        return f"{up}source/{path}.txt" if (ROOT / path).is_file() else "#"

    return LINK.sub(replaced, markdown)


def outside(page: File, link: str) -> str | None:
    """Return the path in the repository of what a link leads to; None for what is in docs/."""
    found = (ROOT / "docs" / page.src_uri).parent.joinpath(link).resolve()
    return None if found.is_relative_to(ROOT / "docs") else str(found.relative_to(ROOT))
