"""The signature of a record: who writes to a bucket can write labels and annotations, but not this.

`v1.<key id>.<HMAC-SHA256 in hex>` over the record in canonical form. The name of the Velero Backup and the bucket are
part of it, so a signature cannot be moved to another backup or to another location.
"""

import hmac
from hashlib import sha256

import msgspec

from foresail.selfservice.records.keyring import Keyring

_VERSION = "v1"
_PURPOSE = "foresail.dev/record"  # so that the same key can never sign anything else by accident
_PARTS = 3
LONGEST = 128
"""Characters of a signature that can be ours; a longer text is not kept."""


class Record(msgspec.Struct, frozen=True):
    """The owner of a Velero Backup, and its location."""

    backup: str  # the name of the Velero Backup
    storage: str  # bucket and prefix of its location
    namespace: str
    namespace_uid: str
    name: str  # of the NonAdminBackup
    request_uid: str


def canonical(record: Record) -> bytes:
    """Return the bytes that are signed: a JSON array of strings, so that no two records have the same."""
    return msgspec.json.encode([_PURPOSE, _VERSION, *msgspec.structs.astuple(record)])


def sign(record: Record, keyring: Keyring) -> str:
    """Return the signature of a record with the newest key; empty if there is no key, or a part is unknown."""
    key = keyring.signing_key
    if key is None or not all(msgspec.structs.astuple(record)):
        return ""
    return f"{_VERSION}.{keyring.signing}.{_mac(key, record)}"


def verify(record: Record, signature: str, keyring: Keyring) -> bool:
    """Whether a signature is ours and was made for this very record."""
    parts = signature.split(".") if len(signature) <= LONGEST else []
    if len(parts) != _PARTS or parts[0] != _VERSION or not all(msgspec.structs.astuple(record)):
        return False
    key = keyring.key(parts[1])
    return key is not None and hmac.compare_digest(_mac(key, record).encode(), parts[2].encode())


def _mac(key: bytes, record: Record) -> str:
    return hmac.new(key, canonical(record), sha256).hexdigest()
