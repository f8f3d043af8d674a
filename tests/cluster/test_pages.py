"""Tutorials and how-to pages, followed as written on a cluster with Velero that has never seen Foresail.

The operator runs as its own process beside the cluster, as the ServiceAccount that a page's commands have made: pods
run nothing here.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed import Cluster
from tests.cluster import operators
from tests.cluster.pages import ROOT, Reader, steps
from tests.cluster.tenants import Eventually
from tests.gitops.recorded import health_checks


@contextmanager
def reading(cluster: Cluster, folder: Path, kubeconfig: Path | None = None) -> Iterator[Reader]:
    reader = Reader(cluster, folder, kubeconfig)
    try:
        yield reader
    finally:
        reader.leave()


def test_every_tutorial_and_how_to_with_commands_says_which_test_follows_it() -> None:
    for folder in ("tutorial", "how-to"):
        for page in (ROOT / "docs" / folder).glob("*.md"):
            if steps(f"{folder}/{page.name}"):
                named = re.search(r"(?:run as they stand|tested) by `(tests/cluster/test_\w+\.py)`", page.read_text())
                assert named is not None, page.name
                assert (ROOT / named[1]).exists(), page.name


def test_a_team_makes_its_first_backup(own_velero_cluster: Cluster, tmp_path: Path, eventually: Eventually) -> None:
    cluster, page = own_velero_cluster, "tutorial/first-backup.md"
    with reading(cluster, tmp_path / "administrator") as administrator:
        administrator.follow(page, "What the administrator does once")
    ann = cluster.user_kubeconfig("ann")
    with (
        operators.running(cluster, tmp_path, "--schedules=false", "--self-service"),
        reading(cluster, tmp_path / "ann", ann) as reader,
    ):
        eventually(lambda: "yes" in reader.type("kubectl auth can-i create nab -n shop || true"), 30)
        reader.follow(page, "What Ann does")
        reader.follow(page, "What Ann cannot do")


def test_a_cron_job_is_primed(own_velero_cluster: Cluster, tmp_path: Path) -> None:
    cluster, page = own_velero_cluster, "tutorial/warm-cronjobs.md"
    sections = ("Install", "A CronJob that waits", "See what waits", "Prime it", "See that it helped", "And back")
    with reading(cluster, tmp_path) as reader:
        for section in sections:
            reader.follow(page, section)
    assert cluster.get("primers", "--namespace=shop")["items"] == []
    cluster.kubectl("delete", "cronjob", "report", "--namespace=shop")
    cluster.kubectl("delete", "lease", "foresail", "--namespace=velero")  # of the operator that ended with the reader


@pytest.mark.parametrize("page", ["how-to/from-oadp.md", "how-to/upgrade.md"])
def test_a_how_to_is_followed_from_its_begin_to_its_end(own_velero_cluster: Cluster, tmp_path: Path, page: str) -> None:
    with reading(own_velero_cluster, tmp_path / "reader") as reader:
        reader.follow(page)


def test_manifests_and_health_checks_are_taken(own_velero_cluster: Cluster, tmp_path: Path) -> None:
    cluster = own_velero_cluster
    labels = {"foresail.dev/self-service": "enabled"}
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}},
    )
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"}})
    with reading(cluster, tmp_path / "reader") as reader:
        reader.follow("how-to/gitops.md")
    data = cluster.get("configmap", "argocd-cm", "--namespace=argocd")["data"]
    assert {tuple(name.removeprefix("resource.customizations.health.").split("_")) for name in data} == set(
        health_checks()
    )
