"""What is left of ResourceQuotas while a restore creates objects: dry runs do not add up, so this does."""

from collections.abc import Iterable
from fractions import Fraction

from foresail.api.quantities import quantity, text_of
from foresail.proof.restore_plan.items import Document, ItemKey, at, mapping, metadata, sequence

_PLAIN = frozenset(
    {
        "pods",
        "services",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "replicationcontrollers",
        "resourcequotas",
    }
)


class QuotaLedger:
    """The quotas of the namespaces, with what the objects planned so far have taken."""

    def __init__(self, quotas: Iterable[Document]) -> None:
        self._left: dict[str, dict[str, dict[str, Fraction]]] = {}
        for quota in quotas:
            if sequence(at(quota, "spec", "scopes")) or at(quota, "spec", "scopeSelector"):
                continue  # counts a part of the pods only: the dry run knows which
            used = mapping(at(quota, "status", "used"))
            hard = mapping(at(quota, "status", "hard"))
            left = {name: _amount(text) - _amount(used.get(name)) for name, text in hard.items()}
            about = metadata(quota)
            self._left.setdefault(str(about.get("namespace")), {})[str(about.get("name"))] = left

    def take(self, target: ItemKey, body: Document) -> str:
        """Take what an object needs; return the quota that has no room for it instead, with what it lacks."""
        quotas = self._left.get(target.namespace, {})
        needed = usage(target.resource, body) if quotas else {}
        for name, left in quotas.items():
            for what, amount in needed.items():
                if what in left and amount > left[what]:
                    return f"exceeded quota: {name}: {what} has room for {text_of(max(left[what], Fraction(0)))}"
        for left in quotas.values():
            for what, amount in needed.items():
                if what in left:
                    left[what] -= amount
        return ""


def usage(resource: str, body: Document) -> dict[str, Fraction]:
    """Return what an object takes of each quota that counts it."""
    needed = {f"count/{resource}": Fraction(1)}
    if resource in _PLAIN:
        needed[resource] = Fraction(1)
    if resource == "services":
        ports = Fraction(len(sequence(at(body, "spec", "ports"))))
        kind = at(body, "spec", "type")
        if kind in ("NodePort", "LoadBalancer"):
            needed["services.nodeports"] = ports
        if kind == "LoadBalancer":
            needed["services.loadbalancers"] = Fraction(1)
    elif resource == "persistentvolumeclaims":
        size = _amount(at(body, "spec", "resources", "requests", "storage"))
        needed["requests.storage"] = size
        name = at(body, "spec", "storageClassName")
        if name:
            prefix = f"{name}.storageclass.storage.k8s.io"
            needed[f"{prefix}/requests.storage"] = size
            needed[f"{prefix}/persistentvolumeclaims"] = Fraction(1)
    elif resource == "pods":
        needed |= _pod_usage(body)
    return needed


def _pod_usage(body: Document) -> dict[str, Fraction]:
    needed: dict[str, Fraction] = {}
    for part in ("requests", "limits"):
        names = {
            name for container in _containers(body, "containers", "initContainers") for name in _asked(container, part)
        }
        for name in names:
            running = sum(
                (_amount(_asked(container, part).get(name)) for container in _containers(body, "containers")),
                Fraction(0),
            )
            starting = [_amount(_asked(container, part).get(name)) for container in _containers(body, "initContainers")]
            amount = max([running, *starting])
            needed[f"{part}.{name}"] = amount
            if part == "requests":
                needed[name] = amount
    return needed


def _containers(body: Document, *fields: str) -> list[Document]:
    return [mapping(item) for name in fields for item in sequence(at(body, "spec", name))]


def _asked(container: Document, part: str) -> Document:
    return mapping(at(container, "resources", part))


def _amount(text: object) -> Fraction:
    try:
        return quantity(str(text)) if text is not None else Fraction(0)
    except ValueError:
        return Fraction(0)
