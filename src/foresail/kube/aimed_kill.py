"""For tests only: a process that kills itself around its n-th write, the worst moment there is.

`FORESAIL_TEST_KILL=before:3` ends it right before its third write is sent, `after:3` right after its answer came, by
SIGKILL: nothing is finished, released or said any more. Without the variable, nothing of this happens.
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
class AimedKill:
    """Counts the writes of this process, and ends it at the one that was asked for; 0 is none."""

    before: int = 0
    after: int = 0
    _begun: int = 0
    _ended: int = 0

    @classmethod
    def asked_for(cls, environment: Mapping[str, str]) -> Self:
        """Return what the environment asks for; an error if it cannot be understood, for no kill would come then."""
        text = environment.get(VARIABLE, "")
        if not text:
            return cls()
        asked = re.fullmatch(r"(before|after):([1-9][0-9]*)", text)
        if asked is None:
            raise ValueError(f"{VARIABLE}={text!r}: say before:N or after:N, where N counts the writes from 1")
        _log.warning("%s=%s: this process will kill itself there; this is for tests only", VARIABLE, text)
        return cls(**{asked[1]: int(asked[2])})

    def before_write(self) -> None:
        """Take note that a write is about to be sent."""
        self._begun += 1
        if self._begun == self.before:
            _die()

    def after_write(self) -> None:
        """Take note that a write has been answered."""
        self._ended += 1
        if self._ended == self.after:
            _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
