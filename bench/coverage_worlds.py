"""A world of 60 namespaces and random Backup specs for it, to compare coverage with real Velero."""

import json
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from foresail.scope.discovery import Discovery, ResourceKind

Document = dict[str, Any]
NAMESPACES = 60
POLICIES = 40
VELERO = "velero"
MARK = "told"
"""Events with this prefix belong to the world; controllers emit the others at any time."""

NODE = "worker"
"""A node without a kubelet: pods stay as they are."""

EXCLUDE = {"velero.io/exclude-from-backup": "true"}
_GROUP = "shop.example"
_LABELS = {"app": ("web", "db", "cache"), "tier": ("gold", "silver"), "zone": ("1", "2")}
_WORDS = ("alpha", "beta", "gamma", "delta")
_CUSTOM = (
    ("Order", "orders", True, ("ord",)),
    ("Bill", "bills", True, ()),
    ("Deployment", "deployments", True, ("shipping",)),  # the same name as a kind of apps
    ("Warehouse", "warehouses", False, ("wh",)),
    ("Region", "regions", False, ()),
)
_POD = {"containers": [{"name": "c", "image": "none"}]}
_SNAPSHOT_KINDS = (
    ("VolumeSnapshot", "volumesnapshots", True),
    ("VolumeSnapshotContent", "volumesnapshotcontents", False),
)


def definitions() -> list[Document]:
    """Return the custom kinds: some of a shop, and two that Velero treats in its own way."""
    rows = [(_GROUP, *each) for each in _CUSTOM]
    rows += [("snapshot.storage.k8s.io", *each, ()) for each in _SNAPSHOT_KINDS]
    return [_definition(*each) for each in rows]


def _definition(group: str, kind: str, plural: str, namespaced: bool, short: Sequence[str]) -> Document:  # noqa: FBT001
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    approved = {"api-approved.kubernetes.io": "unapproved, for a test"} if group.endswith("k8s.io") else {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": approved},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "shortNames": list(short)},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def namespaces() -> list[Document]:
    """Return the namespaces, named so that patterns match some of them."""
    random = Random(60)  # noqa: S311 - reproducible, not secret
    names = [f"{_WORDS[index % len(_WORDS)]}-{index}" for index in range(NAMESPACES)]
    return [_object("v1", "Namespace", "", name, labels=_labels(random)) for name in names]


class Objects:
    """The objects of the world, in the order in which they are created."""

    def __init__(self, seed: int = 1) -> None:
        self.random = Random(seed)  # noqa: S311 - reproducible, not secret
        self.cluster: list[Document] = []
        self.namespaced: list[Document] = []
        self.running: list[tuple[str, str]] = []
        self._cluster()
        for each in namespaces():
            self._namespace(each["metadata"]["name"])

    def _cluster(self) -> None:
        for index in range(3):
            self._add("scheduling.k8s.io/v1", "PriorityClass", "", f"vip-{index}", value=1000 + index)
            self._add("storage.k8s.io/v1", "StorageClass", "", f"class-{index}", provisioner="nobody.example")
            self._add("networking.k8s.io/v1", "IngressClass", "", f"door-{index}", spec={"controller": "a.example/b"})
            self._add("node.k8s.io/v1", "RuntimeClass", "", f"runtime-{index}", handler="none")
            self._add("storage.k8s.io/v1", "CSIDriver", "", f"driver-{index}.example", spec={})
            self._add(f"{_GROUP}/v1", "Warehouse", "", f"warehouse-{index}")
            self._add(f"{_GROUP}/v1", "Region", "", f"region-{index}")
            self._add("snapshot.storage.k8s.io/v1", "VolumeSnapshotContent", "", f"content-{index}")
            rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
            self._add("rbac.authorization.k8s.io/v1", "ClusterRole", "", f"role-{index}", rules=rules)
        self.cluster.append(_object("v1", "Node", "", NODE))
        self.cluster.append(_volume("spare", None, {"hostPath": {"path": "/none"}}))

    def _add(self, api: str, kind: str, namespace: str, name: str, **rest: Any) -> None:  # noqa: ANN401
        labels = _labels(self.random)
        if self.random.random() < 0.05:
            labels |= EXCLUDE
        document = _object(api, kind, namespace, name, labels=labels, **rest)
        (self.namespaced if namespace else self.cluster).append(document)

    def _namespace(self, namespace: str) -> None:
        random = self.random
        for api, kind, rest in random.sample(_KINDS, random.randint(5, 10)):
            for index in range(random.randint(1, 2)):
                self._add(api, kind, namespace, f"{kind.lower()}-{random.choice('abc')}{index}", **rest(namespace))
        if random.random() < 0.5:
            self._accounts(namespace)
        if random.random() < 0.6:
            self._pods(namespace)

    def _accounts(self, namespace: str) -> None:
        self._add("v1", "ServiceAccount", namespace, "clerk")
        subject = {"kind": "ServiceAccount", "namespace": namespace, "name": "clerk"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
        role["name"] = f"role-{self.random.randint(0, 2)}"
        api = "rbac.authorization.k8s.io/v1"
        self._add(api, "ClusterRoleBinding", "", f"clerks-of-{namespace}", subjects=[subject], roleRef=role)

    def _pods(self, namespace: str) -> None:
        random = self.random
        claims = [f"claim-{index}" for index in range(random.randint(1, 3))]
        for name in claims:
            self._claim(namespace, name)
        for index in range(random.randint(1, 3)):
            mounted = random.sample(claims, random.randint(0, len(claims)))
            volumes = [{"name": f"v-{each}", "persistentVolumeClaim": {"claimName": each}} for each in mounted]
            volumes += random.sample(_VOLUMES, random.randint(0, 2))
            names = [str(each["name"]) for each in volumes]
            container = {"name": "c", "image": "none"}
            container["volumeMounts"] = [{"name": each, "mountPath": f"/{each}"} for each in names]  # type: ignore[assignment]
            spec: Document = {"containers": [container], "volumes": volumes, "tolerations": [{"operator": "Exists"}]}
            spec["nodeName"] = NODE
            if random.random() < 0.4:
                spec["priorityClassName"] = f"vip-{random.randint(0, 2)}"
            self._add("v1", "Pod", namespace, f"pod-{index}", spec=spec)
            annotations = {
                f"backup.velero.io/backup-volumes{suffix}": ",".join(
                    random.sample(names, random.randint(1, len(names)))
                )
                for suffix in ("", "-excludes")
                if names and random.random() < 0.3
            }
            self.namespaced[-1]["metadata"]["annotations"] = annotations
            if random.random() < 0.6:
                self.running.append((namespace, f"pod-{index}"))

    def _claim(self, namespace: str, name: str) -> None:
        random = self.random
        volume = f"{namespace}-{name}"
        storage_class = f"class-{random.randint(0, 2)}"
        size = random.choice(("1Gi", "5Gi", "20Gi"))
        modes = [random.choice(("ReadWriteOnce", "ReadWriteMany"))]
        spec: Document = {
            "accessModes": modes,
            "resources": {"requests": {"storage": size}},
            "storageClassName": storage_class,
        }
        is_bound = random.random() < 0.85
        if is_bound:
            spec["volumeName"] = volume
            row = _volume(volume, (namespace, name), random.choice(_SOURCES), size, storage_class, modes)
            row["metadata"]["labels"] = _labels(random) | (EXCLUDE if random.random() < 0.05 else {})
            self.cluster.append(row)
        self._add("v1", "PersistentVolumeClaim", namespace, name, spec=spec)
        if random.random() < 0.2:
            self.namespaced[-1]["metadata"]["labels"]["velero.io/volume-group"] = "together"


_SOURCES = (
    {"nfs": {"server": "nfs.example", "path": "/a"}},
    {"csi": {"driver": "driver-0.example", "volumeHandle": "x", "volumeAttributes": {"kind": "fast"}}},
    {"csi": {"driver": "driver-1.example", "volumeHandle": "x"}},
    {"hostPath": {"path": "/none"}},
)
_VOLUMES: tuple[Document, ...] = (
    {"name": "scratch", "emptyDir": {}},
    {"name": "settings", "configMap": {"name": "kube-root-ca.crt"}},
    {"name": "host", "hostPath": {"path": "/none"}},
)


def _volume(
    name: str,
    claim: tuple[str, str] | None,
    source: Document,
    size: str = "1Gi",
    storage_class: str = "none",
    modes: Sequence[str] = ("ReadWriteOnce",),
) -> Document:
    spec: Document = {
        "capacity": {"storage": size},
        "accessModes": list(modes),
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": storage_class,
        **source,
    }
    if claim is not None:
        spec["claimRef"] = {"namespace": claim[0], "name": claim[1]}
    return _object("v1", "PersistentVolume", "", name, spec=spec)


def _object(api: str, kind: str, namespace: str, name: str, **rest: Any) -> Document:  # noqa: ANN401
    metadata: Document = {"name": name, "labels": rest.pop("labels", {})}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": metadata | ({"namespace": namespace} if namespace else {}),
        **rest,
    }


def _labels(random: Random) -> dict[str, str]:
    return {key: random.choice(values) for key, values in _LABELS.items() if random.random() < 0.5}


def _template(_namespace: str) -> Document:
    labels = {"metadata": {"labels": {"run": "it"}}, "spec": _POD}
    return {"spec": {"replicas": 0, "selector": {"matchLabels": {"run": "it"}}, "template": labels}}


def _job_spec() -> Document:
    return {"suspend": True, "template": {"spec": {**_POD, "restartPolicy": "Never"}}}


_KINDS: tuple[tuple[str, str, Any], ...] = (
    ("v1", "ConfigMap", lambda _: {"data": {"a": "b"}}),
    ("v1", "ConfigMap", lambda _: {"data": {"c": "d"}}),
    ("v1", "Secret", lambda _: {"stringData": {"a": "b"}}),
    ("v1", "Service", lambda _: {"spec": {"ports": [{"port": 80}]}}),
    ("v1", "Service", lambda _: {"spec": {"ports": [{"port": 80}], "selector": {"run": "it"}}}),
    ("v1", "Endpoints", lambda _: {"subsets": []}),
    ("v1", "LimitRange", lambda _: {"spec": {"limits": []}}),
    ("v1", "ResourceQuota", lambda _: {"spec": {"hard": {"count/widgets": "1"}}}),
    ("v1", "PodTemplate", lambda _: {"template": {"spec": _POD}}),
    ("v1", "ReplicationController", lambda namespace: {"spec": {"replicas": 0, "selector": {"run": "it"},
                                                              "template": _template(namespace)["spec"]["template"]}}),
    ("v1", "Event", lambda namespace: {"involvedObject": {"kind": "Pod", "namespace": namespace, "name": "x"}}),
    ("apps/v1", "Deployment", _template),
    ("apps/v1", "ReplicaSet", _template),
    ("apps/v1", "StatefulSet", lambda namespace: {"spec": {**_template(namespace)["spec"], "serviceName": "x"}}),
    ("apps/v1", "ControllerRevision", lambda _: {"revision": 1, "data": {"a": "b"}}),
    ("batch/v1", "Job", lambda _: {"spec": _job_spec()}),
    ("batch/v1", "CronJob", lambda _: {"spec": {"suspend": True, "schedule": "@yearly",
                                                "jobTemplate": {"spec": _job_spec()}}}),
    ("networking.k8s.io/v1", "Ingress", lambda _: {"spec": {"defaultBackend": {"resource": {
        "kind": "ConfigMap", "name": "x"}}}}),
    ("networking.k8s.io/v1", "NetworkPolicy", lambda _: {"spec": {"podSelector": {}}}),
    ("policy/v1", "PodDisruptionBudget", lambda _: {"spec": {"minAvailable": 1}}),
    ("rbac.authorization.k8s.io/v1", "Role", lambda _: {"rules": []}),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", lambda _: {"roleRef": {
        "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}}),
    ("coordination.k8s.io/v1", "Lease", lambda _: {"spec": {}}),
    ("discovery.k8s.io/v1", "EndpointSlice", lambda _: {"addressType": "IPv4", "endpoints": []}),
    (f"{_GROUP}/v1", "Order", lambda _: {}),
    (f"{_GROUP}/v1", "Bill", lambda _: {}),
    (f"{_GROUP}/v1", "Deployment", lambda _: {}),
    ("snapshot.storage.k8s.io/v1", "VolumeSnapshot", lambda _: {}),
)  # fmt: skip


class Specs:
    """Random specs of Backups, and random resource policies, for a cluster with these kinds."""

    def __init__(self, discovery: Discovery) -> None:
        chosen = [each for each in discovery.kinds if each.name in _FREQUENT or each.group == _GROUP]
        self.kinds = chosen * 4 + list(discovery.kinds)
        self.names = [each["metadata"]["name"] for each in namespaces()]

    def spec(self, seed: int) -> Document:
        """Return the spec of a seed."""
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        spec: Document = {"ttl": "1h0m0s", **self._namespaces(random), **self._lists(random), **_selectors(random)}
        for field in ("snapshotVolumes", "defaultVolumesToFsBackup", "defaultVolumesToRestic"):
            if random.random() < 0.25:
                spec[field] = random.random() < 0.5
        if random.random() < 0.3:
            kind = "Secret" if seed % 20 == 7 else ("configmap", "ConfigMap")[seed % 2]
            spec["resourcePolicy"] = {"kind": kind, "name": f"policy-{random.randrange(POLICIES)}"}
        return spec

    def _namespaces(self, random: Random) -> Document:
        found: Document = {}
        draw = random.random()
        if draw < 0.5:
            found["includedNamespaces"] = random.sample(self.names, random.randint(1, 4))
        elif draw < 0.75:
            found["includedNamespaces"] = self._patterns(random)
        elif draw < 0.85:
            found["includedNamespaces"] = random.choice(
                (["*"], ["*"], self.names, ["absent"], ["*", self.names[0]], [])
            )
        if random.random() < 0.3:
            excluded = (
                random.sample(self.names, random.randint(1, 3)) if random.random() < 0.6 else self._patterns(random)
            )
            found["excludedNamespaces"] = [*excluded, *random.choice(([], [], ["*"], ["velero"], ["absent"]))]
        return found

    def _patterns(self, random: Random) -> list[str]:
        some = [
            f"{random.choice(_WORDS)}-*", "*-1?", f"{random.choice(_WORDS)}-[1-3]*", "*-[!1]", "?eta-?", "nothing-*",
            "*a*", random.choice(self.names), "kube-*", "velero", "*-{1,2}", "**", "a**", "[", "Alpha*", "default",
        ]  # fmt: skip
        weights = [9, 9, 9, 5, 5, 3, 3, 9, 2, 2, 0.5, 0.3, 0.3, 0.3, 0.3, 3]
        return list(dict.fromkeys(random.choices(some, weights, k=random.randint(1, 3))))

    def _lists(self, random: Random) -> Document:
        draw = random.random()
        if draw < 0.25:
            return {}
        if draw < 0.6:
            return self._old_lists(random)
        found: Document = {}
        for scope in ("Cluster", "Namespace"):
            for how, share in (("included", 0.5), ("excluded", 0.3)):
                if random.random() < share:
                    found[f"{how}{scope}ScopedResources"] = self._kind_names(random, namespaced=scope == "Namespace")
        if draw > 0.98:
            found |= self._old_lists(random)
        return found

    def _old_lists(self, random: Random) -> Document:
        found: Document = {}
        if random.random() < 0.6:
            found["includedResources"] = self._kind_names(random)
        if random.random() < 0.4:
            found["excludedResources"] = self._kind_names(random)
        if random.random() < 0.5:
            found["includeClusterResources"] = random.random() < 0.6
        return found

    def _kind_names(self, random: Random, *, namespaced: bool | None = None) -> list[str]:
        kinds = [each for each in self.kinds if namespaced in (None, each.namespaced) or random.random() < 0.05]
        names = [_spelled(random, each) for each in random.choices(kinds, k=random.randint(1, 6))]
        if random.random() < 0.15:
            names = [*names[:1], random.choice(("*", "nothing", "*.apps", "config*", "*s", "pods.", ".apps", ""))]
        if random.random() < 0.05:
            names = ["*"]
        return list(dict.fromkeys(names))

    def policy(self, number: int) -> str:
        """Return a resource policy; some have mistakes."""
        random = Random(1000 + number)  # noqa: S311 - reproducible, not secret
        found: Document = {"version": "v1"}
        if random.random() < 0.6:
            found["volumePolicies"] = [_volume_policy(random) for _ in range(random.randint(1, 3))]
        if random.random() < 0.3:
            lists = {
                f"{how}{scope}ScopedResources": self._kind_names(random, namespaced=scope == "Namespace")
                for how in ("included", "excluded")
                for scope in ("Cluster", "Namespace")
                if random.random() < 0.4
            }
            found["includeExcludePolicy"] = lists
        if random.random() < 0.3:
            found["clusterScopedFilterPolicy"] = {"resourceFilters": self._filters(random, namespaced=False)}
        if random.random() < 0.4:
            found["namespacedFilterPolicies"] = [
                {"namespaces": self._filtered(random), "resourceFilters": self._filters(random, namespaced=True)}
                for _ in range(random.randint(1, 2))
            ]
        if random.random() < 0.05:
            found["mistake"] = True
        if number % 5 == 0:
            _respell(found)
        return json.dumps(found)

    def _filtered(self, random: Random) -> list[str]:
        return random.sample(self.names, 2) if random.random() < 0.5 else [f"{random.choice(_WORDS)}-*"]

    def _filters(self, random: Random, *, namespaced: bool) -> list[Document]:
        kinds = [each for each in dict.fromkeys(self.kinds) if each.namespaced == namespaced]
        found: list[Document] = []
        used: set[ResourceKind] = set()
        for _ in range(random.randint(1, 3)):
            chosen = [each for each in random.sample(kinds, random.randint(1, 3)) if each not in used]
            used.update(chosen)
            if chosen:
                names = [random.choice((each.name, each.kind, each.full_name)) for each in chosen]
                found.append({"kinds": names, **_names(random), **_selectors(random)})
        if namespaced and random.random() < 0.4:
            found.append({**random.choice(({}, {"kinds": ["*"]})), **_selectors(random)})
        return found


def _respell(policy: Document) -> None:
    """Write values that are no strings, types in another case and namespaces that no cluster can have."""
    policy.setdefault("volumePolicies", None)
    for each in policy["volumePolicies"] or ():
        conditions = each["conditions"]
        if "pvcLabels" in conditions:
            conditions["pvcLabels"] = {"zone": 1}
        if "volumeTypes" in conditions:
            conditions["volumeTypes"] = [name.upper() for name in conditions["volumeTypes"]]
    for number, each in enumerate(policy.get("namespacedFilterPolicies", ())):
        each["namespaces"].append(f"Team-{number}-*")


_FREQUENT = (
    "configmaps", "secrets", "pods", "persistentvolumeclaims", "persistentvolumes", "serviceaccounts", "deployments",
    "events", "namespaces", "clusterroles", "clusterrolebindings", "priorityclasses", "customresourcedefinitions",
    "storageclasses", "services",
)  # fmt: skip


def _spelled(random: Random, kind: ResourceKind) -> str:
    spellings = [kind.name, kind.full_name, kind.full_name, kind.singular, kind.kind, *kind.short_names]
    if kind.group:
        spellings += [f"{kind.name}.{kind.group[:4]}", f"{kind.singular}.{kind.group}"]
    return random.choice(spellings)


def _selectors(random: Random) -> Document:
    draw = random.random()
    if draw < 0.6:
        return {}
    if draw < 0.8:
        return {"labelSelector": _selector(random)}
    found: Document = {"orLabelSelectors": [_selector(random) for _ in range(random.randint(1, 3))]}
    return found | ({"labelSelector": _selector(random)} if draw > 0.99 else {})


def _selector(random: Random) -> Document:
    key = random.choice(list(_LABELS))
    values = random.sample(_LABELS[key], random.randint(1, len(_LABELS[key])))
    operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    expression: Document = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = values
    other = random.choice([each for each in _LABELS if each != key])
    return random.choices(
        (
            {"matchLabels": {key: values[0]}},
            {"matchExpressions": [expression]},
            {"matchLabels": {other: _LABELS[other][0]}, "matchExpressions": [expression]},
            {},
            {"matchExpressions": [{"key": key, "operator": "In"}]},
            {"matchLabels": {"not a key": "x"}},
        ),
        (10, 10, 4, 1, 0.3, 0.3),
    )[0]


def _names(random: Random) -> Document:
    found: Document = {}
    if random.random() < 0.4:
        found["names"] = random.sample(("*-a*", "*0", "pod-1", "claim-*", "role-[01]", "configmap-b1"), 2)
    if random.random() < 0.3:
        found["excludedNames"] = random.sample(("*-b*", "*1", "pod-0", "vip-?"), 1)
    return found


def _volume_policy(random: Random) -> Document:
    conditions: Document = {}
    possible: Iterable[tuple[str, Any]] = (
        ("capacity", ("1Gi,5Gi", "2Gi,", ",3Gi")),
        ("storageClass", (["class-0"], ["class-1", "class-2"])),
        ("nfs", ({}, {"server": "nfs.example"}, {"path": "/other"})),
        ("csi", ({"driver": "driver-0.example"}, {"driver": "driver-0.example", "volumeAttributes": {"kind": "fast"}})),
        ("volumeTypes", (["csi"], ["nfs", "hostPath"], ["emptyDir"])),
        ("pvcLabels", ({"app": "web"}, {"tier": "gold"})),
        ("pvcPhase", (["Bound"], ["Pending"])),
    )
    for name, values in possible:
        if random.random() < 0.25:
            conditions[name] = random.choice(values)
    return {"conditions": conditions, "action": {"type": random.choice(("skip", "snapshot", "fs-backup", "custom"))}}
