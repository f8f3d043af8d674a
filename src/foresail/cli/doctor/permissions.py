"""The permissions that the operator's ServiceAccount needs for each capability, as in the chart's Roles."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """One verb on one resource, in Velero's namespace or in all."""

    group: str
    resource: str  # with its subresource, as in a Role
    verb: str
    everywhere: bool = False

    def __str__(self) -> str:
        """Return it as people say it."""
        where = "in all namespaces" if self.everywhere else "in Velero's namespace"
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group} {where}"


def _each(group: str, resources: str, verbs: str, *, everywhere: bool = False) -> Iterable[Permission]:
    for resource in resources.split():
        for verb in verbs.split():
            yield Permission(group, resource, verb, everywhere)


LEADERSHIP = (*_each("coordination.k8s.io", "leases", "get create patch"),)
SCHEDULES = (
    *_each("velero.io", "schedules", "list watch patch"),
    *_each("velero.io", "backups", "get list watch create patch delete"),
    *_each("velero.io", "backupstoragelocations", "list watch"),
    *_each("velero.io", "deletebackuprequests", "get list watch create delete"),
    *_each("velero.io", "restores", "list watch"),
    *_each("velero.io", "serverstatusrequests", "get list watch create"),
    *_each("foresail.dev", "schedulepolicies", "list watch", everywhere=True),
    *_each("apps", "deployments", "list watch"),
    *_each("", "pods", "list watch"),
    *_each("events.k8s.io", "events", "create"),
)
SELF_SERVICE = (
    *_each("oadp.openshift.io", "nonadminbackups", "get list watch create patch delete", everywhere=True),
    *_each("oadp.openshift.io", "nonadminrestores", "list watch patch delete", everywhere=True),
    *_each("oadp.openshift.io", "nonadmindownloadrequests", "list watch delete", everywhere=True),
    *_each("oadp.openshift.io", "nonadminschedules", "list watch patch", everywhere=True),
    *_each(
        "oadp.openshift.io",
        "nonadminbackups/status nonadminrestores/status nonadmindownloadrequests/status nonadminschedules/status",
        "patch",
        everywhere=True,
    ),
    *_each("foresail.dev", "selfservicepolicies schedulepolicies protectionclasses", "list watch", everywhere=True),
    *_each("", "namespaces", "list watch patch", everywhere=True),
    *_each("", "persistentvolumeclaims", "list watch", everywhere=True),
    *_each("", "pods", "list", everywhere=True),
    *_each("authorization.k8s.io", "subjectaccessreviews", "create", everywhere=True),
    *_each("events.k8s.io", "events", "create", everywhere=True),
    *_each("velero.io", "backups", "get list watch create patch delete"),
    *_each("velero.io", "restores deletebackuprequests downloadrequests", "get list watch create delete"),
    *_each("velero.io", "podvolumebackups podvolumerestores datauploads datadownloads", "list watch"),
    *_each("velero.io", "backupstoragelocations volumesnapshotlocations", "list watch"),
    *_each("apps", "deployments daemonsets", "list watch"),
    *_each("", "secrets", "list watch"),  # one of them, by its name
    *_each("", "configmaps", "get"),
)
LOCATIONS = (
    *_each("oadp.openshift.io", "nonadminbackupstoragelocations", "list watch patch", everywhere=True),
    *_each("oadp.openshift.io", "nonadminbackupstoragelocations/status", "patch", everywhere=True),
    *_each("oadp.openshift.io", "nonadminbackupstoragelocationrequests", "get list watch create delete"),
    *_each("oadp.openshift.io", "nonadminbackupstoragelocationrequests/status", "patch"),
    *_each("velero.io", "backupstoragelocations", "get create patch delete"),
    *_each("", "secrets", "create patch"),
)
NAMESPACE_RECORDS = (*_each("", "namespaces", "list watch", everywhere=True),)
PROTECTION = (
    *_each("", "namespaces", "list watch", everywhere=True),
    *_each("foresail.dev", "protectionclasses schedulepolicies", "list watch", everywhere=True),
    *_each("foresail.dev", "protectionclasses/status", "patch", everywhere=True),
    *_each("foresail.dev", "protections", "get list watch create patch", everywhere=True),
    *_each("events.k8s.io", "events", "create", everywhere=True),
    *_each("", "persistentvolumeclaims", "list watch", everywhere=True),
    *_each("apps", "deployments", "list watch"),
    *_each("velero.io", "schedules", "get list watch create patch delete"),
    *_each("velero.io", "backups backupstoragelocations", "list watch"),
)
ROLLBACK = (
    *_each("foresail.dev", "rollbacks", "get list watch patch", everywhere=True),
    *_each("foresail.dev", "rollbacks/status", "patch", everywhere=True),
    *_each("foresail.dev", "selfservicepolicies", "list watch", everywhere=True),
    *_each("", "namespaces", "list watch patch", everywhere=True),
    *_each("oadp.openshift.io", "nonadminbackups", "get create", everywhere=True),
    *_each("oadp.openshift.io", "nonadminrestores nonadmindownloadrequests", "get create delete", everywhere=True),
    *_each("", "configmaps services serviceaccounts", "list delete", everywhere=True),
    *_each("apps", "deployments statefulsets daemonsets", "list delete", everywhere=True),
    *_each("batch", "cronjobs", "list delete", everywhere=True),
    *_each("networking.k8s.io", "networkpolicies ingresses", "list delete", everywhere=True),
    *_each("autoscaling", "horizontalpodautoscalers", "list delete", everywhere=True),
    *_each("policy", "poddisruptionbudgets", "list delete", everywhere=True),
    *_each("", "serviceaccounts", "patch", everywhere=True),
    *_each("", "secrets", "deletecollection", everywhere=True),
    *_each("kustomize.toolkit.fluxcd.io", "kustomizations", "get list patch", everywhere=True),
    *_each("helm.toolkit.fluxcd.io", "helmreleases", "get list patch", everywhere=True),
    *_each("keda.sh", "scaledobjects", "list patch", everywhere=True),
    *_each("argoproj.io", "applications", "list", everywhere=True),
    *_each("authorization.k8s.io", "subjectaccessreviews", "create", everywhere=True),
    *_each("events.k8s.io", "events", "create", everywhere=True),
    *_each("velero.io", "backupstoragelocations", "get"),
    *_each("", "persistentvolumes", "get list watch patch", everywhere=True),
    *_each("", "persistentvolumeclaims", "list create delete", everywhere=True),
    *_each("", "pods", "list", everywhere=True),
    *_each("apps", "deployments statefulsets", "patch", everywhere=True),
    *_each("apps", "replicasets", "list", everywhere=True),
    *_each("batch", "cronjobs", "patch", everywhere=True),
    *_each("storage.k8s.io", "storageclasses", "get", everywhere=True),
)
FORECAST = (
    *_each("velero.io", "schedules", "list watch"),
    *_each("velero.io", "serverstatusrequests", "get list watch create"),
    *_each("", "pods", "list watch"),
)
PRIMERS = (
    *_each("foresail.dev", "primers", "list watch", everywhere=True),
    *_each("foresail.dev", "primers/status", "patch", everywhere=True),
    *_each("batch", "cronjobs", "get list watch create delete", everywhere=True),
    *_each("batch", "jobs", "list watch", everywhere=True),
    *_each("", "pods", "get list watch create delete", everywhere=True),
    *_each("", "podtemplates", "get list watch create delete", everywhere=True),
    *_each("autoscaling.x-k8s.io", "capacitybuffers", "get list watch create patch delete", everywhere=True),
    *_each("", "nodes resourcequotas", "list watch", everywhere=True),
    *_each("", "persistentvolumeclaims persistentvolumes", "get", everywhere=True),
    *_each("scheduling.k8s.io", "priorityclasses", "list watch", everywhere=True),
    *_each("events.k8s.io", "events", "create", everywhere=True),
)


RESTORE_CHECKS = (
    *_each("velero.io", "backups backupstoragelocations", "list watch"),
    *_each("apps", "deployments", "list watch"),
    *_each("velero.io", "restores downloadrequests", "get list watch create delete"),
    *_each("", "configmaps", "get list watch create delete"),
    *_each("", "namespaces", "get list watch create delete", everywhere=True),
    *_each("", "resourcequotas", "get list watch create", everywhere=True),
    *_each("networking.k8s.io", "networkpolicies", "get create", everywhere=True),
    *_each("storage.k8s.io", "storageclasses", "list watch", everywhere=True),
)
ADMINISTRATORS_CHECKS = (
    *_each("foresail.dev", "restorechecks", "list watch"),
    *_each("foresail.dev", "restorechecks/status", "patch"),
    *_each("events.k8s.io", "events", "create"),
)
TENANT_CHECKS = (
    *_each("foresail.dev", "restorechecks selfservicepolicies", "list watch", everywhere=True),
    *_each("foresail.dev", "restorechecks/status", "patch", everywhere=True),
    *_each("oadp.openshift.io", "nonadminbackups nonadminschedules", "list watch", everywhere=True),
    *_each("events.k8s.io", "events", "create", everywhere=True),
)


CHECK_DATA = (
    *_each("rbac.authorization.k8s.io", "rolebindings", "get create", everywhere=True),
    *_each("rbac.authorization.k8s.io", "clusterroles", "bind", everywhere=True),  # one of them, by its name
    *_each("", "persistentvolumes", "list watch patch", everywhere=True),
)


def needed(  # noqa: PLR0913 - a switch for each capability and part of one
    *,
    schedules: bool,
    self_service: bool,
    primers: bool = False,
    locations: bool = False,
    restore_checks: bool = False,
    tenant_checks: bool = False,
    check_data: bool = False,
    protection: bool = False,
    rollback: bool = False,
    records_namespaces: bool = False,
) -> list[Permission]:
    """Return what an operator with these capabilities needs; with or without tenants' own locations and depth Data."""
    sets = (
        (LEADERSHIP, True),
        (SCHEDULES, schedules),
        (SELF_SERVICE, self_service),
        (LOCATIONS, self_service and locations),
        (PRIMERS, primers),
        (RESTORE_CHECKS, restore_checks),
        (TENANT_CHECKS if tenant_checks else ADMINISTRATORS_CHECKS, restore_checks),
        (CHECK_DATA, restore_checks and check_data),
        (PROTECTION, protection),
        (ROLLBACK, rollback),
        (NAMESPACE_RECORDS, schedules and records_namespaces),
    )
    return sorted({permission for permissions, wanted in sets if wanted for permission in permissions})
