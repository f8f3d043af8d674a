"""The cluster that holds all states at once, and the faults of the whole cluster, one after the other."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.truth.states import (
    NFS,
    VELERO,
    Body,
    State,
    TeamState,
    backup_of,
    claim,
    claims_of,
    node_agent,
    pods_of,
    schedules_of,
    surroundings,
)
from foresail.kube.clock import now
from testbed import Cluster
from testbed.velero import revalidate
from tests.cluster import operators, tenants

USER = "ann"
_OADP = "oadp.openshift.io/v1alpha1"
_MATURE = 45.0  # seconds after which a namespace is older than each of its runs


def wait(holds: Callable[[], object], what: str, seconds: float = 180) -> None:
    """Wait until something holds."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(1)


def _namespace(name: str, labels: Body) -> list[Body]:
    """Return a namespace with something in it, in which the team has the role `edit`."""
    subject = {"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "edit", "apiGroup": "rbac.authorization.k8s.io"}
    bound = {"roleRef": role, "subjects": [subject], "metadata": {"name": "team", "namespace": name}}
    settings = {"name": "settings", "namespace": name}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": settings, "data": {"a": "b"}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", **bound},
    ]


class World:
    """A cluster with Velero, both operators, and a namespace for each state."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        tenants.install(cluster, schedules=True)
        self.team = cluster.user_kubeconfig(USER)
        self.schedules = operators.Operator(cluster, folder)
        self.self_service = operators.Operator(cluster, folder, *operators.SELF_SERVICE)

    def build(self, states: Sequence[State], teams: Sequence[TeamState]) -> None:
        """Create all of it."""
        location = self._location()["spec"]
        self.cluster.apply(*surroundings({"provider": location["provider"], "config": location["config"]}))
        labels = {each.name: {"truth.example/team": "yes"} if each.has_policy else {} for each in teams}
        labels |= {each.name: each.labels for each in states}
        self.cluster.apply(*(body for name, marks in labels.items() for body in _namespace(name, marks)))
        began = time.monotonic()
        self.schedules.start()
        self.self_service.start()
        wanted = [body for state in states for body in (*claims_of(state.name, state.claims), *schedules_of(state))]
        self.cluster.apply(*wanted)
        self.cluster.apply(node_agent(), *(body for state in states for body in pods_of(state.name, state.claims)))
        wait(self._has_agent, "a node agent")
        for team in teams:
            self._begin(team)
        uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in self._listed("schedules.velero.io")}
        time.sleep(max(0.0, _MATURE - (time.monotonic() - began)))
        at = now()
        self.cluster.apply(*(backup_of(state, run, uids, at) for state in states for run in state.runs))
        for state in states:
            if state.is_recreated:
                self.cluster.kubectl("delete", "namespace", state.name)
                self.cluster.apply(*_namespace(state.name, state.labels))
            if state.late_claims:
                self.cluster.apply(*claims_of(state.name, state.late_claims))
        for team in teams:
            self._finish(team)
        time.sleep(65)  # the strict objective is one minute

    def close(self) -> None:
        """End the operators."""
        for each in (self.schedules, self.self_service):
            each.kill()

    def _begin(self, team: TeamState) -> None:
        if team.has_claim:
            self.cluster.apply(*claims_of(team.name, (claim("ledger", source=NFS),)))
        if team.schedule is not None:
            spec = {**team.schedule, "template": {"backupSpec": {}}}
            self._as_team(team.name, "NonAdminSchedule", "mine", spec)

    def _finish(self, team: TeamState) -> None:
        """Make a backup, and wait until it has ended."""
        if team.backup is None:
            return
        self._as_team(team.name, "NonAdminBackup", "copy", {"backupSpec": team.backup})
        if team.shown:
            wait(lambda: self._has_ended(team.name), f"the backup of {team.name}")

    def _has_ended(self, namespace: str) -> bool:
        conditions = [
            {each["type"]: each["status"] for each in found.get("status", {}).get("conditions") or ()}
            for found in self._listed("nonadminbackups", namespace)
        ]
        return all(each.get("Succeeded") == "True" for each in conditions)

    def _as_team(self, namespace: str, kind: str, name: str, spec: Body) -> None:
        meta = {"name": name, "namespace": namespace}
        body = {"apiVersion": _OADP, "kind": kind, "metadata": meta, "spec": spec}
        person = tenants.person(self.cluster, USER, namespace)
        person.kubectl("create", "--filename=-", body=body)

    def _listed(self, kind: str, namespace: str = VELERO) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.cluster.get(kind, f"--namespace={namespace}")["items"]
        return rows

    def _has_agent(self) -> bool:
        found = self.cluster.get("daemonset", "node-agent", f"--namespace={VELERO}")
        return bool(found.get("status", {}).get("numberReady"))

    # What can fail

    @contextmanager
    def failing(self, fault: str) -> Iterator[None]:
        """Let something be wrong until the block ends."""
        with _FAULTS[fault](self):
            yield

    def _location(self) -> Body:
        found: Body = self.cluster.get("backupstoragelocation", "default", f"--namespace={VELERO}")
        return found

    def _patch_location(self, patch: Body) -> None:
        words = ("patch", "bsl", "default", f"--namespace={VELERO}", "--type=merge")
        self.cluster.kubectl(*words, f"--patch={json.dumps(patch)}")

    def _revalidate(self, phase: str = "Available") -> None:
        """Let Velero look at the location at once, and wait until it has."""
        revalidate(self.cluster.site)
        wait(lambda: self._is_validated(phase), f"a location that is {phase}")

    def _is_validated(self, phase: str) -> bool:
        status = self._location().get("status", {})
        return bool(status.get("lastValidationTime")) and status.get("phase") == phase

    def _patch_server(self, spec: Body) -> None:
        words = ("patch", "deployment", "velero", f"--namespace={VELERO}", "--type=strategic")
        self.cluster.kubectl(*words, f"--patch={json.dumps({'spec': spec})}")

    def _server(self) -> Body:
        found: Body = self.cluster.get("deployment", "velero", f"--namespace={VELERO}")
        return found

    def _scale(self, number: int) -> None:
        self.cluster.kubectl("scale", "deployment", "velero", f"--namespace={VELERO}", f"--replicas={number}")

    def _arguments(self, arguments: list[str], **more: Any) -> None:  # noqa: ANN401 - JSON
        self._patch_server({"template": {"spec": {"containers": [{"name": "velero", "args": arguments, **more}]}}})
        self._revalidate()  # the Deployment has 0 replicas: what Velero validated before this change proves nothing

    @contextmanager
    def healthy(self) -> Iterator[None]:
        """Change nothing."""
        self._revalidate()
        yield

    @contextmanager
    def with_a_ready_pod(self) -> Iterator[None]:
        """Let a fake kubelet run a pod of the Deployment."""
        self._scale(1)
        wait(lambda: self._server().get("status", {}).get("readyReplicas") == 1, "a ready pod")
        yield
        self._scale(0)
        self._revalidate()

    @contextmanager
    def with_pods_that_never_start(self, image: str = "") -> Iterator[None]:
        """Ask for a node that does not exist, and maybe for an image that does not."""
        before = self._server()["spec"]["template"]["spec"]["containers"][0]["image"]
        containers = [{"name": "velero", "image": image}] if image else []
        self._patch_server(
            {"template": {"spec": {"nodeSelector": {"truth.example/none": "x"}, "containers": containers}}}
        )
        self._scale(1)
        yield
        self._scale(0)
        containers = [{"name": "velero", "image": before}]
        self._patch_server(
            {"template": {"spec": {"nodeSelector": {"truth.example/none": None}, "containers": containers}}}
        )
        self._revalidate()

    @contextmanager
    def scaled_to_0(self) -> Iterator[None]:
        """Stop the only server as `kubectl scale` does."""
        self._scale(1)
        wait(lambda: self._server().get("status", {}).get("readyReplicas") == 1, "a ready pod")
        self.cluster.fault.stop("velero")
        self._scale(0)
        wait(lambda: not self._server().get("status", {}).get("readyReplicas"), "no pod")
        yield
        self.cluster.fault.cont("velero")
        self._revalidate()

    @contextmanager
    def validated_long_ago(self) -> Iterator[None]:
        """Stop the server, and let all locations be as they are after twenty minutes."""
        self.cluster.fault.stop("velero")
        for each in self._listed("backupstoragelocations"):
            words = ("patch", "bsl", each["metadata"]["name"], f"--namespace={VELERO}", "--type=merge")
            self.cluster.kubectl(*words, '--patch={"status":{"lastValidationTime":"2026-01-01T00:00:00Z"}}')
        yield
        self.cluster.fault.cont("velero")
        self._revalidate()

    @contextmanager
    def without_deployment(self) -> Iterator[None]:
        """Delete the Deployment."""
        found = self._server()
        self.cluster.kubectl("delete", "deployment", "velero", f"--namespace={VELERO}")
        yield
        meta = {name: found["metadata"][name] for name in ("name", "namespace", "labels") if name in found["metadata"]}
        self.cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": found["spec"]})
        self._revalidate()

    @contextmanager
    def without_agent(self) -> Iterator[None]:
        """Delete the DaemonSet of the node agents."""
        self.cluster.kubectl("delete", "daemonset", "node-agent", f"--namespace={VELERO}")
        yield
        self.cluster.apply(node_agent())
        wait(self._has_agent, "a node agent")

    @contextmanager
    def not_recognised(self) -> Iterator[None]:
        """Let the Deployment look like another program's."""
        container = self._server()["spec"]["template"]["spec"]["containers"][0]
        self._arguments(container["args"], image="registry.example/backup:1", command=["/backup"])
        yield
        self._arguments(container["args"], image=container["image"], command=container["command"])

    @contextmanager
    def arguments_without(self, unwanted: str, wanted: str = "") -> Iterator[None]:
        """Change the arguments of the server's container, though not those of the server that runs."""
        before = self._server()["spec"]["template"]["spec"]["containers"][0]["args"]
        self._arguments(
            [each for each in before if not unwanted or not each.startswith(unwanted)] + ([wanted] if wanted else [])
        )
        yield
        self._arguments(before)

    @contextmanager
    def _without(self, operator: operators.Operator, lease: str) -> Iterator[None]:
        operator.kill()
        self.cluster.kubectl("delete", "lease", lease, f"--namespace={VELERO}", "--ignore-not-found")
        yield
        operator.start()

    @contextmanager
    def without_schedules(self) -> Iterator[None]:
        """End the operator of Schedules."""
        with self._without(self.schedules, "foresail-schedules"):
            yield

    @contextmanager
    def with_velero_alone(self) -> Iterator[None]:
        """End the operator of Schedules, and give the Schedules back to Velero."""
        with self.without_schedules(), self.arguments_without("--disable-controllers"):
            yield

    @contextmanager
    def without_self_service(self) -> Iterator[None]:
        """End the operator of self-service."""
        with self._without(self.self_service, "foresail-self-service"):
            yield

    @contextmanager
    def with_location(self, patch: Body, back: Body) -> Iterator[None]:
        """Change the default location, and wait until Velero cannot use it."""
        self._patch_location(patch)
        self._revalidate("Unavailable")
        yield
        self._patch_location(back)
        self._revalidate()

    @contextmanager
    def with_another_bucket(self) -> Iterator[None]:
        """Let the location name a bucket that does not exist."""
        storage = self._location()["spec"]["objectStorage"]
        with self.with_location({"spec": {"objectStorage": {"bucket": "gone"}}}, {"spec": {"objectStorage": storage}}):
            yield

    @contextmanager
    def with_wrong_keys(self) -> Iterator[None]:
        """Let the location use keys that the S3 server does not know."""
        keys = "[default]\naws_access_key_id=nobody\naws_secret_access_key=wrong\n"
        meta = {"name": "wrong-keys", "namespace": VELERO}
        self.cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"cloud": keys}})
        wrong = {"spec": {"credential": {"name": "wrong-keys", "key": "cloud"}}}
        with self.with_location(wrong, {"spec": {"credential": None}}):
            yield

    @contextmanager
    def without_default(self) -> Iterator[None]:
        """Let no location be the default one; Velero, which would set it again, is stopped."""
        self.cluster.fault.stop("velero")
        self._patch_location({"spec": {"default": False}})
        yield
        self._patch_location({"spec": {"default": True}})
        self.cluster.fault.cont("velero")
        self._revalidate()

    @contextmanager
    def without_snapshot_location(self) -> Iterator[None]:
        """Delete the VolumeSnapshotLocation."""
        found = self.cluster.get("volumesnapshotlocation", "default", f"--namespace={VELERO}")
        self.cluster.kubectl("delete", "volumesnapshotlocation", "default", f"--namespace={VELERO}")
        yield
        meta = {"name": "default", "namespace": VELERO}
        self.cluster.apply(
            {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": meta, "spec": found["spec"]}
        )


_FAULTS: dict[str, Callable[[World], Any]] = {
    "healthy": World.healthy,
    "pod-of-velero-ready": World.with_a_ready_pod,
    "velero-controller-on": World.with_velero_alone,
    "snapshot-location-gone": World.without_snapshot_location,
    "agent-absent": World.without_agent,
    "pods-not-ready": World.with_pods_that_never_start,
    "wrong-image": lambda world: world.with_pods_that_never_start("velero/velero:v0.0.0-none"),
    "scaled-to-0": World.scaled_to_0,
    "validated-long-ago": World.validated_long_ago,
    "no-deployment": World.without_deployment,
    "server-not-recognised": World.not_recognised,
    "controllers-off": World.without_schedules,
    "self-service-off": World.without_self_service,
    "bucket-gone": World.with_another_bucket,
    "wrong-keys": World.with_wrong_keys,
    "no-default-location": World.without_default,
    "global-policy-missing": lambda world: world.arguments_without(
        "", "--global-backup-volume-policies-configmap=no-such-map"
    ),
}
