"""`make NAME` and `python -m bench NAME` know the same names, and what they run exists."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.__main__ import TABLE, commands, in_environment, main

ROOT = Path(__file__).parents[2]


def test_the_makefile_has_every_name() -> None:
    makefile = (ROOT / "Makefile").read_text()
    names = makefile.partition("MEASUREMENTS := \\\n")[2].partition("\nOPTIONS")[0]
    assert names.replace("\\", " ").split() == list(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_what_a_name_runs_exists(name: str) -> None:
    for run in TABLE[name]["runs"]:
        programs = re.findall(r"^[a-z_.]+$", run.split()[0])
        assert all(find_spec(program) for program in programs)
        files = [word for word in run.split() if "/" in word]
        assert all((ROOT / file).exists() for file in files)
        assert programs or files


def test_options_go_to_programs_and_into_the_environment_of_tests() -> None:
    program = {"runs": ["bench.hand", "bench.hand --twice"], "needs": ["etcd"]}
    options = ["--rounds", "2"]
    built = ["testbed", "build", "etcd"]
    assert commands(program, options) == [built, ["bench.hand", *options], ["bench.hand", "--twice", *options]]
    tests = {"runs": ["tests/cluster/test_upgrade.py"], "options": {"rounds": "9", "kills": "200"}}
    assert commands(tests, options) == [["pytest", "-s", "tests/cluster/test_upgrade.py"]]
    assert in_environment(tests, options) == {
        "FORESAIL_FULL": "1",
        "FORESAIL_ROUNDS": "2",
        "FORESAIL_KILLS": "200",
    }


def test_a_name_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert capsys.readouterr().err == "nothing: no measurement has this name; `python -m bench` lists them\n"
