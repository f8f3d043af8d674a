"""Writes the bill of materials of a release in the format CycloneDX: `python -m release.sbom FILE`, or `make sbom`."""

import json
import sys
from pathlib import Path
from typing import Any

from foresail import __version__
from release.parts import Part, parts


def bill() -> dict[str, Any]:
    """Return the bill: the same for the same pins, so that two who build a release get the same file."""
    found = parts()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": _component(Part("foresail", __version__, "Apache-2.0"), "application")},
        "components": [_component(part, "library") for part in found],
        "dependencies": [{"ref": _address("foresail", __version__), "dependsOn": [_of(part) for part in found]}],
    }


def _component(part: Part, kind: str) -> dict[str, Any]:
    return {
        "type": kind,
        "bom-ref": _of(part),
        "name": part.name,
        "version": part.version,
        "purl": _of(part),
        "licenses": [{"expression": part.licence}],
    }


def _of(part: Part) -> str:
    return _address(part.name, part.version)


def _address(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(bill(), indent=2) + "\n")
