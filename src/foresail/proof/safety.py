"""Whether a namespace is safe: the one verdict for coverage, report, metrics, console and the team's own view.

A namespace is safe if its schedules run, Velero and the storage location work, and a good backup with the data of each
claim is within the objective. What the reader could not see makes the verdict unknown.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from foresail.api.instants import stamp
from foresail.proof.coverage import NamespaceCoverage
from foresail.proof.reasons import Gap, Reason
from foresail.proof.view import BackupRow


class Verdict(StrEnum):
    """The words; programs know them, so they do not change."""

    SAFE = "Safe"
    AT_RISK = "AtRisk"
    """A good backup exists, but the next run will fail, or the first run is still to come."""

    UNSAFE = "Unsafe"
    """A restore now would bring back nothing, too little, or data older than the objective."""

    UNKNOWN = "Unknown"
    EXCLUDED = "Excluded"

    @property
    def is_fine(self) -> bool:
        """Whether nobody needs to act."""
        return self in (Verdict.SAFE, Verdict.EXCLUDED)


@dataclass(frozen=True, slots=True)
class Safety:
    """A verdict with its evidence in one sentence."""

    verdict: Verdict
    message: str


_UNSAFE = frozenset(
    {
        Reason.NO_SCHEDULE,
        Reason.LOCATION_UNAVAILABLE,
        Reason.VOLUME_LEFT_OUT,
        Reason.OBJECTIVE_MISSED,
        Reason.RUNS_MISSED,
    }
)
_UNKNOWN = frozenset({Reason.NO_OWN_SCHEDULE, Reason.RUNNER_UNKNOWN, Reason.ORIGIN_UNKNOWN, Reason.POLICY_UNREAD})
WORST_FIRST = (Verdict.UNSAFE, Verdict.AT_RISK, Verdict.UNKNOWN, Verdict.SAFE)


def safety_of(namespace: NamespaceCoverage) -> Safety:
    """Return the verdict about a namespace; what is known to be wrong comes before what is unknown."""
    if namespace.is_excluded:
        return Safety(Verdict.EXCLUDED, "it has the label that excludes it from backups, or is a sandbox")
    gaps = namespace.all_gaps()
    verdicts = [_verdict(gap, namespace) for gap in gaps]
    worst = next((each for each in WORST_FIRST if each in verdicts), None)
    if worst is not None and worst is not Verdict.UNKNOWN:
        return Safety(worst, _told(gap for gap, verdict in zip(gaps, verdicts, strict=True) if verdict is worst))
    unknown = [*(gap.message for gap in gaps), *namespace.unknown]
    if unknown:
        return Safety(Verdict.UNKNOWN, f"unknown is {unknown[0]}" if not gaps else unknown[0])
    if namespace.newest_good is None:
        return Safety(Verdict.UNSAFE, f"namespace {namespace.name} has no good backup")
    return Safety(Verdict.SAFE, _evidence(namespace, namespace.newest_good))


def count_safe(namespaces: Iterable[NamespaceCoverage]) -> int:
    """Return how many of these namespaces are safe."""
    return sum(safety_of(namespace).verdict is Verdict.SAFE for namespace in namespaces)


def _verdict(gap: Gap, namespace: NamespaceCoverage) -> Verdict:
    if gap.reason in _UNKNOWN:
        return Verdict.UNKNOWN
    is_absent = gap.reason is Reason.NAMESPACE_ABSENT
    has_nothing = namespace.newest_good is None and not namespace.is_new and not is_absent
    return Verdict.UNSAFE if has_nothing or gap.reason in _UNSAFE else Verdict.AT_RISK


def _told(gaps: Iterable[Gap]) -> str:
    first, *others = dict.fromkeys(gap.message for gap in gaps)
    return f"{first} (and {len(others)} more)" if others else first


def _evidence(namespace: NamespaceCoverage, newest: BackupRow) -> str:
    claims = namespace.claims_wanted
    data = f", and good backups have the data of {claims} of {claims} volumes" if claims else ""
    started = f" started {stamp(newest.started)}" if newest.started is not None else ""
    return f"the newest good backup, {newest.name},{started}{data}"
