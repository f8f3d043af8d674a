"""`foresail backup get -A --watch`: the requests of every namespace, and each again when it changes."""

from pathlib import Path
from typing import Any

import pytest

from foresail.cli.main import main
from foresail.cli.tenant import get as module
from tests.unit.cli.canned import canned

Capture = pytest.CaptureFixture[str]
PATH = "/apis/oadp.openshift.io/v1alpha1/nonadminbackups"


def request(namespace: str, name: str, version: str, phase: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name, "resourceVersion": version, "uid": f"{namespace}-{name}"}
    metadata["creationTimestamp"] = "2026-11-15T11:00:30Z"
    return {"metadata": metadata, "spec": {"backupSpec": {}}, "status": {"phase": phase}}


class InTurn(dict[str, Any]):
    """Answers that differ from one request to the next; the last one stays."""

    def __init__(self, *lists: list[dict[str, Any]]) -> None:
        super().__init__({PATH: None})
        self.left = list(lists)

    def get(self, path: str, default: Any = None) -> Any:  # noqa: ANN401 - as of a dict
        if path != PATH:
            return default
        items = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        return {"metadata": {"resourceVersion": "7"}, "items": items}


def test_the_requests_of_every_namespace_are_listed(tmp_path: Path, capsys: Capture) -> None:
    first = [request("web", "b", "1", "New"), request("shop", "a", "2", "Created")]
    with canned(tmp_path, InTurn(first)) as server:
        assert main(["backup", "get", "-A", "--kubeconfig", str(server.kubeconfig)]) == 0
        header, *rows = capsys.readouterr().out.splitlines()
        assert header.split()[:3] == ["NAMESPACE", "NAME", "STATUS"]
        assert [row.split()[:3] for row in rows] == [["shop", "a", "Created"], ["web", "b", "New"]]
        assert main(["backup", "get", "a", "-A", "--kubeconfig", str(server.kubeconfig)]) == 1
        assert "names cannot be combined with -l, -A or --all" in capsys.readouterr().err


def test_what_changes_is_printed_again(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE", 0.05)
    before = [request("shop", "a", "1", "New"), request("web", "b", "2", "New")]
    changed = [request("shop", "a", "3", "Created"), request("web", "b", "2", "New")]
    gone = changed[:1]
    with canned(tmp_path, InTurn(before, before, changed, gone)) as server:
        words = ["backup", "get", "-A", "--watch", "--timeout", "1s", "--kubeconfig", str(server.kubeconfig)]
        assert main(words) == 0
        lines = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
        assert lines == [
            ["NAMESPACE", "NAME", "STATUS"],
            ["shop", "a", "New"],
            ["web", "b", "New"],
            ["shop", "a", "Created"],
            ["web", "b", "Deleted"],
        ]
        assert server.writes == []


def test_names_are_watched_too_and_documents_are_not(tmp_path: Path, capsys: Capture) -> None:
    with canned(tmp_path, InTurn([request("shop", "a", "1", "New")])) as server:
        words = ["backup", "get", "-A", "--watch", "--timeout", "0s", "--kubeconfig", str(server.kubeconfig)]
        assert main([*words, "-o", "name"]) == 0
        assert capsys.readouterr().out == "nonadminbackup.oadp.openshift.io/a\n"
        assert main([*words, "-o", "yaml"]) == 2
        assert "hint: leave out -o" in capsys.readouterr().err
