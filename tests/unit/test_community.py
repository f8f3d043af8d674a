"""What a contributor meets on the repository's page: workflows, hooks, a devcontainer and facts for programs."""

import json
import re
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from yaml import safe_load

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
PARTS = ("schedules", "tenants", "install", "checks", "runtime")


def jobs(workflow: str) -> dict[str, Any]:
    """Return the jobs of a workflow."""
    content: dict[str, Any] = safe_load((ROOT / ".github" / "workflows" / workflow).read_text())["jobs"]
    return content


def part(name: str) -> list[str]:
    """Return the arguments of pytest for a part of the tests on clusters."""
    done = subprocess.run([".ci/parts", name], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)
def test_a_workflow_has_no_permission_but_those_of_its_jobs_and_no_action_by_a_tag(workflow: Path) -> None:
    content = safe_load(workflow.read_text())
    assert content["permissions"] == {}
    for job in content["jobs"].values():
        assert job["permissions"]
        assert job["timeout-minutes"]
    actions = re.findall(r"uses: (.*)", workflow.read_text())
    assert [action for action in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


def test_each_job_of_a_pull_request_is_one_make_target_that_there_is() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    for name, job in jobs("pull-request.yaml").items():
        commands = [step["run"] for step in job["steps"] if "run" in step and "CHECKOUT" not in step["run"]]
        assert len(commands) == 1, name
        matrix = job.get("strategy", {}).get("matrix", {})
        named = matrix.get("target") or [commands[0].split()[1]]
        assert set(named) <= targets, name
    assert jobs("pull-request.yaml")["cluster"]["strategy"]["matrix"]["part"] == [*PARTS]


def test_every_test_on_a_cluster_is_in_exactly_one_part_of_ci() -> None:
    files = {f"tests/cluster/{file.name}" for file in (ROOT / "tests" / "cluster").glob("test_*.py")}
    listed = [file for name in PARTS[:-1] for file in part(name)]
    assert len(listed) == len(set(listed))
    assert set(listed) < files
    assert part("runtime") == ["tests/cluster", *(f"--ignore={file}" for file in listed)]


@pytest.mark.parametrize("name", ["", "nobodys"])
def test_a_part_that_there_is_not_is_an_error_and_no_test_runs(name: str) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        part(name)
    recipe = MAKEFILE.partition("\ntest-part: ")[2].partition("\n\n")[0]
    assert "tests=$$(.ci/parts $(PART)) && " in recipe


def test_the_hooks_before_a_commit_are_the_commands_of_make_lint() -> None:
    (repository,) = safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    lint = MAKEFILE.partition("\nlint: ")[2].partition("\n\n")[0]
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in lint.splitlines()[1:]]
    assert [hook["entry"] for hook in repository["hooks"]] == commands
    assert all(hook["pass_filenames"] is False for hook in repository["hooks"])


def test_the_devcontainer_has_the_go_of_the_guide_and_runs_make_setup() -> None:
    folder = ROOT / ".devcontainer"
    content = json.loads((folder / "devcontainer.json").read_text())
    assert content["postCreateCommand"] == "make setup"
    file = (folder / content["build"]["dockerfile"]).read_text()
    (version,) = re.findall(r"Go ([\d.]+) or newer", (ROOT / "CONTRIBUTING.md").read_text())
    assert f"FROM golang:{version}\n" in file


def _git_files(*options: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", *options], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    return listed.stdout.splitlines()


def test_a_checkout_holds_no_link_and_nothing_that_is_ignored() -> None:
    """A committed link to the folder of another checkout made CI fail, where that folder was not."""
    assert [line for line in _git_files("--stage") if line.startswith("120000")] == []
    assert _git_files("--cached", "--ignored", "--exclude-standard") == []


def test_updates_are_proposed_for_every_file_that_pins_a_version() -> None:
    updates = safe_load((ROOT / ".github" / "dependabot.yml").read_text())["updates"]
    patterns = {update["package-ecosystem"]: update.get("directories") or [update["directory"]] for update in updates}
    assert set(patterns) == {"pip", "gomod", "docker", "github-actions"}
    files = _git_files()
    pins = {"gomod": "go.mod", "docker": "Containerfile", "pip": "pyproject.toml"}
    for ecosystem, name in pins.items():
        folders = {str("/" / PurePosixPath(file).parent) for file in files if PurePosixPath(file).name == name}
        assert folders
        assert {
            one for one in folders if not any(PurePosixPath(one).match(pattern) for pattern in patterns[ecosystem])
        } == set()


def test_the_facts_about_security_name_files_that_there_are_and_no_person() -> None:
    text = (ROOT / "SECURITY-INSIGHTS.yml").read_text()
    content = safe_load(text)
    files = re.findall(r"REPOSITORY/blob/main/(\S+)", text)
    assert len(files) > 5
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert content["repository"]["license"]["expression"] == "Apache-2.0"
    assert {"email", "social"} & {key for person in content["repository"]["core-team"] for key in person} == set()


def test_forms_for_issues_are_well_formed() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    for form in (safe_load(file.read_text()) for file in forms if file.name != "config.yml"):
        assert {"name", "description", "body"} <= set(form)
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert len({field["id"] for field in fields}) == len(fields)
