"""What an installation has now: a new run of the command keeps it, unless an option says otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.marks import CHECKS_LEASE, OPERATORS_LEASE, PRIMERS_LEASE
from foresail.api.monitoring import PROMETHEUS_RULE
from foresail.cli.access.cluster import Cluster
from foresail.cli.install.manifests import ADMISSION_POLICY, CAPABILITIES, CONTENTS
from foresail.plan import Key

_OWN_LABELS = "app.kubernetes.io/"
_FENCE = "foresail-fence"
_RULE = "foresail-runtime"  # whatever is on, it comes with monitoring


class _Labels(msgspec.Struct, frozen=True):
    labels: dict[str, str] = {}


class _Labelled(msgspec.Struct, frozen=True):
    metadata: _Labels


class _Validation(msgspec.Struct, frozen=True):
    expression: str = ""


class _FenceSpec(msgspec.Struct, frozen=True):
    validations: tuple[_Validation, ...] = ()


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
    tenant_locations: bool = False
    download_contents: bool = False


async def find_installed(cluster: Cluster, namespace: str) -> Installed | None:
    """Return what the Deployments and the rules of an installation tell; None if there is none."""
    keys = [Key(namespace, name) for name in (OPERATORS_LEASE, PRIMERS_LEASE, CHECKS_LEASE)]
    found = [each for key in keys if (each := await cluster.if_there(DEPLOYMENT, key, Deployment)) is not None]
    containers = [each for one in found for each in one.spec.template.spec.containers]
    if not containers:
        return None
    rule = await cluster.if_there(PROMETHEUS_RULE, Key(namespace, _RULE), _Labelled)
    fence = await cluster.if_there(ADMISSION_POLICY, Key("", _FENCE), _Fence)
    return installed(
        [word for each in containers for word in each.args],
        containers[0].image,
        rule.metadata.labels if rule else None,
        tuple(each.expression for each in fence.spec.validations) if fence else (),
    )


def installed(
    words: list[str], image: str, rule_labels: Mapping[str, str] | None, fence: Sequence[str] = ()
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
        download_contents="--self-service=true" in words and any(CONTENTS in each for each in fence),
    )
