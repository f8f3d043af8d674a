"""A process that is asked to die around a write dies there, and no other does."""

import os
import signal
import subprocess
import sys

import pytest

from foresail.kube.crash_injection import VARIABLE, CrashInjection

WRITES = """
import os
from foresail.kube.crash_injection import CrashInjection
kill = CrashInjection.from_environment(os.environ)
for number in range(1, 4):
    kill.before_write()
    print(f"sent {number}", flush=True)
    kill.after_write()
"""


@pytest.mark.parametrize(
    ("asked", "sent"),
    [("before:1", 0), ("after:1", 1), ("before:3", 2), ("after:3", 3)],
)
def test_it_dies_right_there(asked: str, sent: int) -> None:
    done = run(asked)
    assert (done.returncode, done.stdout.count("sent")) == (-signal.SIGKILL, sent)
    assert "this is for tests only" in done.stderr


@pytest.mark.parametrize("asked", ["", "before:4"])
def test_it_lives_if_nobody_asks_or_the_write_never_comes(asked: str) -> None:
    done = run(asked)
    assert (done.returncode, done.stdout.count("sent")) == (0, 3)


@pytest.mark.parametrize("asked", ["before", "before:0", "during:1", "after:-1", "after:1 "])
def test_what_cannot_be_understood_is_refused(asked: str) -> None:
    with pytest.raises(ValueError, match=r"FORESAIL_TEST_KILL=.* write before:N or after:N"):
        CrashInjection.from_environment({VARIABLE: asked})


def run(asked: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, VARIABLE: asked}
    command = [sys.executable, "-c", WRITES]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
