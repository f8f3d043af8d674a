"""What a release is made of: licences that we may pass on, links that work, a workflow, and a wheel that works."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from yaml import safe_load

from foresail import TAGLINE, __version__
from release.home import RUNBOOKS, relative_links, runbooks, urls, with_absolute_links, with_runbooks
from release.parts import parts
from release.provenance import predicate
from tests.machine_speed import cost_beside_plain_python

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yaml"
UPLOAD = re.compile(r"actions/upload-artifact@[0-9a-f]{40}")
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
MAY_BE_PASSED_ON = {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "PSF-2.0"}


def test_every_package_that_we_run_with_has_a_licence_that_lets_us_pass_it_on() -> None:
    assert len(parts()) >= 15
    for part in parts():
        assert set(part.licence.split(" AND ")) <= MAY_BE_PASSED_ON, part


def test_every_dependency_has_a_lower_and_an_upper_bound() -> None:
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, groups = found["project"], found["dependency-groups"]
    listed = [project["dependencies"], *project["optional-dependencies"].values(), *groups.values()]
    wanted = [each for group in listed for each in group if isinstance(each, str)]
    assert len(wanted) >= 25
    for each in [*wanted, *found["build-system"]["requires"]]:
        name, _, bounds = each.partition(">=")
        assert bounds, each
        assert "<" in bounds or name == "tzdata", f"{each}: a version that nobody has tried may break it"


def test_the_alerts_of_a_release_lead_to_its_own_runbooks() -> None:
    home = "https://example.com/foresail"
    for path, empty in RUNBOOKS.items():
        assert f'{empty} "{runbooks(home)}"' in with_runbooks(path.read_text(), empty, home)
    with pytest.raises(SystemExit, match="no place for the address"):
        with_runbooks("other", "  runbookUrl:", home)


def test_the_readme_of_a_release_has_no_link_that_a_package_index_cannot_follow() -> None:
    text, home = (ROOT / "README.md").read_text(), "https://example.com/foresail"
    targets = relative_links(text)
    assert len(targets) >= 20
    assert [each for each in targets if not (ROOT / each.partition("#")[0]).exists()] == []
    released = with_absolute_links(text, home)
    assert relative_links(released) == []
    assert f"]({home}/blob/v{__version__}/docs/limits.md)" in released
    assert f"]({home}/raw/v{__version__}/docs/terminal.svg)" in released, "a picture is shown, not its page"
    found = tomllib.loads((ROOT / "pyproject.toml").read_text() + urls(home))["project"]["urls"]
    assert all(each.startswith(home) for each in found.values())
    assert "urls" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"], "there is no address yet"


def test_the_provenance_names_the_commit_the_base_the_workflow_and_the_run() -> None:
    found = predicate(
        {
            "GITHUB_SERVER_URL": "https://example.com",
            "GITHUB_REPOSITORY": "them/foresail",
            "GITHUB_REF": "refs/tags/v0.1.0",
            "GITHUB_SHA": "c0ffee",
            "GITHUB_WORKFLOW_REF": "them/foresail/.github/workflows/release.yaml@refs/tags/v0.1.0",
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_RUN_ID": "7",
            "GITHUB_RUN_ATTEMPT": "1",
            "RUNNER_ENVIRONMENT": "github-hosted",
            "BASE": f"python@{DIGEST}",
        }
    )
    source = {
        "uri": "git+https://example.com/them/foresail@refs/tags/v0.1.0",
        "digest": {"gitCommit": "c0ffee"},
    }
    base = {"uri": "docker://python", "digest": {"sha256": DIGEST.removeprefix("sha256:")}}
    assert found["buildDefinition"]["resolvedDependencies"] == [source, base]
    assert found["buildDefinition"]["externalParameters"]["workflow"]["path"] == ".github/workflows/release.yaml"
    run = "https://example.com/them/foresail/actions/runs/7/attempts/1"
    assert found["runDetails"]["metadata"]["invocationId"] == run


def test_no_manifest_names_a_user_and_the_image_has_a_numeric_one() -> None:
    manifests = (ROOT / "src" / "foresail" / "manifests").glob("*.yaml")
    for path in (each for each in manifests if each.name != "crds.yaml"):  # definitions, of which nothing runs
        text = path.read_text()
        assert text.count("runAsNonRoot: true") == text.count("kind: Deployment"), path
        assert not re.search("runAs(User|Group):", text), f"{path}: OpenShift's restricted-v2 refuses a fixed user"
    (user,) = re.findall(r"^USER (\S+)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), "the kubelet cannot tell that a name is not root"


def jobs() -> dict[str, Any]:
    """Return the jobs of the release workflow."""
    found: dict[str, Any] = safe_load(WORKFLOW.read_text())["jobs"]
    return found


def commands(job: dict[str, Any]) -> str:
    """Return all that a job runs in its shell."""
    return "\n".join(step.get("run", "") for step in job["steps"])


def is_publishing(job: dict[str, Any]) -> bool:
    """Tell whether a job may write anything, or sign in our name."""
    return "write" in job["permissions"].values()


def test_the_workflow_runs_only_targets_that_there_are_and_one_action_to_pass_files_on() -> None:
    text = WORKFLOW.read_text()
    steps = [step for job in jobs().values() for step in job["steps"]]
    others = [step["uses"] for step in steps if "uses" in step]
    assert [each for each in others if not UPLOAD.fullmatch(each)] == [], (
        "an action by a tag, or one that we do not need"
    )
    assert "secrets." not in text, "every signature is keyless, and the index trusts the workflow itself"
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^\s*make ([a-z0-9-]+)", text, re.MULTILINE)) <= targets


def test_no_job_both_builds_and_publishes() -> None:
    assert safe_load(WORKFLOW.read_text())["permissions"] == {}, "what a job may do stands in the job"
    publishing = {name: job for name, job in jobs().items() if is_publishing(job)}
    assert set(publishing) == {"push", "sign", "index", "release"}
    for name, job in publishing.items():
        run = commands(job)
        assert not re.search(r"\bmake\b|hatchling|-e \.|podman (build|run)|uses:", run), f"{name} builds"
        assert not [step for step in job["steps"] if "uses" in step], f"{name} runs an action with our permissions"
        installs = [line for line in run.splitlines() if "pip install" in line]
        assert all("--only-binary :all: --require-hashes" in line for line in installs), name
    for name, job in jobs().items():
        reads = {"contents": "read"}
        assert name in publishing or job["permissions"] == reads, f"{name} builds, and may do more than read"


def test_each_publishing_job_may_do_one_thing() -> None:
    may = {name: {right for right, how in job["permissions"].items() if how == "write"} for name, job in jobs().items()}
    assert may["push"] == {"packages"}
    assert may["sign"] == {"packages", "id-token"}, "a signature lies in the registry"
    assert may["index"] == {"id-token"}
    assert may["release"] == {"contents"}
    assert [name for name, job in jobs().items() if "environment" in job] == ["index"]


def test_files_and_images_go_from_job_to_job_by_their_digests() -> None:
    text = WORKFLOW.read_text()
    fetch = safe_load(text)["env"]["FETCH"]
    assert "sha256sum --check --strict" in fetch
    for name, job in jobs().items():
        run = commands(job)
        assert "run download" not in run, f"{name} takes a file without a checksum"
        for line in (line for line in run.splitlines() if "$FETCH" in line):
            assert re.search(r'"\$\w+_SUM"$', line), f"{name}: {line}"
        for variable in (value for key, value in job.get("env", {}).items() if key.endswith("_SUM")):
            assert re.fullmatch(r"\$\{\{ needs\.\w+\.outputs\.[\w-]+ \}\}", variable), name
    added = re.findall(r"podman manifest (?:create|add) .*", text)
    assert added
    for line in added:
        assert "docker://" not in line or line.endswith('@$digest"'), f"a tag can be moved between two jobs: {line}"
    assert re.findall(r"skopeo copy (.*)", text) == [
        '--preserve-digests "oci-archive:image-$arch.tar" "docker://$REGISTRY/foresail@$digest"'
    ]


def test_a_released_image_has_a_base_with_a_digest() -> None:
    run = commands(jobs()["image"])
    assert 'make image IMAGE_TOOL=podman PINNED=1 BASE="$BASE"' in run
    for name in ("image", "dist"):  # the build, and the provenance that names it
        assert jobs()[name]["env"]["BASE"] == "${{ needs.base.outputs.base }}"
    assert "@sha256:[0-9a-f]{64}$" in commands(jobs()["base"])


@pytest.mark.parametrize(
    ("base", "is_built"),
    [("python:3.11-slim", False), ("python@sha256:12", False), (f"python@{DIGEST}", True)],
)
def test_make_image_refuses_a_base_without_a_digest_if_told_to(base: str, *, is_built: bool) -> None:
    command = ["make", "image", "PINNED=1", f"BASE={base}", "IMAGE_TOOL=echo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (f"build --build-arg BASE={base}" in done.stdout) == is_built
    assert (done.returncode == 0) == is_built
    assert is_built or f"base {base} has no digest" in done.stderr


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
    workflow = WORKFLOW.read_text()
    assert 'IMAGE="foresail:${TAG#v}"' in workflow
    assert 'image="$REGISTRY/foresail:${TAG#v}"' in workflow
    assert '"dist/$chart-${TAG#v}.tgz"' in workflow


def test_the_change_log_begins_with_this_version_and_each_release_is_short_enough_to_read() -> None:
    _, newest, *older = (ROOT / "CHANGELOG.md").read_text().split("\n## ")
    assert newest.startswith(__version__)
    assert max(len(section.split()) for section in (newest, *older)) <= 1200


def test_charts_say_to_artifact_hub_what_they_are() -> None:
    for chart in ("foresail", "foresail-crds"):
        found = safe_load((ROOT / "charts" / chart / "Chart.yaml").read_text())
        assert found["kubeVersion"] == ">=1.30.0-0", "ValidatingAdmissionPolicies in version v1"
        assert found["description"]
        assert found["keywords"]
        about = found["annotations"]
        assert about["artifacthub.io/category"] == "storage"
        assert about["artifacthub.io/license"] == "Apache-2.0"
        assert about["artifacthub.io/prerelease"] == "true"


def test_the_build_of_the_image_gets_only_what_it_needs() -> None:
    kept = set(re.findall(r"^!(\S+)$", (ROOT / ".containerignore").read_text(), re.MULTILINE))
    copied = set(re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Containerfile").read_text(), re.MULTILINE))
    assert {word.partition("/")[0] for words in copied for word in words.split()} == kept


@pytest.mark.timed
def test_the_wheel_in_a_clean_environment_shows_its_help_for_less_than_two_plain_programs(
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

    def helps() -> None:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
        assert done.stdout.startswith("usage: foresail")

    own, plain = cost_beside_plain_python(helps)
    figure(
        f"`foresail --help` of the wheel in a clean environment: {own * 1000:.0f} ms of CPU, best of five; "
        f"{own / plain:.1f} times that of a program that only imports what speaks TLS"
    )
    assert own < 2 * plain


def test_every_place_that_describes_foresail_says_the_same() -> None:
    for file in ("pyproject.toml", "mkdocs.yml", "charts/foresail/Chart.yaml", "charts/foresail/README.md"):
        assert TAGLINE in (ROOT / file).read_text()
