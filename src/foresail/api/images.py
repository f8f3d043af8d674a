"""Images that others publish and Foresail runs."""

PAUSE_IMAGE = "registry.k8s.io/pause:3.10.2"
"""What placeholders run unless an administrator names another one: the image that Kubernetes runs in every pod."""
