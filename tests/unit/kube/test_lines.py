from hypothesis import given
from hypothesis import strategies as st

from foresail.kube.lines import Lines


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")).filter(bool)), st.data())
def test_lines_come_out_as_they_went_in_however_the_stream_is_cut(whole: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    lines = Lines()
    found: list[bytes] = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += lines.feed(stream[begin:end])
    assert found == whole


def test_half_a_line_at_the_end_stays_inside() -> None:
    lines = Lines()
    assert lines.feed(b"one\ntw") == [b"one"]
    assert lines.feed(b"o\n") == [b"two"]


def test_a_line_beyond_the_bound_is_left_out_and_the_next_one_is_not() -> None:
    for cut in range(1, 15):
        lines = Lines(longest=4)
        stream = b"1234\n12345678\nab\n"
        assert lines.feed(stream[:cut]) + lines.feed(stream[cut:]) == [b"1234", b"ab"]


def test_two_mebibytes_in_small_chunks_are_one_line() -> None:
    lines = Lines()
    for _ in range(512):
        assert lines.feed(b"x" * 4096) == []
    (line,) = lines.feed(b"\n")
    assert len(line) == 2 << 20
