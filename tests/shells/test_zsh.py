"""Completion in a real zsh, which must be installed: `make test-shells`, and CI where there is one."""

import shutil
from pathlib import Path

import pytest

from foresail.cli.completion import script
from tests.shells.terminal import TAB, shell
from tests.unit.cli.test_completion import CASES


@pytest.fixture
def zsh() -> str:
    path = shutil.which("zsh")
    assert path is not None, "zsh is not installed, and this test needs it: apt-get install zsh"
    return path


@pytest.mark.parametrize(("typed", "completed"), CASES)
def test_zsh_completes_a_word_at_a_tab(typed: str, completed: str, zsh: str, tmp_path: Path) -> None:
    (tmp_path / "_foresail").write_text(script("zsh"))
    variables = {"PS1": "ready> ", "TERM": "dumb", "HOME": str(tmp_path), "ZDOTDIR": str(tmp_path)}
    with shell([zsh, "-f", "-i"], variables) as terminal:
        terminal.type(f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -D; echo load''ed\n")
        terminal.until("loaded")
        terminal.until("ready> ")
        terminal.type(typed + TAB)
        terminal.until(completed)
