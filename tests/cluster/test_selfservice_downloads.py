"""Logs for tenants on the real cluster: Velero signs, the bucket serves, and kubectl is all that a tenant needs."""

import gzip
import urllib.request
from collections.abc import Callable, Iterator, Sequence

import pytest

from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE
from testbed import Cluster
from tests.cluster.tenants import Tenant, arrive, condition, install, operator

Eventually = Callable[[Callable[[], object], float], None]


@pytest.fixture(scope="module")
def served(velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, and the operator at work."""
    install(velero_cluster)
    log = tmp_path_factory.mktemp("operator") / "log"
    with operator(velero_cluster, log):
        yield velero_cluster


def asked_for(cluster: Cluster, names: Sequence[str]) -> list[str]:
    """Return for which of these names Velero was asked for a download; others may have asked for theirs."""
    items = cluster.get("downloadrequests.velero.io", "--namespace=velero")["items"]
    return [name for each in items if (name := each["spec"]["target"]["name"]) in names]


def content(person: Tenant, name: str) -> str:
    """Return what is behind the URL of a download."""
    person.wait(f"nonadmindownloadrequest/{name}", "--for=condition=Processed")
    status = person.status(f"nonadmindownloadrequest/{name}")
    assert status["phase"] == "Created"
    with urllib.request.urlopen(status["velero"]["status"]["downloadURL"], timeout=30) as reply:  # noqa: S310 - signed
        return gzip.decompress(reply.read()).decode()


def test_a_tenant_reads_the_logs_of_the_own_backup_and_restore_and_nobody_else_does(
    served: Cluster, eventually: Eventually
) -> None:
    ann, bob = arrive(served, "read", eventually), arrive(served, "curious", eventually)
    ann.back_up("mine")
    ann.wait("nonadminbackup/mine", "--for=condition=Succeeded")
    name = ann.status("nonadminbackup/mine")["veleroBackup"]["name"]

    ann.download("why", "BackupLog", "mine")
    assert f"backup=velero/{name}" in content(ann, "why")
    assert asked_for(served, [name, "mine"]) == [name]

    for wish, target in (("its-name", "mine"), ("velero-s-name", name)):
        bob.download(wish, "BackupLog", target)
        bob.wait(f"nonadmindownloadrequest/{wish}", "--for=condition=NonAdminBackupNotAvailable")
        refused = bob.status(f"nonadmindownloadrequest/{wish}")
        assert refused["phase"] == "BackingOff"
        assert "velero" not in refused
    ann.download("contents", "BackupContents", "mine")
    ann.wait("nonadmindownloadrequest/contents", "--for=jsonpath={.status.phase}=BackingOff")
    refused = ann.status("nonadmindownloadrequest/contents")
    assert condition(refused, "Processed")[:2] == ("False", "TargetNotServed")
    assert asked_for(served, [name, "mine"]) == [name], "nothing was asked for what was refused"

    ann.kubectl("delete", "nonadmindownloadrequest", "why")
    eventually(lambda: not asked_for(served, [name]), 60)

    ann.restore("back", "mine")
    ann.wait("nonadminrestore/back", "--for=condition=Succeeded")
    ann.download("how", "RestoreLog", "back")
    restore = ann.status("nonadminrestore/back")["veleroRestore"]["name"]
    assert f"restore=velero/{restore}" in content(ann, "how")


def test_finding_9_downloads_need_a_policy(served: Cluster, eventually: Eventually) -> None:
    cat = arrive(served, "unruled", eventually)
    cat.back_up("mine")
    cat.wait("nonadminbackup/mine", "--for=condition=Succeeded")
    served.kubectl("label", "namespace", "unruled", f"{OPT_IN_LABEL}-")
    cat.download("why", "BackupLog", "mine")
    cat.wait("nonadmindownloadrequest/why", "--for=condition=Processed=false")
    status = cat.status("nonadmindownloadrequest/why")
    assert (status["phase"], condition(status, "Processed")[1]) == ("New", "NoPolicy")
    served.kubectl("label", "namespace", "unruled", f"{OPT_IN_LABEL}={OPT_IN_VALUE}")
    assert "backup=velero/unruled-mine-" in content(cat, "why")
