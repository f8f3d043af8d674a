"""Decisions are pure, and the import contract is in force: a wall that nobody can hit does not prove that it stands."""

import ast
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import grimp  # comes with import-linter
import pytest

ROOT = Path(__file__).parents[2]
NOT_PURE = {"asyncio", "aiohttp", "logging", "time", "foresail.kube"}
SHELL = (
    "foresail.cli",
    "foresail.console",
    "foresail.kube",
    "foresail.operator",
    "foresail.__main__",
    "foresail.bucket",
)
IMPURE = (
    "*.controller",
    "*.fence",  # they read the shapes that the controllers write
    "*.metrics",
    "*.reader",
    "foresail.primers.bookkeeping",
    "foresail.primers.observe",
    "foresail.primers.reads",
    "foresail.primers.state",
    "foresail.proof.checks.observe",
    "foresail.proof.checks.reads",
    "foresail.proof.checks.state",
    "foresail.proof.facts_watch",
    "foresail.protection.state",
    "foresail.rollback.reads",
    "foresail.rollback.state",
    "foresail.schedules.forecast",
    "foresail.selfservice.labels",
    "foresail.selfservice.requests.memory",
    "foresail.selfservice.requests.observe",
    "foresail.selfservice.requests.state",
)
"""The modules below the command line that know the runtime; every other module is a function of what it is given."""


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("foresail", include_external_packages=True, cache_dir=None)


def impure(imports: grimp.ImportGraph) -> Iterator[str]:
    """Yield the modules that reach the network, the clock or the log, directly or through others."""
    for name in sorted(NOT_PURE & imports.modules):
        for module in imports.find_downstream_modules(name, as_package=True):
            if not module.startswith(SHELL):
                yield module


def test_only_the_listed_modules_touch_network_clock_or_log(imports: grimp.ImportGraph) -> None:
    reaching = set(impure(imports))
    unlisted = {module for module in reaching if not any(fnmatchcase(module, pattern) for pattern in IMPURE)}
    assert not unlisted, "a decision is pure: move what asks the network or the clock into a controller"
    for pattern in IMPURE:
        assert any(fnmatchcase(module, pattern) for module in reaching), f"{pattern} need not be listed any more"


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("foresail.cron.fields", "time"),
        ("foresail.api.velero", "asyncio"),
        ("foresail.selfservice.queue.window", "logging"),
        ("foresail.primers.rules", "foresail.kube.store"),
        ("foresail.proof.claims", "foresail.schedules.controller"),
    ],
)
def test_a_decision_that_asks_the_world_is_noticed(imports: grimp.ImportGraph, module: str, imported: str) -> None:
    assert module not in set(impure(imports))
    imports.add_import(importer=module, imported=imported)
    try:
        assert module in set(impure(imports))
    finally:
        imports.remove_import(importer=module, imported=imported)


@pytest.mark.parametrize(
    ("room", "line", "complaint"),
    [
        ("plan.py", "import foresail.cron", "foresail.plan is not allowed to import foresail.cron"),
        ("cron/x.py", "import foresail.api", "foresail.cron is not allowed to import foresail.api"),
        ("kube/x.py", "import foresail.schedules", "foresail.kube is not allowed to import foresail.schedules"),
        ("schedules/x.py", "import foresail.primers", "foresail.schedules is not allowed to import foresail.primers"),
        ("operator/x.py", "import foresail.cli", "foresail.operator is not allowed to import foresail.cli"),
        (
            "selfservice/specs/x.py",
            "import foresail.selfservice.requests",
            "foresail.selfservice.specs is not allowed to import foresail.selfservice.requests",
        ),
        ("console/x.py", "import foresail.proof", "foresail.console is not allowed to import foresail.proof"),
        ("cli/x.py", "import foresail.console.read", "foresail.cli is not allowed to import foresail.console"),
        (
            "console/guard.py",
            "import aiohttp",
            "foresail.console.guard is not allowed to import aiohttp",
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


def test_no_module_gives_one_name_two_meanings() -> None:
    twice = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        names = Counter(
            target.id
            for statement in ast.parse(path.read_text()).body
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
            for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
            if isinstance(target, ast.Name)
        )
        twice += [f"{path.relative_to(ROOT)}: {name}" for name, count in names.items() if count > 1]
    assert not twice, "the second assignment is what every importer gets"
