"""The cluster's own kubectl, and other commands that talk to it, run as the administrator."""

import json
import os
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from testbed.build import program
from testbed.command import spelled
from testbed.errors import TestbedError
from testbed.site import Site

_KINDS_SECONDS = 120
_ASK_AGAIN_SECONDS = 10  # one event that a watch misses would otherwise cost all the time
_STATUS = f"to see what runs: {spelled('status')}"
_COMMAND_SECONDS = 600  # kubectl and velero wait without end for what nobody does


def kubectl(site: Site, *arguments: str, text: str | None = None) -> str:
    """Run kubectl as the administrator, with that text as its input, and return what it printed."""
    return command_output(site, [str(program(site.options.kubernetes, "kubectl")), *arguments], text)


def apply(site: Site, objects: Sequence[dict[str, Any]]) -> None:
    """Create these objects, or change them to what is said here."""
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    kubectl(site, "apply", "--server-side", "--force-conflicts", "--filename=-", text=content)


def wait_for_kinds(site: Site) -> None:
    """Wait until the API server serves every kind that was defined; kubectl alone ends with an error at a new one."""
    words = ("accessor error", "timed out waiting")
    deadline = time.monotonic() + _KINDS_SECONDS
    while True:
        try:
            kubectl(site, "wait", "--for=condition=Established", "crd", "--all", f"--timeout={_ASK_AGAIN_SECONDS}s")
        except TestbedError as error:
            if not any(each in error.problem for each in words) or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def command_output(site: Site, command: Sequence[str], text: str | None = None) -> str:
    """Run a command with the administrator's kubeconfig and return what it printed on its standard output."""
    words = " ".join([command[0].rsplit("/", 1)[-1], *command[1:]])
    try:
        done = _run(site, command, text)
    except subprocess.TimeoutExpired as error:
        raise TestbedError(f"{words}: not done after {error.timeout:g} s", _STATUS) from None
    if done.returncode != 0:
        raise TestbedError(f"{words}: code {done.returncode}: {done.stderr.strip()}", _STATUS)
    return done.stdout


def _run(site: Site, command: Sequence[str], text: str | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(site.folder),  # caches go away with the cluster
            "KUBECONFIG": str(site.admin_kubeconfig),
        },
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
        capture_output=True,
        text=True,
        check=False,
        timeout=_COMMAND_SECONDS,
    )
