"""The script that tries Foresail on kind: which commands it runs, in which order, and whether they can be parsed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from foresail.cli.main import parser

ROOT = Path(__file__).parents[2]
PROGRAMS = ("docker", "foresail", "kind", "kubectl", "make", "velero")


def run(folder: Path, *steps: str) -> tuple[int, list[list[str]]]:
    """Run the script with programs that only record their arguments; return its exit code and the commands."""
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    shutil.copytree(ROOT / "hack", folder / "hack")
    log = folder / "log"
    log.touch()
    for name in PROGRAMS:
        (programs / name).write_text(f'#!/bin/bash\n(printf "%s\\x1f" {name} "$@"; echo) >> "{log}"\n')
        (programs / name).chmod(0o755)
    done = subprocess.run(
        [folder / "hack" / "try-on-kind.sh", *steps],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
    )
    return done.returncode, [line.split("\x1f")[:-1] for line in log.read_text().splitlines()]


def test_without_a_step_everything_is_done_in_order(tmp_path: Path) -> None:
    code, commands = run(tmp_path)
    assert code == 0
    order = [
        ["kind", "create", "cluster"],
        ["kubectl", "apply", "-f"],
        ["velero", "install", "--provider"],
        ["docker", "build", "--tag"],
        ["kind", "load", "docker-image"],
        ["foresail", "install", "--self-service"],
        ["foresail", "backup", "create"],
        ["foresail", "restore", "create"],
    ]
    assert [command[:3] for command in commands if command[:3] in order] == order


def test_every_command_of_ours_can_be_parsed_and_the_image_is_the_one_that_was_built(tmp_path: Path) -> None:
    _, commands = run(tmp_path)
    ours = [command[1:] for command in commands if command[0] == "foresail"]
    assert len(ours) >= 6
    for arguments in ours:
        parser().parse_args(arguments)
    (built,) = (command[3] for command in commands if command[:3] == ["docker", "build", "--tag"])
    assert [built] == [command[-1] for command in ours if command[0] == "install"]


def test_it_deletes_only_its_own_cluster_and_names_the_steps_that_it_has(tmp_path: Path) -> None:
    _, commands = run(tmp_path, "delete")
    assert commands == [["kind", "delete", "cluster", "--name", "foresail"]]
    shutil.rmtree(tmp_path / "hack")
    shutil.rmtree(tmp_path / ".venv")
    assert run(tmp_path, "nothing")[0] == 2


@pytest.mark.parametrize("name", ["aws_access_key_id", "aws_secret_access_key"])
def test_the_bucket_has_the_credentials_that_velero_uses(name: str) -> None:
    credentials = dict(
        line.split("=", 1) for line in (ROOT / "hack" / "bucket-credentials").read_text().splitlines() if "=" in line
    )
    (deployment,) = (
        each for each in yaml.safe_load_all((ROOT / "hack" / "bucket.yaml").read_text()) if each["kind"] == "Deployment"
    )
    values = {each["value"] for each in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert credentials[name] in values


def test_the_readme_fits_on_two_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
