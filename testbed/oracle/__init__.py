"""What the two Go cron libraries themselves answer, by a small Go program of ours that is built here."""

import hashlib
import json
import os
import subprocess
import zipfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from testbed.build import build, program


@dataclass(frozen=True, slots=True)
class Question:
    """The fires of a spec after an instant (whole seconds since 1970, and nanoseconds beyond them)."""

    dialect: str
    spec: str
    zone: str
    start: int
    nanos: int
    count: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The fires, fewer than asked for where the library gave up; None where it refused the spec."""

    fires: list[int] | None
    refused: str


class Oracle:
    """The built program together with the zone data of the pinned wheel."""

    def __init__(self) -> None:
        build(["oracle"], lambda _: None)
        self._program = program("oracle", "oracle")
        self._zones = _zone_data(self._program.parent)

    def ask(self, questions: Iterable[Question]) -> list[Answer]:
        """Return one answer for each question, in order."""
        asked = "\n".join(json.dumps(asdict(question)) for question in questions)
        done = subprocess.run(
            [self._program],
            input=asked,
            env={**os.environ, "ZONEINFO": str(self._zones), "GOROOT": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        said = [json.loads(line) for line in done.stdout.split("\n") if line]
        return [Answer(None if "refused" in one else one["fires"], one.get("refused", "")) for one in said]


def _zone_data(folder: Path) -> Path:
    """Return the zone files of the wheel as the uncompressed zip that Go reads."""
    wheel = files("tzdata")
    names = wheel.joinpath("zones").read_text().split()
    contents = {name: wheel.joinpath("zoneinfo", name).read_bytes() for name in names}
    key = hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()[:16]
    path = folder / f"zoneinfo-{key}.zip"
    if not path.exists():
        fresh = path.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_STORED) as archive:
            for name, content in contents.items():
                archive.writestr(name, content)
        fresh.rename(path)
    return path
