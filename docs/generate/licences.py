"""The licences of what Foresail runs with, as the packages themselves say."""

from docs.generate.tables import table
from release.parts import parts

_TOP = """# Licences

Of every package that is installed with Foresail, those that come along with others included, in the versions of `requirements/run.txt`.
Foresail itself is Apache-2.0.
None of them asks that Foresail's own source be given away; certifi (MPL-2.0) asks it of changes to its own files, and we change none.
`make sbom` writes the same as a bill of materials.
"""


def page() -> str:
    """Return the page."""
    rows = ((part.name, part.version, part.licence) for part in parts())
    return f"{_TOP}\n{table(('package', 'version', 'licence'), rows)}"
