"""What the specs of schedules and backups cover; those with the same fields are judged once."""

from collections.abc import Iterable

from foresail.api.specs import BackupSpec
from foresail.proof.observe import BackupRow, CoverageView
from foresail.scope.coverage import Namespaces, Scope, includes_namespaced_kinds, scope_of
from foresail.scope.discovery import STANDARD_KINDS
from foresail.scope.policies import Policies, config_map_of
from foresail.tenancy.volume_policies import VOLUME_POLICIES

_NAMESPACES = ("included_namespaces", "excluded_namespaces")
_KINDS = (
    "included_resources", "excluded_resources", "included_cluster_scoped_resources",
    "excluded_cluster_scoped_resources", "included_namespace_scoped_resources",
    "excluded_namespace_scoped_resources", "include_cluster_resources",
)  # fmt: skip
_LABELS = ("label_selector", "or_label_selectors")
_DATA = (*_KINDS, *_LABELS, "snapshot_volumes", "default_volumes_to_fs_backup", "default_volumes_to_restic")

Key = tuple[object, ...]


class Scopes:
    """Judges specs among the namespaces, kinds and resource policies of a view."""

    def __init__(self, view: CoverageView) -> None:
        self._release, self._kinds = view.release, view.kinds
        self._namespaces = Namespaces.named((namespace.name, namespace.labels) for namespace in view.namespaces)
        self._by_title = {schedule.title: schedule for schedule in view.schedules}
        known = [schedule for schedule in view.schedules if not schedule.policy_problem and not schedule.policy_unread]
        self._policies = {**VOLUME_POLICIES, **{config_map_of(row.spec): row.policies for row in known}}
        if not view.server.global_policies:
            self._policies.setdefault("", None)
        self._scopes: dict[Key, Scope] = {}
        self._covered: dict[Key, frozenset[str]] = {}
        self._includes_objects: dict[Key, bool] = {}
        self._groups: dict[Key, int] = {}

    @property
    def names(self) -> frozenset[str]:
        """The namespaces that exist."""
        return self._namespaces.names

    def existing(self, title: str) -> str:
        """Return the title of a schedule that exists; empty for any other."""
        return title if title in self._by_title else ""

    def policies_of(self, backup: BackupRow) -> tuple[bool, Policies | None]:
        """Return whether the resource policy of a backup is known, and that policy as it is now.

        Those of schedules are. A run whose ConfigMap is known no more had the one that its schedule has now.
        """
        name = config_map_of(backup.spec)
        if name in self._policies:
            return True, self._policies[name]
        schedule = self._by_title.get(backup.schedule)
        if schedule is None or schedule.policy_problem or schedule.policy_unread:
            return False, None
        return True, schedule.policies

    def of(self, spec: BackupSpec, policies: Policies | None) -> Scope:
        """Return what a spec covers."""
        key = _key(spec, (*_NAMESPACES, *_DATA), policies)
        if key not in self._scopes:
            self._scopes[key] = scope_of(spec, STANDARD_KINDS, self._namespaces, policies, self._release)
        return self._scopes[key]

    def namespaces_in(self, spec: BackupSpec, policies: Policies | None) -> frozenset[str]:
        """Return the namespaces in a spec; there are as many specs as backups, so nothing else is judged."""
        if not self._has_objects(spec, policies):
            return frozenset()
        key = spec.included_namespaces, spec.excluded_namespaces
        if key not in self._covered:
            chosen = self._namespaces.chosen_by(spec, self._release)
            self._covered[key] = chosen.covered(self._namespaces.names)
        return self._covered[key]

    def group(self, spec: BackupSpec, policies: Policies | None) -> int:
        """Return a number that specs share if they take the same objects and data of a namespace in them."""
        return self._groups.setdefault((*_key(spec, _DATA, policies), config_map_of(spec)), len(self._groups))

    def _has_objects(self, spec: BackupSpec, policies: Policies | None) -> bool:
        """Whether a spec includes kinds of objects in namespaces, not cluster-scoped kinds alone."""
        key = _key(spec, _KINDS, policies)
        if key not in self._includes_objects:
            everything_excluded = "*" in (spec.excluded_namespace_scoped_resources or ())
            self._includes_objects[key] = not everything_excluded and (
                self._kinds is None or includes_namespaced_kinds(spec, self._kinds, policies)
            )
        return self._includes_objects[key]


def _key(spec: BackupSpec, fields: Iterable[str], policies: Policies | None) -> Key:
    # Policies have no hash. The view keeps them, so that no other object gets the same id.
    return (*(_frozen(getattr(spec, field)) for field in fields), id(policies))


def _frozen(value: object) -> object:
    """Return a value that can be a key: selectors have dicts, which cannot."""
    names = isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    return value if names or value is None or isinstance(value, bool) else repr(value)
