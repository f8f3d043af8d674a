"""The kinds that a Rollback lists, those that it suspends, and those that it never changes."""

from foresail.api import apps, batch, core
from foresail.plan import Kind

ACCOUNT = Kind("", "v1", "serviceaccounts", "ServiceAccount")
STATEFUL_SET = Kind("apps", "v1", "statefulsets", "StatefulSet")

LISTED = (
    core.CONFIG_MAP,
    Kind("", "v1", "services", "Service"),
    ACCOUNT,
    apps.DEPLOYMENT,
    STATEFUL_SET,
    apps.DAEMON_SET,
    batch.CRON_JOB,
    core.NETWORK_POLICY,
    Kind("networking.k8s.io", "v1", "ingresses", "Ingress"),
    Kind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
)
"""Their metadata are listed: what is created, existing and extra is known of these.

Prune deletes these only: Secrets and claims are not among them.
"""

KUSTOMIZATION = Kind("kustomize.toolkit.fluxcd.io", "v1", "kustomizations", "Kustomization")
HELM_RELEASE = Kind("helm.toolkit.fluxcd.io", "v2", "helmreleases", "HelmRelease")
SCALED_OBJECT = Kind("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")
APPLICATION = Kind("argoproj.io", "v1alpha1", "applications", "Application")

SUSPENDED = (KUSTOMIZATION, HELM_RELEASE, SCALED_OBJECT)
"""What would change objects back or away meanwhile: these are suspended if they are in the namespace."""

CLAIMS = "persistentvolumeclaims"

STOPPED = {"deployments.apps": apps.DEPLOYMENT, "statefulsets.apps": STATEFUL_SET, "cronjobs.batch": batch.CRON_JOB}
"""What is stopped while claims are replaced that it uses: what starts pods and has a field for that."""

SUSPENDED_BY = {"cronjobs.batch": "suspend"}
"""The field that stops it; of all others it is the number of replicas."""

PAUSED = "autoscaling.keda.sh/paused"
"""The annotation by which KEDA leaves a workload as it is, with the value "true"."""

FLUX_OWNERS = {
    "kustomize.toolkit.fluxcd.io": KUSTOMIZATION,
    "helm.toolkit.fluxcd.io": HELM_RELEASE,
}
"""By the group before `/name` and `/namespace` in the labels of an object: what of Flux applies it."""

NEVER = (
    "pods",
    "replicasets.apps",
    "controllerrevisions.apps",
    "jobs.batch",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "persistentvolumeclaims",
    "persistentvolumes",
    "volumesnapshots.snapshot.storage.k8s.io",
    "volumesnapshotcontents.snapshot.storage.k8s.io",
)
"""What others make, what would run again, and volumes with their data."""

NEVER_KINDS = frozenset(
    {
        ("", "Pod"),
        ("apps", "ReplicaSet"),
        ("apps", "ControllerRevision"),
        ("batch", "Job"),
        ("", "Endpoints"),
        ("discovery.k8s.io", "EndpointSlice"),
        ("", "PersistentVolumeClaim"),
        ("snapshot.storage.k8s.io", "VolumeSnapshot"),
        ("", "Event"),
        ("events.k8s.io", "Event"),
        *((kind.group, kind.name) for kind in SUSPENDED),
    }
)
"""The same by group and kind, as lists of backups have them."""

OF_KUBERNETES = frozenset(
    {
        ("configmaps", "kube-root-ca.crt"),
        ("configmaps", "openshift-service-ca.crt"),
        ("serviceaccounts", "default"),
        ("serviceaccounts", "builder"),
        ("serviceaccounts", "deployer"),
    }
)
"""Objects that every namespace gets: never extra."""


def full_name(kind: Kind) -> str:
    """Return plural.group, or the plural for the core group."""
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


BY_NAME = {full_name(kind): kind for kind in (*LISTED, *SUSPENDED)}
"""The kinds that this package may write to, by their full names."""
