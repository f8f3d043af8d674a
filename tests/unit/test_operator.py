"""How the operator is put together."""

import subprocess
import sys
from typing import TYPE_CHECKING, cast

import pytest

from foresail.cli.main import main
from foresail.operator.main import controllers
from foresail.operator.settings import Settings
from foresail.selfservice.controller import SelfService

if TYPE_CHECKING:
    from foresail.kube.client import Client


def test_finding_9_the_operators_own_namespace_is_out_of_reach_wherever_velero_runs() -> None:
    settings = Settings("one", "velero", "leases", own_namespace="ours", runs_schedules=False, runs_self_service=True)
    found, _ = controllers(settings, cast("Client", None))
    assert isinstance(found, SelfService)
    assert found.cluster.reserved >= {"velero", "leases", "ours"}


def test_traces_without_the_extra_are_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["operator", "run", "--traces"]) != 0
    assert "foresail[otel]" in capsys.readouterr().err


def test_a_process_imports_no_capability_that_it_does_not_run() -> None:
    others = ("foresail.selfservice", "foresail.primers.controller", "foresail.schedules.controller")
    program = (
        "import sys; from foresail.operator.main import controllers; from foresail.operator.settings import Settings;"
        "controllers(Settings('one', runs_schedules=False, runs_restore_checks=True), None);"
        f"print([each for each in sys.modules if each.startswith({others})])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
