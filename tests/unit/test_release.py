"""What a release is made of: licences that we may pass on, a bill of materials, a workflow, and a wheel that works."""

import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from yaml import safe_load

from foresail import __version__
from release.parts import parts
from release.sbom import bill

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yaml"
MAY_BE_PASSED_ON = {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "PSF-2.0"}


def test_every_package_that_we_run_with_has_a_licence_that_lets_us_pass_it_on() -> None:
    assert len(parts()) >= 15
    for part in parts():
        assert set(part.licence.split(" AND ")) <= MAY_BE_PASSED_ON, part


def test_the_bill_has_every_package_once_and_is_the_same_each_time() -> None:
    found = bill()
    assert found["metadata"]["component"]["version"] == __version__
    names = [each["name"] for each in found["components"]]
    assert names == [part.name for part in parts()]
    assert len(set(names)) == len(names)
    assert found["dependencies"][0]["dependsOn"] == [each["bom-ref"] for each in found["components"]]
    assert bill() == found


def test_no_manifest_names_a_user_and_the_image_has_a_numeric_one() -> None:
    for path in (ROOT / "src" / "foresail" / "manifests").glob("*.yaml"):
        text = path.read_text()
        assert text.count("runAsNonRoot: true") == text.count("kind: Deployment"), path
        assert not re.search("runAs(User|Group)", text), f"{path}: OpenShift's restricted-v2 refuses a fixed user"
    (user,) = re.findall(r"^USER (\S+)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), "the kubelet cannot tell that a name is not root"


def test_the_workflow_runs_nobody_elses_code_and_only_targets_that_there_are() -> None:
    text = WORKFLOW.read_text()
    steps = [step for job in safe_load(text)["jobs"].values() for step in job["steps"]]
    assert steps
    assert [step for step in steps if "run" not in step] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^\s*make ([a-z-]+)", text, re.MULTILINE)) <= targets


def test_program_wheel_charts_manifests_image_and_release_have_one_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__), "a version that a chart, a wheel and an image tag can all have"
    for chart in ("foresail", "foresail-crds"):
        found = safe_load((ROOT / "charts" / chart / "Chart.yaml").read_text())
        assert (str(found["version"]), str(found["appVersion"])) == (__version__, __version__), chart
    for path in (ROOT / "src" / "foresail" / "manifests").glob("*.yaml"):
        labels = set(re.findall(r"app\.kubernetes\.io/version: \"?([^\"\s]+)", path.read_text()))
        assert labels <= {__version__}, path
    make = subprocess.run(["make", "--dry-run", "image"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    assert f"--tag foresail:{__version__} " in make.stdout
    assert 'make image IMAGE_TOOL=podman IMAGE="$IMAGE:${TAG#v}"' in WORKFLOW.read_text()


def test_the_build_of_the_image_gets_only_what_it_needs() -> None:
    kept = set(re.findall(r"^!(\S+)$", (ROOT / ".containerignore").read_text(), re.MULTILINE))
    copied = set(re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Containerfile").read_text(), re.MULTILINE))
    assert {word.partition("/")[0] for words in copied for word in words.split()} == kept


@pytest.mark.timed
def test_the_wheel_in_a_clean_environment_shows_its_help_in_less_than_150_ms_of_cpu(
    tmp_path: Path, figure: Callable[[str], None]
) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    clean = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(clean)], check=True)
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--python", str(clean), "--no-deps"]
    subprocess.run([*uv, "--require-hashes", "--requirement", "requirements/run.txt"], cwd=ROOT, check=True)
    subprocess.run([*uv, str(wheel)], check=True)

    command = [str(clean / "bin" / "foresail"), "--help"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
        assert done.stdout.startswith("usage: foresail")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    figure(f"`foresail --help` of the wheel in a clean environment: {min(spent) * 1000:.0f} ms of CPU, best of five")
    assert min(spent) < 0.150
