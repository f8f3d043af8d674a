"""The good backups of each namespace, newest first, and what they cover: of those that take the same, only the newest.

Specs with the same fields are judged once.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from foresail.api.specs import BackupSpec
from foresail.backups import good_backups
from foresail.proof.tiers import Part, Tier, part_of
from foresail.proof.view import BackupRow, CoverageView
from foresail.scope.covered import Namespaces, Scope, cannot_list, includes_namespaced_kinds, scope_of
from foresail.scope.discovery import STANDARD_KINDS
from foresail.scope.resource_policies import Policies, config_map_of
from foresail.tenancy.volume_policies import VOLUME_POLICIES

_NAMESPACES = ("included_namespaces", "excluded_namespaces")
_KINDS = (
    "included_resources", "excluded_resources", "included_cluster_scoped_resources",
    "excluded_cluster_scoped_resources", "included_namespace_scoped_resources",
    "excluded_namespace_scoped_resources", "include_cluster_resources",
)  # fmt: skip
_LABELS = ("label_selector", "or_label_selectors")
_DATA = (*_KINDS, *_LABELS, "snapshot_volumes", "default_volumes_to_fs_backup", "default_volumes_to_restic")

Key = tuple[object, ...]


class Scopes:
    """Judges specs among the namespaces, kinds and resource policies of a view."""

    def __init__(self, view: CoverageView) -> None:
        self._release = view.release
        self._kinds = view.kinds
        self._namespaces = Namespaces.named((namespace.name, namespace.labels) for namespace in view.namespaces)
        self._by_title = {schedule.title: schedule for schedule in view.schedules}
        known = [schedule for schedule in view.schedules if not schedule.policy_problem and not schedule.policy_unread]
        self._policies = {**VOLUME_POLICIES, **{config_map_of(row.spec): row.policies for row in known}}
        if not view.server.global_policies:
            self._policies.setdefault("", None)
        self._scopes: dict[Key, Scope] = {}
        self._covered: dict[Key, frozenset[str]] = {}
        self._includes_objects: dict[Key, bool] = {}
        self._groups: dict[Key, int] = {}

    @property
    def names(self) -> frozenset[str]:
        """The namespaces that exist."""
        return self._namespaces.names

    def existing(self, title: str) -> str:
        """Return the title of a schedule that exists; empty for any other."""
        return title if title in self._by_title else ""

    def policies_of(self, backup: BackupRow) -> tuple[bool, Policies | None]:
        """Return whether the resource policy of a backup is known, and that policy as it is now.

        Those of schedules are. A run whose ConfigMap is known no more had the one that its schedule has now.
        """
        name = config_map_of(backup.spec)
        if name in self._policies:
            return True, self._policies[name]
        schedule = self._by_title.get(backup.schedule)
        if schedule is None or schedule.policy_problem or schedule.policy_unread:
            return False, None
        return True, schedule.policies

    def of(self, spec: BackupSpec, policies: Policies | None) -> Scope:
        """Return what a spec covers."""
        key = _key(spec, (*_NAMESPACES, *_DATA), policies)
        if key not in self._scopes:
            self._scopes[key] = scope_of(spec, STANDARD_KINDS, self._namespaces, policies, self._release)
        return self._scopes[key]

    def namespaces_in(self, spec: BackupSpec, policies: Policies | None) -> frozenset[str]:
        """Return the namespaces in a spec; there are as many specs as backups, so nothing else is judged."""
        if cannot_list(spec) or not self._has_objects(spec, policies):
            return frozenset()
        key = spec.included_namespaces, spec.excluded_namespaces
        if key not in self._covered:
            chosen = self._namespaces.chosen_by(spec, self._release)
            self._covered[key] = chosen.covered(self._namespaces.names)
        return self._covered[key]

    def group(self, spec: BackupSpec, policies: Policies | None) -> int:
        """Return a number that specs share if they take the same objects and data of a namespace in them."""
        return self._groups.setdefault((*_key(spec, _DATA, policies), config_map_of(spec)), len(self._groups))

    def _has_objects(self, spec: BackupSpec, policies: Policies | None) -> bool:
        """Whether a spec includes kinds of objects in namespaces, not cluster-scoped kinds alone."""
        key = _key(spec, _KINDS, policies)
        if key not in self._includes_objects:
            everything_excluded = "*" in (spec.excluded_namespace_scoped_resources or ())
            self._includes_objects[key] = not everything_excluded and (
                self._kinds is None or includes_namespaced_kinds(spec, self._kinds, policies)
            )
        return self._includes_objects[key]


def _key(spec: BackupSpec, fields: Iterable[str], policies: Policies | None) -> Key:
    # Policies have no hash. The view keeps them, so that no other object gets the same id.
    return (*(_frozen(getattr(spec, field)) for field in fields), id(policies))


def _frozen(value: object) -> object:
    """Return a value that can be a key: selectors have dicts, which cannot."""
    names = isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    return value if names or value is None or isinstance(value, bool) else repr(value)


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
    alike: AbstractSet[str] = frozenset()
    """The names of the good backups of which the same is true as of this one, apart from their age."""

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
        tiers = [tier for tier in Tier if tier <= part.tier]
        candidates = [self._by_part.get(Part(tier, objects)) for tier in tiers for objects in (part.objects, b"")]
        for title in schedules:
            runs = self._by_schedule.get(title, ())
            candidates.append(next((run for run in runs if run.part.tier <= part.tier), None))
        return max(
            (candidate for candidate in candidates if candidate is not None),
            key=lambda candidate: candidate.started,
            default=None,
        )


def candidates_of(view: CoverageView, runs: Iterable[list[BackupRow]], scopes: Scopes) -> Mapping[str, list[Candidate]]:
    """Return the good backups of each namespace since it exists, given all runs that have ended."""
    good = [_candidate(backup, scopes) for rows in runs for backup in good_backups(rows)]
    good.sort(key=lambda candidate: candidate.started, reverse=True)
    created = {namespace.name: namespace.created for namespace in view.namespaces}
    newest: dict[str, dict[int, Candidate]] = defaultdict(dict)
    numbers: dict[tuple[int, Part, str, bool, frozenset[str] | None], int] = {}
    alike: dict[int, set[str]] = defaultdict(set)
    seen: set[tuple[frozenset[str], int]] = set()
    by_hand: Counter[str] = Counter()
    for candidate in good:
        covered = scopes.namespaces_in(candidate.row.spec, candidate.policies)
        lacking = (candidate.row.has_snapshots, candidate.row.left_out)
        number = numbers.setdefault((candidate.group, candidate.part, candidate.schedule, *lacking), len(numbers))
        alike[number].add(candidate.row.name)
        if (covered, number) in seen:  # a newer one was there for every namespace that this one has
            continue
        seen.add((covered, number))
        first = replace(candidate, alike=alike[number])  # older ones follow
        for name in covered:
            if number in newest[name] or candidate.started < created[name]:
                continue
            by_hand[name] += not candidate.schedule
            if candidate.schedule or by_hand[name] <= _MOST_BY_HAND:
                newest[name][number] = first
    return {name: list(rows.values()) for name, rows in newest.items()}


def _candidate(row: BackupRow, scopes: Scopes) -> Candidate:
    knows_policies, policies = scopes.policies_of(row)
    part = part_of(row, policies, knows_policies=knows_policies)
    group = scopes.group(row.spec, policies)
    return Candidate(row, part, group, scopes.existing(row.schedule), policies, knows_policies)
