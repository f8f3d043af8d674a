"""Whether a namespace is safe: the one verdict for coverage, report, metrics, console, doctor and Protections.

A namespace is safe if its schedules run, Velero and the storage location work, and a good backup with the data of each
claim is within the objective. What the reader could not see makes the verdict unknown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


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


class Finding(Protocol):
    """Something that is wrong with the protection of a namespace: a word for programs and a sentence for people."""

    @property
    def reason(self) -> StrEnum:
        """The word; the same word of two capabilities means the same."""

    @property
    def message(self) -> str:
        """The sentence."""


_UNSAFE = frozenset({"NoSchedule", "LocationUnavailable", "VolumeLeftOut", "ObjectiveMissed", "RunsMissed"})
_UNKNOWN = frozenset({"NoOwnSchedule", "RunnerUnknown", "OriginUnknown", "PolicyUnread", "VolumesUnproven"})
_OF_NO_NAMESPACE = frozenset({"NamespaceAbsent"})
_OUTAGES = frozenset({"VeleroNotReady", "NobodyRuns", "LocationUnavailable"})
"""What keeps every schedule from running: the first to be told, whatever else is wrong with one."""

WORST_FIRST = (Verdict.UNSAFE, Verdict.AT_RISK, Verdict.UNKNOWN, Verdict.SAFE)


def weighed(
    name: str, findings: Sequence[Finding], unknown: Sequence[str], evidence: str, *, is_new: bool = False
) -> Safety:
    """Return the verdict about a namespace; what is known to be wrong comes before what is unknown.

    `evidence` tells of the newest good backup, and is empty if there is none.
    """
    has_nothing = not evidence and not is_new
    verdicts = [_weight(finding, has_nothing=has_nothing) for finding in findings]
    worst = next((verdict for verdict in WORST_FIRST if verdict in verdicts), None)
    if worst is not None and worst is not Verdict.UNKNOWN:
        pairs = zip(findings, verdicts, strict=True)
        told = [finding for finding, verdict in pairs if verdict is worst]
        return Safety(worst, _told(sorted(told, key=lambda finding: finding.reason.value not in _OUTAGES)))
    doubts = [*(finding.message for finding in findings), *unknown]
    if doubts:
        return Safety(Verdict.UNKNOWN, f"unknown is {doubts[0]}" if not findings else doubts[0])
    if not evidence:
        return Safety(Verdict.UNSAFE, f"namespace {name} has no good backup")
    return Safety(Verdict.SAFE, evidence)


def _weight(finding: Finding, *, has_nothing: bool) -> Verdict:
    word = finding.reason.value
    if word in _UNKNOWN:
        return Verdict.UNKNOWN
    is_unsafe = word in _UNSAFE or (has_nothing and word not in _OF_NO_NAMESPACE)
    return Verdict.UNSAFE if is_unsafe else Verdict.AT_RISK


def _told(findings: Iterable[Finding]) -> str:
    first, *others = dict.fromkeys(finding.message for finding in findings)
    return f"{first} (and {len(others)} more)" if others else first
