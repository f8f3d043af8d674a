"""The packages that Foresail runs with, as they are pinned, with the licence that each says it has."""

import re
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import metadata
from pathlib import Path

PINNED = Path(__file__).parents[1] / "requirements" / "run.txt"
_LINE = re.compile(r"^([a-z0-9-]+)==([^ ;\\]+)", re.MULTILINE)
_SPELLED = {"Apache 2.0": "Apache-2.0"}  # what some call a licence that SPDX calls otherwise


@dataclass(frozen=True, slots=True)
class Part:
    """A package in the version that is installed with Foresail."""

    name: str
    version: str
    licence: str


def parts() -> list[Part]:
    """Return all of them, those that come along with others included, from what is installed here."""
    found = _LINE.findall(PINNED.read_text())
    return [Part(name, version, _licence(metadata(name))) for name, version in found]  # type: ignore[arg-type]


def _licence(said: Message) -> str:
    text = said.get("License-Expression") or said.get("License") or ""
    return _SPELLED.get(text, text)
