"""The versions that the clusters of the tests have: the newest ones, or those that `make matrix` asks for."""

import os
from dataclasses import replace

from testbed import Cluster, Options

KUBERNETES, EMULATE, VELERO, KARPENTER = (
    f"FORESAIL_{name}" for name in ("KUBERNETES", "EMULATE", "VELERO", "KARPENTER")
)
"""The environment variables: components of the testbed, and a version that Kubernetes emulates."""


def in_matrix(options: Options) -> Options:
    """Return the options with the versions that the environment names."""
    kubernetes = os.environ.get(KUBERNETES, options.kubernetes)
    velero = os.environ.get(VELERO, options.velero) if options.velero else None
    karpenter = os.environ.get(KARPENTER, options.karpenter) if options.karpenter else None
    emulate = os.environ.get(EMULATE, "")
    return replace(options, kubernetes=kubernetes, emulate=emulate, velero=velero, karpenter=karpenter)


def sets_requester(cluster: Cluster) -> bool:
    """Return whether the API server can set the requester: it serves MutatingAdmissionPolicies."""
    return "mutatingadmissionpolicies" in cluster.kubectl("get", "--raw=/apis/admissionregistration.k8s.io/v1")
