"""Why Velero refuses a spec or crashes on it: a Backup with such a spec covers nothing."""

from collections.abc import Collection

from foresail.api.specs import BackupSpec
from foresail.scope.kinds import uses_new_lists, uses_old_lists
from foresail.scope.labels import malformed_alternative
from foresail.scope.namespaces import is_pattern
from foresail.scope.releases import LATEST, Release
from foresail.scope.resource_policies import Policies


def problems(
    spec: BackupSpec, excluded_by_label: Collection[str], policies: Policies | None, release: Release = LATEST
) -> list[str]:
    """Return why Velero refuses a spec; an empty list if it does not."""
    problems: list[str] = []
    if uses_old_lists(spec):
        if uses_new_lists(spec):
            problems.append("old and new lists of resources cannot be combined")
        if policies and policies.filters_kinds:
            problems.append("old lists of resources cannot be combined with the filters of a resource policy")
        problems += _in_both("resources", spec.included_resources, spec.excluded_resources, star=False)
    else:
        for what, included, excluded in (
            ("cluster-scoped", spec.included_cluster_scoped_resources, spec.excluded_cluster_scoped_resources),
            ("namespace-scoped", spec.included_namespace_scoped_resources, spec.excluded_namespace_scoped_resources),
        ):
            problems += _in_both(f"{what} resources", included, excluded, star=True)
    if spec.label_selector is not None and spec.or_label_selectors:
        problems.append("labelSelector and orLabelSelectors cannot be combined")
    excluded_namespaces = (*(spec.excluded_namespaces or ()), *excluded_by_label)
    problems += _in_both("namespaces", spec.included_namespaces, excluded_namespaces, star=False)
    names = {*(spec.included_namespaces or ()), *excluded_namespaces}
    invalid = [name for name in sorted(names) if not is_pattern(name, release)]
    return problems + [f"{name!r} is no namespace name or pattern" for name in invalid]


def crash(spec: BackupSpec) -> str | None:
    """Return what makes Velero crash when it collects namespaces; None if nothing does."""
    text = malformed_alternative(spec.or_label_selectors)
    if text is None:
        return None
    return f"a selector of orLabelSelectors is malformed ({text}): Velero crashes, and all later backups wait"


def _in_both(what: str, included: Collection[str] | None, excluded: Collection[str] | None, *, star: bool) -> list[str]:
    includes = set(included or ())
    excludes = set(excluded or ())
    problems = []
    if "*" in includes and len(includes) > 1:
        problems.append(f"the included {what} have names beside *")
    if "*" in excludes and (not star or len(excludes) > 1 or includes):
        problems.append(f"the excluded {what} have *")
    return problems + [
        f"{name!r} is among the included and the excluded {what}" for name in sorted(includes & excludes)
    ]
