"""Whatever a backup holds and whatever the requester may do: a restore brings back only what the requester may create.

Random contents (kinds with and without a namespace, RBAC kinds, custom resources, volumes of every sort) meet random
rights, random specs and random policies. The invariant shares no code with what is tested.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foresail.api.authorization import SUBJECT_ACCESS_REVIEW, Discovery
from foresail.api.policy import SelfServicePolicySpec
from foresail.kube.failures import Failure
from foresail.plan import Body, Key, Kind
from foresail.selfservice.access import rules as access
from foresail.selfservice.access.contents import Contents, contents_of
from foresail.selfservice.access.reader import AccessReader
from foresail.selfservice.access.rules import Options
from foresail.selfservice.access.view import Check, Checked
from foresail.selfservice.reasons import Refused
from foresail.selfservice.specs.build import restore_spec
from foresail.tenancy.policies import PolicyRow
from tests.selfservice_invariant import Held, HeldVolume, breaches_of_contents, breaches_of_restore

T = TypeVar("T")
NAMESPACE, VELERO_BACKUP = "shop", "shop-daily-5f0c"
COUNT = os.environ.get("FORESAIL_EXAMPLES")  # a fixed sample, unless so many random ones are asked for
EXAMPLES = settings(
    max_examples=int(COUNT or 300),
    derandomize=COUNT is None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
RBAC, SNAPSHOTS = "rbac.authorization.k8s.io", "snapshot.storage.k8s.io"

KINDS: tuple[tuple[str, str, str, bool], ...] = (  # group, plural, kind, whether it has a namespace
    ("", "configmaps", "ConfigMap", True),
    ("", "secrets", "Secret", True),
    ("", "pods", "Pod", True),
    ("", "services", "Service", True),
    ("", "serviceaccounts", "ServiceAccount", True),
    ("", "endpoints", "Endpoints", True),
    ("", "resourcequotas", "ResourceQuota", True),
    ("", "persistentvolumeclaims", "PersistentVolumeClaim", True),
    ("", "persistentvolumes", "PersistentVolume", False),
    ("", "nodes", "Node", False),
    ("apps", "deployments", "Deployment", True),
    ("apps", "statefulsets", "StatefulSet", True),
    (RBAC, "roles", "Role", True),
    (RBAC, "rolebindings", "RoleBinding", True),
    (RBAC, "clusterroles", "ClusterRole", False),
    (RBAC, "clusterrolebindings", "ClusterRoleBinding", False),
    ("authorization.openshift.io", "rolebindings", "RoleBinding", True),
    (SNAPSHOTS, "volumesnapshots", "VolumeSnapshot", True),
    (SNAPSHOTS, "volumesnapshotcontents", "VolumeSnapshotContent", False),
    ("scheduling.k8s.io", "priorityclasses", "PriorityClass", False),
    ("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", False),
    ("security.example.com", "policyexceptions", "PolicyException", True),
    ("example.com", "gadgets", "Gadget", True),
    ("other.example.com", "gadgets", "Gadget", True),  # one name in two groups
    ("example.com", "pods", "Pod", True),  # the name of a core kind in another group
    ("example.com", "widgets", "Widget", False),
    ("oadp.openshift.io", "nonadminbackups", "NonAdminBackup", True),
    ("velero.io", "backups", "Backup", True),
)


def full(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


NAMES = [full(group, plural) for group, plural, _, _ in KINDS]


@dataclass
class Situation:
    """A backup, somebody with some rights, and what is asked for under some policy."""

    held: list[tuple[str, str, str, bool]]
    volumes: list[HeldVolume]
    rights: set[tuple[str, str]]
    spec: dict[str, Any]
    policy: Mapping[str, Any]
    asked: list[dict[str, Any]] = field(default_factory=list)

    def may(self, verb: str, name: str) -> bool:
        return (verb, name) in self.rights

    def files(self) -> tuple[bytes, bytes]:
        """Return the two files that Velero keeps about the backup."""
        lists = {}
        for group, _, kind, is_namespaced in self.held:
            version = f"{group}/v1/{kind}" if group else f"v1/{kind}"
            lists[version] = [f"{NAMESPACE}/one" if is_namespaced else "one"]
        if self.volumes:
            lists["v1/PersistentVolume"] = [each.name for each in self.volumes]
        infos = [
            {
                "pvName": each.name,
                "pvcName": "data",
                "pvcNamespace": NAMESPACE,
                "backupMethod": each.method,
                "skipped": not each.method,
                "pvInfo": {"reclaimPolicy": each.reclaim},
            }
            for each in self.volumes
        ]
        return json.dumps(lists).encode(), json.dumps(infos).encode()


class Server:
    """An API server that serves the kinds and answers access reviews from the rights of one person."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation

    async def create(self, kind: Kind, _key: Key, body: Body, of: type[T]) -> T | Failure:
        assert kind is SUBJECT_ACCESS_REVIEW
        spec = body["spec"]
        assert isinstance(spec, dict)
        assert (spec["user"], spec["groups"]) == ("ann", ["team"])
        wanted = spec["resourceAttributes"]
        self.situation.asked.append(wanted)
        name = full(wanted["group"], wanted["resource"])
        everywhere = name == "persistentvolumes" and wanted["namespace"] == ""
        allowed = self.situation.may(wanted["verb"], name) and (everywhere or wanted["namespace"] in {NAMESPACE, ""})
        return msgspec.convert({"status": {"allowed": allowed}}, of)

    async def get(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - never called
        raise AssertionError("no resource policy is read")

    async def page(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - never called
        raise AssertionError("no pods are read")

    async def discover(self, of: type[T]) -> T | Failure:
        assert of is Discovery
        items: dict[str, list[dict[str, Any]]] = {}
        for group, plural, kind, is_namespaced in KINDS:
            if group:
                scope = "Namespaced" if is_namespaced else "Cluster"
                row = {"resource": plural, "responseKind": {"kind": kind}, "scope": scope}
                items.setdefault(group, []).append({**row, "singularResource": kind.lower(), "shortNames": []})
        groups = [{"metadata": {"name": name}, "versions": [{"resources": rows}]} for name, rows in items.items()]
        return msgspec.convert({"items": groups}, of)


volume = st.builds(
    HeldVolume,
    st.sampled_from(["pv-a", "pv-b", "pv-c"]),
    st.sampled_from(["Retain", "Delete", "Recycle"]),
    st.sampled_from(["", "PodVolumeBackup", "CSISnapshot", "NativeSnapshot"]),
)
verb = st.sampled_from(["create", "create", "create", "update", "patch", "bind", "escalate"])
kind_name = st.sampled_from([*NAMES, "pvc", "po", "gadgets", "rolebindings", "deployments", "configmaps", "*"])
restore = st.fixed_dictionaries(
    {},
    optional={
        "includedResources": st.lists(kind_name, min_size=1, max_size=4, unique=True),
        "excludedResources": st.lists(st.sampled_from(NAMES), max_size=3, unique=True),
        "restorePVs": st.booleans(),
        "existingResourcePolicy": st.sampled_from(["none", "update"]),
    },
)
policies = st.fixed_dictionaries(
    {"allowed": st.just({"existingResourcePolicies": ["update"]})},
    optional={
        "authorization": st.sampled_from(["Requester", "Requester", "Policy"]),
        "volumes": st.sampled_from(["BackedUp", "BackedUp", "AsIs"]),
        "kinds": st.one_of(
            st.just({"refused": ["secrets"]}),
            st.just({"refused": []}),
            st.builds(lambda names: {"allowed": names}, st.lists(st.sampled_from(NAMES[:8]), min_size=1, unique=True)),
        ),
    },
)
situations = st.builds(
    Situation,
    st.lists(st.sampled_from(KINDS), max_size=10, unique=True),
    st.lists(volume, max_size=2, unique_by=lambda each: each.name),
    st.one_of(
        st.sets(st.tuples(verb, st.sampled_from(NAMES)), max_size=20),
        st.just({("create", each) for each in NAMES}),
        st.just({(each, name) for each in ("create", "update", "patch", "bind", "escalate") for name in NAMES}),
    ),
    restore,
    policies,
)


def cleared(situation: Situation, holding: PolicyRow) -> dict[str, Any] | Refused:
    """Return what Velero gets, as the operator works it out from the files and the API server's answers."""
    spec = restore_spec({"backupName": "daily", **situation.spec}, NAMESPACE, VELERO_BACKUP, holding)
    if isinstance(spec, Refused):
        return spec
    rules = holding.spec.restore
    is_by_requester = rules.authorization == "Requester"
    options = Options(
        namespace=NAMESPACE,
        user="ann" if is_by_requester else "",
        groups=("team",) if is_by_requester else (),
        included=tuple(spec.get("includedResources") or ()),
        excluded=tuple(spec.get("excludedResources") or ()),
        is_update=spec.get("existingResourcePolicy") == "update",
        restores_volumes=spec.get("restorePVs") is not False,
        is_by_requester=is_by_requester,
        checks_volumes=rules.volumes != "AsIs",
    )

    async def read(_: Check) -> Contents:
        found = contents_of(NAMESPACE, *situation.files())
        assert found is not None
        return found

    answer = asyncio.run(AccessReader(Server(situation), read).run(Check("uid", options)))
    assert isinstance(answer, Checked)
    assert answer.verdict is not None, answer.problem
    found = access.authorized_spec(spec, answer.verdict, options)
    return found if isinstance(found, Refused) else found.spec


@pytest.mark.repeats
def test_a_restore_brings_back_only_what_the_requester_may_create() -> None:
    handed_over: list[dict[str, Any]] = []
    narrowed: list[Situation] = []

    @EXAMPLES
    @given(situations)
    def holds(situation: Situation) -> None:
        policy = {"namespaceSelector": {}, "restore": situation.policy}
        holding = PolicyRow(Key("", "team"), msgspec.convert(policy, SelfServicePolicySpec))
        spec = cleared(situation, holding)
        if isinstance(spec, Refused):
            assert spec.message.isprintable()
            return
        held = [Held(full(group, plural), is_namespaced) for group, plural, _, is_namespaced in situation.held]
        assert breaches_of_contents(spec, held, situation.volumes, situation.may, policy) == []
        assert breaches_of_restore(spec, NAMESPACE, VELERO_BACKUP, policy) == []
        assert len(situation.asked) <= 3 + 5 * (len(situation.held) + 2)
        handed_over.append(spec)
        if len(spec.get("includedResources") or KINDS) < len(situation.held):
            narrowed.append(situation)

    holds()
    assert len(handed_over) > 30, "too few were handed over for the invariant to mean anything"
    assert len(narrowed) > 10, "too few were narrowed for the invariant to mean anything"


def test_the_invariant_notices_what_must_not_come_back() -> None:
    held = [Held("configmaps"), Held("gadgets.example.com"), Held("rolebindings.rbac.authorization.k8s.io")]
    good = {"includedResources": ["configmaps"]}

    def breaches(spec: dict[str, Any], *rights: tuple[str, str], **rules: str) -> list[str]:
        policy = {"restore": rules}
        return breaches_of_contents(spec, held, [], lambda verb, name: (verb, name) in rights, policy)

    may = ("create", "configmaps")
    assert breaches(good, may) == []
    assert breaches(good)
    assert breaches({}, may)
    assert breaches({"includedResources": ["*"]}, may)
    assert breaches({"includedResources": ["configmaps", "gadgets.example.com"]}, may)
    over = {**good, "existingResourcePolicy": "update"}
    assert breaches(over, may)
    assert breaches(over, may, ("update", "configmaps")), "Velero patches"
    assert breaches(over, may, ("update", "configmaps"), ("patch", "configmaps")) == []
    binding = "rolebindings.rbac.authorization.k8s.io"
    assert breaches({"includedResources": [binding]}, ("create", binding))
    assert breaches({"includedResources": ["gadgets.example.com"]}, authorization="Policy") == []


def test_the_invariant_notices_a_volume_that_comes_back_as_it_was() -> None:
    held = [Held("persistentvolumeclaims"), Held("persistentvolumes", is_namespaced=False)]

    def breaches(volume: HeldVolume, rights: set[tuple[str, str]], **spec: object) -> list[str]:
        names = ["persistentvolumeclaims", "persistentvolumes"]
        made = {"includedResources": names, **spec}
        return breaches_of_contents(made, held, [volume], lambda verb, name: (verb, name) in rights, {})

    claims = {("create", "persistentvolumeclaims")}
    assert breaches(HeldVolume("pv", "Retain"), claims)
    assert breaches(HeldVolume("pv", "Retain"), claims | {("create", "persistentvolumes")}) == []
    assert breaches(HeldVolume("pv", "Delete"), claims) == []
    assert breaches(HeldVolume("pv", "Retain", "CSISnapshot"), claims) == []
    assert breaches(HeldVolume("pv", "Retain", "NativeSnapshot"), claims) == []
    assert breaches(HeldVolume("pv", "Retain", "NativeSnapshot"), claims, restorePVs=False)
    claims |= {("update", "persistentvolumeclaims"), ("patch", "persistentvolumeclaims")}
    assert breaches(HeldVolume("pv", "Retain", "NativeSnapshot"), claims, existingResourcePolicy="update")
    claims |= {(verb, "persistentvolumes") for verb in ("create", "update", "patch")}
    assert breaches(HeldVolume("pv", "Retain", "NativeSnapshot"), claims, existingResourcePolicy="update") == []
