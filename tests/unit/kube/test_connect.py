"""The difference between our clock and the API server's."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from foresail.kube import connect as module
from foresail.kube.connect import Connection, connect
from tests.worlds import virtual_time

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
DATE = format_datetime(NOON, usegmt=True)
KUBECONFIG = """{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
"clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "x", "user": {}}]}"""


class Clocks:
    """Our wall clock, which can be set, and the monotonic one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.steady = NOON, 100.0
        monkeypatch.setattr(module, "now", lambda: self.wall)
        monkeypatch.setattr(module, "steady", lambda: self.steady)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.wall += timedelta(seconds=seconds)
        self.steady += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


@pytest.fixture
def connection(tmp_path: Path) -> Connection:
    (tmp_path / "config").write_text(KUBECONFIG)
    return virtual_time.run(connect(str(tmp_path / "config")))


def test_skew_is_that_of_now_also_if_our_clock_was_set_since_the_last_answer(
    clocks: Clocks, connection: Connection
) -> None:
    assert connection.skew is None
    connection.note_date(DATE)
    assert connection.skew == timedelta()
    clocks.run(3600)
    assert connection.skew == timedelta(), "an hour without an answer"
    clocks.wall += timedelta(days=40)
    assert connection.skew == timedelta(days=40)


def test_an_answer_without_a_date_changes_nothing(clocks: Clocks, connection: Connection) -> None:
    connection.note_date(DATE)
    clocks.run(5)
    connection.note_date("")
    assert connection.skew == timedelta()
