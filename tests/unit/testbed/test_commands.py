import pytest

from testbed.__main__ import main
from testbed.command import spelled


@pytest.fixture(autouse=True)
def no_clusters(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.mark.parametrize("command", [["kubeconfig"], ["env"], ["logs", "etcd"]])
def test_a_command_for_a_cluster_that_is_not_up_says_how_to_bring_it_up(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"error: there is no cluster 'default'\nhint: run: {spelled('up')}\n"


def test_down_is_content_when_there_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["down"]) == 0
    assert capsys.readouterr().err == "of cluster 'default' nothing is left\n"
