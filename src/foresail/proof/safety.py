"""Whether a namespace is safe, as coverage sees it."""

from collections.abc import Iterable

from foresail.api.instants import stamp
from foresail.proof.coverage import NamespaceCoverage
from foresail.proof.view import BackupRow
from foresail.safety.verdict import Safety, Verdict, weighed


def safety_of(namespace: NamespaceCoverage) -> Safety:
    """Return the verdict about a namespace."""
    if namespace.is_excluded:
        return Safety(Verdict.EXCLUDED, "it has the label that excludes it from backups, or is a sandbox")
    newest = namespace.newest_good
    evidence = _evidence(namespace, newest) if newest is not None else ""
    return weighed(namespace.name, namespace.all_gaps(), namespace.unknown, evidence, is_new=namespace.is_new)


def count_safe(namespaces: Iterable[NamespaceCoverage]) -> int:
    """Return how many of these namespaces are safe."""
    return sum(safety_of(namespace).verdict is Verdict.SAFE for namespace in namespaces)


def _evidence(namespace: NamespaceCoverage, newest: BackupRow) -> str:
    claims = namespace.claims_wanted
    data = f", and good backups have the data of {claims} of {claims} volumes" if claims else ""
    started = f" started {stamp(newest.started)}" if newest.started is not None else ""
    return f"the newest good backup, {newest.name},{started}{data}"
