"""How commands reach a cluster, and what they read of it."""
