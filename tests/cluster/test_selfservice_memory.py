"""Finding 1.5 on the real cluster: no tenant runs the operator out of memory.

A fixed sample of what `python -m bench.selfservice --part hostile` does in full.
"""

import json
from collections.abc import Callable, Iterator

import pytest

from bench.operator import Operator, operator
from bench.selfservice.hostile import HOSTILE, Attack, arrive
from foresail.selfservice.rows.requests import LARGEST_SPEC
from testbed import Cluster
from tests.cluster.tenants import Tenant, condition, install

PATCHES, SPECS = 60, 20
GROWTH_MIB, DELAY_SECONDS = 20.0, 1.0


@pytest.fixture(scope="module")
def attacked(velero_cluster: Cluster) -> Iterator[tuple[Operator, Attack]]:
    """An operator, a hostile tenant and its neighbours; in the end nothing large is left."""
    cluster = velero_cluster
    install(cluster)
    kubeconfig, neighbours = arrive(cluster)
    with operator(cluster, "--schedules=false", "--self-service", settled="selfservice") as process:
        yield process, Attack(cluster, kubeconfig, neighbours, process.memory_mib)
    here = f"--namespace={HOSTILE}"
    for name in cluster.kubectl("get", "nonadminbackups", here, "--output=name").split():
        cluster.kubectl("patch", name, here, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
    cluster.kubectl("delete", "nonadminbackups,nonadminrestores", "--all", here)


def test_finding_1_5_megabytes_of_finalizers_and_specs_do_not_stay_in_memory_and_delay_nobody(
    attacked: tuple[Operator, Attack], figure: Callable[[str], None]
) -> None:
    _, attack = attacked
    found = attack.run(PATCHES, SPECS)
    figure(f"hostile tenant: {json.dumps(found)}")
    for name in ("hostile_rss_growth_mib", "hostile_rss_growth_kept_mib"):
        growth = found[name]
        assert isinstance(growth, float)
        assert growth < GROWTH_MIB, name
    at_api_server = max(attack.creations)  # which has the same two cores as everything else here
    assert max(attack.first_requests) < DELAY_SECONDS + at_api_server


def test_finding_1_5_a_spec_that_is_too_large_is_refused_in_words(attacked: tuple[Operator, Attack]) -> None:
    tenant = Tenant(attacked[1].hostile, HOSTILE)
    names = ["pods" + "s" * 60] * (LARGEST_SPEC // 64)
    tenant.back_up("large", includedResources=names)
    tenant.wait("nonadminbackup/large", "--for=jsonpath={.status.phase}=BackingOff")
    status, reason, message = condition(tenant.status("nonadminbackup/large"), "Accepted")
    assert (status, reason) == ("False", "InvalidBackupSpec")
    assert "spec.backupSpec is larger than 16 KiB of JSON; shorten it" in message
    tenant.wants("large", backupSpec={"includedResources": ["configmaps"]})
    tenant.wait("nonadminbackup/large", "--for=jsonpath={.status.phase}=Created")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"includedResources": ["pods"] * 513}, "spec.backupSpec.includedResources: Too many"),
        ({"storageLocation": "x" * 1025}, "spec.backupSpec.storageLocation: Too long"),
        ({"labelSelector": {"matchLabels": {f"k{n}": "v" for n in range(513)}}}, "matchLabels: Too many"),
    ],
    ids=["items", "length", "properties"],
)
def test_finding_1_5_the_api_server_refuses_what_is_longer_than_any_spec(
    attacked: tuple[Operator, Attack], spec: dict[str, object], words: str
) -> None:
    tenant = Tenant(attacked[1].hostile, HOSTILE)
    with pytest.raises(AssertionError, match=words):
        tenant.back_up("never", **spec)
