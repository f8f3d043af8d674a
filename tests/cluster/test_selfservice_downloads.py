"""Logs for tenants on the real cluster: Velero signs, the bucket serves, and kubectl is all that a tenant needs."""

import gzip
import http
import io
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence

import pytest

from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE
from foresail.selfservice.downloads.targets import TARGETS, Rule, rule_of
from testbed import Cluster
from tests.cluster.tenants import API, Tenant, allow_contents, arrive, condition, install, operator

Eventually = Callable[[Callable[[], object], float], None]


@pytest.fixture(scope="module")
def served(velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, and the operator at work."""
    install(velero_cluster, contents=True)
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


def answer(person: Tenant, name: str) -> int:
    """Return how the bucket answers for the URL of a download."""
    person.wait(f"nonadmindownloadrequest/{name}", "--for=condition=Processed")
    url = person.status(f"nonadmindownloadrequest/{name}")["velero"]["status"]["downloadURL"]
    try:
        with urllib.request.urlopen(url, timeout=30) as reply:  # noqa: S310 - signed
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.timeout(600)
def test_each_kind_of_file_on_the_real_velero(served: Cluster, eventually: Eventually) -> None:
    dan = arrive(served, "files", eventually)
    dan.kubectl("create", "secret", "generic", "password", "--from-literal=word=swordfish")
    allow_contents(served, "files")
    dan.back_up("all")
    dan.wait("nonadminbackup/all", "--for=condition=Succeeded")
    dan.restore("back", "all")
    dan.wait("nonadminrestore/back", "--for=condition=Succeeded")
    for kind in TARGETS:
        dan.download(kind.lower(), kind, "back" if kind.startswith("Restore") else "all")
    refused = [kind for kind in TARGETS if rule_of(kind) is Rule.NEVER]
    for kind in refused:
        dan.wait(f"nonadmindownloadrequest/{kind.lower()}", "--for=jsonpath={.status.phase}=BackingOff")
        assert condition(dan.status(f"nonadmindownloadrequest/{kind.lower()}"), "Processed")[1] == "TargetNotServed"
    found = {kind: answer(dan, kind.lower()) for kind in TARGETS if kind not in refused}
    absent = {kind for kind, code in found.items() if code == http.HTTPStatus.NOT_FOUND}
    assert absent <= {"CSIBackupVolumeSnapshots"}, "Velero 1.18 writes every other file"
    assert set(found.values()) <= {http.HTTPStatus.OK, http.HTTPStatus.NOT_FOUND}
    assert '"v1/Secret":["files/password"' in content(dan, "backupresourcelist").replace(" ", "")
    url = dan.status("nonadmindownloadrequest/backupcontents")["velero"]["status"]["downloadURL"]
    with urllib.request.urlopen(url, timeout=30) as reply:  # noqa: S310 - signed
        tarball = tarfile.open(fileobj=io.BytesIO(reply.read()))  # noqa: SIM115 - in memory
    assert "resources/secrets/namespaces/files/password.json" in tarball.getnames()


def test_contents_need_a_policy_and_a_requester_who_may_read_secrets(served: Cluster, eventually: Eventually) -> None:
    fay = arrive(served, "fine", eventually)
    fay.back_up("all")
    fay.wait("nonadminbackup/all", "--for=condition=Succeeded")
    fay.download("early", "BackupContents", "all")
    fay.wait("nonadmindownloadrequest/early", "--for=jsonpath={.status.phase}=BackingOff")
    assert condition(fay.status("nonadmindownloadrequest/early"), "Processed")[1] == "TargetNotServed"
    allow_contents(served, "fine")
    fay.wait("nonadmindownloadrequest/early", "--for=condition=Processed")

    verbs, kinds = "get,list,create", "nonadmindownloadrequests.oadp.openshift.io"
    served.kubectl("create", "role", "asks", f"--verb={verbs}", f"--resource={kinds}", "--namespace=fine")
    served.kubectl("create", "rolebinding", "asks", "--role=asks", "--user=gus", "--namespace=fine")
    gus = Tenant(served.user_kubeconfig("gus"), "fine")
    gus.download("secrets", "BackupContents", "all")
    gus.wait("nonadmindownloadrequest/secrets", "--for=jsonpath={.status.phase}=BackingOff")
    refused = condition(gus.status("nonadmindownloadrequest/secrets"), "Processed")
    assert refused[:2] == ("False", "ContentsDenied")
    assert refused[2].startswith("gus may not get Secrets in namespace fine")
    lie = {"metadata": {"name": "posing", "annotations": {"foresail.dev/requester": "tenant-of-fine"}}}
    spec = {"target": {"kind": "BackupContents", "name": "all"}}
    body = {"apiVersion": API, "kind": "NonAdminDownloadRequest", **lie, "spec": spec}
    gus.kubectl("create", "--filename=-", body=body)  # the API server writes who it really is
    gus.wait("nonadmindownloadrequest/posing", "--for=jsonpath={.status.phase}=BackingOff")
    assert condition(gus.status("nonadmindownloadrequest/posing"), "Processed")[1] == "ContentsDenied"


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
