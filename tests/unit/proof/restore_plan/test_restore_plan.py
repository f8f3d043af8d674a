"""What a restore would do to each item, from its items, the spec, what exists and what dry runs answered."""

import copy
import io
import json
import tarfile
from typing import Any

import msgspec
import pytest

from foresail.api.specs import RestoreSpec
from foresail.proof.restore_plan.actions import Settings
from foresail.proof.restore_plan.archive import ArchiveError, key_of, read_archive
from foresail.proof.restore_plan.decide import (
    Observed,
    Outcome,
    Question,
    Verdict,
    World,
    decide,
    question,
    question_again,
)
from foresail.proof.restore_plan.items import Document, Item, ItemKey, Served, ServedKind
from foresail.proof.restore_plan.modifiers import ModifierError, read_modifiers
from foresail.proof.restore_plan.prepare import Backup, Preparation, prepare, token_namespaces
from foresail.proof.restore_plan.refusals import Answer, By, refused_by
from foresail.proof.restore_plan.validation import rejection
from foresail.proof.restore_plan.volumes import read_volumes

SERVED = Served(
    [
        ServedKind("", "configmaps", "ConfigMap", is_namespaced=True, aliases=("cm",)),
        ServedKind("", "secrets", "Secret", is_namespaced=True),
        ServedKind("", "services", "Service", is_namespaced=True, aliases=("svc",)),
        ServedKind("", "serviceaccounts", "ServiceAccount", is_namespaced=True, aliases=("sa",)),
        ServedKind("", "pods", "Pod", is_namespaced=True, aliases=("po",)),
        ServedKind("", "persistentvolumeclaims", "PersistentVolumeClaim", is_namespaced=True, aliases=("pvc",)),
        ServedKind("", "persistentvolumes", "PersistentVolume", is_namespaced=False, aliases=("pv",)),
        ServedKind("", "resourcequotas", "ResourceQuota", is_namespaced=True),
        ServedKind("", "namespaces", "Namespace", is_namespaced=False, aliases=("ns",)),
        ServedKind("", "nodes", "Node", is_namespaced=False),
        ServedKind("apps", "deployments", "Deployment", is_namespaced=True, aliases=("deploy",)),
        ServedKind("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", is_namespaced=True),
        ServedKind("batch", "jobs", "Job", is_namespaced=True),
        ServedKind("storage.k8s.io", "storageclasses", "StorageClass", is_namespaced=False),
        ServedKind("scheduling.k8s.io", "priorityclasses", "PriorityClass", is_namespaced=False),
        ServedKind(
            "apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", is_namespaced=False
        ),
    ]
)


def item(resource: str, name: str, namespace: str = "shop", **fields: Any) -> Item:  # noqa: ANN401
    plural, _, group = resource.partition(".")
    about: Document = {"name": name, "uid": "1", "resourceVersion": "7", **fields.pop("metadata", {})}
    if namespace:
        about["namespace"] = namespace
    version = f"{group}/v1" if group else "v1"
    return Item(
        ItemKey(resource, namespace, name), {"apiVersion": version, "kind": plural, "metadata": about, **fields}
    )


def spec(**fields: Any) -> RestoreSpec:  # noqa: ANN401
    return msgspec.convert(fields, RestoreSpec)


def prepared(*items: Item, backup: dict[str, Any] | None = None, **fields: Any) -> Preparation:  # noqa: ANN401
    return prepare(Backup("nightly", items, **(backup or {})), Settings(spec(**fields)), SERVED)


def names(preparation: Preparation) -> list[str]:
    return [str(step.target) for step in preparation.steps]


def only(preparation: Preparation) -> Document:
    [step] = preparation.steps
    return step.body


def judged(
    preparation: Preparation,
    live: Document | None = None,
    answer: Answer | None = None,
    policy: str = "",
    **world: Any,  # noqa: ANN401
) -> list[Verdict]:
    observed = {step.target: Observed(live, answer) for step in preparation.steps}
    known = World(SERVED, frozenset({"shop", "other"}), **world)
    return list(decide(preparation, observed, known, policy))


def archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def member(name: str, content: bytes = b"", *, kind: bytes = tarfile.REGTYPE, **headers: Any) -> bytes:  # noqa: ANN401
    """Return a file of an archive as bytes, with these PAX headers."""
    buffer = io.BytesIO()
    info = tarfile.TarInfo(name)
    info.size, info.type = len(content), kind
    info.pax_headers = {key.replace("_", "."): value for key, value in headers.items()}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(content))
        return buffer.getvalue()[: tar.offset]


TERMINATING = "the namespace shop is being deleted: Velero waits until it is deleted, then creates it again"
PATH = "resources/configmaps/namespaces/shop/a.json"
OBJECT = b'{"metadata": {"name": "a"}}'


class TestArchive:
    def test_items_are_read_from_their_paths(self) -> None:
        body = json.dumps({"metadata": {"name": "a"}}).encode()
        found = read_archive(
            archive(
                {
                    "metadata/version": b"1.1.0",
                    "resources/configmaps/namespaces/shop/a.json": body,
                    "resources/configmaps/v1-preferredversion/namespaces/shop/a.json": body,
                    "resources/persistentvolumes/cluster/pv-1.json": body,
                }
            )
        )
        assert [each.key for each in found] == [
            ItemKey("configmaps", "shop", "a"),
            ItemKey("persistentvolumes", "", "pv-1"),
        ]

    @pytest.mark.parametrize("path", ["../resources/x/cluster/a.json", "resources/x/a.json", "resources/x/cluster/a"])
    def test_other_paths_are_no_items(self, path: str) -> None:
        assert key_of(path) is None

    @pytest.mark.parametrize("content", [b"{", b"[]", b'{"metadata": 1}', b"[" * 100_000])
    def test_a_file_that_holds_no_object_has_a_problem(self, content: bytes) -> None:
        [found] = read_archive(archive({"resources/configmaps/namespaces/shop/a.json": content}))
        assert found.problem

    @pytest.mark.parametrize("content", [b"x" * 600, member(PATH, b"x", GNU_sparse_size="1", GNU_sparse_map="1,y")])
    def test_a_damaged_archive_is_an_error(self, content: bytes) -> None:
        with pytest.raises(ArchiveError, match="damaged"):
            read_archive(content)

    @pytest.mark.parametrize(
        "headers",
        [
            {"GNU_sparse_size": str(1 << 40)},
            {"GNU_sparse_size": str(1 << 40), "GNU_sparse_map": "0,1"},
            {"GNU_sparse_size": str(1 << 100), "GNU_sparse_map": "0,1"},
        ],
    )
    def test_a_sparse_file_is_not_read(self, headers: dict[str, Any]) -> None:
        [found] = read_archive(member(PATH, OBJECT, **headers))
        assert found.problem == "its file in the backup is sparse, so it was not read"

    def test_files_that_share_their_data_count_each_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("foresail.proof.restore_plan.archive.MOST_BYTES", 20_000)
        shared = b"".join(
            member(f"resources/configmaps/cluster/{number}.json", GNU_sparse_realsize="5000") for number in range(10)
        )
        with pytest.raises(ArchiveError, match="larger than"):
            read_archive(shared + b"\0" * 10_240)

    def test_a_negative_size_does_not_lead_back_in_the_archive(self) -> None:
        with pytest.raises(ArchiveError, match="damaged"):
            read_archive(member("metadata/version", size="-1024"))

    def test_many_headers_of_one_file_are_an_error(self) -> None:
        header = member(PATH, comment="x")[:1024]
        with pytest.raises(ArchiveError, match="damaged"):
            read_archive(header * 2000 + member(PATH, OBJECT))

    @pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CONTTYPE, tarfile.FIFOTYPE])
    def test_only_regular_files_are_items_as_in_velero(self, kind: bytes) -> None:
        assert read_archive(member(PATH, kind=kind)) == []

    @pytest.mark.parametrize(
        "path",
        [
            "resources/configmaps/namespaces/../a.json",
            "resources/configmaps/namespaces/shop/../shop/a.json",
            "resources//cluster/a.json",
            "resources/configmaps/./cluster/a.json",
            "/resources/configmaps/cluster/a.json",
            "../resources/configmaps/cluster/a.json",
        ],
    )
    def test_a_path_that_velero_would_unpack_elsewhere_is_an_error(self, path: str) -> None:
        with pytest.raises(ArchiveError, match="Velero does not write"):
            read_archive(member(path, OBJECT))

    @pytest.mark.parametrize("path", ["resources/configmaps/cluster/.json", "resources/configmaps/cluster/...json"])
    def test_a_file_without_a_name_is_no_item(self, path: str) -> None:
        assert read_archive(member(path, OBJECT)) == []

    def test_a_name_with_control_characters_is_reported_without_them(self) -> None:
        [found] = read_archive(member("resources/roles/namespaces/shop/a\x1b[2J\n.json", OBJECT))
        assert found.key == ItemKey("roles", "shop", "a?[2J?")
        assert found.problem == "its name has control characters, so it was not checked"

    def test_of_two_files_at_one_path_the_last_counts_as_in_velero(self) -> None:
        [found] = read_archive(member(PATH, OBJECT) + member(PATH, b'{"metadata": {"name": "a"}, "data": {}}'))
        assert "data" in found.body


@pytest.mark.parametrize("file", [b"{", b'[{"pvName": "\xff"}]', b'[{"pvName": 1}]', b"[" * 100_000])
def test_a_file_about_volumes_that_is_not_veleros_says_nothing(file: bytes) -> None:
    assert read_volumes(file) is None


class TestSelection:
    def test_kinds_come_in_veleros_order(self) -> None:
        found = prepared(
            item("deployments.apps", "a"), item("services", "a"), item("configmaps", "a"), item("serviceaccounts", "a")
        )
        assert names(found) == [
            "serviceaccounts/shop/a",
            "configmaps/shop/a",
            "services/shop/a",
            "deployments.apps/shop/a",
        ]

    def test_nodes_and_backups_are_never_restored(self) -> None:
        found = prepared(item("nodes", "n", ""), item("backups.velero.io", "b", "velero"))
        assert not found.steps
        assert [why for _, why in found.left_out] == [
            "Velero never restores backups.velero.io",
            "Velero never restores nodes",
        ]

    def test_short_names_are_completed(self) -> None:
        found = prepared(item("configmaps", "a"), item("deployments.apps", "a"), includedResources=["deploy"])
        assert names(found) == ["deployments.apps/shop/a"]

    def test_cluster_scoped_items_are_left_out_of_a_restore_of_namespaces(self) -> None:
        found = prepared(item("persistentvolumes", "pv", ""), item("configmaps", "a"), includedNamespaces=["shop"])
        assert names(found) == ["configmaps/shop/a"]

    def test_globs_select_namespaces(self) -> None:
        found = prepared(
            item("configmaps", "a", "team-1"), item("configmaps", "b", "shop"), includedNamespaces=["team-*"]
        )
        assert names(found) == ["configmaps/team-1/a"]

    @pytest.mark.parametrize(
        ("field", "patterns", "taken"),
        [
            ("includedNamespaces", ["{team-1,shop}"], ["shop", "team-1"]),
            ("includedNamespaces", ["team-[!2]"], ["team-1"]),
            ("includedNamespaces", ["shop", "team-["], ["shop"]),
            ("includedNamespaces", ["[", "shop"], []),  # Velero's search ends at a malformed pattern
            ("excludedNamespaces", ["[", "shop"], ["shop", "team-1", "team-2"]),
            ("excludedNamespaces", ["shop", "team-["], ["team-1", "team-2"]),
        ],
    )
    def test_globs_are_those_of_velero(self, field: str, patterns: list[str], taken: list[str]) -> None:
        items = [item("configmaps", "a", name) for name in ("shop", "team-1", "team-2")]
        fields: dict[str, Any] = {field: patterns}
        assert names(prepared(*items, **fields)) == [f"configmaps/{name}/a" for name in taken]

    def test_a_glob_that_matches_nothing_takes_nothing(self) -> None:
        found = prepared(item("configmaps", "a"), includedNamespaces=["team-*"])
        assert names(found) == []

    def test_labels_select(self) -> None:
        labelled = item("configmaps", "a", metadata={"labels": {"app": "db"}})
        found = prepared(labelled, item("configmaps", "b"), labelSelector={"matchLabels": {"app": "db"}})
        assert names(found) == ["configmaps/shop/a"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, ""),
        ({"includedResources": ["*"], "includedNamespaces": ["*"]}, ""),
        ({"excludedResources": ["nodes"]}, ""),
        ({"includedResources": ["pods", "nodes"]}, "includedResources has nodes, which Velero never restores"),
        ({"includedResources": ["pods", "*"]}, "includedResources has * beside other entries"),
        ({"excludedNamespaces": ["*"]}, "excludedNamespaces has *"),
        (
            {"includedNamespaces": ["a"], "excludedNamespaces": ["a"]},
            "a is in both includedNamespaces and excludedNamespaces",
        ),
        (
            {"labelSelector": {"matchLabels": {"a": "b"}}, "orLabelSelectors": [{"matchLabels": {"a": "b"}}]},
            "labelSelector and orLabelSelectors cannot both be set",
        ),
        ({"existingResourcePolicy": "replace"}, "existingResourcePolicy 'replace' is neither none nor update"),
    ],
)
def test_restores_that_velero_rejects(fields: Document, problem: str) -> None:
    assert rejection(spec(**fields)) == problem


class TestPrepare:
    def test_the_clusters_own_metadata_and_status_go(self) -> None:
        body = only(prepared(item("configmaps", "a", metadata={"ownerReferences": [{}]}, status={"x": 1})))
        assert "status" not in body
        assert set(body["metadata"]) == {"name", "namespace", "labels"}

    def test_a_mapped_namespace_is_the_target(self) -> None:
        found = prepared(item("configmaps", "a"), namespaceMapping={"shop": "copy"})
        assert names(found) == ["configmaps/copy/a"]
        assert only(found)["metadata"]["namespace"] == "copy"
        assert list(found.namespaces) == ["copy"]

    def test_a_new_namespace_has_the_labels_of_the_backup(self) -> None:
        space = item("namespaces", "shop", "", metadata={"labels": {"pod-security": "restricted"}})
        found = prepared(space, item("configmaps", "a"), includedNamespaces=["shop"])
        assert found.namespaces["shop"]["metadata"]["labels"] == {"pod-security": "restricted"}

    def test_a_service_loses_its_addresses_and_generated_node_ports(self) -> None:
        ports = [{"port": 80, "protocol": "TCP", "nodePort": 30080}]
        service = {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "type": "NodePort", "ports": ports}
        body = only(prepared(item("services", "a", spec=service)))
        assert body["spec"] == {"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}]}

    def test_a_headless_service_stays_headless(self) -> None:
        assert only(prepared(item("services", "a", spec={"clusterIP": "None"})))["spec"] == {"clusterIP": "None"}

    def test_node_ports_that_were_asked_for_stay(self) -> None:
        owned: Document = {"fieldsV1": {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {"f:nodePort": {}}}}}}
        ports = [{"port": 80, "protocol": "TCP", "nodePort": 30080}]
        body = only(prepared(item("services", "a", metadata={"managedFields": [owned]}, spec={"ports": ports})))
        assert body["spec"]["ports"][0]["nodePort"] == 30080

    def test_node_ports_stay_if_the_restore_preserves_them(self) -> None:
        ports = [{"port": 80, "nodePort": 30080}]
        body = only(prepared(item("services", "a", spec={"ports": ports}), preserveNodePorts=True))
        assert body["spec"]["ports"] == ports

    @pytest.mark.parametrize(
        ("resource", "status"),
        [("pods", {"phase": "Succeeded"}), ("pods", {"phase": "Failed"}), ("jobs.batch", {"completionTime": "x"})],
    )
    def test_completed_pods_and_jobs_are_not_restored(self, resource: str, status: Document) -> None:
        [verdict] = judged(prepared(item(resource, "a", status=status)))
        assert verdict.outcome is Outcome.NOT_RESTORED

    @pytest.mark.parametrize(
        ("accounts", "outcome"),
        [
            ({"shop": frozenset({"web"})}, Outcome.NOT_RESTORED),
            ({"shop": frozenset({"db"}), "copy": frozenset({"web"})}, Outcome.CREATE),
            ({"shop": None}, Outcome.UNPREDICTABLE),
        ],
    )
    def test_a_token_is_not_restored_if_its_account_exists_in_its_own_namespace(
        self, accounts: dict[str, frozenset[str] | None], outcome: Outcome
    ) -> None:
        token = item("secrets", "web-token-x1", type="kubernetes.io/service-account-token")
        account = item("serviceaccounts", "web")
        backup = Backup("nightly", [token, account])
        assert token_namespaces(backup, spec(), SERVED) == {"shop"}
        assert token_namespaces(backup, spec(includedNamespaces=["other"]), SERVED) == set()
        settings = Settings(spec(namespaceMapping={"shop": "copy"}))
        found = judged(prepare(backup, settings, SERVED, accounts=accounts))
        assert found[-1].outcome is outcome

    def test_a_token_of_an_account_that_the_restore_creates_is_not_restored(self) -> None:
        token = item("secrets", "web-token-x1", type="kubernetes.io/service-account-token")
        found = judged(prepared(token, item("serviceaccounts", "web")))
        assert found[-1].outcome is Outcome.NOT_RESTORED

    def test_other_secrets_need_no_accounts(self) -> None:
        other = item("secrets", "token", type="kubernetes.io/service-account-token")
        assert token_namespaces(Backup("nightly", [other, item("secrets", "web-token-x1")]), spec(), SERVED) == set()

    def test_a_data_upload_is_read_and_not_restored(self) -> None:
        [verdict] = judged(prepared(item("datauploads.velero.io", "a", "velero")))[-1:]
        assert verdict.outcome is Outcome.NOT_RESTORED

    def test_a_volume_without_snapshot_is_provisioned_again(self) -> None:
        volume = item("persistentvolumes", "pv", "", spec={"persistentVolumeReclaimPolicy": "Delete"})
        claim = item("persistentvolumeclaims", "data", spec={"volumeName": "pv"}, status={"phase": "Bound"})
        found = prepared(volume, claim, includedNamespaces=["shop"])
        assert names(found) == ["persistentvolumes/pv", "persistentvolumeclaims/shop/data"]
        assert found.steps[0].not_restored
        assert "volumeName" not in found.steps[1].body["spec"]
        assert not found.left_out

    def test_a_retained_volume_is_restored_unbound(self) -> None:
        claim = {"namespace": "shop", "name": "data", "uid": "u", "resourceVersion": "1"}
        volume = item(
            "persistentvolumes", "pv", "", spec={"persistentVolumeReclaimPolicy": "Retain", "claimRef": claim}
        )
        body = only(prepared(volume, namespaceMapping={"shop": "copy"}))
        assert body["spec"]["claimRef"] == {"namespace": "copy", "name": "data"}

    def test_a_pod_brings_its_claims_along_before_itself(self) -> None:
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        pod = item("pods", "a", metadata={"labels": {"app": "db"}}, spec={"volumes": volumes})
        selector = {"matchLabels": {"app": "db"}}
        found = prepared(pod, item("persistentvolumeclaims", "data"), labelSelector=selector)
        assert names(found) == ["persistentvolumeclaims/shop/data", "pods/shop/a"]

    @pytest.mark.parametrize(
        ("value", "expected"), [("true", ["persistentvolumeclaims/shop/data", "pods/shop/a"]), ("yes", ["pods/shop/a"])]
    )
    def test_an_annotation_brings_claims_along_past_the_filters_and_is_not_restored(
        self, value: str, expected: list[str]
    ) -> None:
        about = {"annotations": {"restore.velero.io/must-include-additional-items": value, "a": "b"}}
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        pod = item("pods", "a", metadata=about, spec={"volumes": volumes, "priorityClassName": "high"})
        claim = item(
            "persistentvolumeclaims", "data", metadata=about, spec={"volumeName": "pv"}, status={"phase": "Bound"}
        )
        others = [item("persistentvolumes", "pv", ""), item("priorityclasses.scheduling.k8s.io", "high", "")]
        found = prepared(pod, claim, *others, includedResources=["pods"])
        assert names(found) == expected
        assert all(step.body["metadata"]["annotations"] == {"a": "b"} for step in found.steps)

    def test_velero_leaves_its_annotation_on_an_item_without_actions(self) -> None:
        about = {"annotations": {"restore.velero.io/must-include-additional-items": "true"}}
        assert (
            only(prepared(item("configmaps", "a", metadata=about)))["metadata"]["annotations"] == about["annotations"]
        )

    @pytest.mark.parametrize("filters", [{"includedNamespaces": ["shop"]}, {"includedResources": ["pvc"]}])
    def test_a_claim_brings_its_snapshot_and_the_contents_along_whatever_the_filters(self, filters: Document) -> None:
        group = "snapshot.storage.k8s.io"
        claim = item(
            "persistentvolumeclaims", "data", metadata={"annotations": {"velero.io/volume-snapshot-name": "v"}}
        )
        bound = {"boundVolumeSnapshotContentName": "snapcontent-1"}
        snapshot = item(f"volumesnapshots.{group}", "v", status=bound)
        contents = item(f"volumesnapshotcontents.{group}", "snapcontent-1", "")
        found = prepared(claim, snapshot, contents, includeClusterResources=False, **filters)
        assert found.left_out == ()
        assert {str(each.target): each.outcome for each in judged(found)[:2]} == {
            f"volumesnapshotcontents.{group}/snapcontent-1": Outcome.UNPREDICTABLE,
            f"volumesnapshots.{group}/shop/v": Outcome.UNPREDICTABLE,
        }
        without = prepared(claim, snapshot, contents, restorePVs=False, includedResources=["pvc"])
        assert [key.name for key, _ in without.left_out] == ["snapcontent-1", "v"]

    @pytest.mark.parametrize(
        ("kind", "prefix"),
        [
            ("volumesnapshotcontents", "csi.storage.k8s.io/snapshotter-secret"),
            ("volumesnapshotclasses", "csi.storage.k8s.io/snapshotter-list-secret"),
        ],
    )
    def test_a_snapshot_brings_its_secret_along_unless_a_filter_leaves_it_out(self, kind: str, prefix: str) -> None:
        annotations = {f"{prefix}-name": "login", f"{prefix}-namespace": "shop"}
        about = {"annotations": annotations, "labels": {"app": "db"}}
        source = item(f"{kind}.snapshot.storage.k8s.io", "a", "", metadata=about)
        selector = {"matchLabels": {"app": "db"}}
        found = prepared(source, item("secrets", "login"), labelSelector=selector)
        assert names(found) == ["secrets/shop/login", str(source.key)]
        found = prepared(source, item("secrets", "login"), labelSelector=selector, excludedResources=["secrets"])
        assert names(found) == [str(source.key)]

    def test_a_pod_loses_the_init_containers_of_an_earlier_restore(self) -> None:
        containers = [{"name": "restore-wait"}, {"name": "setup"}, {"name": "restic-wait"}]
        body = only(prepared(item("pods", "a", spec={"initContainers": containers})))
        assert body["spec"]["initContainers"] == [{"name": "setup"}]

    def test_pods_with_file_system_backups_are_not_predictable(self) -> None:
        found = prepared(item("pods", "a"), backup={"pods_with_data": frozenset({("shop", "a")})})
        [verdict] = judged(found)
        assert (verdict.outcome, verdict.reason) == (
            Outcome.UNPREDICTABLE,
            "changed by velero.io/pod-volume-restore",
        )

    @pytest.mark.parametrize(("policy", "outcome"), [("none", Outcome.EXISTS), ("update", Outcome.UNPREDICTABLE)])
    @pytest.mark.parametrize("resource", ["pods", "persistentvolumeclaims"])
    def test_an_existing_pod_or_claim_with_data_is_skipped_unless_it_is_updated(
        self, resource: str, policy: str, outcome: Outcome
    ) -> None:
        place = frozenset({("shop", "a")})
        source = item(resource, "a")
        found = prepared(source, backup={"pods_with_data": place, "claims_with_snapshots": place})
        assert question(found.steps[0], source.copied(), policy) is None
        [verdict] = judged(found, source.copied(), policy=policy)
        assert verdict.outcome is outcome

    @pytest.mark.parametrize("field", ["spec", "metadata"])
    def test_fields_of_the_wrong_type_raise_nothing(self, field: str) -> None:
        for value in (None, 1, "x", [1], {"ports": 1, "containers": [1], "labels": 1, "annotations": [], "volumes": 7}):
            for resource in ("pods", "services", "jobs.batch", "secrets", "persistentvolumeclaims", "serviceaccounts"):
                key = ItemKey(resource, "shop", "a")
                body = {"metadata": {"name": "a"}, field: value}
                prepared(Item(key, body if isinstance(body["metadata"], dict) else {"metadata": {}}))


class TestModifiers:
    @staticmethod
    def modified(rule: Document) -> Document:
        conditions = {"groupResource": "configmaps", **rule.pop("conditions", {})}
        rules = {"version": "v1", "resourceModifierRules": [{"conditions": conditions, **rule}]}
        source = Backup("nightly", [item("configmaps", "a", data={"x": "1", "y": "2"})])
        data: Document = only(prepare(source, Settings(spec()), SERVED, read_modifiers(rules)))["data"]
        return data

    @pytest.mark.parametrize(
        ("patch", "expected"),
        [
            ({"operation": "replace", "path": "/data/x", "value": '"7"'}, {"x": "7", "y": "2"}),
            ({"operation": "remove", "path": "/data/x"}, {"y": "2"}),
            ({"operation": "add", "path": "/data/z", "value": "true"}, {"x": "1", "y": "2", "z": True}),
            ({"operation": "move", "from": "/data/x", "path": "/data/z"}, {"y": "2", "z": "1"}),
            ({"operation": "remove", "path": "/data/absent"}, {"x": "1", "y": "2"}),
            ({"operation": "add", "path": "/data/z", "value": 3}, {"x": "1", "y": "2", "z": 3}),
            ({"operation": "add", "path": "/data/z", "value": True}, {"x": "1", "y": "2", "z": True}),
            ({"operation": "add", "path": "/data/z", "value": 1.5}, {"x": "1", "y": "2", "z": 1.5}),
            ({"operation": "add", "path": "/data/z", "value": None}, {"x": "1", "y": "2", "z": ""}),
            ({"operation": "add", "path": "/data/z", "value": '"3"'}, {"x": "1", "y": "2", "z": "3"}),
            ({"operation": "add", "path": "/data/z", "value": 'a"b'}, {"x": "1", "y": "2"}),
            ({"operation": "add", "path": "/data/z", "value": "True"}, {"x": "1", "y": "2"}),
        ],
    )
    def test_json_patches(self, patch: Document, expected: Document) -> None:
        assert self.modified({"patches": [patch]}) == expected

    def test_a_failed_test_leaves_the_item_as_it_is(self) -> None:
        patches = [
            {"operation": "remove", "path": "/data/x"},
            {"operation": "test", "path": "/data/y", "value": "other"},
        ]
        assert self.modified({"patches": patches}) == {"x": "1", "y": "2"}

    @pytest.mark.parametrize(
        ("match", "is_patched"),
        [
            ({"path": "/data/x", "value": "1"}, False),  # a number, and the item has text
            ({"path": "/data/x", "value": '"1"'}, True),
            ({"path": "/data/absent", "value": "null"}, True),
            ({"path": "/data/absent", "value": "1"}, False),
            ({"path": "/absent/absent", "value": "null"}, False),
        ],
    )
    def test_fields_that_must_match(self, match: Document, *, is_patched: bool) -> None:
        patch = {"operation": "remove", "path": "/data/x"}
        found = self.modified({"conditions": {"matches": [match]}, "patches": [patch]})
        assert ("x" not in found) is is_patched

    def test_a_test_of_an_absent_field_fails_in_silence(self) -> None:
        rule = {
            "conditions": {"groupResource": "configmaps"},
            "patches": [{"operation": "test", "path": "/data/absent", "value": "1"}],
        }
        modifiers = read_modifiers({"version": "v1", "resourceModifierRules": [rule]})
        assert modifiers.applied("configmaps", {"data": {}}).problem == ""

    @pytest.mark.parametrize(("glob", "is_modified"), [("*.apps", True), ("*", False), ("**", True)])
    def test_a_star_stops_at_a_dot_of_kinds(self, glob: str, *, is_modified: bool) -> None:
        rule = {
            "conditions": {"groupResource": glob},
            "patches": [{"operation": "add", "path": "/data/x", "value": "1"}],
        }
        modifiers = read_modifiers({"version": "v1", "resourceModifierRules": [rule]})
        assert ("x" in modifiers.applied("deployments.apps", {"data": {}}).body["data"]) is is_modified

    def test_a_rule_without_patches_is_reported(self) -> None:
        rules = {"version": "v1", "resourceModifierRules": [{"conditions": {"groupResource": "pods"}}]}
        assert read_modifiers(rules).applied("pods", {}).problem == "a resource modifier has no patches"

    def test_a_glob_that_cannot_be_read_is_reported(self) -> None:
        rule = {"conditions": {"groupResource": "{pods"}, "patches": [{"operation": "remove", "path": "/data/x"}]}
        modifiers = read_modifiers({"version": "v1", "resourceModifierRules": [rule]})
        assert "'{pods' is not a glob" in modifiers.applied("pods", {}).problem

    @pytest.mark.parametrize(
        ("path", "value", "target"),
        [
            ("/metadata/name", "b", "ingresses.networking.k8s.io/shop/b"),
            ("/apiVersion", "extensions/v1beta1", "ingresses.extensions/shop/a"),
        ],
    )
    def test_a_modifier_may_change_the_name_and_the_group(self, path: str, value: str, target: str) -> None:
        patch = {"operation": "replace", "path": path, "value": value}
        rule = {"conditions": {"groupResource": "ingresses.*.*.*"}, "patches": [patch]}
        modifiers = read_modifiers({"version": "v1", "resourceModifierRules": [rule]})
        source = Backup("nightly", [item("ingresses.networking.k8s.io", "a")])
        assert names(prepare(source, Settings(spec()), SERVED, modifiers)) == [target]

    def test_items_that_a_modifier_gives_the_same_name_are_not_predictable(self) -> None:
        patch = {"operation": "replace", "path": "/metadata/name", "value": "b"}
        rule = {"conditions": {"groupResource": "configmaps", "resourceNameRegex": "^a"}, "patches": [patch]}
        modifiers = read_modifiers({"version": "v1", "resourceModifierRules": [rule]})
        source = Backup("nightly", [item("configmaps", name) for name in ("a1", "a2", "c")])
        verdicts = judged(prepare(source, Settings(spec()), SERVED, modifiers))
        reason = "resource modifiers give more than one item this name: the later ones find the object of the first"
        assert [(str(each.target), each.outcome, each.reason) for each in verdicts] == [
            ("configmaps/shop/b", Outcome.UNPREDICTABLE, reason),
            ("configmaps/shop/b", Outcome.UNPREDICTABLE, reason),
            ("configmaps/shop/c", Outcome.CREATE, ""),
        ]

    def test_an_item_whose_kind_a_modifier_changes_is_not_predictable(self) -> None:
        patch = {"operation": "replace", "path": "/kind", "value": "Secret"}
        rule = {"conditions": {"groupResource": "configmaps"}, "patches": [patch]}
        modifiers = read_modifiers({"version": "v1", "resourceModifierRules": [rule]})
        source = Backup("nightly", [item("configmaps", "a")])
        [verdict] = judged(prepare(source, Settings(spec()), SERVED, modifiers))
        assert (verdict.outcome, verdict.reason) == (Outcome.UNPREDICTABLE, "a resource modifier changes its kind")

    @pytest.mark.parametrize(
        ("rules", "problem"),
        [
            ({"version": "v2", "resourceModifierRules": [{}]}, "only v1 exists"),
            ({"version": "v1", "resourceModifierRules": []}, "without rules"),
            ({"version": "v1", "resourceModifierRules": [{"conditions": {}}]}, "without groupResource"),
            (
                {
                    "version": "V1",
                    "resourceModifierRules": [
                        {
                            "conditions": {"groupResource": "pods"},
                            "patches": [{"operation": "remove", "path": "/a"}],
                            "mergePatches": [{"patchData": "{}"}],
                        }
                    ],
                },
                "more than one kind of patches",
            ),
            (
                {
                    "version": "v1",
                    "resourceModifierRules": [
                        {"conditions": {"groupResource": "pods"}, "patches": [{"operation": "drop", "path": "/a"}]}
                    ],
                },
                "operation 'drop'",
            ),
        ],
    )
    def test_modifiers_that_velero_rejects(self, rules: Document, problem: str) -> None:
        with pytest.raises(ModifierError, match=problem):
            read_modifiers(rules)

    def test_merge_patches(self) -> None:
        assert self.modified({"mergePatches": [{"patchData": "data: {x: null, z: q}"}]}) == {"y": "2", "z": "q"}

    def test_other_items_are_not_patched(self) -> None:
        conditions = {"resourceNameRegex": "^b"}
        patch = {"operation": "remove", "path": "/data/x"}
        assert self.modified({"conditions": conditions, "patches": [patch]}) == {"x": "1", "y": "2"}

    @pytest.mark.parametrize(
        ("live", "policy", "outcome"),
        [
            (None, "", Outcome.CREATE),
            ({"x": "1"}, "", Outcome.REFUSED),
            ({"x": "1"}, "update", Outcome.REFUSED),
            ({"x": "2"}, "", Outcome.EXISTS),
            ({"x": "2"}, "update", Outcome.UPDATE),
        ],
    )
    def test_a_modifier_that_fails_is_reported_whatever_exists(
        self, live: Document | None, policy: str, outcome: Outcome
    ) -> None:
        patch = {"operation": "remove", "path": "/data/absent"}
        rule = {"conditions": {"groupResource": "configmaps"}, "patches": [patch]}
        source = item("configmaps", "a", data={"x": "1"})
        modifiers = read_modifiers({"version": "v1", "resourceModifierRules": [rule]})
        found = prepare(Backup("nightly", [source]), Settings(spec()), SERVED, modifiers)
        there = {**source.copied(), "data": live} if live is not None else None
        [verdict] = judged(found, there, Answer(), policy)
        problem = "a resource modifier cannot be applied: the item has no /data/absent"
        assert (verdict.outcome, verdict.warning or verdict.reason) == (outcome, problem)
        assert verdict.by is (By.MODIFIER if outcome is Outcome.REFUSED else None)

    def test_a_strategic_patch_is_not_predictable(self) -> None:
        rules = {
            "version": "v1",
            "resourceModifierRules": [
                {"conditions": {"groupResource": "configmaps"}, "strategicPatches": [{"patchData": "{}"}]}
            ],
        }
        source = Backup("nightly", [item("configmaps", "a")])
        [verdict] = judged(prepare(source, Settings(spec()), SERVED, read_modifiers(rules)))
        assert verdict.outcome is Outcome.UNPREDICTABLE


class TestDecide:
    def test_what_does_not_exist_is_created(self) -> None:
        [verdict] = judged(prepared(item("configmaps", "a")))
        assert verdict.outcome is Outcome.CREATE

    def test_a_namespace_that_does_not_exist_is_created_first(self) -> None:
        found = judged(prepared(item("configmaps", "a"), namespaceMapping={"shop": "new"}))
        assert [(str(each.target), each.outcome.value) for each in found] == [
            ("namespaces/new", "create"),
            ("configmaps/new/a", "create"),
        ]

    @pytest.mark.parametrize("filters", [{"includedNamespaces": ["shop"]}, {}, {"namespaceMapping": {"shop": "new"}}])
    @pytest.mark.parametrize("exists", [True, False])
    def test_a_namespace_is_listed_once(self, filters: Document, *, exists: bool) -> None:
        found = prepared(item("namespaces", "shop", ""), item("configmaps", "a"), **filters)
        world = World(SERVED, frozenset({"shop", "new"} if exists else ()))
        spaces = [each for each in decide(found, {}, world, "") if each.target.resource == "namespaces"]
        assert [each.outcome for each in spaces] == [Outcome.NOT_RESTORED if exists else Outcome.CREATE]
        assert not found.left_out

    def test_a_namespace_of_which_nothing_is_restored_is_left_out(self) -> None:
        found = prepared(item("namespaces", "b", ""), item("configmaps", "a"), includedNamespaces=["shop"])
        assert [key.name for key, _ in found.left_out] == ["b"]

    def test_an_existing_namespace_that_the_backup_does_not_have_is_not_listed(self) -> None:
        assert [each.target.resource for each in judged(prepared(item("configmaps", "a")))] == ["configmaps"]

    def test_what_goes_into_a_terminating_namespace_is_not_predictable(self) -> None:
        found = prepared(item("namespaces", "shop", ""), item("configmaps", "a"), item("configmaps", "b", "other"))
        world = World(SERVED, frozenset({"shop", "other"}), terminating=frozenset({"shop"}))
        assert {str(each.target): (each.outcome, each.reason) for each in decide(found, {}, world, "")} == {
            "namespaces/shop": (Outcome.UNPREDICTABLE, TERMINATING),
            "configmaps/shop/a": (Outcome.UNPREDICTABLE, TERMINATING),
            "configmaps/other/b": (Outcome.CREATE, ""),
        }

    def test_the_same_object_is_unchanged_whatever_the_cluster_set(self) -> None:
        source = item("configmaps", "a", data={"x": "1"})
        live = {**source.copied(), "status": {}}
        live["metadata"] |= {"uid": "2", "resourceVersion": "9", "labels": {"velero.io/restore-name": "old"}}
        [verdict] = judged(prepared(source), live)
        assert verdict.outcome is Outcome.UNCHANGED

    @pytest.mark.parametrize(("policy", "outcome"), [("", "exists"), ("none", "exists"), ("update", "differs")])
    def test_another_object_is_skipped_or_updated_with_its_diff(self, policy: str, outcome: str) -> None:
        source = item("configmaps", "a", data={"x": "1"})
        live = {**source.copied(), "data": {"x": "2", "y": "3"}}
        [verdict] = judged(prepared(source), live, Answer(), policy)
        assert verdict.outcome.value == outcome
        assert [(each.path, each.in_backup, each.in_cluster) for each in verdict.changes] == [
            ("data.x", "1", "2"),
            ("data.y", None, "3"),
        ]

    def test_an_update_asks_for_the_patch_that_velero_sends(self) -> None:
        source = item("configmaps", "a", data={"x": "1"})
        [step] = prepared(source).steps
        asked = question(step, {**source.copied(), "data": {"y": "3"}}, "update")
        assert asked is not None
        assert asked.is_patch
        assert asked.body["data"] == {"x": "1", "y": None}

    def test_a_copy_of_a_secret_in_an_annotation_is_not_shown(self) -> None:
        applied = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "c2VjcmV0"}}
        source = item("secrets", "a", metadata=applied)
        source.body["kind"] = "Secret"
        live = item("secrets", "a").body
        live["kind"] = "Secret"
        [verdict] = judged(prepared(source), live)
        assert "c2VjcmV0" not in str(verdict.changes)
        assert "(not shown)" in str(verdict.changes)

    def test_the_values_of_secrets_are_not_shown(self) -> None:
        source = item("secrets", "a", data={"x": "c2VjcmV0"})
        source.body["kind"] = "Secret"
        [verdict] = judged(prepared(source), {**source.copied(), "data": {"x": "b3RoZXI="}})
        assert [(each.path, each.in_backup, each.in_cluster) for each in verdict.changes] == [
            ("data.x", "(not shown)", "(not shown)")
        ]

    def test_an_account_is_merged_whatever_the_policy(self) -> None:
        source = item("serviceaccounts", "a", imagePullSecrets=[{"name": "pull"}])
        live = {**source.copied(), "imagePullSecrets": [{"name": "other"}]}
        [step] = prepared(source).steps
        asked = question(step, live, "none")
        assert asked is not None
        assert asked.body == {"imagePullSecrets": [{"name": "other"}, {"name": "pull"}]}
        [verdict] = judged(prepared(source), live, Answer())
        assert verdict.outcome is Outcome.UPDATE

    def test_an_account_with_everything_already_is_unchanged(self) -> None:
        source = item("serviceaccounts", "a")
        [verdict] = judged(prepared(source), {**source.copied(), "imagePullSecrets": [{"name": "other"}]})
        assert verdict.outcome is Outcome.UNCHANGED

    def test_velero_never_takes_an_existing_service_for_the_same(self) -> None:
        source = item("services", "a", spec={"ports": []})
        [verdict] = judged(prepared(source), source.copied())
        assert verdict.outcome is Outcome.EXISTS

    def test_an_update_shows_what_changes_and_not_what_the_api_server_keeps(self) -> None:
        source = item("services", "a", spec={"clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30001}]})
        source.body["kind"] = "Service"
        live = source.copied()
        labelled = {**live, "metadata": {**live["metadata"], "labels": {"velero.io/restore-name": "new"}}}
        [verdict] = judged(prepared(source), live, Answer(result=labelled), "update")
        assert (verdict.outcome, verdict.changes) == (Outcome.UPDATE, ())
        changed = {**live, "spec": {**live["spec"], "selector": {"app": "new"}}}
        [verdict] = judged(prepared(source), changed, Answer(result=labelled), "update")
        assert [(each.path, each.in_backup, each.in_cluster) for each in verdict.changes] == [
            ("spec.selector", None, "{'app': 'new'}")
        ]

    @pytest.mark.parametrize(("mapping", "outcome"), [({}, Outcome.UNCHANGED), ({"a": "b"}, Outcome.EXISTS)])
    @pytest.mark.parametrize(("plural", "namespace"), [("rolebindings", "shop"), ("clusterrolebindings", "")])
    def test_with_a_mapping_velero_never_takes_an_existing_binding_for_the_same(
        self, plural: str, namespace: str, mapping: dict[str, str], outcome: Outcome
    ) -> None:
        source = item(f"{plural}.rbac.authorization.k8s.io", "a", namespace, subjects=[])
        [verdict] = judged(prepared(source, namespaceMapping=mapping), source.copied())
        assert verdict.outcome is outcome

    @pytest.mark.parametrize(
        ("classes", "templates", "outcome"),
        [
            ({}, [{"spec": {}}], Outcome.UNCHANGED),
            ({"old": "new"}, [], Outcome.UNCHANGED),
            ({"old": "new"}, [{"spec": {}}], Outcome.EXISTS),
        ],
    )
    def test_with_mapped_storage_classes_an_existing_stateful_set_with_claims_is_never_the_same(
        self, classes: dict[str, str], templates: list[Document], outcome: Outcome
    ) -> None:
        source = item("statefulsets.apps", "db", spec={"volumeClaimTemplates": templates})
        source.body["kind"] = "StatefulSet"
        found = prepare(Backup("nightly", [source]), Settings(spec(), classes), SERVED)
        [verdict] = judged(found, source.copied())
        assert verdict.outcome is outcome

    def test_a_kind_that_is_not_served_is_refused(self) -> None:
        [verdict] = judged(prepared(item("widgets.example.com", "a")))
        assert (verdict.outcome, verdict.by) == (Outcome.REFUSED, By.MISSING_KIND)

    def test_a_kind_that_the_restore_defines_is_not_predictable(self) -> None:
        names_ = {"plural": "widgets"}
        crd = item(
            "customresourcedefinitions.apiextensions.k8s.io",
            "widgets.example.com",
            "",
            spec={"group": "example.com", "names": names_},
        )
        found = judged(prepared(crd, item("widgets.example.com", "a")))
        assert found[-1].outcome is Outcome.UNPREDICTABLE

    def test_quotas_add_up(self) -> None:
        quota = {
            "metadata": {"namespace": "shop", "name": "few"},
            "status": {"hard": {"count/configmaps": "3"}, "used": {"count/configmaps": "2"}},
        }
        found = judged(prepared(item("configmaps", "a"), item("configmaps", "b")), quotas=[quota])
        assert [(each.outcome, each.by) for each in found] == [(Outcome.CREATE, None), (Outcome.REFUSED, By.QUOTA)]

    def test_a_pod_is_asked_for_again_without_an_account_that_the_restore_creates(self) -> None:
        found = prepared(item("serviceaccounts", "web"), item("pods", "a", spec={"serviceAccountName": "web"}))
        message = 'pods "a" is forbidden: error looking up service account shop/web: serviceaccount "web" not found'
        planned = [step.target for step in found.steps]
        step, answer = found.steps[1], Answer(403, "Forbidden", message)
        asked = question_again(step, Question(step.body), answer, planned)
        assert asked is not None
        assert "serviceAccountName" not in asked.body["spec"]
        assert question_again(step, Question(step.body), answer, []) is None

    def test_a_pod_is_asked_for_again_without_a_priority_class_that_the_restore_creates(self) -> None:
        priority = item("priorityclasses.scheduling.k8s.io", "high", "")
        wanted = {"serviceAccountName": "web", "priorityClassName": "high", "preemptionPolicy": "Never"}
        found = prepared(priority, item("pods", "a", spec=wanted), includedNamespaces=["shop"])
        assert names(found) == ["priorityclasses.scheduling.k8s.io/high", "pods/shop/a"]
        step = found.steps[1]
        answer = Answer(403, "Forbidden", 'pods "a" is forbidden: no PriorityClass with name high was found')
        before = Question({**step.body, "spec": {**step.body["spec"], "serviceAccountName": ""}})
        asked = question_again(step, before, answer, [each.target for each in found.steps])
        assert asked is not None
        assert asked.body["spec"] == {"serviceAccountName": ""}
        assert asked.assumed == {found.steps[0].target}
        assert question_again(step, before, answer, [step.target]) is None
        assert question_again(step, asked, answer, [each.target for each in found.steps]) is None

    @pytest.mark.parametrize(
        ("needed", "kind", "by"),
        [
            (item("serviceaccounts", "web"), "ServiceAccount", By.ADMISSION),
            (item("priorityclasses.scheduling.k8s.io", "web", ""), "PriorityClass", By.MISSING_CLASS),
        ],
    )
    @pytest.mark.parametrize(
        ("answer", "outcome"),
        [
            (Answer(), Outcome.CREATE),
            (Answer(403, "Forbidden", "a policy refuses it"), Outcome.REFUSED),
            (Answer(503, "", "the API server is down"), Outcome.UNPREDICTABLE),
        ],
    )
    def test_a_pod_needs_the_items_that_its_dry_run_assumed(
        self, needed: Item, kind: str, by: By, answer: Answer, outcome: Outcome
    ) -> None:
        found = prepared(needed, item("pods", "a"))
        observed = {
            needed.key: Observed(answer=answer),
            ItemKey("pods", "shop", "a"): Observed(answer=Answer(), assumed=frozenset({needed.key})),
        }
        pod = decide(found, observed, World(SERVED, frozenset({"shop"})), "")[-1]
        if outcome is Outcome.CREATE:
            assert (pod.outcome, pod.reason) == (Outcome.CREATE, "")
        else:
            assert (pod.outcome, pod.reason) == (outcome, f"{kind} web, which the pod needs, is {outcome.value}")
        assert pod.by is (by if outcome is Outcome.REFUSED else None)

    def test_a_pod_of_a_new_namespace_has_the_account_that_kubernetes_creates(self) -> None:
        found = prepared(item("serviceaccounts", "default"), item("pods", "a"))
        pod = ItemKey("pods", "shop", "a")
        observed = {pod: Observed(answer=Answer(), assumed=frozenset({ItemKey("serviceaccounts", "shop", "default")}))}
        assert decide(found, observed, World(SERVED, frozenset()), "")[-1].outcome is Outcome.CREATE

    @pytest.mark.parametrize("answer", [Answer(), Answer(403, "Forbidden", "a policy refuses it")])
    def test_a_class_or_definition_that_is_refused_does_not_count(self, answer: Answer) -> None:
        storage, kind = "storageclasses.storage.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"
        found = prepared(
            item(storage, "fast", ""),
            item(kind, "widgets.example.org", ""),
            item("persistentvolumeclaims", "data", spec={"storageClassName": "fast"}),
            item("widgets.example.org", "w"),
        )
        made = {ItemKey(storage, "", "fast"), ItemKey(kind, "", "widgets.example.org")}
        observed = {step.target: Observed(answer=answer if step.target in made else Answer()) for step in found.steps}
        world = World(SERVED, frozenset({"shop"}), storage_classes=frozenset())
        verdicts = {each.target.resource: each for each in decide(found, observed, world, "")}
        missing = "StorageClass fast does not exist: the claim stays pending"
        assert verdicts["persistentvolumeclaims"].warning == ("" if answer.is_accepted else missing)
        outcome = Outcome.UNPREDICTABLE if answer.is_accepted else Outcome.REFUSED
        assert verdicts["widgets.example.org"].outcome is outcome

    def test_a_claim_without_its_class_is_created_with_a_warning(self) -> None:
        claim = item("persistentvolumeclaims", "data", spec={"storageClassName": "fast"})
        [verdict] = judged(prepared(claim), storage_classes=frozenset({"slow"}))
        assert (verdict.outcome, verdict.warning) == (
            Outcome.CREATE,
            "StorageClass fast does not exist: the claim stays pending",
        )

    @pytest.mark.parametrize(
        ("classes", "outcome"),
        [(frozenset({"new"}), Outcome.EXISTS), (frozenset({"old"}), Outcome.REFUSED), (None, Outcome.UNPREDICTABLE)],
    )
    @pytest.mark.parametrize("resource", ["persistentvolumeclaims", "statefulsets.apps"])
    def test_an_item_whose_new_storage_class_does_not_exist_is_refused_even_if_the_item_exists(
        self, resource: str, classes: frozenset[str] | None, outcome: Outcome
    ) -> None:
        claim: Document = {"storageClassName": "old"}
        source = item(resource, "db", spec={**claim, "volumeClaimTemplates": [{"spec": claim}]})
        source.body["kind"] = "StatefulSet" if resource == "statefulsets.apps" else "PersistentVolumeClaim"
        found = prepare(Backup("nightly", [source]), Settings(spec(), {"old": "new"}), SERVED)
        [verdict] = judged(found, source.copied(), storage_classes=classes)
        assert verdict.outcome is outcome
        assert verdict.by is (By.MISSING_CLASS if outcome is Outcome.REFUSED else None)

    def test_a_new_storage_class_may_come_from_the_same_restore(self) -> None:
        items = [item("storageclasses.storage.k8s.io", "new", ""), item("persistentvolumeclaims", "data")]
        items[1].body["spec"] = {"storageClassName": "old"}
        found = prepare(Backup("nightly", items), Settings(spec(), {"old": "new"}), SERVED)
        assert judged(found, storage_classes=frozenset())[-1].outcome is Outcome.CREATE

    @pytest.mark.parametrize(
        ("action", "failed"),
        [("change-storage-class", ["persistentvolumeclaims"]), ("change-image-name", ["deployments.apps", "pods"])],
    )
    def test_more_than_one_config_map_of_an_action_fails_what_it_applies_to(
        self, action: str, failed: list[str]
    ) -> None:
        items = [item(each, "a") for each in ("configmaps", "deployments.apps", "persistentvolumeclaims", "pods")]
        settings = Settings(spec(), ambiguous=frozenset({action}))
        found = judged(prepare(Backup("nightly", items), settings, SERVED), storage_classes=frozenset())
        refused = [each for each in found if each.outcome is Outcome.REFUSED]
        assert sorted(each.target.resource for each in refused) == failed
        assert {each.by for each in refused} == {By.PLUGIN_CONFIG}

    def test_a_class_that_the_caller_may_not_list_is_named_in_a_warning(self) -> None:
        claim = item("persistentvolumeclaims", "data", spec={"storageClassName": "fast"})
        [verdict] = judged(prepared(claim), storage_classes=None)
        assert (verdict.outcome, verdict.warning) == (
            Outcome.CREATE,
            "StorageClass fast was not checked: you may not list StorageClasses",
        )

    def test_a_webhook_that_takes_no_dry_runs_is_named(self) -> None:
        answer = Answer(400, "BadRequest", 'admission webhook "x.example.com" does not support dry run')
        [verdict] = judged(prepared(item("configmaps", "a")), answer=answer)
        assert (verdict.outcome, verdict.reason) == (
            Outcome.UNPREDICTABLE,
            "the webhook x.example.com takes no dry runs",
        )

    @pytest.mark.parametrize(
        ("policy", "outcome"), [("update", Outcome.UNPREDICTABLE), ("none", Outcome.UNCHANGED), ("", Outcome.UNCHANGED)]
    )
    def test_a_slice_of_a_service_that_the_restore_updates_is_not_predictable(
        self, policy: str, outcome: Outcome
    ) -> None:
        slices = "endpointslices.discovery.k8s.io"
        of_web = item(slices, "web-1", metadata={"labels": {"kubernetes.io/service-name": "web"}})
        of_db = item(slices, "db-1", metadata={"labels": {"kubernetes.io/service-name": "db"}})
        web = item("services", "web", spec={"ports": [{"port": 80}]})
        found = prepared(of_web, of_db, web)
        observed = {
            step.target: Observed(copy.deepcopy(each.body), Answer())
            for step, each in zip(found.steps, (web, of_db, of_web), strict=True)
        }
        verdicts = decide(found, observed, World(SERVED, frozenset({"shop"})), policy)
        assert {each.target.name: each.outcome for each in verdicts if each.target.resource == slices} == {
            "db-1": Outcome.UNCHANGED,
            "web-1": outcome,
        }

    @pytest.mark.parametrize(("policy", "outcome"), [("", Outcome.EXISTS), ("update", Outcome.UPDATE)])
    def test_a_status_written_since_the_backup_differs_for_velero_and_the_plan_says_so(
        self, policy: str, outcome: Outcome
    ) -> None:
        written = {"manager": "kube-controller-manager", "subresource": "status", "time": "2026-11-17T10:00:00Z"}
        scaler = item("horizontalpodautoscalers.autoscaling", "web", spec={"maxReplicas": 3})
        live = copy.deepcopy(scaler.body)
        live["metadata"]["managedFields"] = [written]
        [verdict] = judged(prepared(scaler), live, Answer(), policy)
        assert (verdict.outcome, verdict.changes) == (outcome, ())
        assert "the fields are the same" in verdict.reason
        assert "status" in verdict.reason

    @pytest.mark.parametrize(
        ("deployment", "outcome"),
        [("absent", Outcome.UNPREDICTABLE), ("present", Outcome.UNCHANGED), ("another", Outcome.UNCHANGED)],
    )
    def test_an_autoscaler_is_not_predictable_when_the_restore_creates_what_it_scales(
        self, deployment: str, outcome: Outcome
    ) -> None:
        name = "db" if deployment == "another" else "web"
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        scaler = item("horizontalpodautoscalers.autoscaling", "web", spec={"scaleTargetRef": target})
        web = item("deployments.apps", "web")
        web.body["kind"] = "Deployment"
        live = copy.deepcopy(web.body) if deployment == "present" else None
        observed = {web.key: Observed(live, Answer()), scaler.key: Observed(copy.deepcopy(scaler.body))}
        verdicts = decide(prepared(scaler, web), observed, World(SERVED, frozenset({"shop"})), "")
        assert {each.target.resource: each.outcome for each in verdicts}[scaler.key.resource] is outcome

    @pytest.mark.parametrize("code", [0, 429, 500, 503])
    @pytest.mark.parametrize("live", [None, {"metadata": {"name": "a"}, "data": {"key": "other"}}])
    def test_a_dry_run_without_an_answer_refuses_nothing(self, code: int, live: Document | None) -> None:
        found = prepared(item("configmaps", "a", data={"key": "1"}))
        [verdict] = judged(found, live, Answer(code, "", "etcdserver: request timed out"), "update")
        assert (verdict.outcome, verdict.reason) == (
            Outcome.UNPREDICTABLE,
            "the API server did not answer the dry run: etcdserver: request timed out",
        )
        assert verdict.is_unanswered


@pytest.mark.parametrize(
    ("code", "message", "by"),
    [
        (403, 'configmaps is forbidden: User "eve" cannot create resource "configmaps"', By.RBAC),
        (403, 'roles "a" is forbidden: user "eve" is attempting to grant RBAC permissions not currently held', By.RBAC),
        (403, 'pods "a" is forbidden: exceeded quota: few, requested: pods=1', By.QUOTA),
        (403, 'pods "a" is forbidden: violates PodSecurity "restricted:latest"', By.POD_SECURITY),
        (422, "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'x' denied request", By.ADMISSION_POLICY),
        (403, 'admission webhook "x" denied the request: no', By.WEBHOOK),
        (500, 'Internal error occurred: failed calling webhook "x"', By.WEBHOOK),
        (422, 'Service "a" is invalid: spec.ports: Required value', By.SCHEMA),
        (403, 'pods "a" is forbidden: no PriorityClass with name high was found', By.MISSING_CLASS),
        (403, 'pods "a" is forbidden: maximum cpu usage per Container is 1', By.LIMITS),
        (404, "the server could not find the requested resource", By.MISSING_KIND),
        (403, "something else", By.ADMISSION),
        (599, "", By.SERVER),
    ],
)
def test_who_refused_is_told_by_the_answer(code: int, message: str, by: By) -> None:
    assert refused_by(Answer(code, "", message)) is by
