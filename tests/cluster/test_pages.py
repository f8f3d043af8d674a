"""Tutorials and how-to pages, followed as written on one cluster with Velero, on which Helm has installed Foresail.

The operator runs as its own process beside the cluster, as the chart's ServiceAccount: pods run nothing here.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import Cluster
from tests.cluster import operators
from tests.cluster.pages import ROOT, fits, reading, steps
from tests.cluster.tenants import Eventually
from tests.gitops.recorded import health_checks

VALUES = "selfService.enabled=true,primers.enabled=true,primers.pauseImage=pause@sha256:0"


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with Foresail beside it, every capability on."""
    cluster, folder = own_velero_cluster, tmp_path_factory.mktemp("operator")
    with reading(cluster, folder / "administrator") as administrator:
        administrator.type("helm install foresail-crds charts/foresail-crds")
        administrator.type(f"helm install foresail charts/foresail -n velero --set {VALUES}")
    with operators.running(cluster, folder, "--self-service", "--primers", "--primer-pause-image=pause@sha256:0"):
        yield cluster


def test_every_tutorial_and_how_to_with_commands_says_which_test_follows_it() -> None:
    for folder in ("tutorial", "how-to"):
        for page in (ROOT / "docs" / folder).glob("*.md"):
            if steps(f"{folder}/{page.name}"):
                named = re.search(r"(?:run as they stand|tested) by `(tests/cluster/test_\w+\.py)`", page.read_text())
                assert named is not None, page.name
                assert (ROOT / named[1]).exists(), page.name


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
