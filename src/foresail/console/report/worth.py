"""What one backup is worth for a namespace, on time lines and in strips: complete is a claim with evidence."""

from enum import StrEnum

from foresail.backups import Quality
from foresail.console.report.figures import Figures, Run
from foresail.proof.coverage import NamespaceCoverage
from foresail.reporting import some


class Worth(StrEnum):
    """The words; they are shown."""

    COMPLETE = "complete"
    LACKING = "incomplete"
    FAILED = "failed"
    UNJUDGED = "ended, not judged"


_NOTES = {Quality.EMPTY: "it has no object", Quality.SHRUNK: "it has lost most of its objects"}


def worths_of(figures: Figures) -> dict[str, tuple[Worth, str]]:
    """Return what the runs of one namespace are worth, and why, by their names."""
    coverage = figures.namespaces[0] if figures.namespaces else None
    return {run.name: worth_of(run, coverage) for runs in figures.runs.values() for run in runs}


def worth_of(run: Run, coverage: NamespaceCoverage | None) -> tuple[Worth, str]:
    """Return what a run is worth, and why; complete only if coverage shows that its schedule saves every volume."""
    if run.quality is Quality.FAILED:
        return Worth.FAILED, run.failure
    if run.quality is not Quality.GOOD:
        return Worth.LACKING, run.failure or _NOTES.get(run.quality, "")
    without = _without(run, coverage)
    if without:
        return Worth.LACKING, without
    foreign = _foreign(run, coverage)
    if foreign:
        return Worth.UNJUDGED, foreign
    before = "" if coverage is None else coverage.predates(run.started)
    if coverage is not None and coverage.is_newest(run.name):
        return (Worth.UNJUDGED, coverage.unknown[0]) if coverage.unknown else (Worth.COMPLETE, before)
    is_known = coverage is not None and ((run.schedule and not coverage.unknown) or not coverage.claims_wanted)
    return (Worth.COMPLETE, before) if is_known else (Worth.UNJUDGED, "whether it has the data of volumes is not known")


def _foreign(run: Run, coverage: NamespaceCoverage | None) -> str:
    """Return why coverage does not count a good run as a backup of this namespace; empty if it does."""
    is_older = coverage is not None and coverage.is_younger_than(run.started)
    return run.foreign or ("made before the namespace was created" if is_older else "")


def _without(run: Run, coverage: NamespaceCoverage | None) -> str:
    """Return which data a good run has not, as far as that is known; empty if none is missed."""
    without = "" if coverage is None else coverage.lacks(run.name, run.started)
    if without:
        return without
    if run.lacks_data:
        return "it lacks the data of volumes"
    if coverage is None:
        return ""
    unsaved = [claim.name for claim in coverage.claims if claim.is_wanted and run.schedule not in claim.schedules]
    return f"its schedule does not save the data of {some(unsaved)}" if run.schedule and unsaved else ""
