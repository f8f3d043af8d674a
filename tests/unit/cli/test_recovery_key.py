"""`foresail recovery-key`: what is exported can be imported, and nothing is ever lost by it."""

import json
from pathlib import Path

import pytest

from foresail.cli.errors import CommandError
from foresail.cli.options.values import documents
from foresail.cli.output.objects import document
from foresail.cli.recovery_key.keys import keyring_in, manifest, merged
from foresail.selfservice.signatures import KEY_BYTES, NO_KEYS, key_id

OLD, NEW = b"a" * KEY_BYTES, b"b" * KEY_BYTES


def test_an_exported_manifest_is_imported_whole(tmp_path: Path) -> None:
    ring = NO_KEYS.with_key(OLD, signs=True).with_key(NEW, signs=True)
    file = tmp_path / "key.yaml"
    file.write_text(document(manifest("velero", ring), "yaml"))
    found = keyring_in(documents(str(file)), str(file))
    assert set(found.keys) == set(ring.keys)
    assert found.signing == key_id(NEW)
    assert merged(NO_KEYS, found) == found


def test_an_import_keeps_every_key_and_what_signs() -> None:
    before, imported = NO_KEYS.with_key(NEW, signs=True), NO_KEYS.with_key(OLD, signs=True)
    after = merged(before, imported)
    assert {name for name, _ in after.keys} == {key_id(OLD), key_id(NEW)}
    assert after.signing == key_id(NEW)
    assert merged(after, imported) == after


@pytest.mark.parametrize(
    "content",
    [{}, {"kind": "Secret"}, {"kind": "Secret", "data": {"x": "%%%"}}, {"kind": "Secret", "data": {"x": "eHg="}}],
)
def test_a_file_without_a_key_is_refused(content: dict[str, object], tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(json.dumps(content))
    with pytest.raises(CommandError, match="has no recovery key"):
        keyring_in(documents(str(file)), str(file))
