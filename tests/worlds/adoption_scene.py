"""Velero Backups that come from a bucket: signed by us, by another controller, or by nobody."""

from datetime import timedelta
from typing import Any

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import ADOPT, NAMESPACE_UID, RECORD_SIGNATURE, REQUEST_UID
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.plan import Key
from foresail.selfservice.adoption.rules import approval
from foresail.selfservice.signatures import KEY_BYTES, NO_KEYS, Keyring, Record, sign
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.world import done

KEY = b"k" * KEY_BYTES
RING = NO_KEYS.with_key(KEY, signs=True)
ORIGIN_NAMESPACE, ORIGIN_NAME = "openshift.io/oadp-nab-origin-namespace", "openshift.io/oadp-nab-origin-name"
NACUUID = "openshift.io/oadp-nab-origin-nacuuid"
LABELS = {"openshift.io/oadp": "True", "app.kubernetes.io/managed-by": "oadp-nac-controller"}
OLD_UID = "0b0b0b0b-old-namespace"


def open_bucket(tenancy: Tenancy, adoption: str = "Approved", *, has_key: bool = True) -> None:
    """Let there be a location, perhaps a key, and what the policy says."""
    tenancy.make_location("default", default=True, objectStorage={"bucket": "b", "prefix": "p"})
    if has_key:
        tenancy.make_key(KEY)
    set_adoption(tenancy, adoption)


def set_adoption(tenancy: Tenancy, adoption: str) -> None:
    done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"adoption": adoption}}, "admin"))


def namespace_uid(tenancy: Tenancy, name: str = "red") -> str:
    found = tenancy.world.history.present(NAMESPACE)[Key("", name)]
    return str(found["metadata"]["uid"])


def signed(
    name: str, owner: Key, uid: str, *, ring: Keyring = RING, storage: str = "b/p", request: str = "old-request"
) -> Document:
    """Return the metadata that our operator wrote into the bucket for a namespace with this UID."""
    record = Record(name, storage, owner.namespace, uid, owner.name, f"{request}-{name}")
    return {
        "name": name,
        "labels": {**LABELS, NACUUID: name},
        "annotations": {
            ORIGIN_NAMESPACE: owner.namespace,
            ORIGIN_NAME: owner.name,
            REQUEST_UID: record.request_uid,
            NAMESPACE_UID: uid,
            RECORD_SIGNATURE: sign(record, ring),
        },
    }


def of_other_controller(name: str, owner: Key) -> Document:
    """Return the metadata that the existing controller writes: names, and no UID."""
    annotations = {ORIGIN_NAMESPACE: owner.namespace, ORIGIN_NAME: owner.name}
    return {"name": name, "labels": {**LABELS, NACUUID: name}, "annotations": annotations}


def sync(tenancy: Tenancy, metadata: Document, location: str = "default", **status: Any) -> Document:  # noqa: ANN401 - JSON
    """Let Velero's sync create a Backup from what is in the bucket."""
    ended, expires = tenancy.clock() - timedelta(hours=1), tenancy.clock() + timedelta(days=30)
    status = {
        "phase": "Completed",
        "startTimestamp": stamp(ended - timedelta(minutes=1)),
        "completionTimestamp": stamp(ended),
        "expiration": stamp(expires),
        "progress": {"totalItems": 3, "itemsBackedUp": 3},
        **status,
    }
    spec = {"storageLocation": location, "includedNamespaces": ["red"], "ttl": "720h0m0s"}
    body = {"metadata": metadata, "spec": spec, "status": status}
    return done(tenancy.world.create(velero.BACKUP, body, "velero", VELERO))


def approve(tenancy: Tenancy, name: str, namespace: str = "red") -> None:
    """Do what `foresail backup adopt` does."""
    uid = tenancy.velero_objects()[name]["metadata"]["uid"]
    body = {"metadata": {"annotations": {ADOPT: approval(uid, namespace_uid(tenancy, namespace))}}}
    done(tenancy.world.merge(velero.BACKUP, Key(VELERO, name), body, "admin"))


def offers(tenancy: Tenancy) -> dict[str, bool]:
    """Return the offered Velero Backups, and whether each is shown as verified."""
    assert tenancy.controller is not None
    return {name: each.is_verified for name, each in tenancy.controller.adoption.offers.items()}
