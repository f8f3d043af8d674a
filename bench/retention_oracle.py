"""Compares retention with the real `restic forget` on random histories: `make retention-oracle`.

restic needs half a second for each snapshot that it makes. So one repository for each zone has some hundred snapshots
with random times, and a history is a random part of them: those with its tag.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from foresail.retention import Copy, Rules, kept
from testbed.build import build, program

ZONES = ("UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kathmandu")
RESTIC_OPTIONS = {
    "last": "--keep-last",
    "hourly": "--keep-hourly",
    "daily": "--keep-daily",
    "weekly": "--keep-weekly",
    "monthly": "--keep-monthly",
    "yearly": "--keep-yearly",
}
_END = datetime(2026, 6, 30, tzinfo=UTC)
_TEN_YEARS = timedelta(days=3652)
_LONGEST_GAP = {"minutes": 90 * 60, "days": 40 * 86400, "years": 400 * 86400}


class History(msgspec.Struct, frozen=True):
    """Some snapshots in a zone, rules, and which of the snapshots restic keeps by them."""

    zone: str
    times: tuple[datetime, ...]
    rules: dict[str, int]
    within_hours: int
    kept: tuple[datetime, ...] = ()


@dataclass
class Repository:
    """A restic repository on this machine with snapshots of one zone."""

    folder: Path
    zone: str
    tags: dict[datetime, list[str]] = field(default_factory=dict)

    def run(self, *arguments: str) -> str:
        """Run restic and return what it prints."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TZ": self.zone,
            "RESTIC_PASSWORD": "oracle",
            "RESTIC_REPOSITORY": str(self.folder / "repository"),
        }
        command = [str(program("restic", "restic")), "--quiet", *arguments]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    def make(self) -> None:
        """Make the repository and all its snapshots."""
        (self.folder / "data").mkdir()
        (self.folder / "data" / "file").write_text("the same in every snapshot")
        self.run("init")
        for moment, tags in self.tags.items():
            local = moment.astimezone(ZoneInfo(self.zone))
            self.run(
                "backup", "--host=oracle", f"--time={local:%Y-%m-%d %H:%M:%S}", f"--tag={','.join(tags)}",
                str(self.folder / "data"),
            )  # fmt: skip

    def forget(self, tag: str, history: History) -> tuple[datetime, ...]:
        """Return the times of the snapshots of a history that restic keeps."""
        options = [f"{RESTIC_OPTIONS[rule]}={count}" for rule, count in history.rules.items() if count]
        options += [f"--keep-within={history.within_hours}h"] if history.within_hours else []
        said: list[dict[str, Any]] = json.loads(self.run("forget", "--dry-run", "--json", f"--tag={tag}", *options))
        return tuple(sorted(datetime.fromisoformat(each["time"]) for group in said for each in group["keep"] or ()))


def main() -> int:
    """Compare as many histories as asked for, and print where the two sides differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--histories", type=int, default=500)
    options.add_argument("--snapshots", type=int, default=200, help="in each repository, one for each of four zones")
    options.add_argument("--seed", type=int, default=2026)
    options.add_argument("--record", type=Path, help="write the histories with restic's answers to this file")
    args = options.parse_args()
    build(["restic"], lambda text: print(text, file=sys.stderr))
    answered = list(ask(args.histories, args.snapshots, Random(args.seed)))  # noqa: S311  a reproducible sample
    differing = [each for each in answered if ours(each) != each.kept]
    for each in differing[:10]:
        print(describe(each))
    if args.record:
        args.record.write_bytes(msgspec.json.format(msgspec.json.encode(answered), indent=1) + b"\n")
    print(json.dumps({"histories": len(answered), "differences": len(differing)}))
    return 1 if differing else 0


def ask(count: int, snapshots: int, random: Random) -> Iterator[History]:
    """Return random histories with restic's answers."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        repositories = [_repository(Path(folder) / str(number), zone, snapshots, random)
                        for number, zone in enumerate(ZONES)]  # fmt: skip
        histories = []
        for number in range(count):
            repository = repositories[number % len(repositories)]
            histories.append((f"h{number}", repository, _history(f"h{number}", repository, random)))
        list(pool.map(Repository.make, repositories))
        print(f"{len(repositories)} repositories with {snapshots} snapshots each", flush=True)
        answers = pool.map(lambda each: each[1].forget(each[0], each[2]), histories)
        for (_, _, history), answer in zip(histories, answers, strict=True):
            yield msgspec.structs.replace(history, kept=answer)


def ours(history: History) -> tuple[datetime, ...]:
    """Return the times of the snapshots that our rules keep; restic has no rule like keepGood."""
    within = timedelta(hours=history.within_hours) if history.within_hours else None
    rules = Rules(**history.rules, within=within, good=0, time_zone=history.zone)
    by_name = {str(number): moment for number, moment in enumerate(history.times)}
    found = kept([Copy(name, moment, is_good=True) for name, moment in by_name.items()], rules)
    return tuple(sorted(by_name[name] for name, reasons in found.items() if reasons))


def describe(history: History) -> str:
    """Return what differs, for people."""
    mine = set(ours(history))
    theirs = set(history.kept)
    return (
        f"{history.zone} {history.rules} within {history.within_hours} h of {len(history.times)}: only restic keeps "
        f"{sorted(map(str, theirs - mine))}, only we keep {sorted(map(str, mine - theirs))}"
    )


def _repository(folder: Path, zone: str, snapshots: int, random: Random) -> Repository:
    folder.mkdir()
    times: set[datetime] = set()
    while len(times) < snapshots:
        moment = _END - timedelta(seconds=random.randrange(int(_TEN_YEARS.total_seconds())))
        for _ in range(random.randrange(1, 12)):
            times.add(moment)
            longest = random.choice(list(_LONGEST_GAP.values()))
            moment -= timedelta(seconds=random.randrange(1, longest))
    return Repository(folder, zone, {each: [] for each in sorted(times)[-snapshots:]})


def _history(tag: str, repository: Repository, random: Random) -> History:
    share = random.choice((0.05, 0.3, 0.7, 1))
    chosen = [each for each in repository.tags if random.random() < share] or [next(iter(repository.tags))]
    for each in chosen:
        repository.tags[each].append(tag)
    rules = {rule: random.choice((0, 0, 1, 2, 5, 12, 40)) for rule in RESTIC_OPTIONS}
    within = random.choice((0, 0, 1, 24, 720, 9000))
    if not any(rules.values()) and not within:
        rules["last"] = 1
    return History(repository.zone, tuple(chosen), rules, within)


if __name__ == "__main__":
    sys.exit(main())
