"""A real cluster without containers: how every contributor and CI gets Kubernetes, Velero and S3."""
