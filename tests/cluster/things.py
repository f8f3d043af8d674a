"""A kind without a schema, for tests of the runtime: the worst that a tenant can send gets through to us."""

from typing import Any

import msgspec

from foresail.plan import Kind
from testbed import Cluster
from tests.cluster.kinds import rule, schemaless, service_account

GROUP = "runtime.foresail.dev"
THING = Kind(GROUP, "v1", "things", "Thing")
WHOLE = Kind(GROUP, "v1", "wholes", "Whole")  # without a status subresource, as Velero's kinds are
USER = "system:serviceaccount:default:watcher"


class Spec(msgspec.Struct, frozen=True):
    size: int = 0


class Wire(msgspec.Struct, frozen=True):
    spec: Spec = Spec()


def install(cluster: Cluster) -> None:
    """Create the kind, and a ServiceAccount that may do everything with it and nothing else."""
    everything = rule(GROUP, ["things", "things/status"], "*")
    cluster.apply(schemaless(THING), *service_account("watcher", everything))
    cluster.wait_for_kinds()


def thing(name: str, size: object = 1) -> dict[str, Any]:
    return {
        "apiVersion": THING.api_version,
        "kind": THING.name,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"size": size},
    }
