import subprocess
import sys
from pathlib import Path

import pytest

from foresail import __version__
from foresail.cli.main import main


@pytest.mark.parametrize("script", ["foresail", "kubectl-foresail"])
def test_each_installed_script_says_its_version(script: str) -> None:
    path = Path(sys.executable).with_name(script)
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"foresail {__version__}\n"


def test_without_arguments_the_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: foresail")
