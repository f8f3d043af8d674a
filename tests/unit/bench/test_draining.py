"""A watch of a benchmark that was ended goes on where it was."""

from bench.draining import Tail


def line(version: int, filling: int = 10) -> bytes:
    return b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"%d"},"x":"%s"}}\n' % (version, b"x" * filling)


def test_it_goes_on_after_the_last_whole_event() -> None:
    tail = Tail()
    assert tail.onward() == {}
    tail.add(line(7) + line(8) + line(9)[:-5])
    assert tail.onward() == {"resourceVersion": "8"}
    assert tail.onward() == {"resourceVersion": "8"}, "ended again before anything came"


def test_it_begins_where_it_was_told_and_forgets_it_if_that_is_too_old() -> None:
    tail = Tail("5")
    assert tail.onward() == {"resourceVersion": "5"}
    tail.start_over()
    assert tail.onward() == {}


def test_only_the_end_is_kept() -> None:
    tail = Tail()
    for version in range(100):
        tail.add(line(version, 5_000))
    assert tail.onward() == {"resourceVersion": "99"}
