"""Lines survive any split of the stream; JSON of any depth is decoded, and only what is too deep is dropped."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.kube.json_stream import LineSplitter, decode, truncate_depth

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
    assert json.loads(truncate_depth(text, levels)) == cut(value, levels)


class Named(msgspec.Struct):
    name: str
    rest: msgspec.Raw = msgspec.Raw(b"null")


@pytest.mark.parametrize(("opens", "closes"), [(b"[", b"]"), (b'{"[\\"{": ', b"}")])
def test_a_decoder_reads_past_what_is_deeper_than_it_goes(opens: bytes, closes: bytes) -> None:
    deep = opens * 9_000 + b"1" + closes * 9_000
    found = decode(msgspec.json.Decoder(Named), b'{"rest": [' + deep + b', 2], "name": "a"}')
    assert found.name == "a"
    assert msgspec.json.decode(found.rest)[1] == 2


def test_what_is_no_json_is_refused_as_ever() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(msgspec.json.Decoder(Named), b'{"name": ' + b"[" * 9_000)


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")).filter(bool)), st.data())
def test_lines_come_out_as_they_went_in_however_the_stream_is_cut(whole: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    lines = LineSplitter()
    found: list[bytes] = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += lines.feed(stream[begin:end])
    assert found == whole


def test_half_a_line_at_the_end_stays_inside() -> None:
    lines = LineSplitter()
    assert lines.feed(b"one\ntw") == [b"one"]
    assert lines.feed(b"o\n") == [b"two"]


def test_a_line_beyond_the_bound_is_left_out_and_the_next_one_is_not() -> None:
    for cut in range(1, 15):
        lines = LineSplitter(max_bytes=4)
        stream = b"1234\n12345678\nab\n"
        assert lines.feed(stream[:cut]) + lines.feed(stream[cut:]) == [b"1234", b"ab"]


def test_two_mebibytes_in_small_chunks_are_one_line() -> None:
    lines = LineSplitter()
    for _ in range(512):
        assert lines.feed(b"x" * 4096) == []
    (line,) = lines.feed(b"\n")
    assert len(line) == 2 << 20
