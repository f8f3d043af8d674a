"""Someone who follows a page of the documentation as it is written, on a real cluster."""

import os
import subprocess
import sys
from pathlib import Path

from testbed import Cluster
from testbed.build import program

DONE = "the command above has ended with code"


def commands(page: Path, section: str) -> list[str]:
    """Return the commands of a section of a page."""
    text = page.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


class Reader:
    """Someone who reads the page and types its commands into one shell."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        (folder / "charts").symlink_to(Path(__file__).parents[2] / "charts")
        (folder / "helm").symlink_to(program("helm", "helm"))
        (folder / "foresail").symlink_to(Path(sys.executable).with_name("foresail"))
        path = [str(folder), str(cluster.site.programs), os.environ["PATH"]]
        environment = {"PATH": ":".join(path), "HOME": str(folder), "KUBECONFIG": str(cluster.kubeconfig)}
        self._cluster = cluster
        self._shell = subprocess.Popen(
            ["/bin/bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=environment,
            process_group=0,
        )

    def type(self, command: str) -> str:
        """Run a command and return what it printed."""
        if command.startswith("kubectl rollout status deployment/velero"):
            self._cluster.fault.restart("velero")  # the part of the kubelet, of which there is none here
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{command}\necho {DONE} $?\n")
        self._shell.stdin.flush()
        printed: list[str] = []
        for line in self._shell.stdout:
            if line.startswith(DONE):
                assert line == f"{DONE} 0\n", f"{command}: {line}{''.join(printed)}"
                return "".join(printed)
            printed.append(line)
        raise AssertionError(f"the shell ended at: {command}")

    def leave(self) -> None:
        """End the shell and whatever it started."""
        os.killpg(self._shell.pid, 9)
        self._shell.communicate()
