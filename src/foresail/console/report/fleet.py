"""The figures of many clusters: which are safe, which are silent, and which restore checks failed.

Pure: from what was read of each cluster, or from series of Prometheus, to rows with the worst first. A cluster that has
not reported lately is silent, whatever its last report said.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from foresail.console.report.figures import Figures
from foresail.safety.verdict import Verdict

SILENT_AFTER = timedelta(hours=2)
"""As the alert ForesailClusterSilent."""

SILENT = "Silent"
_ORDER = (SILENT, "Not safe", "At risk", "Unknown", "Safe")
_WORDS = {
    Verdict.SAFE: "Safe",
    Verdict.AT_RISK: "At risk",
    Verdict.UNSAFE: "Not safe",
    Verdict.UNKNOWN: "Unknown",
    Verdict.EXCLUDED: "Unknown",
}
_MOODS = {"Safe": "good", "At risk": "warn", "Unknown": "warn", "Not safe": "bad", SILENT: "bad"}

NOT_SAFE = "cluster:foresail_namespaces_not_safe:count"
OLDEST = "cluster:foresail_good_backup_age_seconds:max"
WITHOUT = "cluster:foresail_namespaces_without_good_backup_24h:count"
REPORTED = "cluster:foresail_coverage_timestamp_seconds:max"
FAILED_CHECKS = "count by (cluster) (foresail_restore_check_passed == 0)"
QUERIES = (NOT_SAFE, OLDEST, WITHOUT, REPORTED, FAILED_CHECKS)
"""What Prometheus is asked, with the recording rules of examples/fleet-rules.yaml."""

Series = Mapping[str, Mapping[str, float]]
"""The values by query and cluster."""


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One cluster of a fleet."""

    name: str
    word: str
    message: str = ""
    safe: int | None = None
    counted: int | None = None
    not_safe: int | None = None
    oldest: timedelta | None = None  # age of the newest good backup of the namespace that has the oldest one
    without: int | None = None  # namespaces without a good backup; from Prometheus, without one of the last day
    failed_checks: int | None = None
    reported: datetime | None = None
    server: str = ""

    @property
    def mood(self) -> str:
        """The colour of its word."""
        return _MOODS[self.word]


@dataclass(frozen=True, slots=True)
class Fleet:
    """All clusters, the worst first."""

    rows: tuple[ClusterRow, ...]
    at: datetime
    source: str  # where the figures come from

    @property
    def counts(self) -> dict[str, int]:
        """How many clusters have each word, the worst first."""
        counts = {word: sum(row.word == word for row in self.rows) for word in _ORDER}
        return {word: number for word, number in counts.items() if number}


def fleet_of(rows: Iterable[ClusterRow], at: datetime, source: str) -> Fleet:
    """Return the fleet, the worst cluster first."""
    ranked = sorted(rows, key=lambda row: (_ORDER.index(row.word), -(row.not_safe or 0), row.name))
    return Fleet(tuple(ranked), at, source)


def silent(name: str, why: str, server: str = "") -> ClusterRow:
    """Return a cluster that does not answer."""
    return ClusterRow(name, SILENT, why, server=server)


def row_of_figures(name: str, server: str, figures: Figures) -> ClusterRow:
    """Return a cluster as it was read by its kubeconfig context, judged as its own console judges it."""
    safety = figures.safety
    counted = len(figures.counted)
    worst = figures.worst
    checks = figures.checks
    return ClusterRow(
        name,
        _WORDS[safety.verdict],
        "" if safety.verdict is Verdict.SAFE else safety.message,
        figures.safe,
        counted,
        counted - figures.safe,
        worst[1] if worst is not None else None,
        len(figures.without_backup),
        None if checks is None else sum(check.has_failed for check in checks),
        figures.instant,
        server,
    )


def rows_of_series(series: Series, at: datetime) -> list[ClusterRow]:
    """Return the clusters that Prometheus knows; what it has no series for is unknown, never safe."""
    names = sorted({name for values in series.values() for name in values if name})
    return [_row_of_series(name, series, at) for name in names]


def _row_of_series(name: str, series: Series, at: datetime) -> ClusterRow:
    values = {query: series.get(query, {}).get(name) for query in QUERIES}
    stamp = values[REPORTED]
    reported = datetime.fromtimestamp(stamp, UTC) if stamp is not None else None
    not_safe = values[NOT_SAFE]
    seconds = values[OLDEST]
    without = values[WITHOUT]
    failed = values[FAILED_CHECKS]
    row = ClusterRow(
        name,
        "Unknown",
        "it reports no verdicts: look at the CronJob that runs foresail coverage",
        not_safe=int(not_safe) if not_safe is not None else None,
        oldest=timedelta(seconds=seconds) if seconds is not None else None,
        without=int(without) if without is not None else None,
        failed_checks=int(failed or 0),
        reported=reported,
    )
    word, message = _judged(row, at)
    return ClusterRow(
        name, word, message, None, None, row.not_safe, row.oldest, row.without, row.failed_checks, reported
    )


def _judged(row: ClusterRow, at: datetime) -> tuple[str, str]:
    if row.reported is None or at - row.reported > SILENT_AFTER:
        return SILENT, "it has not reported its coverage for two hours"
    if row.not_safe is None:
        return row.word, row.message
    return ("Not safe", f"{row.not_safe} namespaces are not safe") if row.not_safe else ("Safe", "")


def named(contexts: Sequence[str], only: Sequence[str]) -> list[str]:
    """Return the contexts of a fleet: all, or those that were named."""
    return [context for context in contexts if not only or context in only]
