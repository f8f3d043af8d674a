"""The versions that the clusters of the tests have: the newest ones, or those that `make matrix` asks for."""

import os
from dataclasses import replace

from testbed import Cluster, Options

KUBERNETES, EMULATE, VELERO = "FORESAIL_KUBERNETES", "FORESAIL_EMULATE", "FORESAIL_VELERO"
"""The environment variables: components of the testbed, and a version that Kubernetes emulates."""


def in_matrix(options: Options) -> Options:
    """Return the options with the versions that the environment names."""
    kubernetes = os.environ.get(KUBERNETES, options.kubernetes)
    velero = os.environ.get(VELERO, options.velero) if options.velero else None
    return replace(options, kubernetes=kubernetes, emulate=os.environ.get(EMULATE, ""), velero=velero)


def sets_requester(cluster: Cluster) -> bool:
    """Return whether the API server can set the requester: it serves MutatingAdmissionPolicies."""
    return "mutatingadmissionpolicies" in cluster.kubectl("get", "--raw=/apis/admissionregistration.k8s.io/v1")
