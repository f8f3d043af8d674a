"""JSON of any depth is read: what lies too deep is taken out, and nothing else."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.kube.depth import decoded, shallow

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def cut(value: object, levels: int) -> object:
    if not isinstance(value, (list, dict)):
        return value
    if not levels:
        return None
    if isinstance(value, list):
        return [cut(each, levels - 1) for each in value]
    return {key: cut(each, levels - 1) for key, each in value.items()}


@given(anything, st.integers(0, 5), st.booleans())
def test_what_is_deeper_than_that_is_null_and_all_else_as_it_was(value: object, levels: int, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert json.loads(shallow(text, levels)) == cut(value, levels)


class Named(msgspec.Struct):
    name: str
    rest: msgspec.Raw = msgspec.Raw(b"null")


@pytest.mark.parametrize(("opens", "closes"), [(b"[", b"]"), (b'{"[\\"{": ', b"}")])
def test_a_decoder_reads_past_what_is_deeper_than_it_goes(opens: bytes, closes: bytes) -> None:
    deep = opens * 9_000 + b"1" + closes * 9_000
    found = decoded(msgspec.json.Decoder(Named), b'{"rest": [' + deep + b', 2], "name": "a"}')
    assert found.name == "a"
    assert msgspec.json.decode(found.rest)[1] == 2


def test_what_is_no_json_is_refused_as_ever() -> None:
    with pytest.raises(msgspec.DecodeError):
        decoded(msgspec.json.Decoder(Named), b'{"name": ' + b"[" * 9_000)
