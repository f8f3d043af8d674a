"""`foresail coverage --output metrics`: the figures of namespaces in Prometheus' text format."""

from collections.abc import Callable, Iterable
from datetime import datetime

from foresail.proof.claims import ClaimCoverage
from foresail.proof.coverage import NamespaceCoverage
from foresail.proof.reasons import Reason, is_late
from foresail.proof.safety import safety_of

_TIME = "foresail_coverage_timestamp_seconds"
_SAFETY = "foresail_namespace_safety"
_Value = Callable[[NamespaceCoverage], float | None]


def _reported(coverage: NamespaceCoverage) -> NamespaceCoverage | ClaimCoverage:
    """Return whose backup and objective are reported: the first claim's that misses its objective, if there is one."""
    return next((claim for claim in coverage.claims if is_late(claim.gaps)), coverage)


def _good_backup(coverage: NamespaceCoverage) -> float | None:
    if any(gap.reason is Reason.NAMESPACE_ABSENT for gap in coverage.gaps):
        return None
    newest = _reported(coverage).newest_good
    return newest.started.timestamp() if newest and newest.started else 0.0


def _objective(coverage: NamespaceCoverage) -> float | None:
    reported = _reported(coverage)
    if reported.objective is None or (reported is coverage and coverage.is_new):
        return None
    return reported.objective.total_seconds()


_OF_NAMESPACES: dict[str, tuple[str, _Value]] = {
    "foresail_namespace_good_backup_timestamp_seconds": (
        "Start of the newest good backup of a namespace, or with the data of a claim that is late; 0 without one.",
        _good_backup,
    ),
    "foresail_namespace_objective_seconds": (
        "How old the newest good backup of a namespace may be; absent while the namespace is younger.",
        _objective,
    ),
    "foresail_namespace_gaps": (
        "Gaps of a namespace and its claims, as `foresail coverage` lists them.",
        lambda coverage: len(coverage.all_gaps()),
    ),
    "foresail_namespace_claims": (
        "Claims of a namespace with data to save.",
        lambda coverage: coverage.claims_wanted,
    ),
    "foresail_namespace_claims_saved": (
        "Claims of a namespace whose data a schedule saves, in order and within the objective.",
        lambda coverage: coverage.claims_saved,
    ),
}
FAMILIES = (_TIME, *_OF_NAMESPACES, _SAFETY)


def metrics(coverages: Iterable[NamespaceCoverage], instant: datetime) -> str:
    """Return the figures of all namespaces without the exclusion label in Prometheus' text format."""
    rows = [coverage for coverage in coverages if not coverage.is_excluded]
    lines = [f"# HELP {_TIME} When coverage was judged.", f"# TYPE {_TIME} gauge", f"{_TIME} {instant.timestamp():.0f}"]
    for name, (meaning, value) in _OF_NAMESPACES.items():
        values = ((row.name, value(row)) for row in rows)
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
        lines += [
            f'{name}{{namespace="{namespace}"}} {figure:.0f}' for namespace, figure in values if figure is not None
        ]
    lines += [
        f"# HELP {_SAFETY} The verdict about a namespace: Safe, AtRisk, Unsafe or Unknown.",
        f"# TYPE {_SAFETY} gauge",
    ]
    lines += [f'{_SAFETY}{{namespace="{row.name}",verdict="{safety_of(row).verdict.value}"}} 1' for row in rows]
    return "\n".join(lines)
