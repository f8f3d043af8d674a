"""What pages say about a namespace: the verdict of coverage in words and signs, and which page mends the first gap."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from foresail.cli.output.words import ago
from foresail.console.report.figures import Figures
from foresail.console.report.page import mood_of, short_text
from foresail.console.report.worth import Worth, worth_of
from foresail.proof.coverage import NamespaceCoverage
from foresail.proof.reasons import STOPS_BACKUPS, Gap, Reason
from foresail.safety.verdict import Safety, Verdict

_SAID = {
    Verdict.SAFE: "Safe",
    Verdict.AT_RISK: "At risk",
    Verdict.UNSAFE: "Not safe",
    Verdict.UNKNOWN: "Unknown",
    Verdict.EXCLUDED: "Excluded",
}
_SIGNS = {Verdict.SAFE: "✔", Verdict.AT_RISK: "!", Verdict.UNSAFE: "✖", Verdict.UNKNOWN: "?", Verdict.EXCLUDED: "-"}


class Mend(StrEnum):
    """What closes a gap, by the page that does it."""

    PROTECT = "Protect"
    SCHEDULE = "Create a schedule"
    RUN = "Run now"
    BACK_UP = "Back up now"
    UNPAUSE = "Unpause"
    RESUME = "Unpause the Schedule"
    DOCTOR = "See the doctor"


_RUN = (Reason.NO_GOOD_BACKUP, Reason.OBJECTIVE_MISSED, Reason.RUNS_MISSED, Reason.ORIGIN_UNKNOWN)
_DOCTOR = (Reason.NOBODY_RUNS, Reason.RUNNER_UNKNOWN, Reason.VELERO_NOT_READY, Reason.AGENT_NOT_READY)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What closes a gap, and which schedule it is about."""

    mend: Mend
    schedule: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a namespace, or the whole cluster, stands."""

    word: str
    sign: str
    mood: str
    message: str
    is_safe: bool
    is_unknown: bool = False
    verdict: str = ""  # the word for programs
    is_bare: bool = False  # amber without any good backup, which must not look like amber with one

    @property
    def label(self) -> str:
        """The word for a row, which has no room for a sentence."""
        return f"{self.word}, no backup" if self.is_bare else self.word


@dataclass(frozen=True, slots=True)
class Row:
    """A namespace in the list of an administrator."""

    name: str
    standing: Standing
    newest: str  # how old the newest good backup is, or never
    next_run: datetime | None
    runs: tuple[Worth, ...]
    remedy: Remedy | None


def standing_of(safety: Safety, *, has_backup: bool = True) -> Standing:
    """Return a verdict in words; only one with evidence is safe."""
    verdict = safety.verdict
    return Standing(
        _SAID[verdict],
        _SIGNS[verdict],
        mood_of(verdict) or "plain",
        short_text(_sentence(safety.message)),
        is_safe=verdict is Verdict.SAFE,
        is_unknown=verdict is Verdict.UNKNOWN,
        verdict=verdict.value,
        is_bare=not has_backup and verdict in (Verdict.AT_RISK, Verdict.UNKNOWN),
    )


_UNKNOWN = "unknown is "


def _sentence(message: str) -> str:
    """Return a message as it follows its verdict."""
    return f"It is unknown {message.removeprefix(_UNKNOWN)}" if message.startswith(_UNKNOWN) else message


def words_of(figures: Figures) -> dict[str, int]:
    """Return how many namespaces have each verdict, the worst first."""
    return dict(Counter(_SAID[safety.verdict] for _, safety in figures.worst_first))


def rows_of(figures: Figures) -> list[tuple[NamespaceCoverage, Safety]]:
    """Return the namespaces with their verdicts, the worst first; a row of them is made when it is shown."""
    return figures.worst_first


def row_of(pair: tuple[NamespaceCoverage, Safety], figures: Figures) -> Row:
    """Return what the list shows of a namespace."""
    coverage, safety = pair
    newest = coverage.newest_good
    return Row(
        coverage.name,
        standing_of(safety, has_backup=newest is not None),
        f"{ago(newest.started, figures.instant)}{coverage.newest_note}" if newest is not None else "never",
        coverage.next_run,
        tuple(worth_of(run, coverage)[0] for run in figures.strip(coverage)),
        None if safety.verdict is Verdict.SAFE else remedy_of(coverage),
    )


def own_remedy(figures: Figures) -> Remedy | None:
    """Return what mends the first gap of the one namespace that figures are about."""
    return remedy_of(figures.namespaces[0]) if figures.namespaces else None


def remedy_of(coverage: NamespaceCoverage) -> Remedy | None:
    """Return what mends the first gap of a namespace that a page can mend."""
    if is_stopped(coverage):
        return Remedy(Mend.DOCTOR)
    return next(filter(None, map(_remedy, coverage.all_gaps())), None)


def is_stopped(coverage: NamespaceCoverage) -> bool:
    """Whether no backup of a namespace can be made now: a page then offers none."""
    return any(gap.reason in STOPS_BACKUPS for gap in coverage.all_gaps())


def _remedy(gap: Gap) -> Remedy | None:
    is_own = "/" in gap.schedule
    mend: Mend | None = None
    if gap.reason is Reason.NO_SCHEDULE:
        mend = Mend.PROTECT
    elif gap.reason is Reason.NO_OWN_SCHEDULE:
        mend = Mend.SCHEDULE
    elif gap.reason in _RUN and gap.schedule:
        mend = Mend.BACK_UP if is_own else Mend.RUN
    elif gap.reason is Reason.PAUSED:
        mend = Mend.UNPAUSE if is_own else Mend.RESUME
    elif gap.reason in _DOCTOR:
        mend = Mend.DOCTOR
    return Remedy(mend, gap.schedule.rpartition("/")[2]) if mend is not None else None


def evidence(figures: Figures) -> list[str]:
    """Return the newest copy and the last proof of one namespace, each as a sentence."""
    now = figures.instant
    coverage = figures.namespaces[0] if figures.namespaces else None
    newest = coverage.newest_good if coverage is not None else None
    lacking = coverage.newest_note if coverage is not None else ""
    last = f"Last good backup: {ago(newest.started, now)} ({newest.name}{lacking})." if newest else "No good backup."
    ended = [check.last for check in figures.checks or () if check.last is not None]
    proof = max(ended, key=lambda last: last.completed, default=None)
    proven = "No restore check has proven it." if newest else "No restore check has run."
    if proof is not None:
        word = "passed" if proof.result == "Pass" else "FAILED"
        proven = f"Last restore check: {word} {ago(proof.completed, now)}."
    return [short_text(last), proven]
