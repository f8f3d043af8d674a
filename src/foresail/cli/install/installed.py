"""What an installation has now: a new run of the command keeps it, unless an option says otherwise."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.marks import LEASES, RETIRED_LEASE
from foresail.api.metadata import Named
from foresail.api.monitoring import PROMETHEUS_RULE
from foresail.cli.access.cluster import Cluster
from foresail.cli.install.manifests import (
    ADMISSION_BINDING,
    ADMISSION_POLICY,
    CAPABILITIES,
    HOOKS_BINDING,
    SELF_SERVICE_FENCE,
)
from foresail.plan import Key

_OWN_LABELS = "app.kubernetes.io/"
_RETIRED_FENCE = "foresail-fence"
_RETIRED_CONTENTS = "(true && variables.spec"  # how it let downloads of contents through
_RULE = "foresail-runtime"  # whatever is on, it comes with monitoring


class _Labels(msgspec.Struct, frozen=True):
    labels: dict[str, str] = {}


class _Alert(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _Alerts(msgspec.Struct, frozen=True):
    rules: tuple[_Alert, ...] = ()


class _RuleSpec(msgspec.Struct, frozen=True):
    groups: tuple[_Alerts, ...] = ()


class _Rule(msgspec.Struct, frozen=True):
    metadata: _Labels
    spec: _RuleSpec = _RuleSpec()

    @property
    def runbook_url(self) -> str:
        """The page that its alerts link to; empty if they have no link."""
        links = [alert.annotations.get("runbook_url", "") for group in self.spec.groups for alert in group.rules]
        return links[0].partition("#")[0] if links else ""


class _Expression(msgspec.Struct, frozen=True):
    name: str = ""
    expression: str = ""


class _FenceSpec(msgspec.Struct, frozen=True):
    variables: tuple[_Expression, ...] = ()
    validations: tuple[_Expression, ...] = ()


class _Fence(msgspec.Struct, frozen=True):
    spec: _FenceSpec = _FenceSpec()


@dataclass(frozen=True, slots=True)
class Installed:
    """The options of an installation, as its objects have them."""

    capabilities: tuple[str, ...]
    image: str
    pause_image: str = ""
    skip_immediately: bool = False
    monitoring: bool = False
    monitoring_labels: Mapping[str, str] = field(default_factory=dict)
    runbook_url: str = ""
    tenant_locations: bool = False
    download_contents: bool = False
    hooks: bool = False  # of tenants
    other_namespaces: bool = False  # for their restores
    from_protection: bool = False  # the same
    rollback_volumes: bool = False


async def find_installed(cluster: Cluster, namespace: str) -> Installed | None:
    """Return what the Deployments and the rules of an installation tell; None if there is none."""
    keys = [Key(namespace, name) for name in (*LEASES, RETIRED_LEASE)]
    deployments = [one for key in keys if (one := await cluster.if_there(DEPLOYMENT, key, Deployment)) is not None]
    containers = [container for one in deployments for container in one.spec.template.spec.containers]
    if not containers:
        return None
    rule = await cluster.if_there(PROMETHEUS_RULE, Key(namespace, _RULE), _Rule)
    fences = [
        await cluster.if_there(ADMISSION_POLICY, Key("", name), _Fence) for name in (SELF_SERVICE_FENCE, _RETIRED_FENCE)
    ]
    options = installed(
        [word for container in containers for word in container.args],
        containers[0].image,
        rule.metadata.labels if rule else None,
        frozenset(name for fence in fences if fence is not None for name in _switched_on(fence)),
    )
    return replace(options, runbook_url=rule.runbook_url if rule else "")


def installed(
    words: list[str], image: str, rule_labels: Mapping[str, str] | None, fence: Collection[str] = ()
) -> Installed:
    """Return what the arguments of the operators, the labels of a rule and the fence of their token tell."""
    pause = next((word.partition("=")[2] for word in words if word.startswith("--primer-pause-image=")), "")
    labels = {name: value for name, value in (rule_labels or {}).items() if not name.startswith(_OWN_LABELS)}
    return Installed(
        capabilities=tuple(name for name in CAPABILITIES if f"--{name}=true" in words),
        image=image,
        pause_image=pause,
        skip_immediately="--schedule-skip-immediately=true" in words,
        monitoring=rule_labels is not None,
        monitoring_labels=labels,
        tenant_locations="--tenant-locations=true" in words,
        download_contents="--self-service=true" in words and "allowsContents" in fence,
        hooks="--self-service=true" in words and "allowsHooks" in fence,
        other_namespaces="--self-service=true" in words and "allowsOtherNamespaces" in fence,
        from_protection="--self-service=true" in words and "allowsFromProtection" in fence,
        rollback_volumes="--rollback-volumes=true" in words,
    )


def _switched_on(fence: _Fence) -> Iterator[str]:
    """Yield the variables of the fence of self-service that are true."""
    yield from (variable.name for variable in fence.spec.variables if variable.expression == "true")
    if any(_RETIRED_CONTENTS in validation.expression for validation in fence.spec.validations):
        yield "allowsContents"


async def hook_bindings(cluster: Cluster) -> tuple[str, ...]:
    """Return the Schedules with hooks that an installation knows of."""
    bindings = [msgspec.json.decode(raw, type=Named) for raw in await cluster.listed_if_known(ADMISSION_BINDING)]
    names = [binding.metadata.name for binding in bindings]
    return tuple(name.removeprefix(HOOKS_BINDING) for name in names if name.startswith(HOOKS_BINDING))
