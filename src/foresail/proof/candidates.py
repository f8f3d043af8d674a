"""The good backups of each namespace, newest first: of those that take the same, only the newest."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from foresail.backups import good_backups
from foresail.proof.observe import BackupRow, CoverageView
from foresail.proof.parts import Part, Rank, part_of
from foresail.proof.scopes import Scopes
from foresail.scope.policies import Policies

_MOST_BY_HAND = 50
"""So many different backups without a schedule are considered for a namespace: whoever makes more gets no more."""

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A good backup, what it takes, and the schedule that made it; empty if that does not exist any more."""

    row: BackupRow
    part: Part
    group: int
    schedule: str
    policies: Policies | None
    knows_policies: bool

    @property
    def started(self) -> datetime:
        """When it started."""
        return self.row.started or _LONG_AGO


class CandidateIndex:
    """The candidates of one namespace, given newest first, by their schedule and by what they take."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self._by_schedule: dict[str, list[Candidate]] = defaultdict(list)
        self._by_part: dict[Part, Candidate] = {}
        for candidate in candidates:
            self._by_schedule[candidate.schedule].append(candidate)
            self._by_part.setdefault(candidate.part, candidate)

    def newest(self, part: Part, schedules: Iterable[str]) -> Candidate | None:
        """Return the newest that proves as much as a part: a run of these schedules, or of the same or all objects."""
        ranks = [rank for rank in Rank if rank <= part.rank]
        candidates = [self._by_part.get(Part(rank, objects)) for rank in ranks for objects in (part.objects, b"")]
        for title in schedules:
            runs = self._by_schedule.get(title, ())
            candidates.append(next((run for run in runs if run.part.rank <= part.rank), None))
        return max(
            (each for each in candidates if each is not None), key=lambda candidate: candidate.started, default=None
        )


def candidates_of(view: CoverageView, runs: Iterable[list[BackupRow]], scopes: Scopes) -> Mapping[str, list[Candidate]]:
    """Return the good backups of each namespace since it exists, given all runs that have ended."""
    good = [_candidate(backup, scopes) for rows in runs for backup in good_backups(rows)]
    good.sort(key=lambda each: each.started, reverse=True)
    created = {namespace.name: namespace.created for namespace in view.namespaces}
    found: dict[str, dict[int, Candidate]] = defaultdict(dict)
    numbers: dict[tuple[int, Part, str, bool, frozenset[str] | None], int] = {}
    seen: set[tuple[frozenset[str], int]] = set()
    by_hand: Counter[str] = Counter()
    for candidate in good:
        covered = scopes.namespaces_in(candidate.row.spec, candidate.policies)
        lacking = (candidate.row.has_snapshots, candidate.row.left_out)
        number = numbers.setdefault((candidate.group, candidate.part, candidate.schedule, *lacking), len(numbers))
        if (covered, number) in seen:  # a newer one was there for every namespace that this one has
            continue
        seen.add((covered, number))
        for name in covered:
            if number in found[name] or candidate.started < created[name]:
                continue
            by_hand[name] += not candidate.schedule
            if candidate.schedule or by_hand[name] <= _MOST_BY_HAND:
                found[name][number] = candidate
    return {name: list(rows.values()) for name, rows in found.items()}


def _candidate(row: BackupRow, scopes: Scopes) -> Candidate:
    knows_policies, policies = scopes.policies_of(row)
    part = part_of(row, policies, knows_policies=knows_policies)
    group = scopes.group(row.spec, policies)
    return Candidate(row, part, group, scopes.existing(row.schedule), policies, knows_policies)
