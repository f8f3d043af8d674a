"""Why Velero rejects a restore as a whole, before it restores any item."""

from collections.abc import Iterable, Sequence

from foresail.api.specs import RestoreSpec
from foresail.proof.restore_plan.selection import NEVER_RESTORED

_POLICIES = (None, "", "none", "update")


def rejection(spec: RestoreSpec) -> str:
    """Return why Velero would end the restore as FailedValidation; empty if it would not."""
    return next(iter(_rejections(spec)), "")


def _rejections(spec: RestoreSpec) -> Iterable[str]:
    resources = spec.included_resources or ()
    yield from (
        f"includedResources has {resource}, which Velero never restores"
        for resource in NEVER_RESTORED
        if resource in resources
    )
    yield from _in_lists("Resources", resources, spec.excluded_resources or ())
    yield from _in_lists("Namespaces", spec.included_namespaces or (), spec.excluded_namespaces or ())
    if spec.label_selector is not None and spec.or_label_selectors is not None:
        yield "labelSelector and orLabelSelectors cannot both be set"
    if spec.existing_resource_policy not in _POLICIES:
        yield f"existingResourcePolicy {spec.existing_resource_policy!r} is neither none nor update"


def _in_lists(what: str, included: Sequence[str], excluded: Sequence[str]) -> Iterable[str]:
    if "*" in included and len(set(included)) > 1:
        yield f"included{what} has * beside other entries"
    if "*" in excluded:
        yield f"excluded{what} has *"
    yield from (f"{name} is in both included{what} and excluded{what}" for name in included if name in excluded)
