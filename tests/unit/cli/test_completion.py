"""Completion: one script for each shell, driven in a real bash; tests/shells drives it in zsh."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from foresail.cli.completion import SHELLS, script
from foresail.cli.main import main, parser
from tests.shells.terminal import TAB, shell

CASES = [
    ("foresail ver", "foresail version "),
    ("foresail cron ne", "foresail cron next "),
    ("foresail cron next --zo", "foresail cron next --zone "),
    ("foresail schedule get -o wi", "foresail schedule get -o wide "),
    ("foresail backup create x --snapshot-m", "foresail backup create x --snapshot-move-data "),
    ("foresail doctor --velero-n", "foresail doctor --velero-namespace "),
]


@pytest.mark.parametrize(("typed", "completed"), CASES)
def test_bash_completes_a_word_at_a_tab(typed: str, completed: str, tmp_path: Path) -> None:
    file = tmp_path / "foresail.bash"
    file.write_text(script("bash"))
    with shell(["bash", "--norc", "--noprofile", "-i"], {"PS1": "ready> ", "TERM": "dumb"}) as terminal:
        terminal.until("ready> ")
        terminal.type(f"source {file}; echo sour''ced\n")
        terminal.until("sourced")
        terminal.until("ready> ")
        terminal.type(typed + TAB)
        terminal.until(completed)


@pytest.mark.parametrize("name", SHELLS)
def test_a_script_knows_every_command_and_option_but_hidden_ones(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", name]) == 0
    text = capsys.readouterr().out
    words = set(re.findall(r"[A-Za-z][-A-Za-z]*", text))
    for command, one in parser().commands():
        assert set(command.split()) <= words
        options = [text for each in one.get_actions() for text in each.option_strings if text.startswith("--")]
        assert {each.removeprefix("--") for each in options} <= words
    assert "foresail_hold" not in text


def test_an_unknown_shell_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "csh"])
    assert ended.value.code == 2
    assert "SHELL: 'csh' is not one of bash, zsh, fish, powershell" in capsys.readouterr().err


def test_no_other_command_loads_the_library_that_writes_the_scripts() -> None:
    code = "import sys, foresail.cli.main as it; it.main(['cron', 'next', '@daily']); sys.exit('shtab' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
