"""Writes the project's address into a checkout that is released: `python -m release.home https://host/owner/name`.

The repository has no address of its own yet, so its README has relative links. A package index shows the README without
the repository, and cannot follow them. The release workflow knows where it runs.
"""

import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

from foresail import __version__

ROOT = Path(__file__).parents[1]
RUNBOOKS = {
    ROOT / "charts" / "foresail" / "values.yaml": "  runbookUrl:",
    ROOT / "src" / "foresail" / "__init__.py": "RUNBOOKS =",
}
"""Where the address of the runbooks is written, and what stands before it."""
_RELATIVE = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>(?!https?://|#)[^)\s]+)\)")


def with_absolute_links(text: str, home: str) -> str:
    """Return Markdown whose links lead to the files of this release, and whose pictures are those files themselves."""

    def absolute(found: re.Match[str]) -> str:
        view = "raw" if found["picture"] else "blob"
        return f"{found['picture']}[{found['text']}]({home}/{view}/v{__version__}/{found['target']})"

    return _RELATIVE.sub(absolute, text)


def relative_links(text: str) -> list[str]:
    """Return the targets that a reader without the repository cannot follow."""
    return [found["target"] for found in _RELATIVE.finditer(text)]


def urls(home: str) -> str:
    """Return the table `project.urls` of pyproject.toml."""
    files = f"{home}/blob/v{__version__}"
    named = {
        "Homepage": home,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }
    return "".join(["\n[project.urls]\n", *(f'{name} = "{target}"\n' for name, target in named.items())])


def runbooks(home: str) -> str:
    """Return the address to which the alerts of this release lead."""
    return f"{home}/blob/v{__version__}/docs/runbooks.md"


def with_runbooks(text: str, empty: str, home: str) -> str:
    """Return a file that has the address in place of none; one that has no such place is an error."""
    if text.count(f'{empty} ""\n') + text.count(f'{empty} ""  #') != 1:
        raise SystemExit(f"no place for the address of the runbooks: {empty}")
    return text.replace(f'{empty} ""', f'{empty} "{runbooks(home)}"')


def main() -> None:
    """Change README.md, pyproject.toml, and where the alerts lead."""
    home = sys.argv[1].rstrip("/")
    if urlsplit(home).scheme != "https":
        raise SystemExit(f"{home} does not start with https://: pass the address of the repository")
    readme, project = ROOT / "README.md", ROOT / "pyproject.toml"
    readme.write_text(with_absolute_links(readme.read_text(), home))
    project.write_text(project.read_text() + urls(home))
    for path, empty in RUNBOOKS.items():
        path.write_text(with_runbooks(path.read_text(), empty, home))


if __name__ == "__main__":
    main()
