"""The verbs of `foresail recovery-key`: only an administrator writes the Secret, the operator reads it."""

import argparse
import base64
import binascii
import secrets
import sys
from typing import Any

from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.errors import CommandError
from foresail.cli.options.parser import CLIENT
from foresail.cli.options.values import documents, objects
from foresail.cli.output.objects import document
from foresail.cli.output.table import table
from foresail.selfservice.signatures import (
    KEY_BYTES,
    NO_KEYS,
    SECRET,
    SECRET_NAME,
    SIGNING,
    Keyring,
    KeySecret,
    keyring_of,
    keyring_row,
    secret_key,
)

KEEP_A_COPY = "Keep a copy outside of the cluster: foresail recovery-key export > recovery-key.yaml"


def run_create(args: argparse.Namespace) -> int:
    """Create a key, unless there is one."""
    return on_cluster(args, lambda cluster: _create(cluster, args.namespace, args.dry_run))


async def _create(cluster: Cluster, namespace: str, dry_run: str) -> int:
    if not await ensure_key(cluster, namespace, dry_run=dry_run):
        print(f"Secret {secret_key(namespace)} has a key already; nothing was changed", file=sys.stderr)
    return 0


async def ensure_key(cluster: Cluster, namespace: str, *, dry_run: str = "") -> bool:
    """Create a key if there is none; return whether it did."""
    before = await read_keyring(cluster, namespace)
    if before is not None and before.signing_key is not None:
        return False
    await write_keyring(cluster, namespace, before, _with_new_key(before or NO_KEYS), dry_run=dry_run)
    end = "would be created: this is a dry run" if dry_run else f"created. {KEEP_A_COPY}"
    print(f"Secret {secret_key(namespace)} {end}", file=sys.stderr)
    return True


def run_rotate(args: argparse.Namespace) -> int:
    """Add a key that signs from now on."""
    return on_cluster(args, lambda cluster: _rotate(cluster, args.namespace, args.dry_run))


async def _rotate(cluster: Cluster, namespace: str, dry_run: str) -> int:
    before = await _existing(cluster, namespace)
    after = _with_new_key(before)
    await write_keyring(cluster, namespace, before, after, dry_run=dry_run)
    if dry_run:
        print(f"Secret {secret_key(namespace)} would get a new key: this is a dry run", file=sys.stderr)
        return 0
    print(
        f"Key {after.signing} signs from now on; {len(before.keys)} older still verify. {KEEP_A_COPY}", file=sys.stderr
    )
    return 0


def run_get(args: argparse.Namespace) -> int:
    """Print the IDs of the keys, never the keys."""
    keyring = on_cluster(args, lambda cluster: _existing(cluster, args.namespace))
    rows = [{"id": name, "signs": name == keyring.signing} for name, _ in keyring.keys]
    if args.output == "table":
        print(table(("ID", "SIGNS"), [(str(row["id"]), "yes" if row["signs"] else "no") for row in rows]))
    else:
        print(document(rows, args.output))
    return 0


def run_export(args: argparse.Namespace) -> int:
    """Print the keys as a manifest."""
    keyring = on_cluster(args, lambda cluster: _existing(cluster, args.namespace))
    print(document(manifest(args.namespace, keyring), "yaml"))
    print("Keep this secret: whoever has a key and the bucket can sign backups in a tenant's name", file=sys.stderr)
    return 0


def run_import(args: argparse.Namespace) -> int:
    """Add the keys of a file."""
    imported = keyring_in(documents(args.file), args.file)
    return on_cluster(args, lambda cluster: _import(cluster, args.namespace, imported, args.dry_run))


async def _import(cluster: Cluster, namespace: str, imported: Keyring, dry_run: str) -> int:
    before = await read_keyring(cluster, namespace)
    after = merged(before or NO_KEYS, imported)
    if after == before:
        print(f"Secret {secret_key(namespace)} has all of these keys already; nothing was changed", file=sys.stderr)
        return 0
    await write_keyring(cluster, namespace, before, after, dry_run=dry_run)
    end = ": this is a dry run" if dry_run else ""
    print(f"{len(after.keys)} keys verify, {after.signing} signs{end}", file=sys.stderr)
    return 0


def merged(before: Keyring, imported: Keyring) -> Keyring:
    """Return all keys of both; what signs already goes on signing."""
    keyring = before
    for name, key in imported.keys:
        if keyring.key(name) is not None:
            continue
        keyring = keyring.with_key(key, signs=not before.signing and name == imported.signing)
    return keyring


def keyring_in(items: list[Any], file: str) -> Keyring:
    """Return the keys of a manifest."""
    secret = next((item for item in objects(items, SECRET.name)), None)
    try:
        data = {
            name: base64.b64decode(text, validate=True) for name, text in ((secret or {}).get("data") or {}).items()
        }
    except (binascii.Error, ValueError, TypeError, AttributeError):
        data = {}
    keyring = keyring_of(data)
    if not keyring.keys:
        raise CommandError(f"{file} has no recovery key", "import what foresail recovery-key export printed")
    return keyring


def manifest(namespace: str, keyring: Keyring) -> dict[str, Any]:
    """Return the Secret with these keys."""
    return {
        "apiVersion": "v1",
        "kind": SECRET.name,
        "metadata": {"name": SECRET_NAME, "namespace": namespace},
        "type": "Opaque",
        "data": {name: base64.b64encode(value).decode() for name, value in _entries(keyring).items()},
    }


def _entries(keyring: Keyring) -> dict[str, bytes]:
    return {**dict(keyring.keys), SIGNING: keyring.signing.encode()}


def _with_new_key(before: Keyring) -> Keyring:
    return before.with_key(secrets.token_bytes(KEY_BYTES), signs=True)


async def read_keyring(cluster: Cluster, namespace: str) -> Keyring | None:
    """Return the keys; None if there is no Secret."""
    secret = await cluster.if_there(SECRET, secret_key(namespace), KeySecret)
    return None if secret is None else keyring_row(secret)


async def _existing(cluster: Cluster, namespace: str) -> Keyring:
    keyring = await read_keyring(cluster, namespace)
    if keyring is None or not keyring.keys:
        raise CommandError(
            f"Secret {secret_key(namespace)} has no key",
            "create one: foresail recovery-key create; or import your copy: foresail recovery-key import -f FILE",
        )
    return keyring


async def write_keyring(
    cluster: Cluster, namespace: str, before: Keyring | None, after: Keyring, *, dry_run: str = ""
) -> None:
    """Create the Secret, or add to it; a key is never removed, and no dry run shows one."""
    if dry_run == CLIENT:
        return
    body = manifest(namespace, after)
    key = secret_key(namespace)
    if before is None:
        await cluster.create(SECRET, key, body, dry_run=bool(dry_run))
    else:
        await cluster.merge(SECRET, key, {"data": body["data"]}, dry_run=bool(dry_run))
