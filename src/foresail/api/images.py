"""Images that others publish and Foresail runs."""

PAUSE_IMAGE = "registry.k8s.io/pause:3.10.2"
"""The default image of placeholders: the pause image of Kubernetes."""
