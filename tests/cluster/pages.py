"""A reader of the docs: types the commands of a page in their order into one shell, and looks at what comes.

A command stands behind `$` in a block `console`; the lines below it, up to the next command, are what it prints, or a
part of that. A document behind `<<'EOF'` belongs to its command.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import Cluster
from testbed.build import program
from testbed.velero import revalidate
from tests.cluster.tenants import Tenant

ROOT = Path(__file__).parents[2]
README = "../README.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DONE = "the command above has ended with code"


@dataclass(frozen=True)
class Step:
    """A command, and what the page shows of its output."""

    command: str
    shown: tuple[str, ...] = ()


def steps(page: str, section: str | None = None) -> list[Step]:
    """Return the commands of a page, or of one of its sections."""
    text = (ROOT / "docs" / page).read_text() if section is None else sections(page)[section]
    return [step for block in _BLOCK.findall(text) for step in _of_block(block)]


def sections(page: str) -> dict[str, str]:
    """Return the sections of a page by their titles."""
    text = (ROOT / "docs" / page).read_text()
    return {title: body for title, _, body in (part.partition("\n") for part in text.split("\n## ")[1:])}


def _of_block(block: str) -> list[Step]:
    found: list[Step] = []
    document = False
    for line in block.splitlines():
        if document or (found and found[-1].command.endswith("\\")):
            found[-1] = Step(f"{found[-1].command}\n{line}")
            document = document and line != "EOF"
        elif line.startswith("$ "):
            found.append(Step(line.removeprefix("$ ")))
            document = line.endswith("<<'EOF'")
        else:
            found[-1] = Step(found[-1].command, (*found[-1].shown, line))
    return found


def fits(shown: tuple[str, ...], printed: str) -> bool:
    """Whether what a page shows is printed in that order; words with a digit in them may have others, and weekdays."""
    lines = iter(printed.splitlines())
    return all(any(_same(each, line) for line in lines) for each in shown)


def _same(shown: str, printed: str) -> bool:
    return [_kind(word) for word in shown.split()] == [_kind(word) for word in printed.split()]


def _kind(word: str) -> str:
    return "0" if re.search(r"\d", word) else "Day" if word in _WEEKDAYS else word


class Reader:
    """Someone who reads a page and types its commands into one shell, in a folder with what a clone has.

    Who has no cluster has no program of one on the path either, and what is built and started is of that folder alone.
    """

    def __init__(self, cluster: Cluster | None, folder: Path, kubeconfig: Path | None = None) -> None:
        folder.mkdir(exist_ok=True)
        _clone(folder)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),  # what is built stays so
        }
        if cluster is not None:
            programs = folder / "programs"
            programs.mkdir()
            (programs / "helm").symlink_to(program("helm", "helm"))
            (programs / "foresail").symlink_to(Path(sys.executable).with_name("foresail"))
            environment["PATH"] = f"{programs}:{cluster.site.programs}:{environment['PATH']}"
            environment["KUBECONFIG"] = str(kubeconfig or cluster.kubeconfig)
        self._cluster = cluster
        self._started: list[subprocess.Popen[str]] = []
        self._where: dict[str, Any] = {"cwd": folder, "env": environment, "stderr": subprocess.STDOUT, "text": True}
        self._shell = subprocess.Popen(
            ["/bin/bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0, **self._where
        )

    def follow(self, page: str, section: str | None = None) -> None:
        """Type all commands of a page or of a section, and see that what it shows is what comes."""
        found = steps(page, section)
        assert found, f"{page} has no command"
        digest = ""  # of a list that is approved: a reader types the one that they saw, not the page's
        for step in found:
            printed = self.type(re.sub(r"--approve \w+", f"--approve {digest}", step.command))
            digest = printed.partition("--approve ")[2].split(maxsplit=1)[0] if "--approve " in printed else digest
            assert fits(step.shown, printed), f"{page}: {step.command}\nshown: {step.shown}\nprinted:\n{printed}"

    def type(self, command: str) -> str:
        """Run a command and return what it printed."""
        if self._cluster is not None and command.startswith("kubectl rollout status deployment/velero"):
            self._cluster.fault.restart("velero")  # the part of the kubelet, of which there is none here
        if self._cluster is not None and self._cluster.site.options.velero and command.startswith("foresail doctor"):
            _let_velero_validate(self._cluster)
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{command}\ncode=$?; echo; echo {_DONE} $code\n")
        self._shell.stdin.flush()
        printed: list[str] = []
        for line in self._shell.stdout:
            if line.startswith(_DONE):
                assert line == f"{_DONE} 0\n", f"{command}: {line}{''.join(printed)}"
                return "".join(printed).removesuffix("\n")
            printed.append(line)
        raise AssertionError(f"the shell ended at: {command}")

    def take_back_a_bad_change(self, team: Tenant) -> None:
        """Follow the README's example of a rollback, with a ConfigMap `settings` of the team that says EUR."""
        back_up, roll_back, undo = steps(README, "Back up what is yours, and take back a bad change")
        self.type(back_up.command)
        team.kubectl("patch", "configmap", "settings", '--patch={"data":{"currency":"USD"}}')
        currency = ("get", "configmap", "settings", "--output=jsonpath={.data.currency}")
        self.type(roll_back.command)
        assert team.kubectl(*currency) == "EUR"
        self.type(undo.command)
        assert team.kubectl(*currency) == "USD"

    def begin(self, command: str, log: Path) -> "subprocess.Popen[str]":
        """Run a command in another window, and return at once; what it says goes into a file."""
        with log.open("w") as file:
            started = subprocess.Popen(["/bin/bash", "-c", f"exec {command}"], stdout=file, **self._where)
        self._started.append(started)
        return started

    def leave(self) -> None:
        """End the shell and whatever was started."""
        os.killpg(self._shell.pid, 9)
        self._shell.communicate()
        for each in self._started:
            each.kill()
            each.wait()


def _let_velero_validate(cluster: Cluster) -> None:
    """Have a server that has no pods, because there is no kubelet, show that it runs since its Deployment changed."""
    location = ("bsl", "default", "--namespace=velero")
    revalidate(cluster.site)
    deadline = time.monotonic() + 60
    while "lastValidationTime" not in cluster.get(*location)["status"] and time.monotonic() < deadline:
        time.sleep(0.5)


def _clone(folder: Path) -> None:
    """Make what a clone has, after `make setup`: links to ours, with a mark of their own that nothing is to be done."""
    environment = folder / ".venv"
    environment.mkdir()
    for place, original in ((folder, ROOT), (environment, Path(sys.prefix))):
        for each in original.iterdir():
            if each.name not in (".git", ".venv", ".installed"):
                (place / each.name).symlink_to(each)
    (environment / ".installed").touch()


@contextmanager
def reading(cluster: Cluster | None, folder: Path, kubeconfig: Path | None = None) -> Iterator[Reader]:
    """Have a reader until the block ends, at a cluster; with a kubeconfig, one who is not its administrator."""
    reader = Reader(cluster, folder, kubeconfig)
    try:
        yield reader
    finally:
        reader.leave()
