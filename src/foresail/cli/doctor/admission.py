"""What the doctor makes of the annotations that Velero acts on: whether they are refused, and where some are older."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from foresail.api.apps import Deployment, is_server
from foresail.api.core import NAMESPACE, Namespace
from foresail.api.marks import FILE_SYSTEM_LABEL, VELERO_ANNOTATIONS_LABEL
from foresail.api.metadata import Metadata, Named
from foresail.api.pods import POD
from foresail.api.policy import SelfServicePolicy
from foresail.cli.access.cluster import Cluster
from foresail.cli.doctor.finding import Finding, good, problem, warning
from foresail.cron.duration import length_of
from foresail.plan import Key, Kind
from foresail.reporting import some
from foresail.scope.server import flag_value
from foresail.selfservice.policy.admission import missing_label
from foresail.selfservice.specs.annotations import backup_hook
from foresail.tenancy.namespaces import NamespaceRow, namespace_row
from foresail.tenancy.policies import REFUSED, admission_labels, policy_row

BINDING = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
_ANNOTATIONS = Key("", "foresail-velero-annotations")
_CLAIMS = Key("", "foresail-claims")
_MOST_PODS = 20_000
_INSTALL = "install the admission policies: foresail install --self-service, or helm upgrade foresail charts/foresail"


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether the policy is there, namespaces without its label, and pods with hooks from before it."""

    is_enforced: bool
    unlabelled: tuple[str, ...] = ()
    hooked: tuple[str, ...] = ()  # namespace, name and annotation
    is_complete: bool = True  # whether every pod was read
    refuses_claims: bool = True  # on which Velero would crash


async def read_admission(cluster: Cluster, policies: Sequence[SelfServicePolicy], never: Collection[str]) -> Admission:
    """Read the bindings, the labels of namespaces, and the metadata of at most 20,000 pods."""
    is_enforced = await cluster.if_there(BINDING, _ANNOTATIONS, Named) is not None
    refuses_claims = await cluster.if_there(BINDING, _CLAIMS, Named) is not None
    rows = [policy_row(policy) for policy in policies]
    refused = set[str]()
    unlabelled = list[str]()
    async for page in cluster.metadata_pages(NAMESPACE):
        for metadata in page:
            row: NamespaceRow = namespace_row(Namespace(metadata))
            labels = admission_labels(metadata.name, row.labels, rows, never)
            if labels.velero_annotations == REFUSED:
                refused.add(metadata.name)
            if missing_label(row, labels) and not row.is_terminating:
                unlabelled.append(metadata.name)
    hooked = list[str]()
    count = 0
    async for page in cluster.metadata_pages(POD):
        count += len(page)
        hooked += (_shown(pod) for pod in page if pod.namespace in refused and backup_hook(pod.annotations or {}))
        if count >= _MOST_PODS:
            break
    is_complete = count < _MOST_PODS
    return Admission(is_enforced, tuple(sorted(unlabelled)), tuple(hooked), is_complete, refuses_claims)


def _shown(pod: Metadata) -> str:
    return f"{pod.namespace}/{pod.name} ({backup_hook(pod.annotations or {})})"


def annotations(seen: Admission | None) -> Iterator[Finding]:
    """Report whether annotations that Velero acts on are refused, and which pods have such from before."""
    if seen is None:
        return
    if not seen.is_enforced:
        yield problem("annotations", "nothing refuses annotations that Velero acts on", _INSTALL)
    elif not seen.refuses_claims:
        says = "nothing refuses claims without spec.storageClassName in tenants' namespaces, on which Velero may crash"
        yield problem("claims", says, _INSTALL)
    if seen.unlabelled:
        says = (
            f"namespaces without the labels {VELERO_ANNOTATIONS_LABEL} and {FILE_SYSTEM_LABEL}: {some(seen.unlabelled)}"
        )
        fix = "requests there wait: check that the operator runs, and that no tool removes these labels"
        yield warning("annotations", says, fix)
    if seen.hooked:
        says = f"Velero runs commands in pods that are older than self-service: {some(seen.hooked)}"
        fix = "remove the annotation from the pod and its template; until then every Backup of the namespace runs it"
        yield warning("annotations", says, fix)
    elif seen.is_enforced and not seen.unlabelled:
        read = "no pod has a backup hook" if seen.is_complete else f"none of the first {_MOST_PODS} pods has a hook"
        yield good(
            "annotations", f"annotations that Velero acts on are refused where tenants have self-service; {read}"
        )


_CACHE, _TIMEOUT = "--disable-informer-cache", "--resource-timeout"
_VELEROS_TIMEOUT = "10m"
_LONGEST = timedelta(minutes=1)


def recommended_flags(deployments: Iterable[Deployment], namespace: str) -> tuple[str, ...]:
    """Return the flags that a Velero server of a namespace should have for tenants' restores, and has not."""
    flags: dict[str, None] = {}
    for one in deployments:
        for container in one.spec.template.spec.containers:
            if one.metadata.namespace == namespace and is_server(container):
                flags |= dict.fromkeys(_missing([*container.command, *container.args]))
    return tuple(flags)


def _missing(words: list[str]) -> Iterator[str]:
    cache = [word.partition("=")[2] or "true" for word in words if word.partition("=")[0] == _CACHE]
    if not cache or cache[-1].lower() not in ("true", "t", "1"):
        yield _CACHE
    timeout = length_of(flag_value(words, _TIMEOUT) or _VELEROS_TIMEOUT)
    if timeout is None or timeout > _LONGEST:
        yield f"{_TIMEOUT}=1m"


def flag_findings(missing: tuple[str, ...], namespace: str) -> Iterator[Finding]:
    """Recommend the flags that are missing."""
    means = {_CACHE: "its memory grows with the cluster", _TIMEOUT: "one restore can hold up the end of all others"}
    for flag in missing:
        says = f"Velero runs without {flag}: when tenants restore, {means[flag.partition('=')[0]]}"
        yield warning("restores", says, f"add {flag} to the arguments of Velero's Deployment in namespace {namespace}")
