"""Attacks past self-service: straight at Velero, the operator, the policies and the victim, with the role `edit`."""

import http.client
from collections.abc import Iterator
from typing import Any

from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE
from testbed.api import Answer
from tests.redteam.attack import attack, controlled_attack
from tests.redteam.world import (
    CLOSED,
    HOSTILE,
    NAB,
    NADR,
    NAR,
    NIGHTLY,
    OPERATOR,
    TREASURE,
    VELERO,
    VICTIM,
    World,
    body_of,
    may_edit,
    path,
    reason,
)

_SPEC: dict[str, Any] = {"includedNamespaces": [VICTIM]}


def _let_through(**answers: Answer) -> list[str]:
    """Return what the API server did though the tenant has no right to it."""
    return [f"{name}: {each.code}" for name, each in answers.items() if each.code < http.client.BAD_REQUEST]


@controlled_attack
def read_velero_objects(world: World) -> list[str]:
    """Read the Velero Backups of everybody, with the names of all tenants."""
    kinds = ("backups", "restores", "downloadrequests", "backupstoragelocations", "configmaps", "events")
    return _let_through(**{kind: world.hostile.send("GET", path(kind, VELERO)) for kind in kinds})


@controlled_attack
def read_velero_credentials(world: World) -> list[str]:
    """Read the keys of the bucket."""
    return _let_through(secret=world.hostile.send("GET", path("secrets", VELERO, "cloud-credentials")))


@controlled_attack
def create_velero_backup(world: World) -> list[str]:
    """Create a Velero Backup of the victim's namespace directly."""
    return _let_through(backup=world.hostile.create(path("backups", VELERO), body_of("backups", "mine", _SPEC)))


@controlled_attack
def create_velero_restore(world: World) -> list[str]:
    """Create a Velero Restore of the victim's namespace into the hostile one directly."""
    spec = {"backupName": NIGHTLY, "namespaceMapping": {VICTIM: HOSTILE}}
    return _let_through(restore=world.hostile.create(path("restores", VELERO), body_of("restores", "mine", spec)))


@controlled_attack
def create_velero_objects_at_home(world: World) -> list[str]:
    """Create Velero objects in the tenant's own namespace, in case somebody reads them there."""
    spec = {"backupName": NIGHTLY}
    return _let_through(restore=world.hostile.create(path("restores", HOSTILE), body_of("restores", "mine", spec)))


@controlled_attack
def create_velero_download(world: World) -> list[str]:
    """Ask Velero directly for the contents of the administrator's backup."""
    spec = {"target": {"kind": "BackupContents", "name": NIGHTLY}}
    answer = world.hostile.create(path("downloadrequests", VELERO), body_of("downloadrequests", "mine", spec))
    return _let_through(download=answer)


@controlled_attack
def delete_velero_backup(world: World) -> list[str]:
    """Delete the administrator's Velero Backup, or all of them."""
    one, every = path("backups", VELERO, NIGHTLY), path("backups", VELERO)
    return _let_through(one=world.hostile.delete(f"{one}?dryRun=All"), all=world.hostile.delete(f"{every}?dryRun=All"))


@controlled_attack
def take_the_operators_token(world: World) -> list[str]:
    """Ask for a token of the operator's ServiceAccount, and of Velero's."""
    spec = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return _let_through(
        **{
            name: world.hostile.create(path("serviceaccounts", VELERO, name, "token"), spec)
            for name in ("foresail-self-service", "foresail-schedules", "velero")
        }
    )


@controlled_attack
def impersonate(world: World) -> list[str]:
    """Impersonate the operator, an administrator and the victim."""
    target = path("secrets", VICTIM)
    return _let_through(
        operator=world.hostile.send("GET", path("backups", VELERO), Impersonate_User=OPERATOR),
        masters=world.hostile.send("GET", target, Impersonate_User="mallory", Impersonate_Group="system:masters"),
        victim=world.hostile.send("GET", target, Impersonate_User="vic"),
    )


@attack
def impersonate_own_account_as_master(world: World) -> list[str]:
    """Impersonate a ServiceAccount of the own namespace, as `edit` allows, and claim a group that may do anything."""
    own = f"system:serviceaccount:{HOSTILE}:robot"
    answer = world.hostile.create(
        path(NAR, HOSTILE),
        body_of(NAR, "master", {"restoreSpec": {"backupName": "old"}}),
        Impersonate_User=own,
        Impersonate_Group="system:masters",
    )
    return _let_through(group=answer)


@controlled_attack
def open_self_service_by_label(world: World) -> list[str]:
    """Label the own namespace so that the default policy matches it."""
    labels = {"metadata": {"labels": {OPT_IN_LABEL: OPT_IN_VALUE}}}
    answer = world.hostile.patch(f"{path('namespaces', name=CLOSED)}?dryRun=All", labels)
    return _let_through(label=answer)


@attack
def back_up_without_a_policy(world: World) -> list[str]:
    """Ask for a backup in a namespace that no policy matches."""
    world.ask(NAB, "uninvited", {"backupSpec": {}}, CLOSED)
    found = world.decided(NAB, "uninvited", CLOSED)
    achieved = ["a Velero Backup was made"] if world.made_for("backups", CLOSED) else []
    return achieved + ([] if reason(found) == "NoPolicy" else [f"the reason is {reason(found)}"])


@controlled_attack
def write_policies(world: World) -> list[str]:
    """Create a policy that allows everything, and widen the default one."""
    body = body_of("selfservicepolicies", "mine", {"namespaceSelector": {}, "priority": 9}) | {
        "kind": "SelfServicePolicy"
    }
    target, wide = path("selfservicepolicies"), {"spec": {"quotas": {"stored": 999}}}
    return _let_through(
        create=world.hostile.create(f"{target}?dryRun=All", body),
        widen=world.hostile.patch(f"{target}/foresail-default?dryRun=All", wide),
        delete=world.hostile.delete(f"{target}/foresail-default?dryRun=All"),
    )


@controlled_attack
def remove_admission_policies(world: World) -> list[str]:
    """Delete the admission policies and their bindings."""
    kinds = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    return _let_through(
        **{kind: world.hostile.delete(f"{path(kind, name='foresail-reserved-keys')}?dryRun=All") for kind in kinds}
    )


def _in_victims_namespace() -> Iterator[tuple[str, dict[str, Any]]]:
    yield NAB, {"backupSpec": {}}
    yield NAR, {"restoreSpec": {"backupName": TREASURE}}
    yield NADR, {"target": {"kind": "BackupLog", "name": TREASURE}}


@controlled_attack
def ask_in_the_victims_namespace(world: World) -> list[str]:
    """Create requests in the victim's namespace."""
    return _let_through(
        **{
            plural: world.hostile.create(f"{path(plural, VICTIM)}?dryRun=All", body_of(plural, "mine", spec))
            for plural, spec in _in_victims_namespace()
        }
    )


@controlled_attack
def ask_at_home_for_the_victims_namespace(world: World) -> list[str]:
    """Send a request for the victim's namespace to the own one, and the other way round."""
    body = body_of(NAB, "posing", {"backupSpec": {}}, namespace=VICTIM)
    answers = {"away": world.hostile.create(f"{path(NAB, VICTIM)}?dryRun=All", body)}
    home = world.hostile.create(path(NAB, HOSTILE), body)
    achieved = _let_through(**answers)
    return achieved + ([f"home: {home.code}"] if home.code < http.client.BAD_REQUEST else [])


@controlled_attack
def delete_the_victims_backup(world: World) -> list[str]:
    """Set the delete flags of the victim's NonAdminBackup, delete it and delete all of them."""
    target = path(NAB, VICTIM, TREASURE)
    dry = "?dryRun=All"
    return _let_through(
        flag=world.hostile.patch(target + dry, {"spec": {"deleteBackup": True}}),
        force=world.hostile.patch(target + dry, {"spec": {"forceDeleteBackup": True}}),
        delete=world.hostile.delete(target + dry),
        all=world.hostile.delete(path(NAB, VICTIM) + dry),
        everywhere=world.hostile.send("GET", path(NAB)),
    )


@controlled_attack
def read_the_victim(world: World) -> list[str]:
    """Read the victim's Secrets, requests and logs."""
    kinds = ("secrets", "configmaps", "pods", NAB, NAR, NADR)
    return _let_through(**{kind: world.hostile.send("GET", path(kind, VICTIM)) for kind in kinds})


@controlled_attack
def steal_the_lease(world: World) -> list[str]:
    """Take the operator's Lease away, so that it stops working."""
    target = path("leases", VELERO)
    return _let_through(
        read=world.hostile.send("GET", target), delete=world.hostile.delete(f"{target}/foresail?dryRun=All")
    )


@controlled_attack
def bind_a_stronger_role(world: World) -> list[str]:
    """Bind cluster-admin to oneself, in the own namespace and in the cluster."""
    body = may_edit(HOSTILE, "mallory", "cluster-admin")
    everywhere = {**body, "kind": "ClusterRoleBinding", "metadata": {"name": "mallory"}}
    return _let_through(
        here=world.hostile.create(f"{path('rolebindings', HOSTILE)}?dryRun=All", body),
        everywhere=world.hostile.create(f"{path('clusterrolebindings')}?dryRun=All", everywhere),
    )


@controlled_attack
def run_a_pod_beside_velero(world: World) -> list[str]:
    """Create a pod in Velero's namespace with the operator's ServiceAccount, and one at home with its name."""
    spec = {"serviceAccountName": "foresail-self-service", "containers": [{"name": "x", "image": "x"}]}
    return _let_through(pod=world.hostile.create(f"{path('pods', VELERO)}?dryRun=All", body_of("Pod", "x", spec)))


@controlled_attack
def tamper_with_velero_config(world: World) -> list[str]:
    """Write a ConfigMap or a storage location into Velero's namespace."""
    config = {**body_of("ConfigMap", "mine"), "data": {"rules.yaml": "x"}}
    location = {"spec": {"accessMode": "ReadOnly"}}
    return _let_through(
        config=world.hostile.create(f"{path('configmaps', VELERO)}?dryRun=All", config),
        location=world.hostile.patch(f"{path('backupstoragelocations', VELERO, 'default')}?dryRun=All", location),
    )


@controlled_attack
def change_the_kinds(world: World) -> list[str]:
    """Take the validation out of our CustomResourceDefinitions."""
    target = path("customresourcedefinitions", name="nonadminbackups.oadp.openshift.io")
    return _let_through(patch=world.hostile.patch(f"{target}?dryRun=All", {"metadata": {"labels": {"x": "y"}}}))
