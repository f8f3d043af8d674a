"""The kinds of self-service on a real API server: what it admits from a tenant, what it refuses, and in which words.

A tenant is a user with the built-in role `edit` in one namespace, and nothing else.
"""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from foresail.api import crds
from foresail.api.marks import ADOPTED
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE, SelfServicePolicy
from foresail.api.requests import NonAdminDownloadRequestSpec
from foresail.api.schema import schema
from foresail.api.specs import BackupSpec, RestoreSpec
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key, Kind
from foresail.selfservice.downloads.targets import TARGETS
from testbed import Cluster
from testbed.build import program
from tests.cluster.tenants import SELF_SERVICE, written_by_operator
from tests.spec_paths import paths

CHARTS = Path(__file__).parents[2] / "charts"
NAMESPACE = "shop-api"
GROUP = "oadp.openshift.io"
API = f"{GROUP}/v1alpha1"
TENANT_KINDS = ("nonadminbackups", "nonadminrestores", "nonadmindownloadrequests")
Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Person:
    """Somebody with a kubeconfig, whose answers are looked at whether they are a yes or a no."""

    kubeconfig: Path

    def kubectl(self, *words: str, body: object = None) -> Done:
        command = [str(program("kube", "kubectl")), f"--kubeconfig={self.kubeconfig}", f"--namespace={NAMESPACE}"]
        text = json.dumps(body) if body is not None else None
        return subprocess.run(
            [*command, "--cache-dir=/dev/null", *words], input=text, capture_output=True, text=True, check=False
        )

    def create(self, body: object, *words: str) -> Done:
        return self.kubectl("create", "--filename=-", *words, body=body)

    def patch(self, target: str, change: object, *words: str) -> Done:
        return self.kubectl("patch", target, "--type=merge", f"--patch={json.dumps(change)}", *words)


def may(cluster: Cluster, user: str, asked: list[str]) -> dict[str, bool]:
    """Return what somebody may do, each asked as `verb resource[.group][/subresource] [namespace]`.

    Without a namespace it is asked for the whole cluster.
    """
    reviews = []
    for question in asked:
        verb, what, *namespace = question.split()
        resource, _, subresource = what.partition("/")
        plural, _, group = resource.partition(".")
        attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
        attributes["namespace"] = namespace[0] if namespace else ""
        spec = {"user": user, "resourceAttributes": attributes}
        reviews.append({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
    body = {"apiVersion": "v1", "kind": "List", "items": reviews}
    show = '--output=jsonpath={.status.allowed}{"\\n"}'
    answers = cluster.kubectl("create", "--filename=-", "--validate=false", show, text=json.dumps(body)).split()
    return {question: answer == "true" for question, answer in zip(asked, answers, strict=True)}


class Operator(Person):
    """The ServiceAccount of the chart; its writes go through the client that the operator has."""

    def write_status(self, kind: Kind, name: str, status: object) -> Failure | None:
        return written_by_operator(self.kubeconfig, kind, Key(NAMESPACE, name), {"status": status}, "status")

    def write_metadata(self, kind: Kind, name: str, metadata: object) -> Failure | None:
        return written_by_operator(self.kubeconfig, kind, Key(NAMESPACE, name), {"metadata": metadata})


def request(kind: str, name: str, spec: object, **metadata: object) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": spec,
    }


def backup(name: str, **metadata: object) -> dict[str, Any]:
    return request("NonAdminBackup", name, {"backupSpec": {}}, **metadata)


def helm_template(chart: str, *words: str) -> str:
    command = [str(program("helm", "helm")), "template", "foresail", str(CHARTS / chart), "--namespace=velero", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def refused(done: Done, *words: str) -> None:
    assert done.returncode != 0, done.stdout
    for word in words:
        assert word in done.stderr


def admitted(done: Done) -> None:
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(velero_cluster: Cluster) -> Cluster:
    """Velero, and both charts with self-service switched on."""
    cluster = velero_cluster
    cluster.kubectl("apply", "--server-side", "--filename=-", text=helm_template("foresail-crds"))
    cluster.wait_for_kinds()
    chart = helm_template("foresail", f"--set={SELF_SERVICE}")
    cluster.kubectl("apply", "--server-side", "--filename=-", text=chart)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    return cluster


@pytest.fixture(scope="module")
def tenant(installed: Cluster, eventually: Callable[[Callable[[], object], float], None]) -> Person:
    """Amy, who may edit in one namespace, once the built-in role has our rules and the admission policy is in force."""
    installed.kubectl("create", "rolebinding", "amy", "--clusterrole=edit", "--user=amy", f"--namespace={NAMESPACE}")
    amy = Person(installed.user_kubeconfig("amy"))
    asked = f"create nonadminbackups.{GROUP} {NAMESPACE}"
    eventually(lambda: may(installed, "amy", [asked])[asked], 120)
    canary = backup("canary", labels={"foresail.dev/canary": "x"})
    eventually(lambda: amy.create(canary, "--dry-run=server").returncode != 0, 120)
    return amy


@pytest.fixture(scope="module")
def operator(installed: Cluster) -> Operator:
    return Operator(installed.service_account_kubeconfig("velero", "foresail-self-service"))


# The definitions


@pytest.mark.parametrize("name", crds.files())
def test_the_api_server_keeps_a_definition_as_it_is(
    installed: Cluster, name: str, figure: Callable[[str], None]
) -> None:
    text = crds.files()[name]
    installed.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename=-", text=text)
    rendered = yaml.safe_load(text)
    stored = installed.get("crd", rendered["metadata"]["name"])
    assert stored["spec"]["versions"][0]["schema"] == rendered["spec"]["versions"][0]["schema"]
    conditions = {one["type"]: one["status"] for one in stored["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}  # and no NonStructuralSchema
    figure(f"{name}: {len(text.encode()) / 1024:.0f} KiB")


def test_the_api_server_takes_the_example_of_every_kind(installed: Cluster) -> None:
    examples = [file.read_text() for file in (CHARTS.parent / "examples" / "manifests").iterdir()]
    text = "---\n".join(examples).replace("namespace: shop\n", f"namespace: {NAMESPACE}\n")
    answers = installed.kubectl("apply", "--dry-run=server", "--filename=-", text=text).splitlines()
    assert len(answers) == len(examples)
    assert [line for line in answers if not line.endswith("created (server dry run)")] == []


@pytest.mark.parametrize(
    ("velero", "ours", "field"),
    [("backups", "nonadminbackups", "backupSpec"), ("restores", "nonadminrestores", "restoreSpec")],
)
def test_our_spec_has_the_fields_of_veleros_and_no_others(
    installed: Cluster, velero: str, ours: str, field: str
) -> None:
    def spec(definition: str) -> dict[str, Any]:
        version = installed.get("crd", definition)["spec"]["versions"][0]
        found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        return found

    ours_by_path = paths(spec(f"{ours}.{GROUP}")["properties"][field])
    assert ours_by_path == paths(spec(f"{velero}.velero.io")), "a field that is not classified: see api/spec_fields.py"


@pytest.mark.parametrize("spec", [BackupSpec, RestoreSpec])
def test_a_field_of_the_velero_before_is_a_field_of_ours(spec: type) -> None:
    command = [str(program("velero-1.17", "velero")), "install", "--crds-only", "--dry-run", "--output=json"]
    made = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    of = {"BackupSpec": "backups.velero.io", "RestoreSpec": "restores.velero.io"}[spec.__name__]
    [found] = [one for one in made["items"] if one["metadata"]["name"] == of]
    theirs = paths(found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])
    assert theirs.items() <= paths(schema(spec)).items()


@pytest.mark.parametrize(
    ("velero", "kind", "field"),
    [("backups", "NonAdminBackup", "backupSpec"), ("restores", "NonAdminRestore", "restoreSpec")],
)
def test_every_field_that_velero_knows_comes_through(
    installed: Cluster, tenant: Person, velero: str, kind: str, field: str
) -> None:
    version = installed.get("crd", f"{velero}.velero.io")["spec"]["versions"][0]
    whole = sample(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    done = tenant.create(request(kind, "whole", {field: whole}), "--dry-run=server", "--output=json")
    admitted(done)
    assert json.loads(done.stdout)["spec"][field] == whole


def sample(of: dict[str, Any], name: str = "") -> object:
    """Return a value that has every field of a schema."""
    if "properties" in of:
        return {field: sample(below, field) for field, below in of["properties"].items()}
    if "additionalProperties" in of:
        return {"key": sample(of["additionalProperties"])}
    if of["type"] == "array":
        return [sample(of["items"], name)]
    if of["type"] == "string":
        return _text(of, name)
    return {"integer": 3, "boolean": True, "object": {"anything": {"goes": 1}}}[of["type"]]


def _text(of: dict[str, Any], name: str) -> str:
    if "enum" in of:
        return str(of["enum"][0])
    if name == "ttl" or name.lower().endswith("timeout"):
        return "1h30m0s"
    return "In" if name == "operator" else "text"


# What is admitted


@pytest.mark.parametrize(
    "body",
    [
        backup("plain"),
        request("NonAdminBackup", "nulls", {"backupSpec": {"includedNamespaces": None, "ttl": None, "hooks": None}}),
        request("NonAdminRestore", "plain", {"restoreSpec": {"backupName": "plain"}}),
        request("NonAdminDownloadRequest", "plain", {"target": {"kind": "BackupLog", "name": "plain"}}),
        request("NonAdminDownloadRequest", "secrets", {"target": {"kind": "BackupContents", "name": "plain"}}),
    ],
    ids=lambda body: f"{body['kind']}-{body['metadata']['name']}",
)
def test_a_manifest_in_the_shape_of_the_existing_controller_is_admitted(tenant: Person, body: object) -> None:
    admitted(tenant.create(body, "--dry-run=server"))


def test_a_download_that_is_not_served_is_a_word_that_is_known_so_that_it_can_be_refused_with_a_reason() -> None:
    kinds = schema(NonAdminDownloadRequestSpec)["properties"]["target"]["properties"]["kind"]["enum"]
    assert set(kinds) == TARGETS.keys()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"apiVersion": API, "kind": "NonAdminBackup", "metadata": {"name": "no-spec"}}, ["spec: Required"]),
        ({"apiVersion": API, "kind": "NonAdminRestore", "metadata": {"name": "no-spec"}}, ["spec: Required"]),
        ({"apiVersion": API, "kind": "NonAdminDownloadRequest", "metadata": {"name": "n"}}, ["spec: Required"]),
        (request("NonAdminBackup", "empty", {}), ["spec.backupSpec: Required"]),
        (request("NonAdminRestore", "empty", {}), ["spec.restoreSpec: Required"]),
        (request("NonAdminBackup", "null", {"backupSpec": None}), ["spec.backupSpec"]),
        (request("NonAdminBackup", "ttl", {"backupSpec": {"ttl": "30d"}}), ["spec.backupSpec.ttl", '"30d"']),
        (request("NonAdminBackup", "ttl", {"backupSpec": {"ttl": ""}}), ["spec.backupSpec.ttl"]),
        (request("NonAdminBackup", "ttl", {"backupSpec": {"ttl": "9999999h"}}), ["spec.backupSpec.ttl"]),
        (
            request("NonAdminDownloadRequest", "x", {"target": {"kind": "Everything", "name": "x"}}),
            ["spec.target.kind", "Unsupported value"],
        ),
    ],
)
def test_what_could_never_work_is_refused_at_once(tenant: Person, body: object, words: list[str]) -> None:
    refused(tenant.create(body, "--dry-run=server"), *words)


# What may change


def test_a_backup_spec_may_change_until_it_is_accepted_and_never_after(tenant: Person, operator: Operator) -> None:
    admitted(tenant.create(backup("changing")))
    target = f"nonadminbackups.{GROUP}/changing"
    admitted(tenant.patch(target, {"spec": {"backupSpec": {"ttl": "2h"}}}))
    assert operator.write_status(NON_ADMIN_BACKUP, "changing", {"phase": "New"}) is None
    admitted(tenant.patch(target, {"spec": {"backupSpec": {"ttl": "3h"}}}))

    accepted = {"veleroBackup": {"nacuuid": "shop-changing-1", "name": "shop-changing-1"}}
    assert operator.write_status(NON_ADMIN_BACKUP, "changing", accepted) is None
    for change in ({"ttl": "4h"}, {"ttl": None}, {"labelSelector": {"matchLabels": {"a": "b"}}}):
        refused(
            tenant.patch(target, {"spec": {"backupSpec": change}}),
            "spec.backupSpec was accepted and cannot change any more: create another NonAdminBackup",
        )
    admitted(tenant.patch(target, {"metadata": {"labels": {"team": "shop"}}}))
    finalizers = {"finalizers": [f"nonadminbackup.{GROUP}/finalizer"]}
    assert operator.write_metadata(NON_ADMIN_BACKUP, "changing", finalizers) is None
    admitted(tenant.patch(target, {"spec": {"deleteBackup": True}}))
    assert operator.write_metadata(NON_ADMIN_BACKUP, "changing", {"finalizers": None}) is None


@pytest.mark.parametrize("flag", ["deleteBackup", "forceDeleteBackup"])
def test_a_deletion_can_be_asked_for_and_not_be_taken_back(tenant: Person, flag: str) -> None:
    name = flag.lower()
    target = f"nonadminbackups.{GROUP}/{name}"
    admitted(tenant.create(request("NonAdminBackup", name, {"backupSpec": {}, flag: False})))
    admitted(tenant.patch(target, {"spec": {flag: None}}))
    admitted(tenant.patch(target, {"spec": {flag: False}}))
    admitted(tenant.patch(target, {"spec": {flag: True}}))
    for change in (False, None):
        refused(tenant.patch(target, {"spec": {flag: change}}), f"spec.{flag} is already true", "leave it true")
    admitted(tenant.patch(target, {"metadata": {"labels": {"team": "shop"}}}))


def test_a_restore_spec_may_change_until_it_is_accepted_and_never_after(tenant: Person, operator: Operator) -> None:
    init = {"initContainers": [{"name": "one", "image": "one"}]}
    hooks = {"resources": [{"name": "hook", "postHooks": [{"init": init}]}]}
    spec = {"restoreSpec": {"backupName": "one", "hooks": hooks}}
    admitted(tenant.create(request("NonAdminRestore", "changing", spec)))
    target = f"nonadminrestores.{GROUP}/changing"
    admitted(tenant.patch(target, {"spec": {"restoreSpec": {"backupName": "two"}}}))
    accepted = {"phase": "New", "veleroRestore": {"nacuuid": "shop-changing-2"}}
    assert operator.write_status(NON_ADMIN_RESTORE, "changing", accepted) is None
    words = "spec.restoreSpec was accepted and cannot change any more: create another NonAdminRestore"
    refused(tenant.patch(target, {"spec": {"restoreSpec": {"backupName": "one"}}}), words)
    init["initContainers"][0]["image"] = "two"  # below what has no schema, a change is a change as well
    refused(tenant.patch(target, {"spec": {"restoreSpec": {"hooks": hooks}}}), words)
    admitted(tenant.patch(target, {"metadata": {"labels": {"team": "shop"}}}))


def test_the_target_of_a_download_never_changes(tenant: Person) -> None:
    body = request("NonAdminDownloadRequest", "fixed", {"target": {"kind": "BackupLog", "name": "one"}})
    admitted(tenant.create(body))
    target = f"nonadmindownloadrequests.{GROUP}/fixed"
    refused(tenant.patch(target, {"spec": {"target": {"name": "two"}}}), "spec.target cannot change: create another")
    admitted(tenant.patch(target, {"metadata": {"labels": {"team": "shop"}}}))


# What is shown


def test_an_unknown_phase_is_mirrored_and_shown(tenant: Person, operator: Operator) -> None:
    admitted(tenant.create(backup("shown")))
    mirrored = {"phase": "Sailing", "errors": 2, "expiration": "2031-01-01T00:00:00Z", "sails": {"set": 3}}
    status = {
        "phase": "Created",
        "queueInfo": {"estimatedQueuePosition": 4},
        "veleroBackup": {"nacuuid": "shop-shown-1", "spec": {"knots": 7}, "status": mirrored},
        "conditions": [
            {
                "type": "Succeeded",
                "status": "Unknown",
                "reason": "Running",
                "message": "",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
                "observedGeneration": 1,
            }
        ],
    }
    target = f"nonadminbackups.{GROUP}/shown"
    assert operator.write_status(NON_ADMIN_BACKUP, "shown", status) is None
    assert json.loads(tenant.kubectl("get", target, "--output=json").stdout)["status"] == status
    heading, line = (text.split() for text in tenant.kubectl("get", "nab", "shown").stdout.splitlines())
    assert heading == ["NAME", "REQUEST-PHASE", "VELERO-PHASE", "QUEUE", "ERRORS", "EXPIRES", "AGE"]
    assert line[:-1] == ["shown", "Created", "Sailing", "4", "2", "2031-01-01T00:00:00Z"]


@pytest.mark.parametrize(
    "status", [{"phase": "Done"}, {"conditions": [{"type": "Queued"}]}, {"queueInfo": {"estimatedQueuePosition": -1}}]
)
def test_a_status_of_our_own_that_makes_no_sense_is_refused(tenant: Person, operator: Operator, status: object) -> None:
    admitted(tenant.kubectl("apply", "--server-side", "--filename=-", body=backup("senseless")))
    failure = operator.write_status(NON_ADMIN_BACKUP, "senseless", status)
    assert failure is not None
    assert failure.cause is Cause.INVALID


# Who may do what


@pytest.mark.usefixtures("tenant")
def test_a_tenant_may_use_every_kind_in_the_namespace_and_nothing_else_of_ours(installed: Cluster) -> None:
    use = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    yes = [f"{verb} {kind}.{GROUP} {NAMESPACE}" for kind in TENANT_KINDS for verb in use]
    yes += [f"get {kind}.{GROUP}/status {NAMESPACE}" for kind in TENANT_KINDS]
    no = [f"{verb} {kind}.{GROUP}/status {NAMESPACE}" for kind in TENANT_KINDS for verb in ("update", "patch")]
    no += [
        f"{verb} {kind}.{GROUP}{elsewhere}" for kind in TENANT_KINDS for verb in use for elsewhere in ("", " default")
    ]
    no += [
        "get selfservicepolicies.foresail.dev",
        "list backups.velero.io velero",
        f"create backups.velero.io {NAMESPACE}",
    ]
    assert may(installed, "amy", yes + no) == dict.fromkeys(yes, True) | dict.fromkeys(no, False)


def test_a_status_that_a_tenant_writes_is_not_taken(tenant: Person) -> None:
    admitted(tenant.create(backup("spoofed")))
    status = {"status": {"veleroBackup": {"nacuuid": "somebody-elses"}}}
    target = f"nonadminbackups.{GROUP}/spoofed"
    refused(tenant.patch(target, status, "--subresource=status"), "forbidden")
    admitted(tenant.patch(target, {**status, "metadata": {"labels": {"a": "b"}}}))
    assert "status" not in json.loads(tenant.kubectl("get", target, "--output=json").stdout)
    born_with_it = tenant.create({**backup("born"), **status}, "--output=json", "--dry-run=server")
    assert "status" not in json.loads(born_with_it.stdout)


def test_whoever_may_only_view_reads_and_writes_nothing(
    installed: Cluster, eventually: Callable[[Callable[[], object], float], None]
) -> None:
    installed.kubectl("create", "rolebinding", "vic", "--clusterrole=view", "--user=vic", f"--namespace={NAMESPACE}")
    read, change = ("get", "list", "watch"), ("create", "update", "patch", "delete", "deletecollection")
    yes = [f"{verb} {kind}.{GROUP} {NAMESPACE}" for kind in TENANT_KINDS[:2] for verb in read]
    no = [f"{verb} {kind}.{GROUP} {NAMESPACE}" for kind in TENANT_KINDS for verb in change]
    no += [f"{verb} {TENANT_KINDS[2]}.{GROUP} {NAMESPACE}" for verb in read]  # the URL in it is as good as the file
    eventually(lambda: all(may(installed, "vic", yes).values()), 120)
    assert may(installed, "vic", no) == dict.fromkeys(no, False)


def test_the_operator_may_do_what_it_needs_and_nothing_else(installed: Cluster) -> None:
    yes = [f"{verb} {kind}.{GROUP}" for kind in TENANT_KINDS for verb in ("list", "watch")]
    yes += [f"patch {kind}.{GROUP}/status" for kind in TENANT_KINDS]
    yes += [f"{verb} nonadminbackups.{GROUP}" for verb in ("get", "create", "patch", "delete")]
    yes += [f"{verb} nonadminschedules.{GROUP}" for verb in ("list", "watch", "patch")]
    yes += [f"patch nonadminschedules.{GROUP}/status"]
    yes += [f"{verb} nonadminrestores.{GROUP}" for verb in ("patch", "delete")]
    yes += [f"delete nonadmindownloadrequests.{GROUP}"]
    yes += ["list pods", "create subjectaccessreviews.authorization.k8s.io"]
    yes += ["list selfservicepolicies.foresail.dev", "watch selfservicepolicies.foresail.dev"]
    yes += ["list namespaces", "watch namespaces", "patch namespaces", "create events.events.k8s.io"]
    yes += ["get configmaps velero"]
    made = ("backups", "restores", "deletebackuprequests", "downloadrequests")
    yes += [f"{verb} {kind}.velero.io velero" for kind in made for verb in ("get", "list", "watch", "create", "delete")]
    moved = ("podvolumebackups", "podvolumerestores", "datauploads", "datadownloads", "backupstoragelocations")
    yes += [f"{verb} {kind}.velero.io velero" for kind in moved for verb in ("list", "watch")]
    yes += ["patch backups.velero.io velero"]
    no = [f"{verb} {kind}.{GROUP}" for kind in TENANT_KINDS[1:] for verb in ("get", "create")]
    no += [f"{verb} nonadminschedules.{GROUP}" for verb in ("get", "create", "delete")]
    no += [f"patch nonadmindownloadrequests.{GROUP}", "get pods", "watch pods"]
    no += [f"{verb} {kind}.velero.io {NAMESPACE}" for kind in made for verb in ("create", "delete")]
    no += [f"{verb} {kind}.velero.io velero" for kind in moved for verb in ("create", "patch", "delete")]
    no += ["get secrets", "get secrets velero", "get configmaps", "create pods", "create pods velero"]
    no += [
        "get namespaces",
        "delete namespaces",
        "patch selfservicepolicies.foresail.dev",
        "impersonate users",
    ]
    no += ["create rolebindings.rbac.authorization.k8s.io", "patch customresourcedefinitions.apiextensions.k8s.io"]
    no += ["impersonate users"]
    answers = may(installed, "system:serviceaccount:velero:foresail-self-service", yes + no)
    assert answers == dict.fromkeys(yes, True) | dict.fromkeys(no, False)


# What is reserved

RESERVED = ("openshift.io/oadp-nab-synced-from-nacuuid", "openshift.io/oadp-nab-origin-name", "foresail.dev/orphaned")


@pytest.mark.parametrize("where", ["labels", "annotations"])
@pytest.mark.parametrize("key", RESERVED)
def test_a_reserved_key_is_refused_at_birth_and_the_message_names_it(tenant: Person, where: str, key: str) -> None:
    for body in (
        backup("marked", **{where: {key: "x", "team": "shop"}}),
        request("NonAdminRestore", "marked", {"restoreSpec": {"backupName": "x"}}, **{where: {key: "x"}}),
        request(
            "NonAdminDownloadRequest", "marked", {"target": {"kind": "BackupLog", "name": "x"}}, **{where: {key: "x"}}
        ),
    ):
        refused(
            tenant.create(body, "--dry-run=server"),
            "openshift.io/oadp-* and foresail.dev/* are written by Foresail alone",
            f"leave {key} as it was, or out",
        )


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_a_reserved_key_is_neither_added_nor_changed_nor_removed_and_does_not_stand_in_the_way(
    tenant: Person, operator: Operator, where: str
) -> None:
    name, own = f"kept-{where}", ADOPTED if where == "annotations" else RESERVED[0]
    target = f"nonadminbackups.{GROUP}/{name}"
    admitted(tenant.create(backup(name, **{where: {"openshift.io/oadp": "True", "team": "shop"}})))
    for key in RESERVED:
        refused(tenant.patch(target, {"metadata": {where: {key: "x"}}}), f"leave {key} as it was")
    assert operator.write_metadata(NON_ADMIN_BACKUP, name, {where: {own: "x"}}) is None
    for value in ("y", None):
        refused(tenant.patch(target, {"metadata": {where: {own: value}}}), f"leave {own} as it was")
    admitted(tenant.patch(target, {"metadata": {where: {"team": None}}}))
    admitted(tenant.patch(target, {"spec": {"backupSpec": {"ttl": "2h"}}}))
    assert operator.write_metadata(NON_ADMIN_BACKUP, name, {where: {own: None}}) is None


@pytest.mark.usefixtures("tenant")
def test_velero_may_bring_back_what_carries_a_reserved_key_and_nobody_else_may_make_it(installed: Cluster) -> None:
    marked = backup("restored", labels={RESERVED[0]: "x"}, annotations={RESERVED[2]: "y"})
    admitted(Person(installed.service_account_kubeconfig("velero", "velero")).create(marked, "--dry-run=server"))
    refused(
        Person(installed.kubeconfig).create(marked, "--dry-run=server"), f"leave {RESERVED[0]}, {RESERVED[2]} as it was"
    )


# The policy


def test_the_default_policy_is_for_namespaces_that_opted_in_and_for_no_others(installed: Cluster) -> None:
    stored = installed.get("selfservicepolicies.foresail.dev", "foresail-default")
    policy = msgspec.convert(stored, SelfServicePolicy)
    assert policy.spec.namespace_selector.match_labels == {OPT_IN_LABEL: OPT_IN_VALUE}
    assert policy.spec.namespace_selector.match_expressions is None
    assert policy.spec.priority < 0
    assert not policy.spec.backup.hooks.allowed
    assert policy.spec.quotas.stored is not None
    assert policy.spec.quotas.active is not None


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({}, "spec.namespaceSelector: Required"),
        ({"namespaceSelector": {}, "priority": 0.5}, "spec.priority"),
        ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Likes"}]}}, "Unsupported value"),
        ({"namespaceSelector": {}, "backup": {"ttl": {"maximum": "30d"}}}, "spec.backup.ttl.maximum"),
        (
            {"namespaceSelector": {}, "backup": {"ttl": {"minimum": "2h", "maximum": "119m"}}},
            "the minimum is longer than the maximum",
        ),
        ({"namespaceSelector": {}, "quotas": {"stored": -1}}, "spec.quotas.stored"),
        (
            {"namespaceSelector": {}, "schedules": {"jitter": "1m", "schedulePolicy": "nights"}},
            "jitter does not apply with schedulePolicy",
        ),
    ],
)
def test_a_policy_that_says_nothing_clear_is_refused(installed: Cluster, spec: object, word: str) -> None:
    admin = Person(installed.kubeconfig)
    body = {"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": {"name": "x"}, "spec": spec}
    refused(admin.create(body, "--dry-run=server"), word)


def test_the_policy_in_the_docs_is_admitted_whole(installed: Cluster) -> None:
    page = (CHARTS.parent / "docs" / "reference" / "self-service.md").read_text()
    example = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    done = Person(installed.kubeconfig).create(example, "--dry-run=server", "--output=json")
    admitted(done)
    assert json.loads(done.stdout)["spec"] == example["spec"]
    read = msgspec.convert(example, SelfServicePolicy)
    assert json.loads(msgspec.json.encode(read))["spec"] == example["spec"]


@pytest.mark.parametrize(
    "bounds", [{"minimum": None, "maximum": "1h"}, {"minimum": "1h"}, {"minimum": "1h", "maximum": "60m"}]
)
def test_bounds_may_be_open_and_may_meet(installed: Cluster, bounds: object) -> None:
    spec = {"namespaceSelector": {}, "backup": {"ttl": bounds}}
    body = {"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": {"name": "x"}, "spec": spec}
    admitted(Person(installed.kubeconfig).create(body, "--dry-run=server"))


def test_without_the_switch_the_chart_has_nothing_of_self_service() -> None:
    without = helm_template("foresail")
    assert "--self-service=true" not in without
    assert "oadp.openshift.io" not in without
    assert "SelfServicePolicy" not in without
    bare = helm_template("foresail", "--set=selfService.enabled=true,selfService.defaultPolicy=false")
    assert "SelfServicePolicy" not in {each["kind"] for each in yaml.safe_load_all(bare) if each}
