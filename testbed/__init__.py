"""A real cluster without containers: how every contributor and CI gets Kubernetes, Velero and S3."""

from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.site import Options

__all__ = ["Cluster", "Options", "TestbedError"]
