"""How long a command waits, and the message when Ctrl-C ends it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.errors import CommandError
from foresail.cli.main import main
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import interruptible
from tests.unit.cli.canned import canned
from tests.unit.cli.test_tenant import condition, wire


def test_a_timeout_is_a_length_of_time() -> None:
    assert deadline(None) is None
    assert deadline("0s") is not None
    for text in ("soon", "-1h"):
        with pytest.raises(CommandError, match=f"--timeout: '{text}' is not a duration"):
            deadline(text)


def test_ctrl_c_ends_the_waiting_with_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    def tired() -> int:
        raise KeyboardInterrupt

    assert interruptible(lambda: 3, "It goes on.") == 3
    assert capsys.readouterr().err == ""
    assert interruptible(tired, "It goes on.") == 130
    assert capsys.readouterr().err == "\nIt goes on.\n"


class Successive(dict[str, Any]):
    """Answers a path with one object after the other; the last one stays."""

    def __init__(self, path: str, objects: Iterator[dict[str, Any]]) -> None:
        super().__init__({path: next(objects)})
        self._path, self._objects = path, objects

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401 - as a dict has it
        answer = super().get(key, default)
        self[self._path] = next(self._objects, self[self._path])
        return answer


def test_a_hint_that_no_longer_applies_is_followed_by_no_empty_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = {"phase": "New", "conditions": [condition("Queued", "False", "WaitingForTurn", "others come first")]}
    made = {"name": "b", "status": {"phase": "InProgress"}}
    done = {
        "phase": "Created",
        "veleroBackup": {"name": "b", "status": {"phase": "Completed", "warnings": 1}},
        "conditions": [condition("Succeeded", "True", "Completed", "Backup completed")],
    }
    steps = (wire(status=each) for each in (waits, {"phase": "Created", "veleroBackup": made}, done))
    answers = Successive("/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminbackups/daily", steps)
    with canned(tmp_path, answers) as server:
        assert main(["backup", "wait", "daily", "-n", "shop", "--kubeconfig", str(server.kubeconfig)]) == 0
    printed = capsys.readouterr().err
    assert [line for line in printed.splitlines() if line.startswith(("hint:", "NonAdmin"))] == [
        "hint: others come first",
        "NonAdminBackup shop/daily: Backup completed",
        "hint: see the warnings with foresail backup logs daily -n shop --results",
    ]
