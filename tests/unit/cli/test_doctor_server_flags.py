"""What the doctor recommends about the flags of Velero's server where tenants restore."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from foresail.api.apps import Deployment
from foresail.cli.doctor.admission import recommended_flags
from foresail.cli.doctor.finding import Grade
from foresail.cli.doctor.installation import findings
from tests.unit.cli.test_doctor import HEALTHY

CACHE, TIMEOUT = "--disable-informer-cache", "--resource-timeout=1m"


def server(*arguments: str, namespace: str = "velero") -> Deployment:
    container = {"image": "velero/velero:v1.18.3", "command": ["/velero"], "args": ["server", *arguments]}
    body: dict[str, Any] = {
        "metadata": {"name": "velero", "namespace": namespace},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    return msgspec.convert(body, Deployment)


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ([], (CACHE, TIMEOUT)),
        ([CACHE, TIMEOUT], ()),
        ([f"{CACHE}=true", "--resource-timeout", "30s"], ()),
        ([f"{CACHE}=false", TIMEOUT], (CACHE,)),
        ([CACHE, "--resource-timeout=10m"], (TIMEOUT,)),
        ([CACHE, "--resource-timeout=x"], (TIMEOUT,)),
    ],
)
def test_flags_that_the_server_lacks_are_named(arguments: list[str], missing: tuple[str, ...]) -> None:
    assert recommended_flags([server(*arguments), server(namespace="other")], "velero") == missing


def test_they_are_recommended_where_self_service_is_on_and_nowhere_else() -> None:
    seen = replace(HEALTHY, recommended_flags=(CACHE, TIMEOUT))
    on = replace(seen, operators=tuple(replace(each, self_service=True) for each in seen.operators))
    off = replace(seen, operators=tuple(replace(each, self_service=False) for each in seen.operators))
    found = [each for each in findings(on) if "Velero runs without --" in each.says]
    assert [each.grade for each in found] == [Grade.WARNING, Grade.WARNING]
    assert CACHE in found[0].fix
    assert TIMEOUT in found[1].fix
    assert not [each for each in findings(off) if "Velero runs without --" in each.says]
