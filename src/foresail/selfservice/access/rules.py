"""Which kinds a restore brings back: those of the backup that the requester may create.

The rules are pure: `candidates` returns the kinds to ask about, `questions` what to ask about each, `authorized_spec`
the spec that follows from the answers. Velero creates objects as a cluster administrator, so a kind that is not allowed
here must not be in the list that Velero gets.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from foresail.api.nonadmin import NOTHING_TO_RESTORE
from foresail.api.velero_files import MOST_BYTES
from foresail.reporting import some
from foresail.selfservice.access.contents import ContentKind, Contents, VolumeRow
from foresail.selfservice.access.discovery import BUILT_IN, CORE, ApiResource, is_name_of
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.specs.kinds import COME_WITH_CLAIMS
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.requester import is_system_account
from foresail.tenancy.restored_kinds import EVERYTHING

CLAIMS, PODS, VOLUMES = "persistentvolumeclaims", "pods", "persistentvolumes"
_ACCOUNTS, _SECRETS = "serviceaccounts", "secrets"
_SNAPSHOTS = "volumesnapshots.snapshot.storage.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_NAMED = 10

BRINGS = {PODS: (CLAIMS, "priorityclasses.scheduling.k8s.io")}
"""What comes along with a kind even if the restore leaves it out: an annotation in the backup can demand it.

Velero obeys `restore.velero.io/must-include-additional-items` before resource modifiers run, so a kind is restored only
if the requester may create these too, as far as the backup holds them.
"""


CHANGE = ("update", "patch")
"""The verbs that the requester needs for a kind whose objects Velero changes: it sends patches."""


class Question(msgspec.Struct, frozen=True):
    """Whether the requester may do one thing."""

    verb: str
    group: str
    plural: str
    namespace: str  # empty for a kind without a namespace
    subresource: str = ""


class Options(msgspec.Struct, frozen=True):
    """The options of a restore that access depends on."""

    namespace: str  # of the backup
    target: str = ""  # the other namespace in which objects are created; empty: the same
    target_uid: str = ""  # an answer about an earlier namespace of that name is none
    user: str = ""
    groups: tuple[str, ...] = ()
    included: tuple[str, ...] = ()  # empty: every kind
    excluded: tuple[str, ...] = ()
    is_update: bool = False  # existing objects may be updated
    restores_volumes: bool = True  # spec.restorePVs is not false
    is_by_requester: bool = True  # else the policy alone decides about kinds
    checks_volumes: bool = True
    is_shared: bool = False  # the backup holds other namespaces too, of which nothing counts here

    @property
    def where(self) -> str:
        """Where objects are created, and, if they come from elsewhere, read."""
        return f"in {self.target}, or get them in {self.namespace}" if self.target else f"in {self.namespace}"


class Verdict(msgspec.Struct, frozen=True):
    """Which kinds of a backup come back, and which do not."""

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()
    volumes: tuple[VolumeRow, ...] = ()  # would be re-created or changed, and the requester may not do so
    copied: tuple[str, ...] = ()  # the claims into which Velero would write files; empty for a volume without one
    objects: int = 0  # of the allowed kinds
    claims: int = 0  # among them


class Authorized(msgspec.Struct, frozen=True):
    """A request that may be handed over: its spec, and what the tenant reads about it."""

    spec: dict[str, Any]
    reason: Reason | None = None
    message: str = ""
    shortened: str = ""  # what a tenant reads of the time that Velero waits for snapshots, if it is not as asked for


# The requester


def requester_problem(user: str, reserved: Iterable[str]) -> Refused | None:
    """Return why the requester is unknown; None if there is one."""
    if not user:
        text = "The restore has no recorded requester; create it again with foresail restore create"
        return Refused(
            Reason.REQUESTER_UNKNOWN, f"{text}, or ask a cluster administrator to install the admission policies"
        )
    if is_system_account(user, reserved):
        text = f"{user} is a system account, so its permissions do not count"
        return Refused(Reason.REQUESTER_UNKNOWN, f"{text}; edit the spec or create the restore again as yourself")
    return None


# Which kinds


def candidates(
    contents: Contents, served: Collection[ApiResource], options: Options
) -> tuple[list[ApiResource], list[str]]:
    """Return the resources that the restore would bring back, and the kinds that the API server does not serve."""
    by_kind: dict[ContentKind, list[ApiResource]] = {}
    for resource in (*CORE, *served):
        by_kind.setdefault(ContentKind(resource.group, resource.kind), []).append(resource)
    resources: dict[str, ApiResource] = {}
    unserved: list[str] = []
    for kind in contents.kinds:
        meant = [resource for resource in by_kind.get(kind, ()) if resource.is_namespaced]
        if not meant:
            unserved.append(str(kind))
        resources |= {resource.name: resource for resource in meant if _is_asked_for(resource, options)}
    return [resources[name] for name in sorted(resources)], unserved


def needs_discovery(contents: Contents) -> bool:
    """Whether a backup contains a kind that differs between clusters."""
    known = {ContentKind(resource.group, resource.kind) for resource in (*CORE, *BUILT_IN)}
    return not known.issuperset((*contents.kinds, *contents.cluster_kinds))


def handed_over(names: Iterable[str]) -> tuple[ApiResource, ...]:
    """Return the resources of a restore that Velero has, without those that come with claims and were not asked."""
    parts = (name.partition(".") for name in names if name not in COME_WITH_CLAIMS)
    return tuple(ApiResource(group, plural, "") for plural, _, group in parts)


def questions(resource: ApiResource, options: Options) -> list[Question]:
    """Return the access reviews for a resource, in order; the first denial ends them."""
    group = resource.group
    plural = resource.plural
    namespace = options.target or options.namespace
    verbs = ["create"]
    if options.is_update:
        verbs += CHANGE
    elif resource.name == _ACCOUNTS:  # Velero merges into ServiceAccounts that exist
        verbs.append("update")
    needed = [Question(verb, group, plural, namespace) for verb in verbs]
    if group == _RBAC and plural == "roles":
        needed.append(Question("escalate", _RBAC, "roles", namespace))
    if group == _RBAC and plural == "rolebindings":
        needed += [Question("bind", _RBAC, plural_of_roles, namespace) for plural_of_roles in ("roles", "clusterroles")]
    return [*needed, *_reading(resource, options)] if options.target else needed


def _reading(resource: ApiResource, options: Options) -> list[Question]:
    """Return the reviews for what a restore shows in another namespace: objects, and the data in their volumes.

    Who may create pods reads the claims of a namespace; who may run commands in pods reads their other volumes.
    """
    source = options.namespace
    needed = [Question("get", resource.group, resource.plural, source)]
    if resource.name in (CLAIMS, PODS, _SNAPSHOTS):
        needed += [Question("create", "", PODS, source), Question("create", "", PODS, source, "exec")]
    return needed


def brought_along(
    asked: Iterable[ApiResource], contents: Contents, served: Iterable[ApiResource]
) -> dict[str, tuple[ApiResource, ...]]:
    """Return for each resource what else it may bring back from this backup."""
    held = {*contents.kinds, *contents.cluster_kinds}
    known = {api_resource.name: api_resource for api_resource in (*CORE, *served)}
    along: dict[str, tuple[ApiResource, ...]] = {}
    for resource in asked:
        rest = [known[name] for name in BRINGS.get(resource.name, ()) if name in known]
        along[resource.name] = tuple(other for other in rest if ContentKind(other.group, other.kind) in held)
    return along


def allowed_resources(
    asked: Collection[ApiResource], may: Mapping[str, bool], along: Mapping[str, tuple[ApiResource, ...]]
) -> tuple[list[str], list[str]]:
    """Return the resources that come back and those that do not, by what the requester may create."""
    allowed: list[str] = []
    denied: list[str] = []
    with_claims = {_SNAPSHOTS} if any(resource.name == CLAIMS and may.get(CLAIMS) for resource in asked) else set()
    for resource in asked:
        rest = all(may.get(owned.name, False) for owned in along.get(resource.name, ()))
        is_allowed = (may.get(resource.name, False) and rest) or resource.name in with_claims
        (allowed if is_allowed else denied).append(resource.name)
    return allowed, denied


def volumes_at_risk(contents: Contents, names: Collection[str], options: Options) -> tuple[VolumeRow, ...]:
    """Return the volumes that would be re-created or changed to what they were; pods bring their claims along."""
    if not options.checks_volumes or not {CLAIMS, PODS} & set(names):
        return ()
    return tuple(volume for volume in contents.volumes if _is_as_it_was(volume, options) or options.is_update)


def volume_questions(options: Options) -> list[Question]:
    """Return the access reviews for volumes at risk: who is allowed all of them may have the volumes as they were."""
    verbs = ("create", *(CHANGE if options.is_update else ()))
    return [Question(verb, "", VOLUMES, "") for verb in verbs]


def _is_as_it_was(volume: VolumeRow, options: Options) -> bool:
    return not volume.has_snapshot or not options.restores_volumes


def copied(contents: Contents, names: Collection[str], options: Options) -> tuple[str, ...]:
    """Return the claims into which Velero would write files: it does so with the pods alone.

    From a backup that others share no pods come back, so the claims are those that would stay empty.
    """
    return contents.copied if PODS in names or (options.is_shared and CLAIMS in names) else ()


def may_restore_pods(options: Options) -> bool:
    """Whether a restore may bring back pods, by its spec alone."""
    return _is_asked_for(next(resource for resource in CORE if resource.name == PODS), options)


def _is_asked_for(resource: ApiResource, options: Options) -> bool:
    included = not options.included or EVERYTHING in options.included
    return (included or _is_named(resource, options.included)) and not _is_named(resource, options.excluded)


def _is_named(resource: ApiResource, names: Iterable[str]) -> bool:
    return any(is_name_of(name, resource) for name in names)


# What it comes to


def authorized_spec(spec: dict[str, Any], verdict: Verdict, options: Options) -> Authorized | Refused:
    """Return the spec with the allowed kinds alone, or why the restore is not handed over."""
    as_they_were = tuple(volume for volume in verdict.volumes if _is_as_it_was(volume, options))
    if as_they_were:
        return _not_backed_up(as_they_were)
    if verdict.volumes:
        return _would_be_changed(verdict.volumes, options)
    if not options.is_by_requester:
        return Authorized(spec)
    left_out = (*verdict.denied, *verdict.unserved)
    if not verdict.allowed:
        return _nothing_left(verdict, options)
    names = verdict.allowed
    if CLAIMS in names:
        comes = (kind for kind in COME_WITH_CLAIMS if not any(fnmatchcase(kind, glob) for glob in options.excluded))
        names = tuple(dict.fromkeys((*names, *comes)))
    made = {**spec, "includedResources": list(names)}
    if not left_out:
        text = f"{options.user} may create all {len(verdict.allowed)} kinds in the backup"
        return Authorized(made, Reason.ALL_KINDS_ALLOWED, text)
    text = ""
    if verdict.denied:
        where = f" {options.where}" if options.target else ""
        text = f"Left out because {options.user} may not create them{where}: {listed(verdict.denied)}. "
    if verdict.unserved:
        text += f"Left out because the cluster does not serve them: {listed(verdict.unserved)}. "
    return Authorized(made, Reason.KINDS_LEFT_OUT, f"{text}To restore them, get access and create another restore")


def _nothing_left(verdict: Verdict, options: Options) -> Refused:
    if verdict.denied:
        text = f"{options.user} may not create any kind of this restore {options.where}"
        text += f": {listed(verdict.denied)}. Get access, then run foresail restore retry"
        return Refused(Reason.ACCESS_DENIED, text)
    text = NOTHING_TO_RESTORE
    if verdict.unserved:
        text = text.replace(";", f" (the cluster does not serve {listed(verdict.unserved)});")
    return Refused(Reason.INVALID_RESTORE_SPEC, text)


def _would_be_changed(volumes: tuple[VolumeRow, ...], options: Options) -> Refused:
    """Refuse to let Velero patch a PersistentVolume that exists: it does so with the claims, and has no filter."""
    who = f"{options.user} may not change PersistentVolumes" if options.user else "a tenant may not change them"
    text = f"With existingResourcePolicy update, Velero would change volume {_in_words(volumes)} too, and {who}"
    more = "exclude persistentvolumeclaims and pods, or leave existingResourcePolicy out"
    return Refused(Reason.ACCESS_DENIED, f"{text}; {more}")


def _in_words(volumes: Collection[VolumeRow]) -> str:
    return listed([f"{volume.name} of claim {volume.claim}" if volume.claim else volume.name for volume in volumes])


def _not_backed_up(volumes: tuple[VolumeRow, ...]) -> Refused:
    text = f"The backup has no data for volume {_in_words(volumes)}, so Velero would re-create it unchanged"
    more = "exclude persistentvolumeclaims and pods, or ask a cluster administrator to set restore.volumes: AsIs"
    return Refused(Reason.VOLUME_NOT_BACKED_UP, f"{text}; {more}")


def kinds_not_served(spec: dict[str, Any], names: Collection[str]) -> Authorized:
    """Let a backup go ahead that names kinds which Velero cannot find, and name them."""
    text = f"The cluster does not serve {listed(names)}, so Velero leaves them out; check the kind names"
    return Authorized(spec, Reason.KINDS_NOT_SERVED, text)


# Secrets in a bucket of the tenant


def holds_secrets(spec: dict[str, Any]) -> bool:
    """Whether a backup may hold Secrets; in doubt it does."""
    return _holds(spec, _SECRETS, is_secrets)


def holds_pods(spec: dict[str, Any]) -> bool:
    """Whether a backup may hold pods; in doubt it does."""
    return _holds(spec, PODS, lambda name: name.partition(".")[0].lower() in ("po", "pod", PODS))


def holds_claims(spec: dict[str, Any]) -> bool:
    """Whether a backup may hold claims; in doubt it does."""
    return _holds(spec, CLAIMS, lambda name: name.partition(".")[0].lower() in ("pvc", "persistentvolumeclaim", CLAIMS))


def _holds(spec: dict[str, Any], plural: str, is_name: Callable[[str], bool]) -> bool:
    included = spec.get("includedNamespaceScopedResources") or ()
    excluded = spec.get("excludedNamespaceScopedResources") or ()
    is_included = not included or any("*" in item or is_name(item) for item in included)
    return is_included and plural not in excluded


def without_secrets(spec: dict[str, Any], who: str, unserved: Collection[str]) -> Authorized | Refused:
    """Return a backup without Secrets, which someone may not read who could read them in the bucket."""
    included = spec.get("includedNamespaceScopedResources") or ()
    left = [item for item in included if not is_secrets(item)]
    if included and not left:
        text = f"The bucket of this backup would show Secrets, which {who} may not read; include other kinds"
        return Refused(Reason.INVALID_BACKUP_SPEC, f"{text}, or use another storage location")
    excluded = [*(spec.get("excludedNamespaceScopedResources") or ()), _SECRETS]
    made = {**spec, "excludedNamespaceScopedResources": excluded}
    if included:
        made["includedNamespaceScopedResources"] = left
    text = f"Left out because {who} may not read them: {_SECRETS}. "
    if unserved:
        text += f"Not served by the cluster: {listed(unserved)}. "
    return Authorized(made, Reason.KINDS_LEFT_OUT, f"{text}To back them up, get access and create another backup")


def is_secrets(name: str) -> bool:
    """Whether Velero might read a name as Secrets: it ignores case, and a version or group may follow."""
    return name.partition(".")[0].lower() in ("secret", _SECRETS)


def no_kind_of_a_namespace(names: Collection[str], no_secrets_for: str = "") -> Refused:
    """Refuse a backup of cluster-scoped kinds alone: Velero would back up every kind of the namespace instead."""
    beside = f" beside Secrets, which {no_secrets_for} may not read" if no_secrets_for else ""
    text = f"spec.backupSpec includes only cluster-scoped kinds{beside}: {listed(names)}"
    return Refused(
        Reason.INVALID_BACKUP_SPEC, f"{text}. Include namespaced kinds; volumes are backed up with their claims"
    )


def too_many_objects(count: int, policy: PolicyRow) -> Refused:
    """Refuse a restore that would keep Velero's only restore worker for too long."""
    most = policy.spec.restore.maximum_objects
    text = f"The restore has {count:,} objects, and SelfServicePolicy {policy.name} allows {most:,} (maximumObjects)"
    return Refused(Reason.POLICY_VIOLATION, f"{text}; include fewer kinds, or ask a cluster administrator to raise it")


def too_many_claims(count: int, policy: PolicyRow) -> Refused:
    """Refuse a restore whose end would keep the ends of all others waiting for too long."""
    most = policy.spec.restore.maximum_claims
    text = f"The restore has {count:,} volume claims, and SelfServicePolicy {policy.name} allows {most:,}"
    more = "exclude persistentvolumeclaims, or ask a cluster administrator to raise maximumClaims"
    return Refused(Reason.POLICY_VIOLATION, f"{text}; {more}")


def too_large(backup: str) -> Refused:
    """Refuse a restore whose backup is too large to check."""
    text = f"The contents list of backup {backup} is larger than {MOST_BYTES >> 20} MiB, so access cannot be checked"
    more = "restore from a smaller backup, or ask a cluster administrator to restore it"
    return Refused(Reason.BACKUP_TOO_LARGE, f"{text}; {more}")


def listed(names: Collection[str]) -> str:
    """Return names as they appear in a message: the first few, and how many more."""
    return some(names, _NAMED)
