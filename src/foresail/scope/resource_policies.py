"""Velero's resource policies: volume policies and the filters that a ConfigMap adds to a spec."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import yaml

from foresail.api.quantities import quantity
from foresail.api.specs import BackupSpec, LabelRequirement, LabelSelector
from foresail.scope import go_yaml
from foresail.scope.discovery import Discovery
from foresail.scope.globs import compiled, has_wildcard, matches
from foresail.scope.kinds import Lists, ScopedKinds, scoped_names
from foresail.scope.labels import selector_problem
from foresail.scope.namespaces import is_glob
from foresail.scope.releases import LATEST, Release


class PolicyError(ValueError):
    """A resource policy that Velero refuses."""


class _Strict(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Velero refuses a policy with an unknown field."""


class Nfs(_Strict, frozen=True):
    """An NFS server and a path."""

    server: str = ""
    path: str = ""


class Csi(_Strict, frozen=True):
    """A CSI driver and attributes of its volumes."""

    driver: str = ""
    volume_attributes: dict[str, str] | None = None


class Conditions(_Strict, frozen=True):
    """What a volume must meet; all of them."""

    capacity: str = ""
    storage_class: tuple[str, ...] = ()
    nfs: Nfs | None = None
    csi: Csi | None = None
    volume_types: tuple[str, ...] = ()
    pvc_labels: dict[str, str] = msgspec.field(default_factory=dict)
    pvc_phase: tuple[str, ...] = ()
    pvc_volume_mode: str = ""
    pvc_access_modes: tuple[str, ...] = ()


class Action(_Strict, frozen=True):
    """What happens to the data of a volume."""

    type: Literal["skip", "snapshot", "fs-backup", "custom"]
    parameters: dict[str, Any] | None = None


class VolumePolicy(_Strict, frozen=True):
    """An action for the volumes that meet the conditions."""

    action: Action
    conditions: Conditions = Conditions()


class ScopedLists(_Strict, frozen=True):
    """Lists of kinds that complete those of a spec."""

    included_cluster_scoped_resources: tuple[str, ...] = ()
    excluded_cluster_scoped_resources: tuple[str, ...] = ()
    included_namespace_scoped_resources: tuple[str, ...] = ()
    excluded_namespace_scoped_resources: tuple[str, ...] = ()


class ResourceFilter(_Strict, frozen=True):
    """Which objects of some kinds."""

    kinds: tuple[str, ...] = ()
    label_selector: LabelSelector | None = None
    or_label_selectors: tuple[LabelSelector, ...] = ()
    names: tuple[str, ...] = ()
    excluded_names: tuple[str, ...] = ()

    @property
    def is_catch_all(self) -> bool:
        """Whether it is for every kind without a filter of its own."""
        return self.kinds in ((), ("*",))

    def has_name(self, name: str) -> bool:
        """Whether the names include one."""
        return Lists(frozenset(self.names), frozenset(self.excluded_names)).includes(name)

    def selectors(self) -> tuple[LabelSelector, ...]:
        """Return the label selectors, one of which an object must meet; none means every object."""
        given = self.or_label_selectors or ((self.label_selector,) if self.label_selector else ())
        return tuple(selector for selector in given if selector.match_labels or selector.match_expressions)


class ClusterFilter(_Strict, frozen=True):
    """Filters for cluster-scoped objects."""

    resource_filters: tuple[ResourceFilter, ...]


class NamespacedFilter(_Strict, frozen=True):
    """Filters for objects in some namespaces."""

    namespaces: tuple[str, ...]
    resource_filters: tuple[ResourceFilter, ...]


class Policies(_Strict, frozen=True):
    """A resource policy."""

    version: Literal["v1"]
    volume_policies: tuple[VolumePolicy, ...] = ()
    include_exclude_policy: ScopedLists | None = None
    cluster_scoped_filter_policy: ClusterFilter | None = None
    namespaced_filter_policies: tuple[NamespacedFilter, ...] = ()

    @property
    def filters_kinds(self) -> bool:
        """Whether it adds filters, which the old lists of kinds cannot be combined with."""
        return bool(self.include_exclude_policy or self.cluster_scoped_filter_policy or self.namespaced_filter_policies)


class MergedPolicies(Policies, frozen=True):
    """A spec's resource policy, followed by the volume policies of the server for all backups."""

    own: Policies | None = None
    """That of the spec alone."""


def merged(own: Policies | None, of_server: Policies) -> MergedPolicies:
    """Return both; of the server's, only the volume policies count."""
    fields = msgspec.structs.asdict(own) if own else {"version": of_server.version}
    volume_policies = (*(own.volume_policies if own else ()), *of_server.volume_policies)
    return MergedPolicies(**{**fields, "volume_policies": volume_policies}, own=own)


def policies_of(data: Mapping[str, str] | None, release: Release = LATEST) -> Policies:
    """Return the policy in a ConfigMap's data; raise PolicyError if Velero refuses it."""
    if not data or len(data) != 1:
        raise PolicyError("the ConfigMap must have exactly one key")
    try:
        policies = msgspec.convert(_without_nulls(go_yaml.load(next(iter(data.values())))), Policies)
        for policy in policies.volume_policies:
            capacity_range(policy.conditions.capacity)
    except (yaml.YAMLError, msgspec.ValidationError, ValueError, RecursionError) as error:
        raise PolicyError(str(error)) from error
    for problem in _problems(policies):
        raise PolicyError(problem)
    if not release.has_filter_policies and _is_new(policies):
        raise PolicyError("Velero knows some of its fields from 1.18 on only")
    return policies


_TYPES: tuple[type[msgspec.Struct], ...] = (*_Strict.__subclasses__(), LabelSelector, LabelRequirement)
_FIELDS = frozenset(name for kind in _TYPES for name in kind.__struct_encode_fields__)
_MAPS = ("matchLabels", "pvcLabels", "volumeAttributes")


def _without_nulls(value: Any, field: str = "", *, is_condition: bool = False) -> Any:  # noqa: ANN401  any YAML
    """Return plain texts, without nulls: as in Go, a null leaves a field unset, and is empty as a value of a map."""
    if isinstance(value, list):
        return [_without_nulls(document, is_condition=is_condition) for document in value if document is not None]
    if isinstance(value, dict):
        if field == "conditions":
            _check_conditions(value)
        inside = is_condition or field == "conditions"
        is_map = field in _MAPS
        return {
            _plain_text(key, inside): "" if item is None and is_map else _without_nulls(item, key, is_condition=inside)
            for key, item in value.items()
            if is_map or item is not None or key not in _FIELDS
        }
    return _plain_text(value, is_condition)


def _plain_text(value: Any, is_condition: bool) -> Any:  # noqa: ANN401, FBT001  any YAML
    """Return the text of a scalar; Velero reads conditions without types first, so their numbers are written anew."""
    if not isinstance(value, str):
        return value
    resolved = go_yaml.resolved(value) if is_condition and isinstance(value, go_yaml.Plain) else None
    return str(value) if resolved is None else resolved


def _check_conditions(conditions: Mapping[str, Any]) -> None:
    """Raise PolicyError for the conditions whose types Velero checks."""
    labels = conditions.get("pvcLabels", {})
    if not isinstance(labels, dict) or not all(map(_is_text, labels)):
        raise PolicyError("pvcLabels must be a map of string to string")
    if not _is_text(conditions.get("pvcVolumeMode", "")):
        raise PolicyError("pvcVolumeMode must be a string")
    modes = conditions.get("pvcAccessModes", [])
    if not isinstance(modes, list) or not all(map(_is_text, modes)):
        raise PolicyError("pvcAccessModes must be a list of strings")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not (isinstance(value, go_yaml.Plain) and go_yaml.resolved(value) is not None)


def config_map_of(spec: BackupSpec) -> str:
    """Return the ConfigMap with the resource policy of a spec; empty if it has none. Velero ignores other kinds."""
    reference = spec.resource_policy
    return reference.name if reference and reference.kind.casefold() == "configmap" else ""


def _problems(policies: Policies) -> Iterator[str]:
    """Yield why Velero refuses a policy that it can read."""
    for policy in policies.volume_policies:
        csi = policy.conditions.csi
        if csi and not csi.driver and csi.volume_attributes is not None:
            yield "a condition on attributes of csi needs the driver"
    if policies.include_exclude_policy:
        yield from _list_problems(policies.include_exclude_policy)
    if policies.cluster_scoped_filter_policy:
        filters = policies.cluster_scoped_filter_policy.resource_filters
        if any(resource_filter.is_catch_all for resource_filter in filters):
            yield "a filter of clusterScopedFilterPolicy needs kinds"
        yield from _filter_problems(filters)
    yield from _namespace_problems(policies)


def _namespace_problems(policies: Policies) -> Iterator[str]:
    entries = policies.namespaced_filter_policies
    patterns = [pattern for entry in entries for pattern in entry.namespaces]
    yield from (f"{pattern!r} is no namespace name or pattern" for pattern in patterns if not is_glob(pattern))
    if len(patterns) != len(set(patterns)):
        yield "a namespace is in namespacedFilterPolicies twice"
    for entry in entries:
        if not entry.namespaces:
            yield "an entry of namespacedFilterPolicies needs namespaces"
        yield from _filter_problems(entry.resource_filters)


def _list_problems(lists: ScopedLists) -> Iterator[str]:
    for included, excluded in (
        (lists.included_cluster_scoped_resources, lists.excluded_cluster_scoped_resources),
        (lists.included_namespace_scoped_resources, lists.excluded_namespace_scoped_resources),
    ):
        if "*" in (*included, *excluded):
            yield "includeExcludePolicy has *"
        if not set(included).isdisjoint(excluded):
            yield "includeExcludePolicy includes and excludes the same kind"


def _filter_problems(filters: Sequence[ResourceFilter]) -> Iterator[str]:
    if not filters:
        yield "resourceFilters is empty"
    catch_all = [resource_filter for resource_filter in filters if resource_filter.is_catch_all]
    has_names = any(resource_filter.names or resource_filter.excluded_names for resource_filter in catch_all)
    if len(catch_all) > 1 or has_names:
        yield "only one filter may have no kinds, and it cannot have names"
    kinds = [kind for resource_filter in filters for kind in resource_filter.kinds if kind != "*"]
    if len(kinds) != len(set(kinds)):
        yield "a kind has two resourceFilters"
    for resource_filter in filters:
        yield from _selection_problems(resource_filter)


def _selection_problems(resource_filter: ResourceFilter) -> Iterator[str]:
    """Yield what is wrong with the selectors and names of one filter."""
    single = resource_filter.label_selector
    selectors = resource_filter.or_label_selectors
    if single and (single.match_labels or single.match_expressions) and selectors:
        yield "labelSelector and orLabelSelectors cannot be combined"
    for selector in (single, *selectors) if single else selectors:
        problem = selector_problem(selector)
        if problem:
            yield problem
    for name in (*resource_filter.names, *resource_filter.excluded_names):
        if not compiled(name):
            yield f"pattern {name!r} is malformed"


def _is_new(policies: Policies) -> bool:
    """Whether a policy has what releases before 1.18 refuse."""
    return bool(policies.cluster_scoped_filter_policy or policies.namespaced_filter_policies) or any(
        policy.action.type == "custom"
        or policy.conditions.pvc_phase
        or policy.conditions.pvc_volume_mode
        or policy.conditions.pvc_access_modes
        for policy in policies.volume_policies
    )


def capacity_range(text: str) -> tuple[Any, Any]:
    """Return the least and the greatest capacity of a condition such as `1Gi,10Gi`; zero is no bound."""
    bounds = [quantity(bound.strip() or "0") for bound in (text or ",").split(",")]
    if len(bounds) != 2 or (bounds[1] < bounds[0] and bounds[1] != 0):  # noqa: PLR2004  a lower and an upper bound
        raise ValueError(f"capacity {text!r} is no range")
    return bounds[0], bounds[1]


def combined(kinds: ScopedKinds, lists: ScopedLists | None, discovery: Discovery) -> ScopedKinds:
    """Return a spec's lists with those of a policy added; the spec wins."""
    if lists is None:
        return kinds
    return ScopedKinds(
        _merged(
            kinds.namespaced,
            scoped_names(lists.excluded_namespace_scoped_resources, discovery, namespaced=True),
            scoped_names(lists.included_namespace_scoped_resources, discovery, namespaced=True),
        ),
        _merged(
            kinds.cluster,
            scoped_names(lists.excluded_cluster_scoped_resources, discovery, namespaced=False),
            scoped_names(lists.included_cluster_scoped_resources, discovery, namespaced=False),
        ),
        kinds.namespaces,
    )


def _merged(lists: Lists, excluded: Collection[str], included: Collection[str]) -> Lists:
    for name in excluded:
        if not matches(lists.included, name) and not matches(lists.excluded, name):
            lists = Lists(lists.included, lists.excluded | {name})
    for name in included:
        if not matches(lists.included, name) and not matches(lists.excluded, name):
            lists = Lists(lists.included | {name}, lists.excluded)
    return lists


class ObjectFilters:
    """The filters of a policy by kind, and by namespace and kind."""

    def __init__(self, policies: Policies | None, discovery: Discovery) -> None:
        cluster = policies.cluster_scoped_filter_policy if policies else None
        self.cluster = _by_kind(cluster.resource_filters, discovery) if cluster else None
        self.namespaced = {
            pattern: _by_kind(policy.resource_filters, discovery)
            for policy in (policies.namespaced_filter_policies if policies else ())
            for pattern in policy.namespaces
        }

    def of_namespace(self, namespace: str) -> dict[str, ResourceFilter] | None:
        """Return the filters of a namespace by kind, with the catch-all at `*`; None if there are none."""
        if namespace in self.namespaced:
            return self.namespaced[namespace]
        for pattern, filters in self.namespaced.items():
            is_match = compiled(pattern) if has_wildcard(pattern) else None
            if is_match is not None and is_match(namespace):
                return filters
        return None


def _by_kind(filters: Collection[ResourceFilter], discovery: Discovery) -> dict[str, ResourceFilter]:
    by_kind: dict[str, ResourceFilter] = {}
    for resource_filter in filters:
        if resource_filter.is_catch_all:
            by_kind["*"] = resource_filter
            continue
        for name in resource_filter.kinds:
            kind = discovery.resolve_plain(name)
            by_kind[kind.full_name if kind else name] = resource_filter
    return by_kind
