"""`foresail backup` and `foresail restore`: what a team does in its own namespace, without an administrator."""
