"""Which streams of an API server's connection to etcd are watches, and what is held of them."""

import pytest

from testbed.watch_frames import WatchFrames, asks_for_watch

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, DATA, RESET, WINDOW, LAST = 1, 0, 3, 8, 1
KEY = b"/registry/configmaps/"


def field(number: int, content: bytes) -> bytes:
    size = bytes([len(content)]) if len(content) < 128 else bytes([len(content) & 0x7F | 0x80, len(content) >> 7])
    return bytes([number << 3 | 2]) + size + content


def message(content: bytes) -> bytes:
    return b"\0" + len(content).to_bytes(4, "big") + content


def frame(kind: int, stream: int, payload: bytes = b"", flags: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


WATCH = message(field(1, field(1, KEY) + field(2, KEY[:-1] + b"0")))
PROGRESS = message(field(3, b""))
READ = message(field(1, KEY) + field(2, KEY[:-1] + b"0"))
WRITE = message(field(1, b"\x10\x02" + field(3, KEY)))


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        (WATCH, True),
        (message(field(1, field(1, KEY * 9))), True),
        (PROGRESS, True),
        (READ, False),
        (message(field(1, b"/registry/")), False),
        (WRITE, False),
        (message(b"\x08\x01"), False),
        (b"", None),
        (WATCH[:7], None),
    ],
    ids=["watch", "long key", "progress", "read", "short key", "write", "lease", "nothing", "half"],
)
def test_a_watch_is_told_from_other_calls_by_how_it_begins(begin: bytes, expected: bool | None) -> None:
    assert asks_for_watch(begin) is expected


@pytest.fixture
def frames() -> WatchFrames:
    """A connection with a read on stream 1 and a watch on stream 3, whose bytes come one by one."""
    found = WatchFrames()
    asked = PREFACE + frame(DATA, 1, READ, LAST) + frame(HEADERS, 3, b"x") + frame(DATA, 3, WATCH)
    for byte in asked:
        found.asked(bytes([byte]))
    return found


def test_all_passes_unless_it_is_told_to_hold(frames: WatchFrames) -> None:
    answer = frame(DATA, 1, b"read") + frame(DATA, 3, b"event")
    assert frames.answered(answer) == (answer, b"")


def test_what_watches_send_is_held_and_what_reads_send_is_not(frames: WatchFrames) -> None:
    frames.holds = True
    header, read, event = frame(HEADERS, 3, b"h"), frame(DATA, 1, b"read"), frame(DATA, 3, b"event")
    passed, back = frames.answered(header + event + read + event)
    assert passed == header + read
    assert back == frame(WINDOW, 0, (5).to_bytes(4, "big")) * 2
    assert frames.release() == event * 2
    assert frames.answered(event) == (event, b"")
    assert frames.release() == b""


def test_half_a_frame_waits_for_its_other_half(frames: WatchFrames) -> None:
    event = frame(DATA, 3, b"event")
    assert frames.answered(event[:4]) == (b"", b"")
    assert frames.answered(event[4:]) == (event, b"")


def test_a_watch_that_was_given_up_is_none_any_more(frames: WatchFrames) -> None:
    frames.asked(frame(RESET, 3, bytes(4)))
    frames.holds = True
    last = frame(DATA, 3, b"last")
    assert frames.answered(last) == (last, b"")


def test_a_large_write_in_several_frames_is_no_watch(frames: WatchFrames) -> None:
    frames.asked(frame(DATA, 5, WRITE) + frame(DATA, 5, WATCH) + frame(DATA, 5, WATCH, LAST))
    frames.holds = True
    answer = frame(DATA, 5, b"done")
    assert frames.answered(answer) == (answer, b"")
