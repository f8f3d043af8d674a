"""Compares the cron engine with the Go libraries on random schedules: `make cron-oracle`."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from random import Random

from bench.cron_specs import FIRST, ZONES, SpecMaker, StartMaker
from foresail.cron import CronError, Dialect, fires_after, parse
from testbed.oracle import Answer, Oracle, Question

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BATCH = 2000
_FIRES = 40
_LAST_SECOND = 253402300799  # the end of the year 9999, beyond which datetime cannot say what Go says


@dataclass
class Report:
    """What was compared and where the two sides differ."""

    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    zones: Counter[str] = field(default_factory=Counter)
    fires: int = 0
    changes: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def specs(self) -> int:
        """How many specs were compared."""
        return sum(self.kinds.values())


def ours(question: Question) -> list[int] | None:
    """Return the answer of the engine in the oracle's terms."""
    try:
        schedule = parse(question.spec, Dialect(question.dialect), question.zone)
    except CronError:
        return None
    start = _EPOCH + timedelta(seconds=question.start, microseconds=question.nanos // 1000)
    second = timedelta(seconds=1)
    return [(fire - _EPOCH) // second for fire in islice(fires_after(schedule, start), question.count)]


def compare(oracle: Oracle, dialect: Dialect, count: int, seed: int) -> Report:
    """Ask both sides `count` random questions and return where they differ."""
    report = Report()
    random = Random(seed)  # noqa: S311  a reproducible sample, not a secret
    starts = StartMaker(random)
    report.changes = len(starts.changes)
    questions = _questions(random, starts, dialect)
    with ThreadPoolExecutor(1) as pool:
        batch = list(islice(questions, min(count, _BATCH)))
        while batch:
            answers = pool.submit(oracle.ask, [question for question, _ in batch])
            mine = [ours(question) for question, _ in batch]
            for (question, kind), fires, answer in zip(batch, mine, answers.result(), strict=True):
                _note(report, question, kind, fires, answer)
            batch = list(islice(questions, min(count - report.specs, _BATCH)))
    return report


def _questions(random: Random, starts: StartMaker, dialect: Dialect) -> Iterator[tuple[Question, str]]:
    specs = SpecMaker(random)
    while True:
        spec = specs.make()
        zone, start, micros = starts.make()
        if "TZ=" in spec.text:  # in another zone than the start was chosen for: see _earliest
            start = max(start, FIRST)
        yield Question(dialect.value, spec.text, zone, start, micros * 1000, _FIRES), spec.kind


def _note(report: Report, question: Question, kind: str, fires: list[int] | None, answer: Answer) -> None:
    theirs = answer.fires
    if theirs is not None:
        theirs = [fire for fire in theirs if fire <= _LAST_SECOND]
    outcome = "refused" if theirs is None else "fires" if theirs else "never"
    report.kinds[kind, outcome] += 1
    report.zones[question.zone] += 1
    report.fires += len(theirs or ())
    if fires != theirs:
        report.differences.append(f"{question}: {_first_difference(fires, answer, theirs)}")


def _first_difference(fires: list[int] | None, answer: Answer, theirs: list[int] | None) -> str:
    if fires is None or theirs is None:
        return f"we {'refuse' if fires is None else 'accept'}, Go says {answer.refused or 'yes'}"
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(fires, theirs, strict=False)))
    return f"after {same} fires ours goes on {fires[same : same + 2]}, Go {theirs[same : same + 2]}"


def main() -> int:
    """Run the comparison for both dialects and print what was compared."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=100_000, help="specs per dialect")
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    oracle = Oracle()
    differences = 0
    for dialect in Dialect:
        report = compare(oracle, dialect, asked.count, asked.seed)
        differences += len(report.differences)
        print(
            f"{dialect.value}: {report.specs} specs, {report.fires} fires, "
            f"{len(report.zones)} of {len(ZONES)} zones, {report.changes} changes of clocks, "
            f"{len(report.differences)} differences"
        )
        for (kind, outcome), number in sorted(report.kinds.items()):
            print(f"  {number / report.specs:6.1%}  {kind}: {outcome}")
        print(*report.differences[:20], sep="\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
