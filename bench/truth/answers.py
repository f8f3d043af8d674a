"""Every answer that Foresail gives about a namespace, asked as a user asks, and read as a user reads it."""

import contextlib
import html
import io
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

from foresail.cli.main import main

_ROW = re.compile(r'<tr><th scope="row">([\w-]+)</th><td><span class="badge[^"]*">([\w ]+)</span>')
_BANNER = re.compile(r'data-verdict="(\w+)"')
_PROMISE = re.compile(r": the next run is at \d|: the run of \S+ is due now$")
_BLOCKS = re.compile(r"^→ (?!waits)", re.MULTILINE)
_NEXT_RUN = re.compile(r'<dt>Next run</dt><dd><span class="figure">([^<]*)</span>')
_PROMISED = re.compile(r"Next run: \d")
_HEADER = re.compile(r'<dt>(Velero|Operator)</dt><dd>(?:<span[^>]*>)*?<span class="badge[^"]*">([\w ]+)</span>')
_METRIC = re.compile(r'^foresail_namespace_safety\{namespace="([\w-]+)",verdict="(\w+)"\} 1$', re.MULTILINE)


@dataclass
class Answers:
    """What was said about a namespace, by the one who asked and the surface that answered."""

    said: dict[tuple[str, str, str], str] = field(default_factory=dict)  # by who, surface and namespace

    def add(self, who: str, surface: str, found: dict[str, str]) -> None:
        """Add the answers of one surface about several namespaces."""
        self.said |= {(who, surface, name): word.replace(" ", "").capitalize() for name, word in found.items()}


def command(kubeconfig: Path, *words: str) -> tuple[int, str]:
    """Run a command in this process, and return its exit code and what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        code = main([*words, f"--kubeconfig={kubeconfig}"])
    return code, printed.getvalue()


def cells(text: str) -> list[dict[str, str]]:
    """Return the rows of a table by its headings, which stand above their columns."""
    header, *lines = text.splitlines() or [""]
    names = [(each.group(), each.start()) for each in re.finditer(r"\S+(?: \S+)*", header)]
    ends = [start for _, start in names[1:]] + [None]
    return [{name: line[start:end].strip() for (name, start), end in zip(names, ends, strict=True)} for line in lines]


def coverage(kubeconfig: Path, *where: str) -> dict[str, str]:
    """Return the verdicts of `foresail coverage -o json`."""
    _, text = command(kubeconfig, "coverage", *where, "-o", "json")
    return {each["namespace"]: each["verdict"] for each in json.loads(text)["namespaces"]} if text else {}


def coverage_table(kubeconfig: Path, *where: str) -> dict[str, str]:
    """Return the verdicts of the table."""
    return {row["NAMESPACE"]: row["VERDICT"] for row in cells(command(kubeconfig, "coverage", *where)[1])}


def metrics(kubeconfig: Path) -> dict[str, str]:
    """Return the verdicts in the figures for Prometheus."""
    return dict(_METRIC.findall(command(kubeconfig, "coverage", "-A", "-o", "metrics")[1]))


def report(kubeconfig: Path, *where: str) -> dict[str, str]:
    """Return the verdicts in the table of the report."""
    return dict(_ROW.findall(command(kubeconfig, "report", "--html", "-", *where)[1]))


def exit_code(kubeconfig: Path, namespace: str) -> int:
    """Return the exit code for a pipeline."""
    return command(kubeconfig, "coverage", "-n", namespace, "--fail-on", "not-safe")[0]


def schedules(kubeconfig: Path) -> dict[str, str]:
    """Return why each Schedule waits; empty for one that runs when it is due."""
    return {row["NAME"]: row["WAITING"] for row in cells(command(kubeconfig, "schedule", "get", "-n", "velero")[1])}


def own_schedules(kubeconfig: Path, namespace: str) -> dict[str, str]:
    """Return the same for the schedules of a team."""
    _, text = command(kubeconfig, "backup", "schedule", "get", "-n", namespace)
    return {row["NAME"]: row["WAITING"] for row in cells(text)} if text else {}


def explained(kubeconfig: Path, name: str) -> bool:
    """Return whether `schedule explain` promises a run: its first line has the time, and no rule blocks."""
    return _is_promised(command(kubeconfig, "schedule", "explain", name, "-n", "velero")[1])


def own_explained(kubeconfig: Path, namespace: str) -> bool:
    """Return whether `backup schedule explain` of a team promises a run."""
    return _is_promised(command(kubeconfig, "backup", "schedule", "explain", "mine", "-n", namespace)[1])


def _is_promised(text: str) -> bool:
    first, _, rest = text.partition("\n")
    return bool(_PROMISE.search(first)) and not _BLOCKS.search(rest)


def reported_run(kubeconfig: Path, namespace: str) -> bool:
    """Return whether the report promises a next run for a namespace."""
    _, page = command(kubeconfig, "report", "--html", "-", "-n", namespace)
    shown = _NEXT_RUN.search(page)
    return shown is not None and shown[1].startswith("in ")


def own_backups(kubeconfig: Path, namespace: str) -> dict[str, str]:
    """Return the status of each backup of a team."""
    _, text = command(kubeconfig, "backup", "get", "-n", namespace)
    return {row["NAME"]: row["STATUS"] for row in cells(text)} if text else {}


def doctor(kubeconfig: Path) -> list[dict[str, Any]]:
    """Return the findings of `foresail doctor`."""
    found: Any = json.loads(command(kubeconfig, "doctor", "-o", "json")[1])
    rows: list[dict[str, Any]] = found if isinstance(found, list) else found["findings"]
    return rows


class Console:
    """A console in its own process, looked at with a browser's cookie."""

    def __init__(self, url: str) -> None:
        self.cookies = CookieJar()
        self._open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies)).open
        self.base = url.partition("?")[0].rstrip("/")
        self._open(url, timeout=120).read()

    def page(self, *parts: str) -> str:
        """Return a page; empty if there is none."""
        try:
            with self._open("/".join((self.base, *parts)), timeout=120) as answer:
                return html.unescape(answer.read().decode())
        except urllib.error.HTTPError:
            return ""

    def verdict(self, namespace: str) -> str:
        """Return the verdict on the page of a namespace; empty if the page has none."""
        shown = _BANNER.search(self.page("ns", namespace))
        return shown[1] if shown is not None else ""

    def promises(self, namespace: str) -> bool:
        """Return whether the page of a namespace promises a next run."""
        return bool(_PROMISED.search(self.page("ns", namespace)))

    def header(self, namespace: str) -> dict[str, str]:
        """Return what the header of a page says of Velero and of the operators."""
        return dict(_HEADER.findall(self.page("ns", namespace)))


@contextmanager
def console(kubeconfig: Path, namespace: str) -> Iterator[Console]:
    """Serve the console of one user until the block ends."""
    words = ["console", "--no-browser", f"--kubeconfig={kubeconfig}", "-n", namespace]
    command_line = [sys.executable, "-m", "foresail", *words]
    with subprocess.Popen(command_line, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = next(line.strip() for line in process.stderr or () if line.startswith("http"))
            yield Console(url)
        finally:
            process.terminate()
