"""Feeds random bytes to the cron engine: nothing but CronError may come out, and soon: `make cron-fuzz`."""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from time import thread_time_ns

from bench.cron_specs import SpecMaker
from foresail.cron import CronError, Dialect, parse

_LIMIT_NS = 5_000_000
_START = datetime(2026, 3, 28, 23, 59, 59, tzinfo=UTC)
_ZONES = ("UTC", "Africa/Cairo", "Australia/Lord_Howe", "Europe/Berlin", "America/Santiago")
_ALPHABET = b"0123456789*?,-/ @"


@dataclass
class Findings:
    """How the inputs went: what each came to, the slowest, and what must not happen."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest_ns: int = 0
    slowest: bytes = b""
    failures: list[str] = field(default_factory=list)


class ByteMaker:
    """A source of byte strings: noise, noise in the letters of cron, and schedules with bytes changed."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._specs = SpecMaker(random)

    def make(self) -> bytes:
        """Return one more input."""
        random = self._random
        draw = random.random()
        if draw < 0.4:
            return random.randbytes(int(random.random() ** 3 * 60))
        if draw < 0.7:
            return bytes(random.choices(_ALPHABET, k=int(random.random() * 30)))
        data = bytearray(self._specs.make().text.encode())
        for _ in range(int(random.random() * 3)):
            data[int(random.random() * (len(data) + 1)) :][:1] = random.randbytes(1)
        if draw > 0.9999:
            return bytes(data) * 400
        return bytes(data)


def once(data: bytes, dialect: Dialect, zone: str) -> str:
    """Parse one input and ask for its next fire; return what became of it."""
    try:
        schedule = parse(data.decode(errors="surrogateescape"), dialect, zone)
    except CronError:
        return "refused"
    return "never" if schedule.next(_START) is None else "fires"


def fuzz(count: int, seed: int) -> Findings:
    """Try `count` inputs and return what happened."""
    findings = Findings()
    maker = ByteMaker(Random(seed))  # noqa: S311  a reproducible sample, not a secret
    dialects = tuple(Dialect)
    for i in range(count):
        data = maker.make()
        dialect = dialects[i & 1]
        zone = _ZONES[i % len(_ZONES)]
        started = thread_time_ns()
        try:
            outcome = once(data, dialect, zone)
        except Exception as error:  # noqa: BLE001  any exception at all is the finding
            findings.failures.append(f"{dialect.value} {zone} {data!r}: {error!r}")
            continue
        spent = thread_time_ns() - started
        if spent > _LIMIT_NS:
            spent = min(spent, _time(data, dialect, zone), _time(data, dialect, zone))
        findings.outcomes[outcome] += 1
        if spent > findings.slowest_ns:
            findings.slowest_ns, findings.slowest = spent, data
        if spent > _LIMIT_NS:
            findings.failures.append(f"{dialect.value} {zone} {data!r}: {spent / 1e6:.1f} ms")
    return findings


def _time(data: bytes, dialect: Dialect, zone: str) -> int:
    started = thread_time_ns()
    once(data, dialect, zone)
    return thread_time_ns() - started


def main() -> int:
    """Run and print the findings."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=10_000_000)
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    findings = fuzz(asked.count, asked.seed)
    total = sum(findings.outcomes.values())
    print(f"{total} inputs: {dict(findings.outcomes)}")
    print(f"slowest {findings.slowest_ns / 1e6:.2f} ms of thread CPU: {findings.slowest[:80]!r}")
    print(f"{len(findings.failures)} failures", *findings.failures[:20], sep="\n")
    return 1 if findings.failures else 0


if __name__ == "__main__":
    sys.exit(main())
