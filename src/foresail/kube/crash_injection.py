"""For tests only: the process kills itself right before or after its n-th write.

`FORESAIL_TEST_KILL=before:3` sends SIGKILL right before the third write is sent, `after:3` right after its answer.
Without the variable nothing happens.
"""

import logging
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

VARIABLE = "FORESAIL_TEST_KILL"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class CrashInjection:
    """Counts the writes of this process and kills it at the chosen one; 0 is none."""

    before: int = 0
    after: int = 0
    _sent: int = 0
    _answered: int = 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Return what the environment variable asks for; raise ValueError if it is malformed."""
        text = environment.get(VARIABLE, "")
        if not text:
            return cls()
        match = re.fullmatch(r"(before|after):([1-9][0-9]*)", text)
        if match is None:
            raise ValueError(f"{VARIABLE}={text!r}: write before:N or after:N, where N counts the writes from 1")
        _log.warning("%s=%s: this process will kill itself there; this is for tests only", VARIABLE, text)
        return cls(**{match[1]: int(match[2])})

    def before_write(self) -> None:
        """Count a write that is about to be sent."""
        self._sent += 1
        if self._sent == self.before:
            _kill()

    def after_write(self) -> None:
        """Count a write that was answered."""
        self._answered += 1
        if self._answered == self.after:
            _kill()


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
