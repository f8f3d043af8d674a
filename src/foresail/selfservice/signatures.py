"""The ownership record of a Velero Backup, and the signature that makes it trustworthy after a disaster.

Who writes to a bucket can write labels and annotations, but not the signature: `v1.<key id>.<HMAC-SHA256 in hex>` over
the record in canonical form. The name of the Velero Backup and the bucket are part of it, so a signature cannot be
moved to another backup or to another location. The keys are in a Secret in Velero's namespace that an administrator
keeps a copy of.
"""

import hmac
from collections.abc import Mapping
from hashlib import sha256

import msgspec

from foresail.api.metadata import Metadata
from foresail.plan import Key, Kind

SECRET = Kind("", "v1", "secrets", "Secret")
SECRET_NAME = "foresail-record-key"  # noqa: S105 - the name of an object
SIGNING = "signing-key"
"""The entry of the Secret with the ID of the key that signs."""

KEY_BYTES = 32
_ID_CHARACTERS = 16


class Keyring(msgspec.Struct, frozen=True):
    """Every key verifies; one of them signs."""

    keys: tuple[tuple[str, bytes], ...] = ()  # by ID
    signing: str = ""

    def __repr__(self) -> str:
        return f"Keyring({', '.join(name for name, _ in self.keys)})"  # never the keys

    def key(self, identifier: str) -> bytes | None:
        """Return a key by its ID."""
        return next((key for name, key in self.keys if name == identifier), None)

    @property
    def signing_key(self) -> bytes | None:
        """The key that signs; None if there is none."""
        return self.key(self.signing) if self.signing else None

    def with_key(self, key: bytes, *, signs: bool) -> "Keyring":
        """Return the keyring with one more key."""
        others = tuple(other for other in self.keys if other[0] != key_id(key))
        return Keyring((*others, (key_id(key), key)), key_id(key) if signs else self.signing)


NO_KEYS = Keyring()


class KeySecret(msgspec.Struct, frozen=True):
    """The Secret with the keys; msgspec decodes base64."""

    metadata: Metadata
    data: dict[str, bytes] | None = None


def key_id(key: bytes) -> str:
    """Return the ID of a key: the beginning of its hash, so that no two keys share one."""
    return sha256(key).hexdigest()[:_ID_CHARACTERS]


def keyring_row(wire: KeySecret) -> Keyring:
    """Return the keys of a Secret."""
    return keyring_of(wire.data or {})


def keyring_of(data: Mapping[str, bytes]) -> Keyring:
    """Return the keys among the entries of a Secret; an entry that is not a key under its own ID is left out."""
    keys = tuple((name, key) for name, key in sorted(data.items()) if len(key) == KEY_BYTES and key_id(key) == name)
    signing = data.get(SIGNING, b"").decode(errors="replace").strip()
    return Keyring(keys, signing if any(name == signing for name, _ in keys) else "")


def secret_key(velero_namespace: str) -> Key:
    """Return where the Secret is."""
    return Key(velero_namespace, SECRET_NAME)


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
