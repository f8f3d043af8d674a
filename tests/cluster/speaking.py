"""A process of ours, as its log and its HTTP server show it."""

import json
import urllib.error
import urllib.request
from pathlib import Path


class Speaking:
    """Reads the log of a process, from where the running one begins, and asks it over HTTP."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._from = 0

    @property
    def lines(self) -> list[dict[str, str]]:
        """What the running process has written to its log."""
        if not self.log.exists():
            return []
        text = self.log.read_bytes()[self._from :].decode()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def said(self, text: str) -> list[dict[str, str]]:
        """Return the lines with that text in their message."""
        return [line for line in self.lines if text in line["message"]]

    def ask(self, path: str) -> tuple[int, str]:
        """Ask the running process over HTTP; code 0 if it does not answer."""
        started = self.said("serving on port")
        if not started:
            return 0, ""
        port = started[-1]["message"].rpartition(" ")[2]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
        except OSError:  # it does not listen yet or any more
            return 0, ""

    def is_ready(self) -> bool:
        """Tell whether it has read everything that it watches."""
        return self.ask("/readyz") == (200, "ok\n")
