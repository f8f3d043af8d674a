"""What one backup is worth for a namespace, on time lines and in strips: complete is a claim with evidence."""

from datetime import datetime
from enum import StrEnum

from foresail.backups import Quality
from foresail.cli.doctor.finding import some
from foresail.console.report.figures import Figures, Run
from foresail.proof.coverage import NamespaceCoverage


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
    since = "" if coverage is None else _since(coverage, run.started)
    if coverage is not None and _is_newest(coverage, run.name):
        return (Worth.UNJUDGED, coverage.unknown[0]) if coverage.unknown else (Worth.COMPLETE, since)
    is_known = coverage is not None and ((run.schedule and not coverage.unknown) or not coverage.claims_wanted)
    return (Worth.COMPLETE, since) if is_known else (Worth.UNJUDGED, "whether it has the data of volumes is not known")


def _foreign(run: Run, coverage: NamespaceCoverage | None) -> str:
    """Return why coverage does not count a good run as a backup of this namespace; empty if it does."""
    is_older = coverage is not None and coverage.is_younger_than(run.started)
    return run.foreign or ("made before the namespace was created" if is_older else "")


def _lacking(coverage: NamespaceCoverage, backup: str, started: datetime) -> tuple[str, ...]:
    """Return the claims whose data a good backup has not, although they were there."""
    return coverage.left_out if _is_newest(coverage, backup) else coverage.without(backup, started)


def _is_newest(coverage: NamespaceCoverage, backup: str) -> bool:
    return coverage.newest_good is not None and coverage.newest_good.name == backup


def _since(coverage: NamespaceCoverage, started: datetime) -> str:
    """Return which claims are younger than a backup, which therefore says nothing about their data."""
    younger = coverage.younger_than(started)
    return f"made before {'claims' if len(younger) > 1 else 'claim'} {some(younger)} existed" if younger else ""


def newest_note(coverage: NamespaceCoverage) -> str:
    """Return which data the newest good backup has not, to follow its name or age."""
    newest = coverage.newest_good
    if newest is None or newest.started is None:
        return ""
    lacking = _lacking(coverage, newest.name, newest.started)
    note = f"without the data of {some(lacking)}" if lacking else _since(coverage, newest.started)
    return f", {note}" if note else ""


def _without(run: Run, coverage: NamespaceCoverage | None) -> str:
    """Return which data a good run has not, as far as that is known; empty if none is missed."""
    lacking = () if coverage is None else _lacking(coverage, run.name, run.started)
    if lacking:
        return f"without the data of {some(lacking)}"
    if run.lacks_data:
        return "it lacks the data of volumes"
    if coverage is None:
        return ""
    unsaved = [claim.name for claim in coverage.claims if claim.is_wanted and run.schedule not in claim.schedules]
    return f"its schedule does not save the data of {some(unsaved)}" if run.schedule and unsaved else ""
