"""Tutorials and how-to pages, followed as written on one cluster with Velero, on which Helm has installed Foresail.

The operator runs as its own process beside the cluster, as the chart's ServiceAccount: pods run nothing here.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import Cluster
from tests.cluster import operators
from tests.cluster.pages import README, ROOT, fits, reading, sections, steps
from tests.cluster.tenants import Eventually
from tests.gitops.recorded import health_checks

DOCS = ROOT / "docs"
SAME_STEPS = {
    "how-to/audit-evidence.md": "tests/cluster/test_restore_checks.py",
    "how-to/back-up-on-a-schedule.md": "tests/cluster/test_tenant_schedules.py",
    "how-to/back-up-volumes.md": "tests/node/test_snapshots.py",
    "how-to/check-restores.md": "tests/cluster/test_restore_checks.py",
    "how-to/console.md": "tests/unit/console/test_console.py",
    "how-to/console-in-cluster.md": "tests/unit/console/test_console_in_cluster.py",
    "how-to/fleet.md": "tests/alerts/test_fleet.py",
    "how-to/protect-by-label.md": "tests/cluster/test_protection.py",
    "how-to/plan-a-restore.md": "tests/cluster/test_restore_plan.py",
    "how-to/roll-back.md": "tests/cluster/test_rollback.py",
    "how-to/retention.md": "tests/cluster/test_schedules_retention.py",
    "how-to/undo-a-bad-change.md": "tests/cluster/test_tenant_cli.py",
    "tutorial/proven-backups.md": "tests/cluster/test_restore_checks.py",
}
"""Pages with manifests or names to adapt: a test does the same steps with its own values."""

UNCHANGED = {
    README: "tests/cluster/test_install.py",
    "how-to/disaster-recovery.md": "tests/cluster/test_selfservice_disaster.py",
    "how-to/from-oadp.md": "tests/cluster/test_pages.py",
    "how-to/gitops.md": "tests/cluster/test_pages.py",
    "how-to/install.md": "tests/cluster/test_install.py",
    "how-to/take-over-schedules.md": "tests/cluster/test_take_over.py",
    "how-to/uninstall.md": "tests/cluster/test_install.py",
    "how-to/upgrade.md": "tests/cluster/test_pages.py",
    "tutorial/first-backup.md": "tests/cluster/test_pages.py",
    "tutorial/warm-cronjobs.md": "tests/cluster/test_pages_primers.py",
}
"""Pages whose commands a test types as they are written."""

ELSEWHERE = {
    "One file": "tests/unit/test_pyz.py",  # it needs a build of a release, not a cluster
    "Back up what is yours, and take back a bad change": "tests/cluster/pages.py",  # two tests follow it
}
WHOLE = ("how-to/from-oadp.md", "how-to/gitops.md", "how-to/upgrade.md", "tutorial/warm-cronjobs.md")
VALUES = "selfService.enabled=true,primers.enabled=true,primers.pauseImage=pause@sha256:0"


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with Foresail beside it, every capability on."""
    cluster, folder = own_velero_cluster, tmp_path_factory.mktemp("operator")
    with reading(cluster, folder / "administrator") as administrator:
        administrator.type("helm install foresail-crds charts/foresail-crds -n velero")
        administrator.type(f"helm install foresail charts/foresail -n velero --set {VALUES}")
    apart = ("--lease-name=foresail-primers", "--schedules=false", "--primers", "--primer-pause-image=pause@sha256:0")
    with (
        operators.running(cluster, folder),
        operators.running(cluster, folder, *operators.SELF_SERVICE),
        operators.running(cluster, folder, *apart),
    ):
        yield cluster


def test_every_page_with_blocks_has_a_test_of_its_steps() -> None:
    pages = [page for folder in ("how-to", "tutorial") for page in (DOCS / folder).glob("*.md")]
    blocks = {str(page.relative_to(DOCS)) for page in pages if "```" in page.read_text()}
    assert blocks == {*SAME_STEPS, *UNCHANGED} - {README}
    assert [test for test in (*SAME_STEPS.values(), *UNCHANGED.values()) if not (ROOT / test).exists()] == []


@pytest.mark.parametrize("page", SAME_STEPS)
def test_a_page_with_manifests_to_adapt_says_that_it_is_tested(page: str) -> None:
    assert re.search(r"^A test |\b(is|are) tested\b", (DOCS / page).read_text(), re.MULTILINE)


@pytest.mark.parametrize(("page", "test"), UNCHANGED.items())
def test_every_block_with_commands_is_followed_by_the_test_of_the_page(page: str, test: str) -> None:
    text = (DOCS / page).read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert {kind for kind, _ in blocks} <= {"console", "text"}
    assert [block for kind, block in blocks if kind == "text" and "$ " in block] == [], "nobody would type it"
    assert "are run unchanged by" in text
    source = (ROOT / test).read_text()
    assert ("(README, " if page == README else f'"{page}"') in source
    if page not in WHOLE:
        missed = {title for title in sections(page) if steps(page, title) and f'"{title}"' not in source}
        assert missed <= {title for title, file in ELSEWHERE.items() if (ROOT / file).exists()}


def test_a_command_that_fails_or_prints_something_else_is_noticed(served: Cluster, tmp_path: Path) -> None:
    with reading(served, tmp_path / "reader") as reader:
        with pytest.raises(AssertionError, match="has ended with code 3"):
            reader.type("(exit 3)")
        assert reader.type("echo a word, then 7") == "a word, then 7\n"
    assert fits(("a word, then 8",), "before\na word, then 7\nafter\n")
    assert not fits(("another word, then 7",), "a word, then 7\n")
    assert fits(("Sun 2026-11-15",), "Mon 2026-11-16\n"), "a page is read on any day"
    assert not fits(("Sun 2026-11-15",), "Yes 2026-11-16\n")
    assert not fits(("second", "first"), "first\nsecond\n")


def test_a_team_makes_its_first_backup(served: Cluster, tmp_path: Path, eventually: Eventually) -> None:
    page = "tutorial/first-backup.md"
    with reading(served, tmp_path / "administrator") as administrator:
        administrator.follow(page, "What the administrator does once")
    with reading(served, tmp_path / "ann", served.user_kubeconfig("ann")) as ann:
        eventually(lambda: "yes" in ann.type("kubectl auth can-i create nab -n shop || true"), 60)
        ann.follow(page, "What Ann does")
        ann.follow(page, "What Ann cannot do")


@pytest.mark.parametrize("page", ["how-to/from-oadp.md", "how-to/upgrade.md"])
def test_a_how_to_is_followed_from_its_begin_to_its_end(served: Cluster, tmp_path: Path, page: str) -> None:
    with reading(served, tmp_path / "reader") as reader:
        reader.follow(page)


def test_manifests_and_health_checks_are_taken(served: Cluster, tmp_path: Path) -> None:
    for name in ("argocd", "shop"):
        served.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    served.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"}})
    with reading(served, tmp_path / "reader") as reader:
        reader.follow("how-to/gitops.md")
    data = served.get("configmap", "argocd-cm", "--namespace=argocd")["data"]
    assert len(data) == len(health_checks())
