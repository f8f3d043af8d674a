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

_SOURCE = Path(__file__).parent


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
        self._program = _built()
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


def _built() -> Path:
    """Return the program, built once for each state of its source."""
    sources = [_SOURCE / name for name in ("go.mod", "go.sum", "main.go")]
    key = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = cache / "foresail" / "testbed" / f"oracle-{key}" / "oracle"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        fresh = program.with_suffix(f".{os.getpid()}")
        subprocess.run(["go", "build", "-trimpath", "-o", fresh, "."], cwd=_SOURCE, check=True)  # noqa: S607  whichever Go is on the path
        fresh.rename(program)
    return program


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
