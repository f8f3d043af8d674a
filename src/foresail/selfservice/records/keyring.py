"""The keys that sign records: a Secret in Velero's namespace that an administrator keeps a copy of."""

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
        return next((key for each, key in self.keys if each == identifier), None)

    @property
    def signing_key(self) -> bytes | None:
        """The key that signs; None if there is none."""
        return self.key(self.signing) if self.signing else None

    def with_key(self, key: bytes, *, signs: bool) -> "Keyring":
        """Return the keyring with one more key."""
        others = tuple(each for each in self.keys if each[0] != key_id(key))
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
