"""The import contract is in force: a wall that nobody can hit does not prove that it stands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("room", "line", "complaint"),
    [
        ("plan.py", "import foresail.cron", "foresail.plan is not allowed to import foresail.cron"),
        ("cron/x.py", "import foresail.api", "foresail.cron is not allowed to import foresail.api"),
        ("kube/x.py", "import foresail.schedules", "foresail.kube is not allowed to import foresail.schedules"),
        ("schedules/x.py", "import foresail.primers", "foresail.schedules is not allowed to import foresail.primers"),
        ("operator/x.py", "import foresail.cli", "foresail.operator is not allowed to import foresail.cli"),
        ("cron/x.py", "import time", "foresail.cron is not allowed to import time"),
        ("api/x.py", "import asyncio", "foresail.api is not allowed to import asyncio"),
        ("selfservice/queue/x.py", "import logging", "foresail.selfservice.queue is not allowed to import logging"),
        (
            "selfservice/specs/x.py",
            "import foresail.selfservice.requests",
            "foresail.selfservice.specs is not allowed to import foresail.selfservice.requests",
        ),
        ("primers/rules.py", "import foresail.kube", "foresail.primers.rules is not allowed to import foresail.kube"),
        ("cli/console/x.py", "import foresail.proof", "foresail.cli.console is not allowed to import foresail.proof"),
        (
            "cli/console/guard.py",
            "import aiohttp",
            "foresail.cli.console.guard is not allowed to import aiohttp",
        ),
    ],
)
def test_an_import_against_the_plan_of_the_house_fails_the_build(
    tmp_path: Path, room: str, line: str, complaint: str
) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    file = tmp_path / "src" / "foresail" / room
    file.write_text(f'"""A stray room."""\n\n{line}\n')
    checked = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 1
    assert complaint in checked.stdout
