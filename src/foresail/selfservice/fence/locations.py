"""What self-service writes for tenants' own storage locations."""

from foresail.api import core, nonadmin, velero
from foresail.api.fence import (
    ANNOTATIONS,
    CREATE,
    DELETE,
    METADATA,
    NAME,
    OLD_ANNOTATIONS,
    OLD_SPEC,
    SPEC,
    STATUS,
    UNCHANGED_SPEC,
    UPDATE,
    Condition,
    Rule,
    all_of,
    any_of,
    has_all,
    only,
    plain,
    quoted,
    same,
    unchanged,
    value,
    words,
)
from foresail.api.marks import CREDENTIALS, NAMESPACE_UID, ORPHANED, REQUEST_HASH, REQUEST_UID, REQUESTER, SUSPENDED
from foresail.api.specs import BackupStorageLocationSpec, ObjectStorageLocation
from foresail.selfservice.fence.velero import OURS, is_of, labels
from foresail.selfservice.rows.locations import FINALIZER, NACUUID_LABEL, ORIGIN_NAME, ORIGIN_NAMESPACE
from foresail.selfservice.specs.location import CONFIG_KEYS, CREDENTIALS_KEY, PROVIDERS, REGISTRY

_RECORD = (ORIGIN_NAMESPACE, ORIGIN_NAME, REQUEST_UID, NAMESPACE_UID)
_RECORDED = Condition(
    all_of(only(ANNOTATIONS, _RECORD), has_all(ANNOTATIONS, _RECORD)),
    "it is recorded as a request of a tenant, with no other annotations",
)
_REACHABLE = Condition(
    "variables.isReachable", "selfService.namespaces and excludedNamespaces do not allow this namespace"
)
_NAMED = Condition(
    all_of(f"{NAME}.matches({quoted(f'-{OURS}$')})", is_of(NAME, "variables.origin")),
    "its name is that of the tenant's request",
)
_STORAGE = value(SPEC, "objectStorage", "{}")
_PREFIX = value(_STORAGE, "prefix")
_GRANTED = (
    f"authorizer.group('').resource('secrets').namespace(variables.origin).name({value(ANNOTATIONS, CREDENTIALS)})"
    ".check('get').allowed()"
)
_NEW_LOCATION = (
    plain("spec"),
    Condition(
        all_of(only(ANNOTATIONS, (*_RECORD, CREDENTIALS)), has_all(ANNOTATIONS, (*_RECORD, CREDENTIALS))),
        "it is recorded as a request of a tenant, with no other annotations",
    ),
    Condition(_GRANTED, "it makes locations only for tenants who let it read their Secret: foresail location grant"),
    _REACHABLE,
    _NAMED,
    Condition(labels(NACUUID_LABEL, (REGISTRY,)), "it has no labels but its own"),
    Condition(
        all_of(
            only(SPEC, BackupStorageLocationSpec.__struct_encode_fields__),
            only(_STORAGE, ObjectStorageLocation.__struct_encode_fields__),
            only(value(SPEC, "config", "{}"), CONFIG_KEYS),
            f"{value(SPEC, 'provider')} in {words(PROVIDERS)}",
        ),
        "a location has no other fields and settings than a tenant may have",
    ),
    Condition(
        any_of(f"{_PREFIX} == variables.origin", f'{_PREFIX}.startsWith(variables.origin + "/")'),
        "a location is in the folder of the tenant's namespace",
    ),
    Condition(
        all_of(
            f"!{value(SPEC, 'default', 'false')}",
            f'{value(SPEC, "backupSyncPeriod")} == "0s"',
            f'{SPEC}[?"credential"].orValue({{}}) == {{"name": string({NAME}), "key": {quoted(CREDENTIALS_KEY)}}}',
        ),
        "no location is the default one, is synced by Velero, or has other credentials than its own",
    ),
    Condition(
        any_of(
            "variables.endpoints.size() == 0",
            f'{SPEC}[?"config"][?"s3Url"].orValue("") in variables.endpoints',
        ),
        "selfService.locations.endpoints of the chart does not list this endpoint",
    ),
)
_OWN = Condition(
    all_of(f"{quoted(REQUEST_UID)} in {OLD_ANNOTATIONS}", f"{quoted(ORIGIN_NAMESPACE)} in {OLD_ANNOTATIONS}"),
    "it changes and deletes only what it made for a tenant",
)
_SECRET = (
    Condition(
        all_of(
            only("object", ("apiVersion", "kind", "metadata", "type", "data")),
            only("variables.metadata", (*METADATA, "ownerReferences", "resourceVersion")),
            'object.type == "Opaque"',
            only("object.?data.orValue({})", (CREDENTIALS_KEY,)),
            "variables.owners.size() == 1",
            f"variables.owners.all(each, each.kind == {quoted(velero.LOCATION.name)} && each.name == {NAME})",
        ),
        "it writes only copies of a tenant's credentials, owned by the location of the same name",
    ),
    Condition(labels(NACUUID_LABEL), "it has no labels but its own"),
    _RECORDED,
    _NAMED,
)
_APPROVAL = nonadmin.NON_ADMIN_LOCATION_REQUEST
_STATUS = Rule(nonadmin.NON_ADMIN_LOCATION, UPDATE, subresource="status")

RULES = (
    Rule(velero.LOCATION, CREATE, _NEW_LOCATION),
    Rule(
        velero.LOCATION,
        UPDATE,
        (
            _OWN,
            *unchanged(annotations=(REQUEST_HASH, SUSPENDED, ORPHANED)),
            Condition(same(SPEC, OLD_SPEC, ("accessMode",)), "it changes only the accessMode of a location"),
            Condition(f"{STATUS} == variables.oldStatus", "it changes no status of a location"),
        ),
    ),
    Rule(velero.LOCATION, DELETE, (_OWN,)),
    Rule(core.SECRET, CREATE, (_REACHABLE, *_SECRET)),
    Rule(core.SECRET, UPDATE, (_OWN, *_SECRET, *unchanged())),
    Rule(
        _APPROVAL,
        CREATE,
        (
            plain("spec"),
            Condition(labels(NACUUID_LABEL), "it has no labels but its own"),
            Condition(
                all_of(only(ANNOTATIONS, (*_RECORD, REQUESTER)), has_all(ANNOTATIONS, _RECORD)),
                "it is recorded as a request of a tenant, with no other annotations",
            ),
            _NAMED,
            Condition(f'{SPEC} == {{"approvalDecision": "pending"}}', "it asks for approval and approves nothing"),
        ),
    ),
    Rule(_APPROVAL, DELETE, (_OWN,)),
    Rule(_APPROVAL, UPDATE, subresource="status"),
    Rule(nonadmin.NON_ADMIN_LOCATION, UPDATE, (*unchanged(finalizers=(FINALIZER,)), UNCHANGED_SPEC)),
    _STATUS,
)
