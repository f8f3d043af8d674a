"""The tables of modules in the contributors' page about the architecture, from the first sentence of each module."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from docs.generate.tables import code, table

_ROOT = Path(__file__).parents[2]
_SOURCE = _ROOT / "src" / "foresail"
_CAPABILITIES = ("schedules", "selfservice", "primers", "proof", "protection", "rollback")
_PARTS = re.compile(r"(<!-- modules: written by `make docs` -->\n).*(<!-- end of modules -->\n)", re.DOTALL)

FILE = _ROOT / "docs" / "contributing" / "architecture.md"


def page() -> str:
    """Return the page as it is with its tables as they should be."""
    tables = "\n".join(_tables())
    return _PARTS.sub(lambda found: f"{found[1]}\n{tables}\n{found[2]}", FILE.read_text())


def _tables() -> Iterator[str]:
    for capability in _CAPABILITIES:
        yield f"### Modules of {capability}\n"
        yield table(("module", "contents"), _rows(_SOURCE / capability))


def _rows(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each module and each package, a package before its modules."""
    for file in sorted(folder.rglob("*.py"), key=lambda file: (file.parent, file.name)):
        path = file.relative_to(folder)
        name = path.parent if path.name == "__init__.py" else path.with_suffix("")
        if name != Path():
            is_package = path.name == "__init__.py"
            yield code(f"{name.as_posix()}/" if is_package else name.as_posix()), _first_sentence(file)


def _first_sentence(file: Path) -> str:
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return text.split("\n\n", maxsplit=1)[0].removesuffix(".")
