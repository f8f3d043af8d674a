"""Fails on pages that fetch scripts, styles, fonts or pictures from other servers: `make docs-site` runs it.

python -m docs.external_assets build/site
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

_LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}
_LINKS = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "prefetch", "modulepreload", "manifest"}
_EXTERNAL = re.compile(r"(?:https?:)?//", re.IGNORECASE)
_STYLE = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)


class _Page(HTMLParser):
    """Collects the external addresses that a browser fetches when it shows a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        address = values.get(_LOADING.get(tag, ""), "")
        if tag == "link" and _LINKS & set(values.get("rel", "").lower().split()):
            address = values.get("href", "")
        if _EXTERNAL.match(address):
            self.found.append(address)
        self.found += _STYLE.findall(values.get("style", ""))
        if "mermaid" in values.get("class", "").split():  # the theme fetches the library that draws it
            self.found.append("mermaid")


def external_assets(name: str, text: str) -> list[str]:
    """Return the external addresses that a browser fetches because of a page or a style sheet."""
    if name.endswith(".css"):
        return _STYLE.findall(text)
    page = _Page()
    page.feed(text)
    inline = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL | re.IGNORECASE)
    return page.found + [each for style in inline for each in _STYLE.findall(style)]


def main(folder: Path) -> int:
    """Print each address that the files of a site fetch; return 1 if there are any."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".html", ".css"))
    found = [
        f"{path.relative_to(folder)} fetches {each}"
        for path in files
        for each in external_assets(path.name, path.read_text())
    ]
    for each in found:
        sys.stdout.write(f"{each}\n")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
