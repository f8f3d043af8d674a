"""What the pods of a run need, and how they keep their node: the size and the place of a placeholder for one of them.

On GKE Autopilot `safe-to-evict: "false"` means more than elsewhere: the pod gets a node of its own, larger minimum
requests, and may have no affinity to other pods. There a placeholder has no annotation, and is created again if lost.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from foresail.api.pods import Amount, Container, PodSpec, PodTemplate, Resources
from foresail.api.quantities import quantity, text_of
from foresail.primers.affinity import own_labels
from foresail.primers.small_cache import small_cache

Amounts = Mapping[str, Fraction]
_NONE = Fraction(0)
_HUGE_PAGES = "hugepages-"
_DEFAULT_SCHEDULER = "default-scheduler"
_TOLERATED_BY_DEFAULT = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_template = msgspec.json.Decoder(PodTemplate)


class Shape(msgspec.Struct, frozen=True, weakref=True):
    """One pod, as the scheduler and quotas see it; the parts that are passed on stand as they came, in JSON."""

    requests: tuple[tuple[str, str], ...]
    limits: tuple[tuple[str, str], ...]
    containers: int = 1  # how many run at once: a LimitRange bounds each of them
    node_selector: tuple[tuple[str, str], ...] = ()
    affinity: bytes = b""
    spread: bytes = b""  # its topology spread constraints
    labels: tuple[tuple[str, str], ...] = ()  # by which its own affinity and constraints select it
    tolerations: bytes = b""
    scheduler: str = ""
    runtime_class: str = ""
    priority_class: str = ""
    priority: int | None = None  # None until admission has looked it up
    preemption: str = ""
    deadline: bool = False  # it ends by itself after a time, which quotas tell apart
    images: tuple[str, ...] = ()
    pull_secrets: bytes = b""
    claims: tuple[str, ...] = ()  # whose volumes it mounts; a placeholder mounts none, and goes where they are

    @property
    def is_best_effort(self) -> bool:
        """Whether it asks for nothing that a scheduler could hold."""
        return not any(amounts((*self.requests, *self.limits)).values())


_known = WeakValueDictionary[int, Shape]()  # by hash, and only while a row has it: a tenant can write any number
_MOST_CLAIMS = 20  # of one pod: each is two requests at every fire


def shape_of_template(template: bytes) -> Shape:
    """Return the shape of a pod to be; raise ValueError or a DecodeError if it cannot be read."""
    pod_template = _template.decode(template)
    shape = shape_of(pod_template.spec)
    metadata = pod_template.metadata
    labels = own_labels(shape.affinity, shape.spread, (metadata.labels if metadata else None) or {})
    return _one(msgspec.structs.replace(shape, labels=labels)) if labels else shape


def shape_of(spec: PodSpec) -> Shape:
    """Return the shape of a pod; of equal ones there is one, for most pods of a CronJob are alike."""
    requests = _effective(spec, _requests)
    limits = {name: value for name, value in _effective(spec, _limits).items() if _is_limited(spec, name)}
    shape = Shape(
        requests=_texts(requests),
        limits=_texts(_limits_above(requests, limits)),
        containers=max(len(_running(spec)), 1),
        node_selector=tuple(sorted((spec.node_selector or {}).items())),
        affinity=_passed_on(spec.affinity),
        spread=_passed_on(spec.topology_spread_constraints),
        tolerations=_without_defaults(_passed_on(spec.tolerations)),
        scheduler="" if spec.scheduler_name == _DEFAULT_SCHEDULER else spec.scheduler_name,
        runtime_class=spec.runtime_class_name,
        priority_class=spec.priority_class_name,
        priority=spec.priority,
        preemption=spec.preemption_policy,
        deadline=spec.active_deadline_seconds is not None,
        images=tuple(
            dict.fromkeys(container.image for container in (*spec.init_containers, *spec.containers) if container.image)
        ),
        pull_secrets=_passed_on(spec.image_pull_secrets),
        claims=_claims(spec),
    )
    return _one(shape)


def _one(shape: Shape) -> Shape:
    known = _known.get(hash(shape))
    if known == shape:
        return known
    _known[hash(shape)] = shape
    return shape


def with_requests(shape: Shape, requests: tuple[tuple[str, str], ...]) -> Shape:
    """Return a shape that requests something else; of its limits, those of the same resources stay."""
    wanted = amounts(requests)
    limits = amounts(shape.limits)
    kept = {name: value for name, value in limits.items() if name in wanted}
    return msgspec.structs.replace(shape, requests=requests, limits=_texts(_limits_above(wanted, kept)))


Share = tuple[dict[str, str], dict[str, str]]
"""The requests and the limits of one container."""


def shares(shape: Shape) -> list[Share]:
    """Split a shape evenly into as many containers as run at once.

    A LimitRange that admits the containers of a pod also admits their average: its bounds for requests, for limits and
    for the ratio between them hold for each share.
    """
    requests = amounts(shape.requests)
    limits = amounts(shape.limits)
    shares: list[Share] = [({}, {}) for _ in range(shape.containers)]
    for name in sorted({*requests, *limits}):
        least = requests.get(name, _NONE)
        most = limits.get(name)
        unit = _unit(name, least, most or _NONE)
        for index, (asks, may) in enumerate(shares):
            part = _part(least / unit, shape.containers, index)
            asks[name] = text_of(part * unit)  # also if it is 0: a limit alone would be the request too
            if most is not None:
                highest = -(-(most / unit) // shape.containers)
                share = min(part * most // least, highest) if least else most / unit // shape.containers
                may[name] = text_of(Fraction(share) * unit)
    return shares


def _part(units: Fraction, count: int, index: int) -> int:
    """Return how many of so many units one of several containers gets: the first ones get what is left over."""
    share, left = divmod(-(-units.numerator // units.denominator), count)
    return share + (index < left)


def _unit(name: str, *values: Fraction) -> Fraction:
    """Return the smallest amount of a resource that a container can have."""
    if name.startswith(_HUGE_PAGES):
        return quantity(name.removeprefix(_HUGE_PAGES))
    if "/" in name or (name != "cpu" and all(value.denominator == 1 for value in values)):
        return Fraction(1)
    return Fraction(1, 1000)


def amounts(texts: Iterable[tuple[str, str]]) -> dict[str, Fraction]:
    """Return amounts of resources as numbers."""
    return {name: quantity(text) for name, text in texts}


def _effective(spec: PodSpec, of: Callable[[Resources], dict[str, Fraction]]) -> dict[str, Fraction]:
    """Return what the scheduler counts: the containers that run together, or an init container that asks for more."""
    beside: dict[str, Fraction] = {}
    most: dict[str, Fraction] = {}
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            beside = _sum(beside, of(container.resources))
            most = _most(most, beside)
        else:
            most = _most(most, _sum(beside, of(container.resources)))
    running = beside
    for container in spec.containers:
        running = _sum(running, of(container.resources))
    total = _most(most, running)
    if spec.resources is not None:
        total = {**total, **of(spec.resources)}
    return total


def _requests(resources: Resources) -> dict[str, Fraction]:
    """Return the requests; a limit without a request is one, as the API server has it."""
    return _numbers({**(resources.limits or {}), **(resources.requests or {})})


def _limits(resources: Resources) -> dict[str, Fraction]:
    return _numbers(resources.limits or {})


def _is_limited(spec: PodSpec, name: str) -> bool:
    """Whether no container can use more of a resource than its limit."""
    if spec.resources is not None and name in (spec.resources.limits or {}):
        return True
    return all(name in (container.resources.limits or {}) for container in (*spec.init_containers, *spec.containers))


def _limits_above(requests: Amounts, limits: Amounts) -> dict[str, Fraction]:
    """Return limits that the API server accepts: none below its request, and no overcommitment of devices."""
    devices = {name: value for name, value in requests.items() if is_device(name)}
    return {**{name: max(value, requests.get(name, _NONE)) for name, value in limits.items()}, **devices}


def is_device(name: str) -> bool:
    """Whether a resource cannot be overcommitted: an extended resource, or huge pages."""
    return "/" in name or name.startswith(_HUGE_PAGES)


def _running(spec: PodSpec) -> list[Container]:
    return [
        *spec.containers,
        *(container for container in spec.init_containers if container.restart_policy == "Always"),
    ]


def _numbers(texts: Mapping[str, Amount]) -> dict[str, Fraction]:
    return {name: quantity(str(text)) for name, text in texts.items()}


def _sum(one: Amounts, other: Amounts) -> dict[str, Fraction]:
    return {name: one.get(name, _NONE) + other.get(name, _NONE) for name in {*one, *other}}


def _most(one: Amounts, other: Amounts) -> dict[str, Fraction]:
    return {name: max(one.get(name, _NONE), other.get(name, _NONE)) for name in {*one, *other}}


def _texts(amounts: Amounts) -> tuple[tuple[str, str], ...]:
    return tuple((name, text_of(amounts[name])) for name in sorted(amounts))


def _claims(spec: PodSpec) -> tuple[str, ...]:
    named = (volume.persistent_volume_claim for volume in spec.volumes or ())
    return tuple(sorted({claim.claim_name for claim in named if claim is not None})[:_MOST_CLAIMS])


def _passed_on(raw: msgspec.Raw) -> bytes:
    text = bytes(raw)
    return b"" if text in (b"null", b"{}", b"[]") else text


@small_cache(1_000)
def _without_defaults(tolerations: bytes) -> bytes:
    """Drop the tolerations that admission gives every pod: with them, no template would equal its pods."""
    if not any(toleration.encode() in tolerations for toleration in _TOLERATED_BY_DEFAULT):
        return tolerations
    items: list[dict[str, Any]] = msgspec.json.decode(tolerations)
    kept = [item for item in items if item.get("key") not in _TOLERATED_BY_DEFAULT]
    return msgspec.json.encode(kept) if kept else b""


AUTOPILOT, STANDARD = "Autopilot", "Standard"
_MODES = {"gk3-": AUTOPILOT, "gke-": STANDARD}
_COMPUTE_CLASS = "cloud.google.com/compute-class"
_AUTOPILOT_CLASSES = ("autopilot", "autopilot-spot")
_POOLS = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
)
# Each is without effect where the other autoscaler runs.
_KEEPS_NODE = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}


def gke_mode(node: str) -> str:
    """Return the GKE mode by the name of a node; empty elsewhere."""
    return _MODES.get(node[:4], "")


def pool_of(labels: Mapping[str, str]) -> str:
    """Return the pool of a node, from which its autoscaler makes nodes that are alike; empty if none is known."""
    return next((labels[label] for label in _POOLS if label in labels), "")


def keeps_node(shape: Shape, *, is_autopilot: bool) -> Mapping[str, str]:
    """Return the annotations of a pod whose node must stay, in an Autopilot cluster or another one."""
    if is_autopilot or dict(shape.node_selector).get(_COMPUTE_CLASS) in _AUTOPILOT_CLASSES:
        return {}
    return _KEEPS_NODE
