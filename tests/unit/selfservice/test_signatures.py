"""A signature belongs to one record and one key: whatever is changed, it no longer verifies."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.selfservice.signatures import (
    KEY_BYTES,
    LONGEST,
    NO_KEYS,
    SIGNING,
    Keyring,
    Record,
    canonical,
    key_id,
    keyring_of,
    sign,
    verify,
)

KEY, OTHER = bytes(range(KEY_BYTES)), bytes(range(1, KEY_BYTES + 1))
RECORD = Record("red-daily-1", "bucket/prefix", "red", "ns-uid", "daily", "uid")

texts = st.text(min_size=1, max_size=20)
records = st.builds(Record, texts, texts, texts, texts, texts, texts)
keys = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)


def ring(*found: bytes) -> Keyring:
    """Return a keyring whose last key signs."""
    result = NO_KEYS
    for key in found:
        result = result.with_key(key, signs=True)
    return result


@given(records, keys)
def test_what_is_signed_verifies(record: Record, key: bytes) -> None:
    signature = sign(record, ring(key))
    assert verify(record, signature, ring(key))
    assert len(signature) <= LONGEST


@given(records, records)
def test_two_records_never_have_the_same_canonical_form(one: Record, other: Record) -> None:
    assert (canonical(one) == canonical(other)) == (one == other)


@given(records, st.sampled_from(msgspec.structs.fields(Record)), texts)
def test_a_record_with_any_other_value_does_not_verify(
    record: Record, field: msgspec.structs.FieldInfo, text: str
) -> None:
    changed = msgspec.structs.replace(record, **{field.name: text})
    assert verify(changed, sign(record, ring(KEY)), ring(KEY)) == (changed == record)


def test_what_moves_between_two_fields_does_not_verify() -> None:
    signature = sign(RECORD, ring(KEY))
    moved = msgspec.structs.replace(RECORD, namespace="redd", name="aily")
    assert not verify(moved, signature, ring(KEY))


@given(records, keys, keys)
def test_another_key_does_not_verify(record: Record, one: bytes, other: bytes) -> None:
    assert verify(record, sign(record, ring(one)), ring(other)) == (one == other)


def test_old_keys_verify_and_the_newest_signs() -> None:
    before, after = ring(KEY), ring(KEY, OTHER)
    assert verify(RECORD, sign(RECORD, before), after)
    assert sign(RECORD, after).split(".")[1] == key_id(OTHER)
    assert not verify(RECORD, sign(RECORD, after), before)


def test_a_signature_under_the_id_of_another_key_does_not_verify() -> None:
    version, _, mac = sign(RECORD, ring(KEY)).split(".")
    assert not verify(RECORD, f"{version}.{key_id(OTHER)}.{mac}", ring(KEY, OTHER))


@pytest.mark.parametrize(
    "signature", ["", ".", "..", "v1", "v1..", "v2.{id}.{mac}", "v1.{id}.{mac}.", "v1.{id}", "v1.{id}.ü", "x" * 10_000]
)
def test_what_is_no_signature_does_not_verify(signature: str) -> None:
    _, identifier, mac = sign(RECORD, ring(KEY)).split(".")
    assert not verify(RECORD, signature.format(id=identifier, mac=mac), ring(KEY))


@given(st.text(max_size=LONGEST))
def test_any_text_is_read_and_does_not_verify(text: str) -> None:
    assert not verify(RECORD, text, ring(KEY))


def test_without_a_key_or_a_part_of_the_record_nothing_is_signed_or_verified() -> None:
    assert sign(RECORD, NO_KEYS) == ""
    unknown = msgspec.structs.replace(RECORD, storage="")
    assert sign(unknown, ring(KEY)) == ""
    assert not verify(unknown, sign(RECORD, ring(KEY)), ring(KEY))


def test_a_secret_holds_keys_under_their_own_ids_only() -> None:
    data = {key_id(KEY): KEY, "short": b"short", key_id(OTHER): b"x" * KEY_BYTES, SIGNING: key_id(KEY).encode()}
    assert keyring_of(data) == ring(KEY)
    assert keyring_of({SIGNING: b"unknown", key_id(KEY): KEY}).signing_key is None
    assert keyring_of({}) == NO_KEYS


def test_keys_are_never_shown() -> None:
    assert repr(ring(KEY)) == f"Keyring({key_id(KEY)})"
