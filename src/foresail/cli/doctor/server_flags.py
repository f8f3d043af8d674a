"""What the doctor recommends about the flags of Velero's server where tenants restore."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from foresail.api.apps import Deployment, is_server
from foresail.cli.doctor.finding import Finding, warning
from foresail.cron.duration import length_of
from foresail.scope.server import flag_value

_CACHE, _TIMEOUT = "--disable-informer-cache", "--resource-timeout"
_VELEROS_TIMEOUT = "10m"
_LONGEST = timedelta(minutes=1)


def recommended_flags(deployments: Iterable[Deployment], namespace: str) -> tuple[str, ...]:
    """Return the flags that a Velero server of a namespace should have for tenants' restores, and has not."""
    found: dict[str, None] = {}
    for one in deployments:
        for container in one.spec.template.spec.containers:
            if one.metadata.namespace == namespace and is_server(container):
                found |= dict.fromkeys(_missing([*container.command, *container.args]))
    return tuple(found)


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
